"""numpy's .npy and .npz: what a file says about its size is compared with what it has.

Nothing here unpickles: a file can hold data, never code.
"""

import math
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.lib import format

from fillrank.errors import InputError, ReadError
from fillrank.runtime.memory import check_room, in_bytes
from fillrank.table.matrices import check_stored_shape

_HEADERS: dict[tuple[int, int], Callable[[BinaryIO], Any]] = {
    (1, 0): format.read_array_header_1_0,
    (2, 0): format.read_array_header_2_0,
}
# The arrays of each of scipy's formats besides `format`, `shape` and `data`.
_COMPRESSED = ("indices", "indptr")
_SPARSE = {
    "coo": ("row", "col"),
    "csr": _COMPRESSED,
    "csc": _COMPRESSED,
    "bsr": _COMPRESSED,
    "dia": ("offsets",),
}
_ZIP_MAGIC = b"PK"
_KINDS = "biufcSUmM"  # all of numpy's but for records and objects


def load_array(path: Path) -> np.ndarray:
    """Read an .npy file."""
    with path.open("rb") as file:
        if file.read(2) == _ZIP_MAGIC:
            raise ReadError(f"{path} is no .npy file but an archive; name it .npz.")
        file.seek(0)
        return _read_array(file, path.stat().st_size, str(path))


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an .npz file."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_room(
            sum(member.file_size for member in members),
            "what is packed in the file",
            "Save fewer or smaller arrays in it.",
        )
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise ReadError(f"{path} must hold .npy arrays alone; it has {name!r} in it.")
            with archive.open(member) as file:
                arrays[name] = _read_array(file, member.file_size, f"{path} ({name})")
    return arrays


def _read_array(file: Any, n_bytes: int, source: str) -> np.ndarray:
    """Read an array, if a file of so many bytes can have one of the size that it says."""
    version = format.read_magic(file)
    if version not in _HEADERS:
        raise ReadError(f"{source} is of a version of .npy that is not known: {version}.")
    shape, is_fortran, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ReadError(
            f"{source} holds Python objects, which are not read: they could run anything. Save numbers."
        )
    if dtype.kind not in _KINDS:
        raise InputError(f"arrays must hold real numbers, or names; got dtype {dtype}.")
    size = math.prod(shape) * dtype.itemsize
    left = n_bytes - file.tell()
    if min(shape, default=1) < 0 or size > left:
        raise ReadError(
            f"{source} is not whole: an array of shape {shape} and type {dtype} takes {in_bytes(size)}, "
            f"and the file has {in_bytes(left)}."
        )
    check_room(size, f"an array of shape {shape}", "Save a part of it.")
    flat = np.frombuffer(file.read(size), dtype=dtype)
    if dtype.kind == "U" and flat.size and flat.view(dtype.byteorder + "u4").max() > sys.maxunicode:
        raise ReadError(
            f"{source} is damaged: it should hold text, and some of it is no character."
        )
    return flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)


def is_sparse(arrays: dict[str, np.ndarray]) -> bool:
    """Whether arrays are those that `scipy.sparse.save_npz` writes."""
    return "format" in arrays and "shape" in arrays


def sparse_matrix(arrays: dict[str, np.ndarray], source: str) -> Any:
    """Make the matrix that `scipy.sparse.save_npz` has written.

    Its indices are for `Observations.from_matrix` to check, as those of any sparse matrix are.
    """
    kind = arrays["format"].astype("S8").tobytes().rstrip(b"\0").decode("ascii", "replace")
    if kind not in _SPARSE:
        raise ReadError(
            f"{source}: the format of a sparse matrix must be one of {', '.join(_SPARSE)}; got {kind!r}."
        )
    lacking = [name for name in ("data", *_SPARSE[kind]) if name not in arrays]
    if lacking:
        raise ReadError(f"{source}: a sparse matrix of format {kind} needs {', '.join(lacking)}.")
    index = [arrays[name] for name in _SPARSE[kind]]
    whole = [arrays["shape"], *index]
    if any(array.dtype.kind not in "iu" or array.ndim != 1 for array in whole):
        raise ReadError(
            f"{source}: the shape and the indices of a sparse matrix must be lists of whole numbers."
        )
    shape = tuple(arrays["shape"].tolist())
    data = arrays["data"]
    if len(shape) != 2 or min(shape) < 1:
        raise InputError(f"a matrix must have rows and columns; got shape {shape}.")
    check_stored_shape(shape, data.size)
    if "indptr" in _SPARSE[kind]:
        indices, pointers = index
        last = pointers[-1] if pointers.size else 0
        if not last == len(indices) == len(data):
            raise ReadError(
                f"{source} is damaged: the last number of indptr must be the number of stored values; "
                f"it is {last}, and there are {len(data)} values and {len(indices)} indices."
            )
    if kind == "coo":
        return sp.coo_array((data, (index[0], index[1])), shape=shape)
    make = getattr(sp, f"{kind}_array")
    return make((data, *index), shape=shape)
