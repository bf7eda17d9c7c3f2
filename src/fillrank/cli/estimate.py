"""What a fit will take, about: told before the work, from constants that were measured.

A sweep of a sampler costs so much for each entry and factor, and the record of it so much for each row
or column and pair of factors. The other methods try some twenty penalties: they have a cost for each
entry and factor of the whole fit. The constants are from MovieLens 1M and 100K (docs/figures.md); a
busy machine can take several times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fillrank.cli.messages import duration, say
from fillrank.cli.methods import Settings
from fillrank.runtime.memory import available_memory, format_bytes
from fillrank.table.observations import Observations

_USUAL_RANK = 30
_USUAL_SWEEPS = 500  # what "auto" takes on ratings
_START = 1.5  # seconds: imports, and what has been compiled before
# Seconds on one thread, for each entry and factor of a sweep or of a whole fit.
_OF_SWEEP = 2.5e-9
_OF_FIT = {
    "SoftImpute": 9e-6,
    "SoftImputeALS": 9e-6,
    "HASI": 3e-5,
    "RelaxedSpectral": 3e-5,
    "M3F": 5e-6,
    "IPM3F": 1e-5,
}
# Seconds for each row or column and pair of factors, to record a sweep; this part has one thread.
_OF_RECORD = 2.7e-9
# Bytes: the program itself, each entry (by row, by column, in standard units), a number of a draw.
_PROGRAM, _ENTRY, _NUMBER = 250e6, 64, 4
_MOST_DRAWS, _MOST_BYTES = 512, 2**31  # as run.recorder has it


class Cost(NamedTuple):
    """Seconds and bytes."""

    seconds: float
    n_bytes: float


def of_fit(settings: Settings, data: Observations, n_threads: int) -> Cost:
    """The cost of a fit on so many threads."""
    sides = sum(data.shape)
    rank = _USUAL_RANK if settings.max_rank == "auto" else settings.max_rank
    rank = min(rank, *data.shape)
    work = data.n_entries * rank / n_threads
    n_bytes = _PROGRAM + _ENTRY * data.n_entries
    if settings.method in _OF_FIT:
        return Cost(_START + _OF_FIT[settings.method] * work, n_bytes + 8 * _NUMBER * sides * rank)
    sweeps = _USUAL_SWEEPS if settings.sweeps == "auto" else settings.sweeps
    sweep = settings.chains * (_OF_SWEEP * work + _OF_RECORD * sides * rank**2)
    draws = min(sweeps * settings.chains, _MOST_DRAWS)
    kept = min(draws * _NUMBER * sides * (rank + 2), _MOST_BYTES)
    return Cost(_START + sweeps * sweep, n_bytes + kept)


def tell(settings: Settings | Sequence[Settings], data: Observations, times: int = 1) -> None:
    """Say what fits by these settings, each so many times, will take."""
    from fillrank.runtime.threads import available_threads

    each = [settings] if isinstance(settings, Settings) else settings
    costs = [of_fit(one, data, available_threads(one.threads)) for one in each]
    n_fits, n_bytes = times * len(costs), max(cost.n_bytes for cost in costs)
    time = duration(times * sum(cost.seconds for cost in costs))
    fits = "The fit" if n_fits == 1 else f"{n_fits} fits"
    text = f"{fits} will take {time} and {format_bytes(_rounded(n_bytes))} of memory."
    available = available_memory()
    if available is not None and n_bytes > available:
        text += f" [bold yellow]Only {format_bytes(available)} can be had.[/]"
    say(text)


def _rounded(n_bytes: float) -> float:
    """To one digit: more would promise too much."""
    unit = 10 ** math.floor(math.log10(n_bytes))
    return math.ceil(n_bytes / unit) * unit
