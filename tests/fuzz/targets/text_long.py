"""Long tables as text, by their header, by their content, and with given settings."""

from pathlib import Path

import fillrank as fr
from fillrank.errors import FillrankError
from fuzz.tables import long_text

SUFFIX = ".csv"


def seeds() -> list[bytes]:
    return [
        long_text(),
        long_text(names=True),
        long_text("\t", header=""),
        long_text(";", header="", names=True).replace(b"\n", b"\r\n"),
        long_text("|", header="userId,movieId,score"),
        long_text(" ", header=""),
    ]


def attempt(path: Path) -> None:
    try:
        fr.read(path)
    except FillrankError:
        fr.read(path, layout="long", duplicates="mean")
