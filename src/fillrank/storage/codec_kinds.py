"""How values of each kind of type hint become JSON and arrays, and come back; see codec.py."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fillrank.errors import InputError, ReadError
from fillrank.storage import strict_json
from fillrank.storage.codec_places import Reader, Writer
from fillrank.storage.label_codec import pack_labels, unpack_labels

# All whole numbers up to here are floats too.
_WHOLE_FLOATS = 2**53


class Kind(Protocol):
    """How values of one hint are packed and unpacked; ``needed`` is what messages call them."""

    @property
    def needed(self) -> str: ...

    def pack(self, value: Any, writer: Writer) -> Any:
        """The JSON tree of a value; its arrays go to the writer."""

    def unpack(self, tree: Any, reader: Reader) -> Any:
        """The value of a tree."""


@dataclass(frozen=True)
class Scalar:
    """bool, int or str; numpy's scalars become Python's."""

    plain: type
    accepted: tuple[type, ...]
    needed: str

    def pack(self, value: Any, writer: Writer) -> Any:
        is_strange_bool = isinstance(value, bool) and self.plain is not bool
        if is_strange_bool or not isinstance(value, self.accepted):
            raise writer.refusal(self.needed, value)
        return self.plain(value)

    def unpack(self, tree: Any, reader: Reader) -> Any:
        if type(tree) is not self.plain:
            raise reader.refusal(self.needed, tree)
        return tree


class Float:
    """A number; packed always with a decimal point, so that it cannot be taken for an int."""

    needed = "a number"

    def pack(self, value: Any, writer: Writer) -> Any:
        if isinstance(value, (float, np.float32, np.float16)):
            return strict_json.float_tree(float(value))
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or abs(int(value)) > _WHOLE_FLOATS:
            raise writer.refusal(self.needed, value)
        return float(value)

    def unpack(self, tree: Any, reader: Reader) -> float:
        try:
            return strict_json.tree_float(tree)
        except ValueError as error:
            raise reader.refusal(self.needed, tree) from error


@dataclass(frozen=True)
class OneOf:
    """A value among some: of Literal, or None."""

    values: tuple[Any, ...]

    @property
    def needed(self) -> str:
        return " or ".join(map(repr, self.values))

    def _has(self, value: Any) -> bool:
        # 1 is not True here.
        return any(type(value) is type(known) and value == known for known in self.values)

    def pack(self, value: Any, writer: Writer) -> Any:
        if not self._has(value):
            raise writer.refusal(self.needed, value)
        return value

    def unpack(self, tree: Any, reader: Reader) -> Any:
        if not self._has(tree):
            raise reader.refusal(self.needed, tree)
        return tree


class Array:
    """An array of any type and shape."""

    needed = "an array"

    def pack(self, value: Any, writer: Writer) -> Any:
        if not isinstance(value, np.ndarray):
            raise writer.refusal(self.needed, value)
        writer.arrays[writer.name] = value
        return {"array": writer.name}

    def unpack(self, tree: Any, reader: Reader) -> np.ndarray:
        if not isinstance(tree, dict) or tree.keys() != {"array"}:
            raise reader.refusal(self.needed, tree)
        return reader.take(tree["array"])


class LabelArray:
    """Names of rows or columns."""

    needed = "an array of names"

    def pack(self, value: Any, writer: Writer) -> Any:
        if not isinstance(value, np.ndarray):
            raise writer.refusal(self.needed, value)
        tree, arrays = pack_labels(value, writer.name)
        writer.arrays.update(arrays)
        return tree

    def unpack(self, tree: Any, reader: Reader) -> np.ndarray:
        if not isinstance(tree, dict) or "array" not in tree:
            raise reader.refusal(self.needed, tree)
        reader.take(tree["array"])
        return unpack_labels(tree, reader.arrays)


@dataclass(frozen=True)
class Choice:
    """A value of the first kind that fits."""

    kinds: Sequence[Kind]

    @property
    def needed(self) -> str:
        return " or ".join(kind.needed for kind in self.kinds)

    def pack(self, value: Any, writer: Writer) -> Any:
        for number, kind in enumerate(self.kinds):
            # A kind that does not fit may leave arrays. The one that fits has the same at their places.
            with suppress(InputError):
                tree = kind.pack(value, writer)
                self._check_returns(number, tree, writer)
                return tree
        raise writer.refusal(self.needed, value)

    def _check_returns(self, number: int, tree: Any, writer: Writer) -> None:
        """Refuse what an earlier kind would take for its own when it is read."""
        for kind in self.kinds[:number]:
            with suppress(ReadError):
                kind.unpack(tree, Reader((), writer.arrays, set()))
                raise TypeError(f"{writer.name}: a file cannot tell {self.needed} apart")

    def unpack(self, tree: Any, reader: Reader) -> Any:
        for kind in self.kinds:
            trial = Reader(reader.path, reader.arrays, set(reader.used))
            with suppress(ReadError):
                value = kind.unpack(tree, trial)
                reader.used.update(trial.used)
                return value
        raise reader.refusal(self.needed, tree)


@dataclass(frozen=True)
class Repeated:
    """A list, or a tuple of any length, of values of one kind."""

    container: Any
    item: Kind

    @property
    def needed(self) -> str:
        return f"a {self.container.__name__}"

    def pack(self, value: Any, writer: Writer) -> Any:
        if self.container is not type(value):
            raise writer.refusal(self.needed, value)
        return [self.item.pack(part, writer.at(i)) for i, part in enumerate(value)]

    def unpack(self, tree: Any, reader: Reader) -> Any:
        if not isinstance(tree, list):
            raise reader.refusal(self.needed, tree)
        return self.container(self.item.unpack(part, reader.at(i)) for i, part in enumerate(tree))


@dataclass(frozen=True)
class FixedTuple:
    """A tuple of so many values, each of its own kind."""

    items: Sequence[Kind]

    @property
    def needed(self) -> str:
        return f"a tuple of {len(self.items)}"

    def pack(self, value: Any, writer: Writer) -> Any:
        if type(value) is not tuple or len(value) != len(self.items):
            raise writer.refusal(self.needed, value)
        pairs = enumerate(zip(self.items, value, strict=True))
        return [item.pack(part, writer.at(i)) for i, (item, part) in pairs]

    def unpack(self, tree: Any, reader: Reader) -> Any:
        if not isinstance(tree, list) or len(tree) != len(self.items):
            raise reader.refusal(self.needed, tree)
        pairs = enumerate(zip(self.items, tree, strict=True))
        return tuple(item.unpack(part, reader.at(i)) for i, (item, part) in pairs)


@dataclass(frozen=True)
class Mapping:
    """A dict whose keys are text, or whole numbers, which JSON holds as text."""

    key: Scalar
    item: Kind

    @property
    def needed(self) -> str:
        return f"a dict whose keys are each {self.key.needed}"

    def pack(self, value: Any, writer: Writer) -> Any:
        if type(value) is not dict:
            raise writer.refusal(self.needed, value)
        keys = [self.key.pack(key, writer) for key in value]
        pairs = zip(keys, value.values(), strict=True)
        return {str(key): self.item.pack(part, writer.at(key)) for key, part in pairs}

    def unpack(self, tree: Any, reader: Reader) -> Any:
        if not isinstance(tree, dict):
            raise reader.refusal(self.needed, tree)
        return {
            self._key(key, reader): self.item.unpack(part, reader.at(key))
            for key, part in tree.items()
        }

    def _key(self, text: str, reader: Reader) -> Any:
        if self.key.plain is str:
            return text
        with suppress(ValueError):
            if str(int(text)) == text:
                return int(text)
        raise reader.refusal(self.needed, text)


@dataclass(frozen=True)
class Record:
    """A NamedTuple: an object with exactly its fields."""

    made: Any
    fields: dict[str, Kind]

    @property
    def needed(self) -> str:
        return f"a {self.made.__name__}"

    def pack(self, value: Any, writer: Writer) -> Any:
        if type(value) is not self.made:
            raise writer.refusal(self.needed, value)
        return {
            name: kind.pack(getattr(value, name), writer.at(name))
            for name, kind in self.fields.items()
        }

    def unpack(self, tree: Any, reader: Reader) -> Any:
        if not isinstance(tree, dict) or tree.keys() != self.fields.keys():
            raise reader.refusal(f"{self.needed} with {', '.join(self.fields)}", tree)
        return self.made(
            **{name: kind.unpack(tree[name], reader.at(name)) for name, kind in self.fields.items()}
        )
