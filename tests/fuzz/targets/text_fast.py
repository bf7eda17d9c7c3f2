"""Long tables read by pyarrow, which is otherwise used for large files only."""

from pathlib import Path
from unittest import mock

import fillrank as fr
from fillrank.io import long_text as reader
from fuzz.tables import long_text
from fuzz.targets import movielens

SUFFIX = ".csv"


def seeds() -> list[bytes]:
    return [
        long_text(),
        long_text("\t", header=""),
        long_text("|", header="userId,movieId,score").replace(b"\n", b"\r\n"),
        *movielens.seeds(),
    ]


def attempt(path: Path) -> None:
    with mock.patch.object(reader, "SMALL", 0):
        fr.read(path, duplicates="last")
