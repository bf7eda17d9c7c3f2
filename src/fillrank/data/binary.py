"""Files that are no text tables: Parquet, Matrix Market, numpy's .npy and .npz.

Nothing here unpickles: a file can hold data, never code.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from fillrank.data.observations import Observations
from fillrank.data.triplets import Duplicates
from fillrank.errors import FillrankError, ReadError

TRIPLET_ARRAYS = ("rows", "columns", "values")


def _foreign(path: Path, kind: str, reading: Callable[[], Any]) -> Any:
    """Run another library's reader; whatever it raises, the file is not what it should be."""
    try:
        return reading()
    except FillrankError:
        raise
    except Exception as error:
        cause = str(error).strip().splitlines()
        raise ReadError(
            f"{path} is no whole {kind} file: {cause[0] if cause else type(error).__name__}"
        ) from error


def read_parquet(path: Path) -> Any:
    """Read a data frame by the library that is there."""
    if find_spec("polars"):
        import polars

        return _foreign(path, "Parquet", lambda: polars.read_parquet(path))
    if find_spec("pyarrow"):
        import pyarrow.parquet

        return _foreign(path, "Parquet", lambda: pyarrow.parquet.read_table(path))
    raise ReadError(
        f"{path}: Parquet needs polars or pyarrow, and neither is installed. "
        'Do: pip install "fillrank[tables]"'
    )


def _read_mtx(path: Path, duplicates: Duplicates) -> Observations:
    def reading() -> Any:
        field = scipy.io.mminfo(str(path))[4]
        if field == "pattern":
            raise ReadError(
                f"{path} is a pattern: it says where entries are, but not which values they have. "
                "Save it with values (field real or integer)."
            )
        return scipy.io.mmread(str(path))

    return Observations.from_matrix(_foreign(path, "Matrix Market", reading), duplicates=duplicates)


def _read_npy(path: Path, duplicates: Duplicates) -> Observations:
    matrix = _foreign(path, ".npy", lambda: np.load(path, allow_pickle=False))
    if not isinstance(matrix, np.ndarray):
        raise ReadError(f"{path} is no .npy file but an archive; name it .npz.")
    return Observations.from_matrix(matrix, duplicates=duplicates)


def _read_npz(path: Path, duplicates: Duplicates) -> Observations:
    arrays = _foreign(path, ".npz", lambda: _arrays(path))
    if "format" in arrays and "shape" in arrays:
        sparse = _foreign(path, "sparse .npz", lambda: sp.load_npz(path))
        return Observations.from_matrix(sparse, duplicates=duplicates)
    if set(arrays) == set(TRIPLET_ARRAYS):
        return Observations.from_triplets(**arrays, duplicates=duplicates)
    if len(arrays) == 1:
        return Observations.from_matrix(*arrays.values(), duplicates=duplicates)
    raise ReadError(
        f"{path} must hold one array, or {', '.join(TRIPLET_ARRAYS)}, or a sparse matrix; it holds "
        f"{', '.join(arrays) or 'nothing'}."
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


MATRIX_READERS: dict[str, Callable[[Path, Duplicates], Observations]] = {
    ".mtx": _read_mtx,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
