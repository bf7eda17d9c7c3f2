"""Places in a value that is packed, or in a tree that is unpacked: their paths, and the arrays there."""

from dataclasses import dataclass
from reprlib import repr as in_short
from typing import Any
from urllib.parse import quote

import numpy as np

from fillrank.errors import InputError, ReadError


@dataclass(frozen=True)
class Writer:
    """Where a value is, and the arrays found so far."""

    path: tuple[str, ...]
    arrays: dict[str, np.ndarray]

    @property
    def name(self) -> str:
        """The path as the name of an array."""
        return "/".join(self.path)

    def at(self, part: str | int) -> "Writer":
        """The place of a part of the value."""
        # A key may hold any character: quoted, no two paths have one name.
        part = quote(str(part), safe=" ", errors="surrogatepass")
        return Writer((*self.path, part), self.arrays)

    def refusal(self, needed: str, got: Any) -> InputError:
        """What to raise for a value that is not what is needed."""
        return InputError(
            f"{self.name or 'the value'} must be {needed} to be kept in a file, "
            f"got {type(got).__name__} {in_short(got)} instead."
        )


@dataclass(frozen=True)
class Reader:
    """Where a tree is, the arrays that there are, and the names of those used so far."""

    path: tuple[str, ...]
    arrays: dict[str, np.ndarray]
    used: set[str]

    def at(self, part: str | int) -> "Reader":
        """The place of a part of the tree."""
        return Reader((*self.path, str(part)), self.arrays, self.used)

    def take(self, name: Any) -> np.ndarray:
        """An array, which must be there and not have been used."""
        if not isinstance(name, str) or name not in self.arrays or name in self.used:
            raise self.refusal("an array of its own", name)
        self.used.add(name)
        return self.arrays[name]

    def refusal(self, needed: str, got: Any) -> ReadError:
        """What to raise for a tree that is not what is needed."""
        return ReadError(
            f"{'/'.join(self.path) or 'the content'} must be {needed}, got {in_short(got)} instead. "
            "Restore the file from a copy, or make it again."
        )
