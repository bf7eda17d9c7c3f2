"""Tables of features of rows or columns, from data frames and files, before they are coded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError
from fillrank.table.frame_columns import real_column
from fillrank.table.frames import has_labels
from fillrank.table.labels import LabelIndex, as_labels, as_text, is_missing


class FeatureTable(NamedTuple):
    """A table of features: one line for each label, one array for each field.

    Attributes
    ----------
    labels : ndarray
    fields : dict of name to ndarray
        Numbers are float64, with NaN where they are missing. All others are object arrays: text, with
        None where it is missing. Objects of other types, such as dates, stay as they are; coding
        refuses them.
    by_text : bool
        Whether labels are the same if their text is: 5 and "5" are in files, but not in data frames.
    notes : tuple of str
        Sentences for the user.
    """

    labels: np.ndarray
    fields: dict[str, np.ndarray]
    by_text: bool = False
    notes: tuple[str, ...] = ()


class KnownLabels:
    """The labels of the table to which features belong, to find the column of labels.

    Parameters
    ----------
    labels : ndarray
    by_text : bool
        As in `FeatureTable`.

    Examples
    --------
    >>> known = KnownLabels(np.array([1, 2, 3]), by_text=False)
    >>> known.best([np.array([30, 2]), np.array([1, 3])])
    1
    """

    def __init__(self, labels: np.ndarray, by_text: bool):
        self.labels = labels
        self._by_text = by_text
        self._index = LabelIndex(labels_as_text(labels) if by_text else labels, "")

    def best(self, columns: Sequence[np.ndarray]) -> int:
        """The position of the column that has the most labels; of several, the first."""
        most, best = -1, 0
        for position, column in enumerate(columns):
            n_found = self.n_found(column)
            if n_found > most:
                most, best = n_found, position
            if n_found == min(len(column), len(self.labels)):
                break  # no other column has more
        return best

    def n_found(self, column: np.ndarray) -> int:
        """How many of the labels a column has."""
        if not _can_be_labels(column):
            return 0
        try:
            positions = self._index.positions(
                labels_as_text(column) if self._by_text else column, allow_unknown=True
            )
        except InputError:  # objects that cannot be compared, such as lists
            return 0
        return len(np.unique(positions[positions >= 0]))

    def are_counts(self, n_lines: int) -> bool:
        """Whether the labels are 0, 1, 2, ..., as those of an array, and as many as lines."""
        is_count = self.labels.dtype.kind in "iu" and len(self.labels) == n_lines
        return is_count and np.array_equal(self.labels, np.arange(n_lines))


def labels_as_text(labels: np.ndarray) -> np.ndarray:
    """Labels as text, in an object array."""
    return as_labels([as_text(label) for label in labels])


def _can_be_labels(column: np.ndarray) -> bool:
    if column.dtype.kind == "f":  # pandas has integers as floats if some are missing
        return bool(np.all(np.isnan(column) | (column == np.floor(column))))
    return column.dtype.kind in "iuOmM"


# Data frames.


def frame_features(
    frame: nw.DataFrame[Any],
    known: KnownLabels | None,
    by_text: bool = False,
    not_labels: Collection[str] = (),
) -> FeatureTable:
    """The labels and fields of a data frame.

    The labels are the index of a pandas table if it has some of the known labels and is not a default
    RangeIndex. Otherwise they are the column that has the most of them; of several, the first. A table
    without such a column has the labels 0, 1, 2, ... if the known labels are these.

    Parameters
    ----------
    frame : narwhals.DataFrame
    known : KnownLabels or None
        None takes the first column.
    by_text : bool
        As in `FeatureTable`.
    not_labels : collection of str
        Names of columns that are fields.
    """
    columns = list(frame.iter_columns())
    candidates = [j for j, column in enumerate(columns) if str(column.name) not in not_labels]
    labels, position = _find_labels(frame, columns, candidates, known)
    fields: dict[str, np.ndarray] = {}
    for j, column in enumerate(columns):
        if j != position:
            name = str(column.name)
            if name in fields:
                raise InputError(
                    f"every field of features needs its own name; two are {name!r} as text",
                    advice="Rename one.",
                )
            fields[name] = _field_values(column)
    notes = () if not position else (labels_note(columns[position].name),)
    return FeatureTable(labels, fields, by_text, notes)


def labels_note(name: Any) -> str:
    """A note for labels that are not in the first column."""
    return f"The labels of the features are in column {name!r}."


def _find_labels(
    frame: nw.DataFrame[Any],
    columns: list[nw.Series[Any]],
    candidates: list[int],
    known: KnownLabels | None,
) -> tuple[np.ndarray, int | None]:
    """The labels, and the position of their column; None if they are not in a column."""
    arrays = _LabelColumns(columns, candidates)
    if known is None:
        return arrays[0], candidates[0]
    index = _index_labels(frame)
    if index is not None and known.n_found(index):
        return index, None
    best = known.best(arrays)
    n_found = known.n_found(arrays[best]) if candidates else 0
    if index is not None and not n_found:
        return index, None
    if index is None and known.are_counts(len(frame)) and n_found < len(frame):
        return np.arange(len(frame)), None
    return (arrays[best], candidates[best]) if candidates else (np.empty(0, dtype=object), None)


def _index_labels(frame: nw.DataFrame[Any]) -> np.ndarray | None:
    """The index of a pandas table, unless it only counts the lines."""
    if not frame.implementation.is_pandas_like():
        return None
    index = frame.to_native().index
    return as_labels(index) if has_labels(index) else None


class _LabelColumns(Sequence[np.ndarray]):
    """Columns as arrays of labels, each converted when it is needed."""

    def __init__(self, columns: list[nw.Series[Any]], positions: list[int]):
        self._columns = columns
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, item: Any) -> Any:
        return as_labels(self._columns[self._positions[item]].to_numpy())

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[k] for k in range(len(self)))


def _field_values(column: nw.Series[Any]) -> np.ndarray:
    """A column as `FeatureTable` has it."""
    if column.null_count() == len(column) or column.dtype.is_numeric():
        return real_column(column)
    values = column.to_list()
    # The levels of a category of pandas may be numbers, and remain levels.
    is_category = column.dtype == nw.Categorical or isinstance(column.dtype, nw.Enum)
    return _levels(values) if is_category else object_field(values)


def object_field(values: list[Any]) -> np.ndarray:
    """Objects as a field: float64 if all are numbers, otherwise text.

    Examples
    --------
    >>> object_field([1, None, 2.5]), object_field([True, None, "yes"])
    (array([1. , nan, 2.5]), array(['True', None, 'yes'], dtype=object))
    """
    if all(_is_number(value) or is_missing(value) for value in values):
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return _levels(values)


def _levels(values: list[Any]) -> np.ndarray:
    levels = (None if is_missing(value) else _as_level(value) for value in values)
    return np.fromiter(levels, dtype=object, count=len(values))


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _as_level(value: Any) -> Any:
    """A level as text; an object that is no level is left as it is."""
    if isinstance(value, str):
        return str(value)
    return as_text(value) if isinstance(value, (Real, Decimal, np.bool_)) else value
