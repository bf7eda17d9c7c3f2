"""Serialization: values of known types as JSON and arrays, and back.

`pack` and `unpack` take a type hint of our code. A file can never choose a type: `unpack` raises
ReadError for anything that does not match the hint exactly. The supported hints are

- ``None``, ``bool``, ``int``, ``float``, ``str``, ``Literal[...]``
- ``np.ndarray``: as ``{"array": name}``; the name is its path, such as "posterior/draws/17/left"
- ``Labels``: row or column labels, as ``{"array": name, "dtype": type}``
- ``list[X]``, ``tuple[X, ...]``, ``tuple[X, Y]``, ``dict[str, X]``, ``dict[int, X]``
- ``X | Y``: the first that matches
- NamedTuple classes, field by field
- ``Any``: None, a bool, int, float or str, or a list of these

So a value is never nested deeper than its hint. Hints do not specify the types and shapes of arrays:
the caller has to check them.
"""

import types
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from reprlib import repr as short_repr
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import quote

import numpy as np

from fillrank.errors import InputError, ReadError
from fillrank.storage.label_serialization import decode_labels, encode_labels
from fillrank.storage.strict_json import decode_float, encode_float

Labels = Annotated[np.ndarray, "row or column labels"]

_ADVICE = "Restore the file from a copy, or create it again."

# Every integer up to here is exact as a float.
_MAX_EXACT_INTEGER = 2**53


def pack(hint: Any, value: Any, name: str = "") -> tuple[Any, dict[str, np.ndarray]]:
    """Convert a value to a JSON tree and the arrays that the tree refers to.

    Parameters
    ----------
    hint : type hint
    value : object
        A value of that type. NumPy scalars are accepted, and integers for a float.
    name : str
        The first part of the names of the arrays.

    Raises
    ------
    InputError
        The value does not have that type.
    TypeError
        The hint is not supported, or is ambiguous: the value would be read as another type.

    Examples
    --------
    >>> tree, arrays = pack(dict[str, np.ndarray], {"mean": np.zeros(2)}, "errors")
    >>> tree, list(arrays)
    ({'mean': {'array': 'errors/mean'}}, ['errors/mean'])
    >>> tree, arrays = pack(Labels, np.array([1, "1", 1.0], dtype=object), "rows")
    >>> tree
    {'array': 'rows', 'dtype': 'object'}
    >>> unpack(Labels, tree, arrays)
    array([1, '1', 1.0], dtype=object)
    """
    location = _Location((name,) if name else (), {}, set())
    return _codec(hint).pack(value, location), location.arrays


def unpack(hint: Any, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Restore a packed value from some of the arrays.

    Raises
    ------
    ReadError
        The tree does not match the hint, or refers to an array that does not exist, or twice to one.
    """
    return _codec(hint).unpack(tree, _Location((), arrays, set()))


def unpack_all(hint: Any, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Restore a packed value from all of the arrays: ReadError also if one is not used."""
    location = _Location((), arrays, set())
    value = _codec(hint).unpack(tree, location)
    if unused := sorted(arrays.keys() - location.used):
        raise ReadError(
            f"every array must be used; these are not: {short_repr(unused)}", advice=_ADVICE
        )
    return value


class _Location(NamedTuple):
    """A location in a value or tree: its path, the arrays, and the names of those used so far."""

    path: tuple[str, ...]
    arrays: dict[str, np.ndarray]
    used: set[str]

    @property
    def name(self) -> str:
        """The path as text."""
        return "/".join(self.path)

    def child(self, key: str | int) -> "_Location":
        """Return the location of an item."""
        if isinstance(key, str):  # quoted, so that different paths are different as text
            key = quote(key, safe=" ", errors="surrogatepass")
        return _Location((*self.path, str(key)), self.arrays, self.used)

    def use_array(self, name: Any) -> np.ndarray:
        """Return an array, which must exist and not have been used."""
        if not isinstance(name, str) or name not in self.arrays or name in self.used:
            raise self.read_error("the name of an unused array", name)
        self.used.add(name)
        return self.arrays[name]

    def write_error(self, expected: str, value: Any) -> InputError:
        """Return the error for a value that has the wrong type."""
        return InputError(
            f"{self.name or 'the value'} must be {expected} to be stored in a file, "
            f"got {type(value).__name__} {short_repr(value)} instead."
        )

    def read_error(self, expected: str, tree: Any) -> ReadError:
        """Return the error for a tree that does not match the hint."""
        return ReadError(
            f"{self.name or 'the content'} must be {expected}, got {short_repr(tree)} instead",
            advice=_ADVICE,
        )


class _Codec(Protocol):
    """Packs and unpacks values of one hint; messages describe them as ``expected``."""

    @property
    def expected(self) -> str: ...

    def pack(self, value: Any, location: _Location) -> Any:
        """Return the JSON tree of a value, and add its arrays to those of the location."""

    def unpack(self, tree: Any, location: _Location) -> Any:
        """Return the value of a tree."""


@dataclass(frozen=True)
class _Scalar:
    """bool, int or str; NumPy scalars become Python scalars."""

    cls: type
    accepted: tuple[type, ...]
    expected: str

    def pack(self, value: Any, location: _Location) -> Any:
        is_other_bool = isinstance(value, bool) and self.cls is not bool
        if is_other_bool or not isinstance(value, self.accepted):
            raise location.write_error(self.expected, value)
        return self.cls(value)

    def unpack(self, tree: Any, location: _Location) -> Any:
        if type(tree) is not self.cls:
            raise location.read_error(self.expected, tree)
        return tree


class _Float:
    """A float; always with a decimal point in JSON, which distinguishes it from an int."""

    expected = "a number"

    def pack(self, value: Any, location: _Location) -> Any:
        if isinstance(value, (float, np.float32, np.float16)):
            return encode_float(float(value))
        is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not is_integer or abs(int(value)) > _MAX_EXACT_INTEGER:
            raise location.write_error(self.expected, value)
        return float(value)

    def unpack(self, tree: Any, location: _Location) -> float:
        try:
            return decode_float(tree)
        except ValueError as error:
            raise location.read_error(self.expected, tree) from error


@dataclass(frozen=True)
class _Literal:
    """One of some values: Literal or None."""

    values: tuple[Any, ...]

    @property
    def expected(self) -> str:
        return " or ".join(map(repr, self.values))

    def _contains(self, value: Any) -> bool:
        # 1 and True are different here.
        return any(type(value) is type(known) and value == known for known in self.values)

    def pack(self, value: Any, location: _Location) -> Any:
        if not self._contains(value):
            raise location.write_error(self.expected, value)
        return value

    def unpack(self, tree: Any, location: _Location) -> Any:
        if not self._contains(tree):
            raise location.read_error(self.expected, tree)
        return tree


class _Array:
    """An array of any type and shape."""

    expected = "an array"

    def pack(self, value: Any, location: _Location) -> Any:
        if not isinstance(value, np.ndarray):
            raise location.write_error(self.expected, value)
        location.arrays[location.name] = value
        return {"array": location.name}

    def unpack(self, tree: Any, location: _Location) -> np.ndarray:
        if not isinstance(tree, dict) or tree.keys() != {"array"}:
            raise location.read_error(self.expected, tree)
        return location.use_array(tree["array"])


class _LabelArray:
    """Row or column labels."""

    expected = "an array of labels"

    def pack(self, value: Any, location: _Location) -> Any:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            raise location.write_error(self.expected, value)
        location.arrays[location.name] = encode_labels(value)
        return {"array": location.name, "dtype": value.dtype.name}

    def unpack(self, tree: Any, location: _Location) -> np.ndarray:
        if not isinstance(tree, dict) or tree.keys() != {"array", "dtype"}:
            raise location.read_error(self.expected, tree)
        stored = location.use_array(tree["array"])
        try:
            return decode_labels(stored, tree["dtype"])
        except (TypeError, ValueError, OverflowError) as error:
            raise ReadError(
                f"the labels of {location.name or 'rows or columns'} cannot be read: {error}",
                advice=_ADVICE,
            ) from error


@dataclass(frozen=True)
class _Union:
    """A value of the first hint that matches."""

    codecs: Sequence[_Codec]

    @property
    def expected(self) -> str:
        return " or ".join(codec.expected for codec in self.codecs)

    def pack(self, value: Any, location: _Location) -> Any:
        for number, codec in enumerate(self.codecs):
            # A codec that fails may leave arrays. The one that succeeds replaces them.
            with suppress(InputError):
                tree = codec.pack(value, location)
                self._check_unambiguous(number, tree, location)
                return tree
        raise location.write_error(self.expected, value)

    def _check_unambiguous(self, number: int, tree: Any, location: _Location) -> None:
        """Raise TypeError if `unpack` would restore the value by an earlier codec."""
        for codec in self.codecs[:number]:
            with suppress(ReadError):
                codec.unpack(tree, _Location((), location.arrays, set()))
                raise TypeError(f"{location.name}: a file cannot distinguish {self.expected}")

    def unpack(self, tree: Any, location: _Location) -> Any:
        for codec in self.codecs:
            trial = _Location(location.path, location.arrays, set(location.used))
            with suppress(ReadError):
                value = codec.unpack(tree, trial)
                location.used.update(trial.used)
                return value
        raise location.read_error(self.expected, tree)


@dataclass(frozen=True)
class _Sequence:
    """A list or a tuple; ``repeated`` if it has any number of items, all of one hint."""

    container: type[list[Any]] | type[tuple[Any, ...]]
    items: tuple[_Codec, ...]
    repeated: bool

    @property
    def expected(self) -> str:
        return f"a {self.container.__name__}" + ("" if self.repeated else f" of {len(self.items)}")

    def _items(self, values: Any) -> tuple[_Codec, ...]:
        return self.items * len(values) if self.repeated else self.items

    def pack(self, value: Any, location: _Location) -> Any:
        if type(value) is not self.container or len(value) != len(self._items(value)):
            raise location.write_error(self.expected, value)
        pairs = zip(self._items(value), value, strict=True)
        return [codec.pack(item, location.child(i)) for i, (codec, item) in enumerate(pairs)]

    def unpack(self, tree: Any, location: _Location) -> Any:
        if type(tree) is not list or len(tree) != len(self._items(tree)):
            raise location.read_error(self.expected, tree)
        pairs = zip(self._items(tree), tree, strict=True)
        return self.container(
            codec.unpack(item, location.child(i)) for i, (codec, item) in enumerate(pairs)
        )


@dataclass(frozen=True)
class _Dict:
    """A dict whose keys are text or integers, which are text in JSON."""

    key: _Scalar
    item: _Codec

    @property
    def expected(self) -> str:
        return f"a dict whose keys are each {self.key.expected}"

    def pack(self, value: Any, location: _Location) -> Any:
        if type(value) is not dict:
            raise location.write_error(self.expected, value)
        keys = [self.key.pack(key, location) for key in value]
        pairs = zip(keys, value.values(), strict=True)
        return {str(key): self.item.pack(item, location.child(key)) for key, item in pairs}

    def unpack(self, tree: Any, location: _Location) -> Any:
        if not isinstance(tree, dict):
            raise location.read_error(self.expected, tree)
        return {
            self._decode_key(key, location): self.item.unpack(item, location.child(key))
            for key, item in tree.items()
        }

    def _decode_key(self, text: str, location: _Location) -> str | int:
        if self.key.cls is str:
            return text
        with suppress(ValueError):
            if str(int(text)) == text:
                return int(text)
        raise location.read_error(self.expected, text)


@dataclass(frozen=True)
class _Record:
    """A NamedTuple: an object with exactly its fields."""

    cls: Any
    fields: dict[str, _Codec]

    @property
    def expected(self) -> str:
        return f"a {self.cls.__name__} with {', '.join(self.fields)}"

    def pack(self, value: Any, location: _Location) -> Any:
        if type(value) is not self.cls:
            raise location.write_error(self.expected, value)
        return {
            name: codec.pack(getattr(value, name), location.child(name))
            for name, codec in self.fields.items()
        }

    def unpack(self, tree: Any, location: _Location) -> Any:
        if not isinstance(tree, dict) or tree.keys() != self.fields.keys():
            raise location.read_error(self.expected, tree)
        fields = self.fields.items()
        return self.cls(
            **{name: codec.unpack(tree[name], location.child(name)) for name, codec in fields}
        )


_NONE = _Literal((None,))
_BOOL = _Scalar(bool, (bool, np.bool_), "True or False")
_INT = _Scalar(int, (int, np.integer), "an integer")
_TEXT = _Scalar(str, (str,), "text")
_SCALAR = _Union((_NONE, _BOOL, _INT, _Float(), _TEXT))
_SIMPLE: dict[Any, _Codec] = {
    None: _NONE,
    type(None): _NONE,
    bool: _BOOL,
    int: _INT,
    float: _Float(),
    str: _TEXT,
    np.ndarray: _Array(),
    Labels: _LabelArray(),
    Any: _Union((*_SCALAR.codecs, _Sequence(list, (_SCALAR,), repeated=True))),
}


def _codec(hint: Any) -> _Codec:
    """Return the codec of a hint, with those of its arguments, so a hint cannot contain itself."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return _record(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _Literal(arguments)
    if origin in (Union, types.UnionType):
        return _Union([_codec(argument) for argument in arguments])
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        return _Sequence(origin, (_codec(arguments[0]),), repeated=True)
    if origin is tuple:
        return _Sequence(tuple, tuple(map(_codec, arguments)), repeated=False)
    if origin is dict and arguments[0] in (str, int):
        return _Dict(_TEXT if arguments[0] is str else _INT, _codec(arguments[1]))
    raise TypeError(f"values of type {hint} cannot be stored in a file")


@lru_cache  # by class only: int | float and float | int are equal, but not the same hint
def _record(made: type) -> _Record:
    hints = get_type_hints(made, include_extras=True)
    return _Record(made, {name: _codec(hint) for name, hint in hints.items()})
