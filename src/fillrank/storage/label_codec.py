"""Names of rows and columns as arrays that a file can hold, and back: none changes its type.

Numbers and dates that come as arrays of one type stay arrays. Names of any other kind, or of several,
become JSON in an array of bytes: 1, 1.0, true and "1" are four names there too, and dates carry a tag.
"""

import json
import re
from datetime import date, datetime
from typing import Any

import numpy as np

from fillrank.errors import InputError, ReadError
from fillrank.storage import strict_json
from fillrank.storage.array_file import DTYPES

# numpy's names of dates and durations, such as datetime64[ns] and timedelta64[25s].
_MOMENTS = re.compile(
    r"(datetime64|timedelta64)(\[([1-9][0-9]{0,8})?(Y|M|W|D|h|m|[munpfa]?s)\])?", re.ASCII
)


def pack_labels(
    labels: np.ndarray, name: str = "labels"
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Labels as a JSON tree, and the one array, of this name, that it speaks of.

    Raises
    ------
    InputError
        A label is of a type that cannot be kept, such as a tuple.

    Examples
    --------
    >>> tree, arrays = pack_labels(np.array([1, "1", 1.0], dtype=object))
    >>> tree
    {'array': 'labels', 'dtype': 'object'}
    >>> unpack_labels(tree, arrays)
    array([1, '1', 1.0], dtype=object)
    """
    if labels.ndim != 1:
        raise InputError(f"labels must be one-dimensional; got shape {labels.shape}.")
    dtype = labels.dtype
    if dtype.name in DTYPES:
        kept = labels
    elif dtype.kind in "mM":
        kept = labels.astype(dtype.newbyteorder("=")).view(np.int64)
    elif dtype.kind == "O":
        kept = np.frombuffer(_to_json(labels.tolist()), np.uint8)
    else:
        raise _cannot_keep(f"of dtype {dtype}")
    return {"array": name, "dtype": dtype.name}, {name: kept}


def unpack_labels(tree: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The labels that `pack_labels` has packed. Whether they are distinct is not looked at.

    Raises
    ------
    ReadError
        This is nothing that `pack_labels` makes.
    """
    try:
        name, dtype = _parts(tree)
        if name not in arrays:
            raise ValueError(f"there is no array {name[:100]!r}")
        return _unpacked(arrays[name], dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ReadError(
            f"the names of rows or columns cannot be read: {error}. Restore the file from a copy, "
            "or make it again."
        ) from error


def _cannot_keep(what: str) -> InputError:
    return InputError(
        "names of rows and columns must be numbers, text or dates to be kept in a file; got one "
        f"{what}. Turn such names into text first."
    )


def _parts(tree: Any) -> tuple[str, str]:
    if not isinstance(tree, dict) or tree.keys() != {"array", "dtype"}:
        raise ValueError("their description is incomplete")
    name, dtype = tree["array"], tree["dtype"]
    if not isinstance(name, str) or not isinstance(dtype, str):
        raise ValueError("their description is not text")
    return name, dtype


def _unpacked(kept: np.ndarray, dtype: str) -> np.ndarray:
    needed = dtype if dtype in DTYPES else "uint8" if dtype == "object" else "int64"
    if kept.ndim != 1 or kept.dtype != needed:
        raise ValueError(f"got {kept.dtype}, {kept.ndim} dimensions, for names of type {dtype}")
    if dtype in DTYPES:
        return kept
    if dtype == "object":
        return _from_json(kept.tobytes())
    return kept.view(_moment_type(dtype))


def _moment_type(name: str) -> np.dtype:
    if not _MOMENTS.fullmatch(name):
        raise ValueError(f"unknown type {name[:40]!r}")
    return np.dtype(name)


def _to_json(labels: list[Any]) -> bytes:
    try:
        text = json.dumps(list(map(_tagged, labels)), ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:  # a whole number of thousands of digits
        raise _cannot_keep(f"that is not: {error}") from error
    # Names of files may hold lone surrogates, for bytes that are no text. As JSON's escapes two of them
    # could melt into one character.
    return text.encode("utf-8", "surrogatepass")


def _tagged(label: Any) -> Any:
    """A label as JSON that says which type it is of; numpy's scalars become Python's."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    if isinstance(label, (np.datetime64, np.timedelta64)):  # before np.integer: timedelta64 is one
        return {label.dtype.name: int(label.view(np.int64))}
    if isinstance(label, (int, np.integer)):
        return int(label)
    if isinstance(label, (float, np.float32, np.float16)):
        return strict_json.float_tree(float(label))
    if isinstance(label, date):
        return _tagged_date(label)
    raise _cannot_keep(f"of type {type(label).__name__}")


def _tagged_date(label: date) -> dict[str, str]:
    tag, kind = ("datetime", datetime) if isinstance(label, datetime) else ("date", date)
    text = label.isoformat()
    try:
        again = kind.fromisoformat(text)
    except ValueError as error:  # pandas.NaT
        raise _cannot_keep(f"of type {type(label).__name__}") from error
    # A time zone is kept as its offset, and a nanosecond is not: lookup must not see a difference.
    if again != label or hash(again) != hash(label):
        raise _cannot_keep(f"of type {type(label).__name__} that a datetime cannot hold: {label}")
    return {tag: text}


def _from_json(kept: bytes) -> np.ndarray:
    trees = strict_json.parse(kept.decode("utf-8", "surrogatepass"))
    if not isinstance(trees, list):
        raise ValueError("they are no list")
    labels = np.empty(len(trees), dtype=object)
    labels[:] = list(map(_untagged, trees))
    return labels


def _untagged(tree: Any) -> Any:
    if isinstance(tree, (str, bool, int, float)):
        return tree
    if not isinstance(tree, dict):
        raise ValueError("one of them is no name")
    ((tag, value),) = tree.items()
    if tag == "float":
        return strict_json.tree_float(tree)
    if tag == "date":
        return date.fromisoformat(value)
    if tag == "datetime":
        return datetime.fromisoformat(value)
    if type(value) is not int:
        raise ValueError(f"{tag[:40]!r} needs a whole number")
    return np.array(value, np.int64).view(_moment_type(tag))[()]
