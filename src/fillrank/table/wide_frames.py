"""Wide data frames as arrays: row labels, columns of values, and columns that are not fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.table.column_types import ColumnType, unless_plain
from fillrank.table.frame_columns import (
    is_category,
    read_column,
    read_known_column,
)
from fillrank.table.frames import (
    Origin,
    PassiveColumn,
    as_frame,
    check_fields,
    has_labels,
    is_data_frame,
)
from fillrank.table.labels import (
    as_labels,
    as_text,
    check_unique,
    factorize,
    format_label,
    format_labels,
)
from fillrank.table.layout import is_label_column, is_row_name
from fillrank.table.missing_values import NO_MISSING_VALUES, MissingValues
from fillrank.table.notes import Remark, describe_columns, labels_note
from fillrank.table.number_text import NO_STYLE, NumberFormat, StyleOptions
from fillrank.table.text_values import ColumnValues, LeftOut, are_words

PANDAS_STORED_INDEX = "__index_level_0__"  # pandas' name for an unnamed index in Parquet
_REPEATED_INDEX = (
    "Some labels of the index are repeated: the rows are numbered 0, 1, 2, ... instead."
)


class WideOptions(NamedTuple):
    """How to read a wide table.

    Attributes
    ----------
    label : name of a column or None
        The column of row labels; None to find it.
    ignore : tuple of names
        Columns that are not fitted.
    missing : MissingValues
        Values that stand for missing ones.
    known : mapping of label to ColumnType or None
        The columns of the table of a fit, if the table has new rows for it.
    only : tuple of names
        The only columns that are fitted; all without any.
    style : StyleOptions
        How numbers are written as text.
    """

    label: Any = None
    ignore: tuple[Any, ...] = ()
    missing: MissingValues = NO_MISSING_VALUES
    known: Mapping[Any, ColumnType] | None = None
    only: tuple[Any, ...] = ()
    style: StyleOptions = NO_STYLE

    def leaves_out(self, name: Any) -> bool:
        """Whether a column is not fitted because the user says so."""
        return name in self.ignore or bool(self.only and name not in self.only)

    def may_label(self, name: Any) -> bool:
        """Whether a column can be taken for the row labels."""
        return name not in self.ignore and name not in self.only and name not in (self.known or ())


class WideTable(NamedTuple):
    """A wide table as an array with NaN, with its labels.

    ``upper`` has the upper ends of values where the matrix has the lower ends; None if all are exact.
    ``formats`` are those of the numbers of each column, if they were text.
    """

    matrix: np.ndarray
    row_labels: np.ndarray
    column_labels: np.ndarray
    origin: Origin
    column_types: tuple[ColumnType, ...] | None = None
    upper: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    formats: tuple[NumberFormat, ...] | None = None


class Rows(NamedTuple):
    """The row labels of a data frame and where they come from."""

    labels: np.ndarray
    field: Any
    column: int | None  # its position
    index: Any = None
    notes: tuple[str, ...] = ()


def wide_table(frame: nw.DataFrame[Any], options: WideOptions = WideOptions()) -> WideTable:  # noqa: B008
    """The cells and labels of a wide table.

    Row labels are the index of a pandas table, unless it is a default RangeIndex; otherwise the first
    column of text or dates whose values all differ; otherwise 0, 1, 2, ...
    """
    native = frame.to_native()
    pandas_like = frame.implementation.is_pandas_like()
    all_labels = as_labels(native.columns if pandas_like else frame.columns)
    columns = list(frame.iter_columns())
    check_fields(frame.columns, (*options.ignore, *options.only))
    rows = _find_rows(frame, columns, options)
    check_unique(all_labels, "column")
    cells = WideColumns(len(frame), len(columns) - (rows.column is not None), options.known)
    for j, column in enumerate(columns):
        if j != rows.column:
            found = _read(column, all_labels[j], rows.labels, options)
            cells.add(j, all_labels[j], found, column.to_native())
    return cells.table(
        all_labels,
        rows,
        Origin(
            "wide",
            frame.implementation,
            row_field=rows.field,
            column_field=native.columns.name if pandas_like else None,
            rows_in_index=pandas_like and rows.column is None,
            label_position=rows.column or 0,
            index=rows.index,
            column_levels=_level_names(native.columns) if pandas_like else None,
        ),
    )


def _read(
    column: nw.Series[Any], label: Any, row_labels: np.ndarray, options: WideOptions
) -> ColumnValues | LeftOut:
    if options.leaves_out(label):
        return LeftOut(Remark("ignored"))

    def place(position: int) -> str:
        return f"row {format_label(row_labels[position])}, column {format_label(label)}"

    known = options.known
    if known is not None and label in known:
        return read_known_column(column, known[label], place, options.missing, options.style)
    found = read_column(column, place, options.missing, options.style)
    is_text = isinstance(found, LeftOut) or found.type.is_coded or found.type.values == "datetime"
    if known is not None and is_text:
        return LeftOut(Remark("ignored"))  # it was not fitted either
    return found


class WideColumns:
    """The columns of a wide table, as they are read."""

    def __init__(self, n_rows: int, n_columns: int, known: Mapping[Any, ColumnType] | None = None):
        self._known = known  # the columns of the fit, if these are new rows
        self._matrix = np.empty((n_rows, n_columns))
        self._upper: dict[int, np.ndarray] = {}
        self._types: list[ColumnType] = []
        self._formats: list[NumberFormat] = []
        self._fitted: list[int] = []
        self._passive: list[PassiveColumn] = []
        self._remarks: list[tuple[Any, Remark | None]] = []

    def add(self, position: int, label: Any, found: ColumnValues | LeftOut, source: Any) -> None:
        """Add a column; ``source`` is what is returned if it cannot be fitted."""
        self._remarks.append((label, found.remark))
        if isinstance(found, LeftOut):
            self._passive.append(PassiveColumn(position, label, source))
            return
        self._matrix[:, len(self._fitted)] = found.values
        if found.upper is not None:
            self._upper[len(self._fitted)] = found.upper
        self._fitted.append(position)
        self._types.append(found.type)
        self._formats.append(found.format)

    def table(self, all_labels: np.ndarray, rows: Rows, origin: Origin) -> WideTable:
        """All columns as a table."""
        notes = describe_columns(self._remarks)
        if self._passive and not self._fitted:
            if self._known is not None:
                raise InputError(
                    f"the table has the columns {format_labels(all_labels)}, and none of those of the "
                    f"fit, such as {format_labels([*self._known])}",
                    advice="Name its columns as those of the fit.",
                )
            raise InputError("no column of the table can be fitted", advice=[*notes])
        matrix = self._matrix[:, : len(self._fitted)]
        if matrix.shape[1] < self._matrix.shape[1]:
            matrix = matrix.copy()
        upper = matrix.copy() if self._upper else None
        for j, ends in self._upper.items():
            assert upper is not None
            upper[:, j] = ends
        return WideTable(
            matrix,
            rows.labels,
            all_labels[np.array(self._fitted, dtype=np.int64)],
            origin._replace(passive=tuple(self._passive)),
            unless_plain(self._types),
            upper,
            (*rows.notes, *notes),
            tuple(self._formats),
        )


# Row labels.


def _find_rows(
    frame: nw.DataFrame[Any], columns: list[nw.Series[Any]], options: WideOptions
) -> Rows:
    index = frame.to_native().index if frame.implementation.is_pandas_like() else None
    has_index = index is not None and has_labels(index)
    position = None
    if options.label is not None:
        check_fields(frame.columns, [options.label])
        position = frame.columns.index(options.label)
    elif not has_index:
        position = _find_label_column(columns, options)
    if position is not None:
        labels, name = as_labels(columns[position].to_numpy()), columns[position].name
        check_unique(labels, "row")
        is_taken = options.label is None and labels.dtype.kind in "iu"
        notes = (labels_note(name),) if is_taken else ()
        return Rows(labels, name, position, index if has_index else None, notes)
    if index is None:
        return Rows(np.arange(len(frame)), None, None)
    labels = as_labels(index)
    if len(factorize(labels, "row")[1]) < len(labels):
        return Rows(np.arange(len(labels)), index.name, None, index, (_REPEATED_INDEX,))
    return Rows(labels, index.name, None, index if index.nlevels > 1 else None)


def _level_names(columns: Any) -> tuple[Any, ...] | None:
    """The names of the levels of columns of pandas; None if there is one level."""
    return tuple(columns.names) if columns.nlevels > 1 else None


def _find_label_column(columns: list[nw.Series[Any]], options: WideOptions) -> int | None:
    """The position of the first column that contains labels rather than values."""
    for j, column in enumerate(columns):
        if options.may_label(column.name) and _can_be_labels(column, j, options.missing):
            return j
    return None


def _can_be_labels(column: nw.Series[Any], position: int, missing: MissingValues) -> bool:
    if column.name == PANDAS_STORED_INDEX:
        return True
    is_text = column.dtype == nw.String or is_category(column)
    is_number = column.dtype.is_integer() and is_row_name(column.name, position)
    if not (is_text or is_number or isinstance(column.dtype, (nw.Date, nw.Datetime))):
        return False
    if not len(column) or column.null_count() or column.n_unique() < len(column):
        return False
    if not is_text:
        return True
    texts = [as_text(value) for value in column.to_list()]
    if missing and any(map(missing.has_text, texts)):
        return False
    if is_label_column(column.name) or are_words(texts):
        return True
    return position == 0 and all(text.strip().isdigit() for text in texts)  # such as 007


# Weights.


def wide_weights(weights: Any, table: WideTable) -> Any:
    """The weights of the cells of a wide table, given as a data frame or an array."""
    if not is_data_frame(weights):
        return weights
    given = wide_table(as_frame(weights))
    for axis, labels, own in (
        ("row", given.row_labels, table.row_labels),
        ("column", given.column_labels, table.column_labels),
    ):
        if labels.tolist() != own.tolist():
            raise InputError(
                place=Setting("weights"),
                allowed=f"an array, or a table with the {axis} labels of X, {format_labels(own)}",
                value=labels.tolist(),
            )
    return given.matrix
