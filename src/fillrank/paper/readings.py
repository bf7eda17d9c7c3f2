"""Which noise and which error Table 1 of the paper can mean: its numbers over the oracle's.

The paper says "standard Gaussian noise" and "a signal to noise ratio of 1", and "RMSE". With
sd(Z) = sqrt(q) these are sigma = 1 or sigma = sqrt(q); and the error may be absolute or relative to the
size of Z or of X. An average of draws cannot be far below the oracle, so a reading with ratios
well below 1 is out. (The authors' data say that sigma was 1 in the other experiment, which was made the
same way: see `fillrank.paper.figure1`.)
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from fillrank.paper import published
from fillrank.paper.published import Setting
from fillrank.paper.tables import markdown


class Reading(NamedTuple):
    """The standard deviation of the noise, and what errors are divided by."""

    words: str
    noise: float
    unit: float


def readings_of(q: int) -> tuple[Reading, ...]:
    """All readings for matrices of rank q."""
    root = math.sqrt(q)
    return (
        Reading("sigma = 1, absolute", 1.0, 1.0),
        Reading("sigma = 1, relative to Z", 1.0, root),
        Reading("sigma = 1, relative to X", 1.0, math.sqrt(q + 1)),
        Reading("sigma = sqrt(q), absolute", root, 1.0),
        Reading("sigma = sqrt(q), relative to Z", root, root),
    )


def floor_of(setting: Setting, missing: float, reading: Reading) -> float:
    """The oracle's error under a reading."""
    m, q, _ = setting
    e0 = reading.noise * math.sqrt(q * (2 * m - q) / ((1 - missing) * m * m))
    return e0 / reading.unit


def _rows() -> Iterator[tuple[str, ...]]:
    for method, table in published.TABLE_1.items():
        for setting, row in table.items():
            for reading in readings_of(setting.rank):
                ratios = (
                    number.mean / floor_of(setting, missing, reading)
                    for number, missing in zip(row, published.MISSING, strict=True)
                )
                yield method, str(setting.size), reading.words, *(f"{x:.2f}" for x in ratios)


def readings() -> list[str]:
    """The paper's numbers over the oracle's under each reading, as Markdown."""
    header = ("paper's", "m = n", "reading", *(f"{missing:.0%}" for missing in published.MISSING))
    return [
        "The paper's numbers over the oracle's, for each reading of its noise and error; well below 1 "
        "is out of reach:",
        "",
        *markdown(header, _rows()),
        "",
    ]
