"""Row and column labels as arrays that a file can contain, and back, without changing their types.

Arrays of numbers and dates are stored as they are. Labels of any other type, or of several types, become
JSON in an array of bytes: 1, 1.0, true and "1" are four labels there too, and dates have a tag.
"""

import json
import re
from datetime import date, datetime
from typing import Any

import numpy as np

from fillrank.errors import InputError
from fillrank.storage.array_file import DTYPES
from fillrank.storage.strict_json import decode_float, encode_float, parse_json

# NumPy's names of date and duration types, such as datetime64[ns] and timedelta64[25s].
_TIME_TYPE = re.compile(
    r"(datetime64|timedelta64)(\[([1-9][0-9]{0,8})?(Y|M|W|D|h|m|[munpfa]?s)\])?", re.ASCII
)


def encode_labels(labels: np.ndarray) -> np.ndarray:
    """Convert labels to an array that a file can contain.

    Raises
    ------
    InputError
        A label has a type that is not supported, such as a tuple.

    Examples
    --------
    >>> labels = np.array([1, "1", 1.0], dtype=object)
    >>> encode_labels(labels).tobytes()
    b'[1,"1",1.0]'
    >>> decode_labels(encode_labels(labels), "object")
    array([1, '1', 1.0], dtype=object)
    """
    dtype = labels.dtype
    if dtype.name in DTYPES:
        return labels
    if dtype.kind in "mM":
        return labels.astype(dtype.newbyteorder("=")).view(np.int64)
    if dtype.kind != "O":
        raise _label_error(f"of dtype {dtype}")
    trees = [_encode_label(label) for label in labels.tolist()]
    try:
        text = json.dumps(trees, ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:  # an integer of thousands of digits
        raise _label_error(f"that cannot be: {error}") from error
    # File names may contain lone surrogates, for bytes that are not text. Escaped in JSON, two of
    # them could become one character.
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def decode_labels(stored: np.ndarray, dtype: Any) -> np.ndarray:
    """Restore labels of this type; they may still contain duplicates.

    Raises
    ------
    TypeError, ValueError, OverflowError
        `encode_labels` does not return such an array.
    """
    expected = dtype if dtype in DTYPES else "uint8" if dtype == "object" else "int64"
    if stored.ndim != 1 or stored.dtype != expected:
        raise ValueError(f"got {stored.dtype}, {stored.ndim} dimensions, for the type {dtype}")
    if dtype in DTYPES:
        return stored
    if dtype != "object":
        return stored.view(_time_type(dtype))
    trees = parse_json(stored.tobytes().decode("utf-8", "surrogatepass"))
    if not isinstance(trees, list):
        raise ValueError("they are not a list")
    labels = np.empty(len(trees), dtype=object)
    labels[:] = [_decode_label(tree) for tree in trees]
    return labels


def _encode_label(label: Any) -> Any:
    """Convert a label to JSON that shows its type; NumPy scalars become Python scalars."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    if isinstance(label, (np.datetime64, np.timedelta64)):  # timedelta64 is also an np.integer
        return {label.dtype.name: int(label.view(np.int64))}
    if isinstance(label, (int, np.integer)):
        return int(label)
    if isinstance(label, (float, np.float32, np.float16)):
        return encode_float(float(label))
    if isinstance(label, date):
        return _encode_date(label)
    raise _label_error(f"of type {type(label).__name__}")


def _encode_date(label: date) -> dict[str, str]:
    tag, decode = (
        ("datetime", datetime.fromisoformat)
        if isinstance(label, datetime)
        else ("date", date.fromisoformat)
    )
    text = label.isoformat()
    try:
        decoded = decode(text)
    except ValueError as error:  # pandas.NaT
        raise _label_error(f"of type {type(label).__name__}") from error
    # A time zone is stored as its offset, and a nanosecond is lost: lookup must give the same result.
    if decoded != label or hash(decoded) != hash(label):
        raise _label_error(
            f"of type {type(label).__name__} that datetime cannot represent: {label}"
        )
    return {tag: text}


def _decode_label(tree: Any) -> Any:
    if isinstance(tree, (str, bool, int, float)):
        return tree
    if not isinstance(tree, dict):
        raise ValueError("one of them is not a label")
    ((tag, value),) = tree.items()
    if tag == "float":
        return decode_float(tree)
    if tag == "date":
        return date.fromisoformat(value)
    if tag == "datetime":
        return datetime.fromisoformat(value)
    if type(value) is not int:
        raise ValueError(f"{tag[:40]!r} requires an integer")
    return np.array(value, np.int64).view(_time_type(tag))[()]


def _time_type(name: str) -> np.dtype[Any]:
    if not _TIME_TYPE.fullmatch(name):
        raise ValueError(f"unknown type {name[:40]!r}")
    return np.dtype(name)


def _label_error(found: str) -> InputError:
    return InputError(
        "row and column labels must be numbers, text or dates to be stored in a file; got one "
        f"{found}",
        advice="Convert such labels to text first.",
    )
