"""Values as JSON and arrays, and back, as the code's own type hints say.

A file can never choose a type: `unpack` is told which type must come, and refuses whatever does not
fit it exactly. These hints are known:

- ``None``, ``bool``, ``int``, ``float``, ``str``, ``Literal[...]``
- ``np.ndarray``: as ``{"array": name}``, its name being its path, such as "posterior/draws/17/left";
  ``Labels``: names of rows or columns
- ``list[X]``, ``tuple[X, ...]``, ``tuple[X, Y]``, ``dict[str, X]``, ``dict[int, X]``
- ``X | Y``: the first that fits
- classes of NamedTuple, field by field
- ``Any``: None, a bool, int, float or str, or a list of these

So a value is never nested deeper than its hint. What an array's type and shape have to be, hints do
not say: that is for the caller to check.
"""

import types
from functools import lru_cache
from reprlib import repr as in_short
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from fillrank.errors import ReadError
from fillrank.storage.codec_kinds import (
    Array,
    Choice,
    FixedTuple,
    Float,
    Kind,
    LabelArray,
    Mapping,
    OneOf,
    Record,
    Repeated,
    Scalar,
)
from fillrank.storage.codec_places import Reader, Writer

Labels = Annotated[np.ndarray, "names of rows or columns"]

_NONE = OneOf((None,))
_BOOL = Scalar(bool, (bool, np.bool_), "True or False")
_INT = Scalar(int, (int, np.integer), "a whole number")
_TEXT = Scalar(str, (str,), "text")
_FLOAT = Float()
_SCALARS = Choice((_NONE, _BOOL, _INT, _FLOAT, _TEXT))
_SIMPLE: dict[Any, Kind] = {
    None: _NONE,
    type(None): _NONE,
    bool: _BOOL,
    int: _INT,
    float: _FLOAT,
    str: _TEXT,
    np.ndarray: Array(),
    Labels: LabelArray(),
    Any: Choice((*_SCALARS.kinds, Repeated(list, _SCALARS))),
}


def pack(hint: Any, value: Any, name: str = "") -> tuple[Any, dict[str, np.ndarray]]:
    """A value as a JSON tree and the arrays that it speaks of.

    Parameters
    ----------
    hint : type hint
    value : object
        A value of that type; numpy's scalars will do, and a whole number where a float is due.
    name : str
        What the names of the arrays begin with.

    Raises
    ------
    InputError
        The value is not of that type.
    TypeError
        The hint is none of those above, or is ambiguous: the value would be read as another type.

    Examples
    --------
    >>> tree, arrays = pack(dict[str, np.ndarray], {"mean": np.zeros(2)}, "errors")
    >>> tree, list(arrays)
    ({'mean': {'array': 'errors/mean'}}, ['errors/mean'])
    """
    writer = Writer((name,) if name else (), {})
    return _kind(hint).pack(value, writer), writer.arrays


def unpack(hint: Any, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value that was packed, from some of the arrays.

    Raises
    ------
    ReadError
        The tree is not that of a value of this type, names an array that is not there, or one twice.
    """
    return _kind(hint).unpack(tree, Reader((), arrays, set()))


def unpack_all(hint: Any, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value that was packed, from all of the arrays: ReadError also if one is left over."""
    reader = Reader((), arrays, set())
    value = _kind(hint).unpack(tree, reader)
    if left_over := sorted(arrays.keys() - reader.used):
        raise ReadError(
            f"every array must belong to something; got these over: {in_short(left_over)}. "
            "Restore the file from a copy, or make it again."
        )
    return value


def _kind(hint: Any) -> Kind:
    """The kind of a hint, made with all its parts, so that a hint cannot contain itself."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return _record(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return OneOf(parts)
    if origin in (Union, types.UnionType):
        return Choice([_kind(part) for part in parts])
    if origin is list:
        return Repeated(list, _kind(parts[0]))
    if origin is tuple and parts[1:] == (...,):
        return Repeated(tuple, _kind(parts[0]))
    if origin is tuple:
        return FixedTuple([_kind(part) for part in parts])
    if origin is dict and parts[0] in (str, int):
        return Mapping(_TEXT if parts[0] is str else _INT, _kind(parts[1]))
    raise TypeError(f"values of the type {hint} cannot be kept in a file")


@lru_cache  # by class; other hints are not, for int | float and float | int are equal
def _record(made: type) -> Record:
    hints = get_type_hints(made, include_extras=True)
    return Record(made, {name: _kind(hint) for name, hint in hints.items()})
