"""The observed entries of a matrix, with row and column labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError, Setting
from fillrank.table.column_types import (
    NUMBER,
    ColumnType,
    are_numbers,
    coded_columns,
    describe_types,
)
from fillrank.table.entries import NO_CELLS, NO_WEIGHTS, Entries, iter_blocks, transpose
from fillrank.table.frame_columns import real_column
from fillrank.table.frames import (
    Origin,
    as_frame,
    check_fields,
    is_data_frame,
    long_columns,
)
from fillrank.table.labels import LabelIndex, as_labels
from fillrank.table.layout import (
    Layout,
    LongFields,
    given_fields,
    given_names,
    named_fields,
    refuse_for_long,
)
from fillrank.table.levels import rating_scale
from fillrank.table.missing_values import MissingValues, given_missing_values
from fillrank.table.notes import describe_entries, describe_size
from fillrank.table.recode import recode
from fillrank.table.triplets import (
    Duplicates,
    Triplets,
    dense_matrix,
    encode_triplets,
    errors_to_weights,
    group_by_column,
    numbers_of_cells,
    observed_cells,
    sort_by_row,
    stored_triplets,
    with_intervals,
)
from fillrank.table.weights import WeightField, given_weight, refuse_for_wide
from fillrank.table.wide_frames import WideOptions, WideTable, wide_table, wide_weights
from fillrank.validation import as_generator, as_real, check_integer, check_real

# scikit-learn indexes data by the positions that a splitter yields. This type tells positions of
# entries, from `EntryKFold`, from positions of rows, which are signed integers.
ENTRY_POSITIONS = np.dtype(np.uint32)
_FINGERPRINT_ROWS = 4096  # per block


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """The observed entries of a matrix; the rest is missing.

    Create one with `from_triplets`, `from_matrix` or `from_table`, or with `of`, which accepts any of
    these. Empty rows and columns are kept if they are labelled.

    Attributes
    ----------
    column_index : ndarray of int32
        The position of the column of each entry. Entries are sorted by row and, within a row, by column.
    pointers : ndarray of int64
        Row i has the entries from ``pointers[i]`` to just before ``pointers[i + 1]``.
    stored_values : ndarray of float32 or float64
        The values as they are stored: in float32 if that is exact for all of them.
    row_labels, column_labels : ndarray
        In the order of a wide table, or of first appearance in a long one.
    origin : Origin
        The kind of data that the entries came from.
    scale_before_averaging : tuple of float or None
        The ends of the rating scale of the values before duplicates were averaged; None if there was
        no such scale, or no duplicates were averaged.
    weights : ndarray of float64 or None
        The weight of each entry: the variance of its noise is that of the table divided by the weight.
        None if all entries are equally precise.
    column_types : tuple of ColumnType or None
        What each column contained: numbers, categories, ... None if all are plain numbers.
    cells : ndarray of int32 or None
        For each entry -1 if its value is exact, and otherwise the number of the interval that contains
        it; its stored value is then a number in or at the end of this interval. None if all values are
        exact.
    intervals : ndarray of float64 of shape (n, 2) or None
        The lower and the upper end of each interval, which may be infinite, in the units of the values.
    notes : tuple of str
        How the table was understood: sentences for users.

    Examples
    --------
    >>> ratings = Observations.from_triplets(["Ana", "Ben", "Ana"], ["x", "x", "y"], [5, 3, 1])
    >>> ratings
    <Observations: 2 rows x 2 columns, 3 entries (75% observed), values 1 to 5>
    >>> ratings.rows
    array(['Ana', 'Ana', 'Ben'], dtype=object)
    """

    pointers: np.ndarray
    column_index: np.ndarray
    stored_values: np.ndarray
    row_labels: np.ndarray
    column_labels: np.ndarray
    origin: Origin
    scale_before_averaging: tuple[float, float] | None = None
    weights: np.ndarray | None = None
    column_types: tuple[ColumnType, ...] | None = None
    cells: np.ndarray | None = None
    intervals: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        data: Any,
        weights: Any = None,
        *,
        like: Observations | None = None,
        missing_values: Any = None,
    ) -> Observations:
        """Convert and check any data that represents a matrix with missing entries.

        Parameters
        ----------
        data : Observations, data frame, array, masked array or sparse matrix
            A data frame is read as by `from_table`, all else as by `from_matrix`.
        weights : array, sparse matrix or data frame, optional
            Of the shape of a matrix or a wide table, as in `from_matrix`. A data frame has the labels
            of the table.
        like : Observations, optional
            The table of a fit, if ``data`` has new rows or entries for it. Columns of the same labels
            are read as they were there, and all values may be missing.
        missing_values : list of numbers and text, optional
            Values that stand for missing ones, such as ``[99, -999, "unknown"]``.

        Returns
        -------
        Observations
        """
        if isinstance(data, Observations):
            if weights is not None:
                raise InputError(
                    "Observations have their own weights",
                    place=Setting("weights"),
                    advice="Give the weights to from_triplets, from_matrix or from_table.",
                )
            if missing := given_missing_values(missing_values):
                data = data.without_values(missing, may_be_empty=like is not None)
            return data if like is None else recode(data, like)
        if isinstance(data, (str, PathLike)):
            raise InputError(
                f"a matrix or a table is required; got a path. Use read({str(data)!r})."
            )
        if not is_data_frame(data):
            return cls._from_matrix(
                data, weights=weights, missing_values=missing_values, may_be_empty=like is not None
            )
        if weights is None:
            return cls.from_table(data, like=like, missing_values=missing_values)
        return cls._from_wide(data, weights, missing_values)

    @classmethod
    def _from_wide(cls, data: Any, weights: Any, missing_values: Any) -> Observations:
        frame = as_frame(data)
        if named_fields(frame.columns, "auto") is not None:
            raise InputError(
                "an array of weights is for a matrix or a wide table, and this table is long",
                place=Setting("weights"),
                advice="Name its column of weights, as in Observations.from_table(X, weight=...).",
            )
        table = wide_table(frame, WideOptions(missing=given_missing_values(missing_values)))
        return cls.from_wide(table, wide_weights(weights, table))

    @classmethod
    def from_wide(
        cls,
        table: WideTable,
        weights: Any = None,
        duplicates: Duplicates = "error",
        *,
        may_be_empty: bool = False,
    ) -> Observations:
        """Create from the array and the labels of a wide table."""
        matrix, row_labels, column_labels, origin, column_types, upper, notes, _ = table
        triplets, intervals = observed_cells(matrix), None
        if weights is not None:
            found = numbers_of_cells(weights, "weights", triplets, matrix.shape)
            triplets = triplets._replace(weights=found)
        if upper is not None:
            ends = upper[triplets.row_index, triplets.column_index]
            triplets, intervals = with_intervals(triplets, ends, row_labels, column_labels)
        observations = cls.from_positions(
            triplets,
            row_labels,
            column_labels,
            origin,
            duplicates,
            column_types=column_types,
            intervals=intervals,
            may_be_empty=may_be_empty,
        )
        return replace(observations, notes=notes)

    @classmethod
    def from_triplets(
        cls,
        rows: Any,
        columns: Any,
        values: Any,
        *,
        duplicates: Duplicates = "error",
        weights: Any = None,
        upper: Any = None,
    ) -> Observations:
        """Create from one (row label, column label, value) per entry.

        Parameters
        ----------
        rows, columns : array of labels
            Numbers, text or dates. 1 and "1" are two different labels.
        values : array of real numbers
            NaN is missing; the row and the column are kept.
        duplicates : {"error", "mean", "last", "first"}
            What to do if a (row, column) pair occurs more than once. With weights, "mean" is the
            weighted mean, and its weight is the sum of the weights.
        weights : array of numbers above 0, optional
            How precise each value is, relative to the others: the variance of its noise is that of the
            table divided by the weight. The mean of 4 measurements has the weight 4 if a single one has
            the weight 1. `GASR` and `BPMF` use weights.
        upper : array of real numbers, optional
            The upper end of each value, if some are only known to be in an interval; ``values`` are then
            the lower ends. An exact value has equal ends. A value without a limit on one side has the
            end ``-inf`` or ``inf``.

        Returns
        -------
        Observations

        Examples
        --------
        >>> Observations.from_triplets([1, 1], [7, 7], [2.0, 4.0], duplicates="mean").values
        array([3.])
        """
        rows, columns = as_labels(rows), as_labels(columns)
        values = np.atleast_1d(as_real(values, "values"))
        if weights is not None:
            weights = np.atleast_1d(as_real(weights, "weights"))
        if upper is not None:
            upper = np.atleast_1d(as_real(upper, "upper"))
        encoded = encode_triplets(rows, columns, values, weights, upper)
        return cls._from_ends(*encoded, Origin("triplets"), duplicates, upper)

    @classmethod
    def _from_ends(
        cls,
        triplets: Triplets,
        row_labels: np.ndarray,
        column_labels: np.ndarray,
        origin: Origin,
        duplicates: Duplicates,
        upper: np.ndarray | None,
        may_be_empty: bool = False,
    ) -> Observations:
        """Create from positions and values, or from the lower and the upper ends of values."""
        intervals = None
        if upper is not None:
            triplets, intervals = with_intervals(triplets, upper, row_labels, column_labels)
        return cls.from_positions(
            triplets,
            row_labels,
            column_labels,
            origin,
            duplicates,
            intervals=intervals,
            may_be_empty=may_be_empty,
        )

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        *,
        duplicates: Duplicates = "error",
        weights: Any = None,
        upper: Any = None,
        missing_values: Any = None,
    ) -> Observations:
        """Create from a matrix; rows and columns are labelled 0, 1, 2, ...

        Parameters
        ----------
        X : array, masked array or sparse matrix
            NaN and masked elements are missing. In a sparse matrix, elements that are not stored are
            missing, and a stored 0 is a value of 0.
        duplicates : {"error", "mean", "last", "first"}
            What to do if a sparse matrix stores an entry more than once. With weights, "mean" is the
            weighted mean, and its weight is the sum of the weights.
        weights : array or sparse matrix, optional
            Of the shape of X; see `from_triplets`. Where X is missing, weights are ignored.
        upper : array, masked array or sparse matrix, optional
            Of the shape of X: the upper ends of values that are only known to be in an interval; X then
            has the lower ends. See `from_triplets`.
        missing_values : list of numbers, optional
            Values that stand for missing ones, such as ``[-999]``.

        Returns
        -------
        Observations

        Examples
        --------
        >>> Observations.from_matrix([[1.0, float("nan")], [0.0, 4.0]]).values
        array([1., 0., 4.])
        >>> low, high = [[1.0, -float("inf")], [2.0, 3.0]], [[1.0, 0.5], [2.0, 4.0]]
        >>> Observations.from_matrix(low, upper=high).intervals
        array([[-inf,  0.5],
               [ 3. ,  4. ]])
        """
        return cls._from_matrix(X, duplicates, weights, upper, missing_values)

    @classmethod
    def _from_matrix(
        cls,
        X: Any,
        duplicates: Duplicates = "error",
        weights: Any = None,
        upper: Any = None,
        missing_values: Any = None,
        may_be_empty: bool = False,
    ) -> Observations:
        if is_data_frame(X):
            raise InputError("X must be an array or a sparse matrix; use from_table for tables.")
        if sp.issparse(X):
            triplets, origin = stored_triplets(X), Origin("sparse")
        else:
            matrix, origin = dense_matrix(X), Origin("matrix")
            triplets = observed_cells(matrix if upper is None else _either(matrix, upper))
        shape = n_rows, n_columns = np.shape(X)
        if weights is not None:
            found = numbers_of_cells(weights, "weights", triplets, shape)
            triplets = triplets._replace(weights=found)
        ends = None
        if upper is not None:
            ends = numbers_of_cells(upper, "upper", triplets, shape)
            low = numbers_of_cells(X, "X", triplets, shape)
            triplets = triplets._replace(values=low)
        if missing := given_missing_values(missing_values):
            triplets = triplets._replace(values=missing.remove(triplets.values))
            ends = None if ends is None else np.where(np.isnan(triplets.values), np.nan, ends)
        labels = np.arange(n_rows), np.arange(n_columns)
        return cls._from_ends(triplets, *labels, origin, duplicates, ends, may_be_empty)

    @classmethod
    def from_table(
        cls,
        table: Any,
        row: Any = None,
        column: Any = None,
        value: Any = None,
        *,
        layout: Layout = "auto",
        duplicates: Duplicates = "error",
        weight: Any = None,
        standard_error: Any = None,
        label: Any = None,
        ignore: Any = (),
        missing_values: Any = None,
        like: Observations | None = None,
    ) -> Observations:
        """Create from a data frame: pandas, polars, pyarrow or another that narwhals supports.

        Parameters
        ----------
        table : data frame
        row, column, value : name of a column
            The columns of a long table, with one line per entry, that contain the row label, the
            column label and the value. Other columns are ignored.
        layout : {"auto", "long", "wide"}
            Without these names, a table is long if its columns have the names of one (user, item,
            rating; row, column, value; ...), and otherwise wide, with one cell per entry. "long" uses
            the first three columns if their names are not recognised. The row labels of a wide table
            are its pandas index, unless that is a default RangeIndex; else the first column of text or
            dates whose values all differ; else 0, 1, 2, ...
        duplicates : {"error", "mean", "last", "first"}
            What to do if a (row, column) pair of a long table occurs more than once. With weights,
            "mean" is the weighted mean, and its weight is the sum of the weights.
        weight : name of a column
            The column of a long table with the weight of each value; see `from_triplets`. Where the
            value is missing, it is ignored.
        standard_error : name of a column
            The column of a long table with the standard error s of each value, instead of weights. The
            weight is (median(s) / s)^2, so a typical entry has the weight 1. Only the ratios of standard
            errors are used: the overall noise level is still estimated.
        label : name of a column
            The column of a wide table that contains the row labels.
        ignore : name of a column, or list of str
            Columns of a wide table that are not fitted; results have them as they are.
        missing_values : list of numbers and text
            Values that stand for missing ones, such as ``[99, -999, "unknown"]``.
        like : Observations
            The table of a fit, if ``table`` has new rows for it: columns of the same labels are read as
            they were there, and all values of a wide table may be missing.

        Returns
        -------
        Observations

        Notes
        -----
        The columns of a wide table may contain numbers, booleans, categories, dates or text. Text is
        converted if all values of a column are numbers, percentages, limits such as <0.5 and >10, or
        intervals such as 0.2-0.5; all other text is a category. A category with a single value, or with
        a different one in nearly every row, is not fitted, but results have it as it is. ``notes`` says
        what was found.

        Examples
        --------
        >>> import polars as pl
        >>> table = pl.DataFrame({"who": ["Ana", "Ben"], "tea": [5, None], "milk": [1, 2]})
        >>> Observations.from_table(table).row_labels
        array(['Ana', 'Ben'], dtype=object)
        >>> table = pl.DataFrame({"row": [0, 0, 1], "column": [0, 1, 0], "value": [5, 1, 2]})
        >>> table = table.with_columns(se=pl.Series([0.5, 1.0, 2.0]))
        >>> Observations.from_table(table, standard_error="se").weights
        array([4.  , 1.  , 0.25])
        >>> table = pl.DataFrame({"lead": ["0.7", "<0.5", "1.1"], "smoker": ["yes", "no", "no"]})
        >>> Observations.from_table(table).notes
        ("1 value of column 'lead' is a limit such as <0.5.", "Column 'smoker' holds yes and no.")
        """
        known = None if like is None else like.types_by_label()
        missing = given_missing_values(missing_values)
        return cls.from_frame(
            table,
            given_fields(row, column, value, layout),
            layout,
            duplicates,
            given_weight(weight, standard_error),
            WideOptions(label, given_names(ignore), missing, known),
        )

    @classmethod
    def from_frame(
        cls,
        table: Any,
        fields: LongFields | None,
        layout: Layout,
        duplicates: Duplicates,
        weight: WeightField | None,
        options: WideOptions,
    ) -> Observations:
        """Create from a data frame, with checked arguments; `from_table` explains them."""
        frame = as_frame(table)
        fields = fields or named_fields(frame.columns, layout)
        if fields is not None:
            refuse_for_long(options.label, options.ignore, options.only)
            return cls._from_long(frame, fields, weight, duplicates, options)
        refuse_for_wide(weight)
        return cls.from_wide(
            wide_table(frame, options),
            duplicates=duplicates,
            may_be_empty=options.known is not None,
        )

    @classmethod
    def _from_long(
        cls,
        frame: Any,
        fields: LongFields,
        weight: WeightField | None,
        duplicates: Duplicates,
        options: WideOptions,
    ) -> Observations:
        rows, columns, (values, upper), origin = long_columns(
            frame, fields, options.missing, options.style
        )
        weights = intervals = None
        if weight is not None:
            check_fields(frame.columns, [weight.name])
            weights = real_column(frame.get_column(weight.name))
        triplets, row_labels, column_labels = encode_triplets(rows, columns, values, weights)
        if upper is not None:
            triplets, intervals = with_intervals(triplets, upper, row_labels, column_labels)
        if weight is not None and weight.is_error:
            triplets = errors_to_weights(triplets, row_labels, column_labels)
        return cls.from_positions(
            triplets, row_labels, column_labels, origin, duplicates, intervals=intervals
        )

    @classmethod
    def from_positions(
        cls,
        triplets: Triplets,
        row_labels: np.ndarray,
        column_labels: np.ndarray,
        origin: Origin,
        duplicates: Duplicates = "error",
        *,
        column_types: tuple[ColumnType, ...] | None = None,
        intervals: np.ndarray | None = None,
        may_be_empty: bool = False,
    ) -> Observations:
        """Create from positions and values, with all labels."""
        by_column = group_by_column(triplets, row_labels, column_labels, may_be_empty)
        return cls.from_columns(
            by_column,
            row_labels,
            column_labels,
            origin,
            duplicates,
            column_types=column_types,
            intervals=intervals,
        )

    @classmethod
    def from_columns(
        cls,
        by_column: Entries,
        row_labels: np.ndarray,
        column_labels: np.ndarray,
        origin: Origin,
        duplicates: Duplicates = "error",
        *,
        column_types: tuple[ColumnType, ...] | None = None,
        intervals: np.ndarray | None = None,
    ) -> Observations:
        """Create from entries that `group_by_column` has grouped."""
        is_coded = coded_columns(column_types)
        by_row = sort_by_row(by_column, row_labels, column_labels, duplicates, is_coded)
        # Means may be between the levels of a rating scale, so it is found before averaging.
        is_averaged = duplicates == "mean" and by_row.n_entries < by_column.n_entries
        scale = rating_scale(by_column.values) if is_averaged else None
        pointers, indices, values, weights, cells = by_row
        has_intervals = bool(cells.size) and bool((cells >= 0).any())
        return cls(
            pointers,
            indices,
            values,
            row_labels,
            column_labels,
            origin,
            scale,
            weights if weights.size else None,
            column_types,
            cells if has_intervals else None,
            intervals if has_intervals else None,
        )

    @classmethod
    def without_entries(
        cls,
        row_labels: np.ndarray,
        column_labels: np.ndarray,
        origin: Origin,
        column_types: tuple[ColumnType, ...] | None = None,
    ) -> Observations:
        """Rows and columns of which no cell is observed."""
        pointers = np.zeros(len(row_labels) + 1, np.int64)
        nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return cls(pointers, *nothing, row_labels, column_labels, origin, column_types=column_types)

    @property
    def row_index(self) -> np.ndarray:
        """The position of the row of each entry, computed at each access."""
        return self.row_index_of(0, self.shape[0])

    def row_index_of(self, row_start: int, row_stop: int) -> np.ndarray:
        """``row_index`` of a block of rows, computed in the memory of the block."""
        counts = np.diff(self.pointers[row_start : row_stop + 1])
        return np.repeat(np.arange(row_start, row_stop, dtype=np.int32), counts)

    @property
    def values(self) -> np.ndarray:
        """The value of each entry in float64, converted at each access if stored in float32."""
        return self.stored_values.astype(np.float64, copy=False)

    def weights_as(self, dtype: np.dtype) -> np.ndarray:
        """The weights as `Entries` have them: in a type, and empty if there are none."""
        return NO_WEIGHTS if self.weights is None else self.weights.astype(dtype, copy=False)

    def types_by_label(self) -> dict[Any, ColumnType]:
        """What each column contained, by its label."""
        types = self.column_types or (NUMBER,) * self.shape[1]
        return dict(zip(self.column_labels.tolist(), types, strict=True))

    def whole_columns(self) -> np.ndarray:
        """Whether all values of each column are whole numbers; False for columns without values."""
        is_whole = self.values == np.rint(self.values)
        n = self.shape[1]
        counts = np.bincount(self.column_index, minlength=n)
        wholes = np.bincount(self.column_index, is_whole, n)
        are_whole: np.ndarray = (counts > 0) & (wholes == counts)
        return are_whole

    def cells_or_empty(self) -> np.ndarray:
        """The cells as `Entries` have them: empty if all values are exact."""
        return NO_CELLS if self.cells is None else self.cells

    @property
    def rows(self) -> np.ndarray:
        """The row label of each entry."""
        labels: np.ndarray = self.row_labels[self.row_index]
        return labels

    @property
    def columns(self) -> np.ndarray:
        """The column label of each entry."""
        labels: np.ndarray = self.column_labels[self.column_index]
        return labels

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, including empty ones."""
        return len(self.row_labels), len(self.column_labels)

    @property
    def n_entries(self) -> int:
        """The number of observed entries."""
        return len(self.column_index)

    @property
    def density(self) -> float:
        """The fraction of all cells that are observed."""
        n_rows, n_columns = self.shape
        return self.n_entries / (n_rows * n_columns)

    def __len__(self) -> int:
        return self.n_entries

    def __repr__(self) -> str:
        size = describe_size(self.shape)
        if not self.n_entries:  # a model that was saved without them
            return f"<Observations: {size}, entries not stored>"
        low, high = self.stored_values.min(), self.stored_values.max()
        weighted = "" if self.weights is None else ", with weights"
        return (
            f"<Observations: {size}, {describe_entries(self.n_entries)} "
            f"({100 * self.density:.3g}% observed), values {low:g} to {high:g}{weighted}>"
        )

    def __getitem__(self, key: Any) -> Observations:
        """Select entries by position; all row and column labels remain.

        Parameters
        ----------
        key : array of integers
            Positions from 0, each once, in any order; the order of the entries does not change.
            scikit-learn passes ``(key, ...)``, which works for the unsigned positions of `EntryKFold`.
            Other splitters pass signed positions, which mean rows.

        Examples
        --------
        >>> ratings = Observations.from_triplets(["Ana", "Ben"], ["x", "y"], [5, 3])
        >>> ratings[[1]].values, ratings[[1]].shape
        (array([3.]), (2, 2))
        """
        by_sklearn = isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis
        positions = np.asarray(key[0] if by_sklearn else key)
        if by_sklearn and positions.dtype != ENTRY_POSITIONS:
            raise InputError(
                "Observations are split by entries, not by rows: use cv=fr.EntryKFold(), or "
                "observations.split() for two sets."
            )
        if positions.ndim != 1 or positions.dtype.kind not in "iu" or not positions.size:
            raise InputError(
                "entries must be selected by a list of positions, as in observations[[0, 2]]; "
                f"got {positions.dtype} of shape {positions.shape}. For a mask use "
                "np.flatnonzero(mask)."
            )
        positions = np.sort(positions)
        if positions[0] < 0 or positions[-1] >= self.n_entries:
            raise InputError(
                f"positions of entries must be from 0 to {self.n_entries - 1}; "
                f"got {positions[0]} to {positions[-1]}."
            )
        if len(repeated := positions[1:][positions[1:] == positions[:-1]]):
            raise InputError(
                f"each entry can be selected once; position {repeated[0]} is repeated. "
                "Use np.unique(positions)."
            )
        return self._select(positions)

    def by_row(self) -> Entries:
        """The entries grouped by row."""
        weights = self.weights_as(np.dtype(np.float64))
        return Entries(
            self.pointers, self.column_index, self.values, weights, self.cells_or_empty()
        )

    def by_column(self) -> Entries:
        """The entries grouped by column: the rows of the transpose."""
        return transpose(self.by_row(), self.shape[1])

    @cached_property
    def _row_lookup(self) -> LabelIndex:
        return LabelIndex(self.row_labels, "row")

    @cached_property
    def _column_lookup(self) -> LabelIndex:
        return LabelIndex(self.column_labels, "column")

    def row_positions(self, names: Any, allow_unknown: bool = False) -> np.ndarray:
        """Find the positions of rows by their labels.

        Parameters
        ----------
        names : label or array of labels
        allow_unknown : bool
            Whether unknown labels have the position -1, instead of raising an error.

        Returns
        -------
        ndarray of int64
            One-dimensional; of length 1 for a single label.

        Examples
        --------
        >>> Observations.from_triplets(["Ana", "Ben"], [0, 1], [5, 3]).row_positions("Ben")
        array([1])
        """
        return self._row_lookup.positions(names, allow_unknown)

    def column_positions(self, names: Any, allow_unknown: bool = False) -> np.ndarray:
        """Find the positions of columns by their labels; see `row_positions`."""
        return self._column_lookup.positions(names, allow_unknown)

    def split(
        self, test_fraction: float = 0.2, random_state: Any = None
    ) -> tuple[Observations, Observations]:
        """Split the entries at random into two sets with the same row and column labels.

        Parameters
        ----------
        test_fraction : float
            The fraction of entries in the second set, above 0 and below 1. Each set has at least one
            entry.
        random_state : None, int or numpy Generator

        Returns
        -------
        train, test : Observations

        Examples
        --------
        >>> train, test = Observations.from_matrix([[1, 2, 3, 4, 5]]).split(random_state=0)
        >>> len(train), len(test), test.shape
        (4, 1, (1, 5))
        """
        check_real("test_fraction", test_fraction, "above 0 and below 1", lambda f: 0 < f < 1)
        if self.n_entries < 2:
            raise InputError("at least 2 entries are required for a split; got 1.")
        n_test = min(max(round(test_fraction * self.n_entries), 1), self.n_entries - 1)
        chosen = as_generator(random_state).choice(self.n_entries, n_test, replace=False)
        in_test = np.zeros(self.n_entries, dtype=bool)
        in_test[chosen] = True
        return self._select(np.flatnonzero(~in_test)), self._select(np.flatnonzero(in_test))

    def without_values(self, missing: MissingValues, may_be_empty: bool = False) -> Observations:
        """The entries whose values do not stand for missing ones."""
        is_known = ~np.isnan(missing.remove(self.values))
        if is_known.all():
            return self
        if not (may_be_empty or is_known.any()):
            raise InputError("at least one value must be observed; all are missing.")
        return self._select(np.flatnonzero(is_known))

    def _select(self, positions: np.ndarray) -> Observations:
        """Select the entries at ascending positions."""
        return replace(
            self,
            pointers=np.searchsorted(positions, self.pointers),
            column_index=self.column_index[positions],
            stored_values=self.stored_values[positions],
            weights=None if self.weights is None else self.weights[positions],
            cells=None if self.cells is None else self.cells[positions],
        )

    def value_range(self) -> tuple[float, float] | None:
        """The ends of the rating scale, or None if the values do not look like ratings.

        Ratings have 2 to 20 evenly spaced levels, with 10 entries each on average. If duplicates were
        averaged, this is the scale of the values before averaging. Tables with categories, dates or
        intervals have no common scale.

        Returns
        -------
        low, high : float, or None

        Examples
        --------
        >>> Observations.from_matrix([[1, 2, 3, 4, 5] * 10]).value_range()
        (1.0, 5.0)
        """
        if self.cells is not None or not are_numbers(self.column_types):
            return None
        return self.scale_before_averaging or rating_scale(self.stored_values)

    def missing_blocks(self, n_cells: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The positions (rows, columns) of missing cells, in blocks of about ``n_cells`` cells."""
        n_rows, n_columns = self.shape
        at_once = max(1, n_cells // n_columns)
        for start in range(0, n_rows, at_once):
            rows, columns = self.missing_positions(start, min(start + at_once, n_rows))
            if rows.size:
                yield rows, columns

    def missing_positions(self, row_start: int, row_stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the missing cells of a block of rows, in the memory of the block.

        Parameters
        ----------
        row_start, row_stop : int
            Positions of the first row and of the one after the last.

        Returns
        -------
        rows, columns : ndarray of int64
            Positions, in order.

        Examples
        --------
        >>> Observations.from_matrix([[1.0, float("nan")], [3.0, 4.0]]).missing_positions(0, 2)
        (array([0]), array([1]))
        """
        n_rows, n_columns = self.shape
        check_integer("row_stop", row_stop, 0, n_rows)
        check_integer("row_start", row_start, 0, row_stop)
        first, last = self.pointers[[row_start, row_stop]]
        missing = np.ones((row_stop - row_start, n_columns), dtype=bool)
        observed = self.row_index_of(row_start, row_stop) - row_start
        missing[observed, self.column_index[first:last]] = False
        rows, columns = np.nonzero(missing)
        return rows + row_start, columns


def _either(matrix: np.ndarray, upper: Any) -> np.ndarray:
    """An array that is missing only where both are: where one is missing, the ends are refused later."""
    if sp.issparse(upper) or np.shape(upper) != matrix.shape:
        return matrix
    return np.where(np.isnan(matrix), dense_matrix(upper, "upper"), matrix)


def fingerprint(data: Observations) -> str:
    """A digest of the entries, with their weights and intervals, and of the types of the columns.

    It does not depend on the labels.
    """
    digest = hashlib.sha256(repr(data.shape).encode())
    for rows in iter_blocks(data.shape[0], size=_FINGERPRINT_ROWS):
        digest.update(data.row_index_of(rows.start, rows.stop).data)
    digest.update(data.column_index.data)
    for block in iter_blocks(len(data)):
        digest.update(data.stored_values[block].astype(np.float64).data)
    if data.weights is not None:
        digest.update(data.weights.data)
    if data.cells is not None and data.intervals is not None:
        digest.update(data.cells.data)
        digest.update(data.intervals.data)
    if not are_numbers(data.column_types):
        digest.update(describe_types(data.column_types or ()))
    return digest.hexdigest()
