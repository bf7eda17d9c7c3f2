"""Matrix Market files read by pyarrow, which is otherwise used for large files only."""

from pathlib import Path
from unittest import mock

import fillrank as fr
from fillrank.io import matrix_market as reader
from fuzz.targets import matrix_market

SUFFIX = ".mtx"
seeds, mutate = matrix_market.seeds, matrix_market.mutate


def attempt(path: Path) -> None:
    with mock.patch.object(reader, "SMALL", 0):
        fr.read(path)
