"""The users' own names of rows and columns: from names to positions, and back."""

import difflib
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from fillrank.errors import InputError, UnknownNameError
from fillrank.table.integer_labels import NumberIndex, are_whole, index_numbers

SHOWN = 3  # names listed in a message
SEARCHED = 10_000  # names searched for a near match: difflib is slow
_FEW = 64  # names below which numpy's calls cost more than Python's lookups


def as_names(names: Any) -> np.ndarray:
    """Give names as a one-dimensional array, without turning one kind into another.

    Integers stay integers and dates stay dates; text becomes an object array, so that one long
    name does not widen all others.

    Examples
    --------
    >>> as_names([1, "1"])
    array([1, '1'], dtype=object)
    >>> as_names("Ana")
    array(['Ana'], dtype=object)
    """
    array = np.asarray(names)
    if array.ndim == 0 and array.dtype.kind == "O" and isinstance(names, Iterable):
        return as_names(list(names))
    if array.ndim > 1:
        raise InputError(f"names must be one-dimensional; got an array of shape {array.shape}.")
    if array.dtype.kind == "U" and isinstance(names, (list, tuple)):
        # numpy has made text of every name if one was text: take them as they came.
        return _object_array(names)
    if array.dtype.kind in "UST":
        array = array.astype(object)
    return np.atleast_1d(array)


def _object_array(names: Iterable[Any]) -> np.ndarray:
    names = list(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def factorize(names: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Number names in order of first appearance; return (code per name, distinct names).

    Examples
    --------
    >>> factorize(np.array([7, 3, 7]), "row")
    (array([0, 1, 0], dtype=int32), array([7, 3]))
    """
    if names.dtype.kind == "O":
        codes, labels = _factorize_objects(names, what)
    elif _are_close_integers(names):
        codes, labels = _factorize_close_integers(names)
    else:
        codes, labels = _factorize_sorted(names)
    check_present(labels, what)
    return codes, labels


def _are_close_integers(names: np.ndarray) -> bool:
    if names.dtype.kind not in "iu" or len(names) == 0:
        return False
    low, high = int(names.min()), int(names.max())
    return high - low < 4 * len(names) and high < 2**63


def _factorize_close_integers(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number integers by a table over their range: linear, where a sort is not."""
    low = int(names.min())
    shifted = names.astype(np.int64) - low
    first = np.full(int(shifted.max()) + 1, -1)
    # Backwards, because the last of several assignments to one place is the one that stays.
    first[shifted[::-1]] = np.arange(len(names))[::-1]
    present = np.flatnonzero(first >= 0)
    present = present[np.argsort(first[present])]
    position = np.empty(len(first), dtype=np.int32)
    position[present] = np.arange(len(present))
    return position[shifted], (present + low).astype(names.dtype)


def _factorize_sorted(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels, first, codes = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first)
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return position[codes], labels[order]


def _factorize_objects(names: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    listed = names.tolist()
    positions = _number(listed, what)
    codes = np.fromiter(map(positions.__getitem__, listed), dtype=np.int32, count=len(listed))
    return codes, _object_array(positions)


def _number(names: list[Any], what: str) -> dict[Any, int]:
    try:
        return {name: position for position, name in enumerate(dict.fromkeys(names))}
    except TypeError as error:
        raise InputError(
            f"{what} names must be numbers, text or dates; got one that cannot be compared: {error}"
        ) from error


def check_present(labels: np.ndarray, what: str) -> None:
    """Refuse labels among which there is a missing one."""
    if labels.dtype.kind in "iub":
        return
    if any(map(_is_missing, labels)):
        raise InputError(
            f"every entry needs a {what} name; got a missing one (null, None or NaN). "
            "Drop these entries or name them."
        )


def _is_missing(name: Any) -> bool:
    if name is None:
        return True
    try:
        return bool(name != name)
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return True


def check_unique(labels: np.ndarray, what: str) -> None:
    """Refuse labels that name two rows (or columns) of a wide table alike."""
    codes, distinct = factorize(labels, what)
    if len(distinct) < len(labels):
        repeated = distinct[np.bincount(codes) > 1]
        raise InputError(
            f"every {what} of a wide table needs its own name; {len(repeated)} are used more than "
            f"once: {listed(repeated)}. Rename them, or join those {what}s first."
        )


class NameIndex:
    """Finds the positions of names; ``what`` ("row" or "column") is for messages.

    Names are the same if they are for Python: 5 and 5.0 are, 5 and "5" are not. Many whole numbers or
    dates are looked up without making objects of them.
    """

    def __init__(self, labels: np.ndarray, what: str):
        self._what = what
        self._labels = labels

    @cached_property
    def _numbers(self) -> NumberIndex | None:
        return index_numbers(self._labels)

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {key: i for i, key in enumerate(self._keys(self._labels))}

    def positions(self, names: Any, allow_unknown: bool = False) -> np.ndarray:
        """Find the positions of all names, or raise UnknownNameError.

        With ``allow_unknown``, names that are not known have the position -1.
        """
        names = as_names(names)
        positions = self._find(self._in_unit(names))
        if not allow_unknown and positions.size and positions.min() < 0:
            unknown = dict.fromkeys(names[positions < 0].tolist())
            raise UnknownNameError(self._complaint(list(unknown)))
        return positions

    def _find(self, names: np.ndarray) -> np.ndarray:
        """The position of each name, -1 for those that are not known."""
        if len(names) > _FEW and self._are_numbers(names) and self._numbers is not None:
            return self._numbers.positions(names)
        try:
            found = map(self._positions.get, self._keys(names), repeat(-1))
            return np.fromiter(found, dtype=np.int64, count=len(names))
        except TypeError as error:
            raise InputError(
                f"{self._what} names must be numbers, text or dates: {error}"
            ) from error

    def _are_numbers(self, names: np.ndarray) -> bool:
        """Whether names are labels if they are as int64. That of a date depends on its unit."""
        dates = self._labels.dtype.kind in "mM"
        alike = names.dtype == self._labels.dtype if dates else names.dtype.kind in "iu"
        return alike and are_whole(names)

    def _in_unit(self, names: np.ndarray) -> np.ndarray:
        """Names in the unit of the labels, if these are dates."""
        if self._labels.dtype.kind in "mM" and names.dtype.kind in "OmM":
            # What is no date will not be found.
            with suppress(TypeError, ValueError, OverflowError):
                return names.astype(self._labels.dtype, copy=False)
        return names

    def _keys(self, names: np.ndarray) -> list[Any]:
        """Names as they hash: dates as numpy has them, all else as Python does."""
        return list(names) if self._labels.dtype.kind in "mM" else names.tolist()

    def _complaint(self, unknown: list[Any]) -> str:
        noun = "name is" if len(unknown) == 1 else "names are"
        message = (
            f"{len(unknown)} {self._what} {noun} not known: {listed(unknown)}. "
            f"{len(self._positions)} are known, such as {listed(list(self._positions))}."
        )
        return message + self._hint(unknown[0])

    def _hint(self, name: Any) -> str:
        if (twin := self._twin(name)) is not None:
            return f" {name!r} is {_kind(name)}, but the table has {_kind(twin)}: pass {twin!r}."
        if not isinstance(name, str):
            return ""
        texts = [known for known in self._positions if isinstance(known, str)][:SEARCHED]
        near = difflib.get_close_matches(name, texts, n=SHOWN)
        return f" Did you mean {listed(near)}?" if near else ""

    def _twin(self, name: Any) -> Any:
        """Find the name that is written alike but is of another type, as 5 and "5"."""
        if not isinstance(name, str):
            return str(name) if str(name) in self._positions else None
        try:
            return int(name) if int(name) in self._positions else None
        except ValueError:
            return None


def _kind(name: Any) -> str:
    return "text" if isinstance(name, str) else "a number"


def listed(names: Any) -> str:
    """Show the first few names, as a user would write them."""
    shown = ", ".join(map(written, names[:SHOWN]))
    return shown + (", ..." if len(names) > SHOWN else "")


def written(name: Any) -> str:
    """Show a name as a user would write it: 5 and '5', not np.int64(5)."""
    return repr(name.item() if isinstance(name, np.number) else name)
