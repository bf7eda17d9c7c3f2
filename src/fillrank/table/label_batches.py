"""Names that come batch by batch, numbered as if they had come at once."""

from itertools import repeat
from typing import Any

import numpy as np

from fillrank.table.labels import factorize

# Whole numbers are close to each other if they span fewer than this many times the names seen.
_CLOSE = 4


class Numbering:
    """Numbers names in order of first appearance; ``what`` ("row" or "column") is for messages.

    Examples
    --------
    >>> numbering = Numbering("row")
    >>> numbering.take(np.array([7, 3])), numbering.take(np.array([5, 3]))
    (array([0, 1], dtype=int32), array([2, 1], dtype=int32))
    >>> numbering.labels()
    array([7, 3, 5])
    """

    def __init__(self, what: str):
        self._what = what
        self._labels: list[np.ndarray] = []
        self._known: _ByDistance | _ByHash = _ByDistance()
        self._n_known = self._n_seen = 0

    def take(self, names: np.ndarray) -> np.ndarray:
        """Number the next batch, of the type of all before it; refuse a missing name."""
        self._n_seen += len(names)
        codes = self._find(names)
        new = np.flatnonzero(codes < 0)
        if len(new):
            fresh, labels = factorize(names[new], self._what)
            codes[new] = self._n_known + fresh
            self._add(labels)
        return codes

    def labels(self) -> np.ndarray:
        """The names so far, in order of their numbers."""
        return np.concatenate(self._labels)

    def _find(self, names: np.ndarray) -> np.ndarray:
        """The numbers of names that are known, and -1."""
        if isinstance(self._known, _ByDistance) and not self._known.reach(names, self._n_seen):
            self._known = _ByHash()
            if self._labels:
                self._known.add(self.labels(), 0)
        return self._known.find(names) if self._n_known else np.full(len(names), -1, np.int32)

    def _add(self, labels: np.ndarray) -> None:
        self._known.add(labels, self._n_known)
        self._labels.append(labels)
        self._n_known += len(labels)


class _ByDistance:
    """Numbers of whole numbers that are close to each other: a table over their range, which grows."""

    def __init__(self) -> None:
        self._low = 0
        self._numbers = np.empty(0, dtype=np.int32)

    def reach(self, names: np.ndarray, n_seen: int) -> bool:
        """Make room for names; False if they are no whole numbers, or too far apart."""
        if names.dtype.kind not in "iu":
            return False
        low, high = int(names.min()), int(names.max())
        size = self._numbers.size
        if size:
            low, high = min(low, self._low), max(high, self._low + size - 1)
        if high - low >= _CLOSE * n_seen or high >= 2**63:
            return False
        if high - low >= size:
            before = self._low - low if size else 0
            after = high - low + 1 - size - before
            self._numbers = np.pad(self._numbers, (before, after), constant_values=-1)
            self._low = low
        return True

    def find(self, names: np.ndarray) -> np.ndarray:
        return self._numbers[names.astype(np.int64) - self._low]

    def add(self, labels: np.ndarray, first: int) -> None:
        self._numbers[labels.astype(np.int64) - self._low] = np.arange(first, first + len(labels))


class _ByHash:
    """Numbers of names of any kind."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def find(self, names: np.ndarray) -> np.ndarray:
        found = map(self._numbers.get, names.tolist(), repeat(-1))
        return np.fromiter(found, dtype=np.int32, count=len(names))

    def add(self, labels: np.ndarray, first: int) -> None:
        self._numbers.update(zip(labels.tolist(), range(first, first + len(labels)), strict=True))
