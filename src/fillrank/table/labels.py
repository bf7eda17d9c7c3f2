"""Row and column labels: encoding as positions, lookup of positions, and display."""

import difflib
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, UnknownNameError
from fillrank.table.entries import iter_blocks

SHOWN = 3  # labels in a message
_SEARCHED = 10_000  # labels searched for a close match, because difflib is slow
_FEW = 64  # labels below which numpy's calls cost more than lookups in a dict
# Integers looked up together, so that temporary arrays stay in cache.
_BLOCK = 65_536
# Largest range of integers, per label, for which an array over the range is used: for encoding, and for
# lookup, where a dict would take as much memory.
_ENCODING_RANGE, _LOOKUP_RANGE = 4, 16
_SURROGATES = re.compile("[\ud800-\udfff]")


def as_labels(labels: Any) -> np.ndarray:
    """Convert labels to a one-dimensional array without changing their types.

    Integers stay integers and dates stay dates. Text becomes an object array, so that one long label
    does not widen all others.

    Examples
    --------
    >>> as_labels([1, "1"])
    array([1, '1'], dtype=object)
    >>> as_labels("Ana")
    array(['Ana'], dtype=object)
    >>> as_labels([("Ana", 1), ("Ben", 2)])
    array([('Ana', 1), ('Ben', 2)], dtype=object)
    """
    if isinstance(labels, list) and any(isinstance(label, tuple) for label in labels):
        return _object_array(labels)  # of several levels; numpy would make a matrix of them
    array = np.asarray(labels)
    if array.ndim == 0 and array.dtype.kind == "O" and isinstance(labels, Iterable):
        return as_labels(list(labels))
    if array.ndim > 1:
        raise InputError(f"labels must be one-dimensional; got an array of shape {array.shape}.")
    if array.dtype.kind == "U" and isinstance(labels, (list, tuple)):
        # numpy converts all labels to text if one is text: use the original objects.
        return _object_array(labels)
    if array.dtype.kind in "UST":
        array = array.astype(object)
    return np.atleast_1d(array)


def _object_array(labels: Iterable[Any]) -> np.ndarray:
    labels = list(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def check_not_missing(labels: np.ndarray, axis: str) -> None:
    """Raise InputError if a label is missing; ``axis`` is "row" or "column"."""
    if labels.dtype.kind in "iub":
        return
    if any(map(is_missing, labels)):
        raise InputError(
            f"every entry needs a {axis} label; got a missing one (null, None or NaN). "
            "Remove these entries or label them."
        )


def is_missing(label: Any) -> bool:
    """Whether a label or a value is missing in any data frame: None, NaN, NaT or pandas.NA."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return True
    except ValueError:  # an array
        return False


def check_unique(labels: np.ndarray, axis: str) -> None:
    """Raise InputError if a label of a wide table is repeated."""
    codes, distinct = factorize(labels, axis)
    if len(distinct) < len(labels):
        repeated = distinct[np.bincount(codes) > 1]
        raise InputError(
            f"every {axis} of a wide table needs its own label; {len(repeated)} are used more than "
            f"once: {format_labels(repeated)}. Rename them, or merge those {axis}s first."
        )


# Integers: one table for encoding and for lookup.


class IntegerTable:
    """Codes of integers that are close together: an array over their range.

    Integers without a code have the code -1.
    """

    def __init__(self, lowest: int, highest: int, dtype: type = np.int32):
        self._lowest = lowest
        # The last element stands for all integers out of range.
        self._codes: np.ndarray = np.full(highest - lowest + 2, -1, dtype=dtype)

    def find(self, integers: np.ndarray) -> np.ndarray:
        """The code of each integer."""
        codes = np.empty(len(integers), dtype=self._codes.dtype)
        lowest, last = np.uint64(self._lowest % 2**64), np.uint64(len(self._codes) - 1)
        for block in iter_blocks(len(integers), _BLOCK):
            # As unsigned integers, those below the range wrap to far above it: one comparison does.
            distance = integers[block].astype(np.int64).view(np.uint64)
            distance -= lowest
            np.minimum(distance, last, out=distance)
            codes[block] = self._codes.take(distance.view(np.int64))
        return codes

    def assign(self, integers: np.ndarray, codes: np.ndarray) -> None:
        """Set the codes of integers in range; the last code of a repeated integer remains."""
        self._codes[integers.astype(np.int64) - self._lowest] = codes

    def extend(self, lowest: int, highest: int) -> None:
        """Make the range include two more integers."""
        end = self._lowest + len(self._codes) - 2
        before, after = max(self._lowest - lowest, 0), max(highest - end, 0)
        if before or after:
            self._codes = np.pad(self._codes, (before, after), constant_values=-1)
            self._lowest -= before

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest integer in range."""
        return self._lowest, self._lowest + len(self._codes) - 2


def _limits(labels: np.ndarray, most_per_label: int) -> tuple[int, int] | None:
    """The ends of labels that are close integers, within int64; None for others."""
    if labels.dtype.kind not in "iu" or len(labels) == 0:
        return None
    lowest, highest = int(labels.min()), int(labels.max())
    if highest - lowest >= most_per_label * len(labels) or highest >= 2**63:
        return None
    return lowest, highest


# Encoding: labels as positions in order of first appearance.


def factorize(labels: np.ndarray, axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Encode labels in order of first appearance; return (code of each label, distinct labels).

    Examples
    --------
    >>> factorize(np.array([7, 3, 7]), "row")
    (array([0, 1, 0], dtype=int32), array([7, 3]))
    """
    if labels.dtype.kind == "O":
        codes, distinct = _factorize_objects(labels, axis)
    elif (limits := _limits(labels, _ENCODING_RANGE)) is not None:
        codes, distinct = _factorize_integers(labels, *limits)
    else:
        codes, distinct = _factorize_sorted(labels)
    check_not_missing(distinct, axis)
    return codes, distinct


def _factorize_integers(
    labels: np.ndarray, lowest: int, highest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Encode by a table: linear in the number of labels, unlike a sort."""
    order = np.arange(len(labels))
    first = IntegerTable(lowest, highest, np.int32 if len(labels) < 2**31 else np.int64)
    # Backwards, because the last code of a repeated label remains: that of its first appearance.
    first.assign(labels[::-1], order[::-1])
    distinct = labels[first.find(labels) == order]
    table = IntegerTable(lowest, highest)
    table.assign(distinct, np.arange(len(distinct)))
    return table.find(labels), distinct


def _factorize_sorted(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    distinct, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return position[codes], distinct[order]


def _factorize_objects(labels: np.ndarray, axis: str) -> tuple[np.ndarray, np.ndarray]:
    objects = labels.tolist()
    try:
        positions = {label: code for code, label in enumerate(dict.fromkeys(objects))}
    except TypeError as error:
        raise InputError(
            f"{axis} labels must be numbers, text or dates; got one that cannot be compared: {error}."
        ) from error
    codes = np.fromiter(map(positions.__getitem__, objects), dtype=np.int32, count=len(objects))
    return codes, _object_array(positions)


class LabelEncoder:
    """Encodes labels that arrive in batches as `factorize` would encode all of them together.

    Examples
    --------
    >>> encoder = LabelEncoder("row")
    >>> encoder.encode(np.array([7, 3])), encoder.encode(np.array([5, 3]))
    (array([0, 1], dtype=int32), array([2, 1], dtype=int32))
    >>> encoder.labels()
    array([7, 3, 5])
    """

    def __init__(self, axis: str):
        self._axis = axis
        self._labels: list[np.ndarray] = []
        self._n_known = self._n_seen = 0
        # Close integers have a table. At the first label of another kind it is replaced by a dict.
        self._table: IntegerTable | None = None
        self._dict: dict[Any, int] | None = None

    def encode(self, labels: np.ndarray) -> np.ndarray:
        """Encode the next batch, of the type of those before it; raise InputError if one is missing."""
        self._n_seen += len(labels)
        self._prepare(labels)
        codes = self._find(labels)
        new = np.flatnonzero(codes < 0)
        if len(new):
            new_codes, distinct = factorize(labels[new], self._axis)
            codes[new] = self._n_known + new_codes
            self._add(distinct)
        return codes

    def labels(self) -> np.ndarray:
        """The distinct labels so far, in the order of their codes."""
        return np.concatenate(self._labels)

    def _prepare(self, labels: np.ndarray) -> None:
        """Extend the table to the next labels, or replace it if they are not close integers."""
        if self._dict is not None or not len(labels):
            return
        if labels.dtype.kind in "iu":
            lowest, highest = int(labels.min()), int(labels.max())
            if self._table is not None:
                known = self._table.limits
                lowest, highest = min(lowest, known[0]), max(highest, known[1])
            if highest - lowest < _ENCODING_RANGE * self._n_seen and highest < 2**63:
                if self._table is None:
                    self._table = IntegerTable(lowest, highest)
                self._table.extend(lowest, highest)
                return
        known_labels = self.labels().tolist() if self._labels else []
        self._dict = {label: code for code, label in enumerate(known_labels)}
        self._table = None

    def _find(self, labels: np.ndarray) -> np.ndarray:
        """The codes of labels, -1 for those that are new."""
        if self._table is not None:
            return self._table.find(labels)
        if not self._dict:
            return np.full(len(labels), -1, dtype=np.int32)
        found = map(self._dict.get, labels.tolist(), repeat(-1))
        return np.fromiter(found, dtype=np.int32, count=len(labels))

    def _add(self, labels: np.ndarray) -> None:
        codes = range(self._n_known, self._n_known + len(labels))
        if self._table is not None:
            self._table.assign(labels, np.array(codes))
        elif self._dict is not None:
            self._dict.update(zip(labels.tolist(), codes, strict=True))
        self._labels.append(labels)
        self._n_known += len(labels)


# Lookup: the positions of known labels.


class LabelIndex:
    """Finds the positions of labels; ``axis`` ("row" or "column") is for messages.

    Labels are the same if they are equal in Python: 5 and 5.0 are, 5 and "5" are not. Many integers or
    dates are looked up without making objects of them.
    """

    def __init__(self, labels: np.ndarray, axis: str):
        self._axis = axis
        self._labels = labels

    @cached_property
    def _integers(self) -> "IntegerTable | _SortedIntegers | None":
        return index_integers(self._labels)

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {key: i for i, key in enumerate(self._keys(self._labels))}

    def positions(self, labels: Any, allow_unknown: bool = False) -> np.ndarray:
        """Find the positions of labels, or raise UnknownNameError.

        With ``allow_unknown``, unknown labels have the position -1.
        """
        labels = as_labels(labels)
        positions = self._find(self._in_unit(labels))
        if not allow_unknown and positions.size and positions.min() < 0:
            unknown = dict.fromkeys(labels[positions < 0].tolist())
            raise UnknownNameError(self._unknown_message(list(unknown)))
        return positions

    def _find(self, labels: np.ndarray) -> np.ndarray:
        """The position of each label, -1 for unknown ones."""
        if len(labels) > _FEW and self._are_integers(labels) and self._integers is not None:
            return self._integers.find(labels).astype(np.int64, copy=False)
        try:
            found = map(self._positions.get, self._keys(labels), repeat(-1))
            return np.fromiter(found, dtype=np.int64, count=len(labels))
        except TypeError as error:
            raise InputError(
                f"{self._axis} labels must be numbers, text or dates: {error}."
            ) from error

    def _are_integers(self, labels: np.ndarray) -> bool:
        """Whether labels can be compared as int64; dates only in the same unit."""
        dates = self._labels.dtype.kind in "mM"
        same_kind = labels.dtype == self._labels.dtype if dates else labels.dtype.kind in "iu"
        return same_kind and fit_int64(labels)

    def _in_unit(self, labels: np.ndarray) -> np.ndarray:
        """Labels in the unit of the known labels, if these are dates."""
        if self._labels.dtype.kind in "mM" and labels.dtype.kind in "OmM":
            # A label that is not a date will not be found.
            with suppress(TypeError, ValueError, OverflowError):
                return labels.astype(self._labels.dtype, copy=False)
        return labels

    def _keys(self, labels: np.ndarray) -> list[Any]:
        """Labels as they are hashed: dates as numpy objects, all others as Python objects."""
        return list(labels) if self._labels.dtype.kind in "mM" else labels.tolist()

    def _unknown_message(self, unknown: list[Any]) -> str:
        noun = "label is" if len(unknown) == 1 else "labels are"
        message = (
            f"{len(unknown)} {self._axis} {noun} unknown: {format_labels(unknown)}. "
            f"{len(self._positions)} are known, such as {format_labels(list(self._positions))}."
        )
        return message + self._suggestion(unknown[0])

    def _suggestion(self, label: Any) -> str:
        if (other := self._same_text(label)) is not None:
            return (
                f" {label!r} is {_type_name(label)}, but the table has {_type_name(other)}: "
                f"pass {other!r}."
            )
        if not isinstance(label, str):
            return ""
        texts = [known for known in self._positions if isinstance(known, str)][:_SEARCHED]
        near = difflib.get_close_matches(label, texts, n=SHOWN)
        return f" Did you mean {format_labels(near)}?" if near else ""

    def _same_text(self, label: Any) -> Any:
        """Find the label with the same text and another type, such as 5 and "5"."""
        if not isinstance(label, str):
            return str(label) if str(label) in self._positions else None
        try:
            return int(label) if int(label) in self._positions else None
        except ValueError:
            return None


class _SortedIntegers(NamedTuple):
    """Integers in ascending order, and their positions."""

    integers: np.ndarray
    positions: np.ndarray

    def find(self, integers: np.ndarray) -> np.ndarray:
        """The position of each integer, -1 for unknown ones."""
        found = np.empty(len(integers), dtype=np.int64)
        for block in iter_blocks(len(integers), _BLOCK):
            wanted = integers[block].astype(np.int64, copy=False)
            nearest = np.searchsorted(self.integers, wanted, side="right") - 1
            is_known = self.integers[nearest] == wanted
            found[block] = np.where(is_known, self.positions[nearest], -1)
        return found


def fit_int64(labels: np.ndarray) -> bool:
    """Whether labels are integers or dates that are equal if and only if they are equal as int64.

    Examples
    --------
    >>> fit_int64(np.array([1, 2], dtype=np.uint64)), fit_int64(np.array([1, 2**63], dtype=np.uint64))
    (True, False)
    """
    if labels.dtype.kind == "u":
        return labels.size == 0 or int(labels.max()) < 2**63
    if labels.dtype.kind in "mM":
        return not np.isnat(labels).any()  # a missing date is not even equal to itself
    return labels.dtype.kind == "i"


def index_integers(labels: np.ndarray) -> IntegerTable | _SortedIntegers | None:
    """Index labels that are integers or dates; None for all others.

    Of a repeated label, the last position is found.

    Examples
    --------
    >>> index_integers(np.array([7, 5])).find(np.array([5, 6, 7]))
    array([ 1, -1,  0], dtype=int32)
    """
    if len(labels) == 0 or not fit_int64(labels):
        return None
    integers = labels.astype(np.int64)
    if (limits := _limits(integers, _LOOKUP_RANGE)) is not None:
        table = IntegerTable(*limits)
        table.assign(integers, np.arange(len(labels)))
        return table
    order = np.argsort(integers, kind="stable")
    return _SortedIntegers(integers[order], order)


# Display.


def _type_name(label: Any) -> str:
    return "text" if isinstance(label, str) else "a number"


def format_labels(labels: Any) -> str:
    """Format the first few labels for a message."""
    shown = ", ".join(map(format_label, labels[:SHOWN]))
    return shown + (", ..." if len(labels) > SHOWN else "")


def format_label(label: Any) -> str:
    """Format a label as in Python code: 5 and '5', not np.int64(5); a date as in `as_text`."""
    if isinstance(label, np.datetime64 | date):
        return as_text(label)
    return repr(label.item() if isinstance(label, np.number) else label)


def as_text(label: Any) -> str:
    """A label as text; a date in the same format for every library that made it.

    Examples
    --------
    >>> as_text(np.datetime64("2020-01-02")), as_text(5)
    ('2020-01-02', '5')
    """
    if isinstance(label, np.datetime64):
        label = label.astype("datetime64[us]").item()
    return label.isoformat().removesuffix("T00:00:00") if isinstance(label, date) else str(label)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which files and data frames cannot store.

    Python has them in file names in place of bytes that are not text.

    Examples
    --------
    >>> replace_surrogates("caf\\udce9")
    'caf�'
    """
    return _SURROGATES.sub("�", text)
