"""Positions of names that are whole numbers or dates, by the million: as arrays of int64 throughout."""

from typing import NamedTuple

import numpy as np

# Of a table over a range of numbers, for each of them: a dict takes as much memory.
_PLACES_A_NUMBER = 16
# Numbers looked up at once: what is made on the way stays in cache.
_BLOCK = 65_536


class _Table(NamedTuple):
    """Positions of numbers that are close to each other, by their distance to the lowest.

    Where there is no such number it is -1, and so is the last, which stands for all out of range.
    """

    lowest: int
    positions: np.ndarray

    def find(self, numbers: np.ndarray) -> np.ndarray:
        # Unsigned, what is below the lowest is far above the highest: one comparison for both ends.
        distance = numbers.view(np.uint64) - np.uint64(self.lowest % 2**64)
        np.minimum(distance, len(self.positions) - 1, out=distance)
        return self.positions.take(distance.view(np.int64))


class _Sorted(NamedTuple):
    """Numbers in ascending order, and their positions."""

    numbers: np.ndarray
    positions: np.ndarray

    def find(self, numbers: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self.numbers, numbers, side="right") - 1
        return np.where(self.numbers[place] == numbers, self.positions[place], -1)


class NumberIndex(NamedTuple):
    """Finds the positions of whole numbers or dates; where a label came twice, its last."""

    lookup: _Table | _Sorted

    def positions(self, names: np.ndarray) -> np.ndarray:
        """The position of each name, -1 for those that are not there.

        Parameters
        ----------
        names : ndarray
            Such as `are_whole` accepts; dates in the unit of the labels.

        Returns
        -------
        ndarray of int64
        """
        positions = np.empty(len(names), dtype=np.int64)
        for start in range(0, len(names), _BLOCK):
            block = slice(start, start + _BLOCK)
            positions[block] = self.lookup.find(names[block].astype(np.int64, copy=False))
        return positions


def are_whole(names: np.ndarray) -> bool:
    """Whether names are whole numbers or dates that are equal if and only if they are as int64.

    Examples
    --------
    >>> are_whole(np.array([1, 2], dtype=np.uint64)), are_whole(np.array([1, 2**63], dtype=np.uint64))
    (True, False)
    """
    if names.dtype.kind == "u":
        return names.size == 0 or int(names.max()) < 2**63
    if names.dtype.kind in "mM":
        return not np.isnat(names).any()  # a missing date is not even equal to itself
    return names.dtype.kind == "i"


def index_numbers(labels: np.ndarray) -> NumberIndex | None:
    """Index labels that are whole numbers or dates; None for all others.

    Examples
    --------
    >>> index_numbers(np.array([7, 5])).positions(np.array([5, 6, 7]))
    array([ 1, -1,  0])
    """
    if len(labels) == 0 or not are_whole(labels):
        return None
    numbers = labels.astype(np.int64)
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest - lowest < _PLACES_A_NUMBER * len(labels):
        positions = np.full(highest - lowest + 2, -1, dtype=np.int32)
        positions[numbers - lowest] = np.arange(len(labels))
        return NumberIndex(_Table(lowest, positions))
    order = np.argsort(numbers, kind="stable")
    return NumberIndex(_Sorted(numbers[order], order))
