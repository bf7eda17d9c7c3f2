"""The observed entries of a matrix, under the users' own names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError
from fillrank.table.entries import Entries
from fillrank.table.frames import Origin, as_frame, is_table, long_columns, wide_table
from fillrank.table.labels import NameIndex, as_names
from fillrank.table.layout import Layout, given_fields, named_fields
from fillrank.table.matrices import dense_matrix, observed_cells, stored_triplets
from fillrank.table.ordering import turned
from fillrank.table.rating_scale import rating_scale
from fillrank.table.triplets import (
    Duplicates,
    Triplets,
    gather_columns,
    number_names,
    put_in_order,
)
from fillrank.validation import as_real, check_real, check_whole, generator

# Positions of entries are of this type where scikit-learn hands them on: it asks for rows, which
# numpy counts by signed numbers, in the same words.
ENTRY_POSITIONS = np.dtype(np.uint32)


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """The observed entries of a matrix; the rest is missing.

    Make one by `from_triplets`, `from_matrix`, `from_table`, or by `of`, which tells these apart.
    Every row and column that is named stays, be it empty.

    Attributes
    ----------
    column_index : ndarray of int32
        The position of the column of each entry. Entries are sorted by row and, within a row, by column.
    pointers : ndarray of int64
        Row i has the entries from ``pointers[i]`` to just before ``pointers[i + 1]``.
    stored_values : ndarray of float32 or float64
        The values as they are held: in float32 if that is exact for every one of them.
    row_labels, column_labels : ndarray
        The names: in the order of a wide table, or of first appearance in a long one.
    origin : Origin
        What the entries came from.
    scale_before_averaging : tuple of float or None
        The ends of the rating scale that the values were on before duplicates were averaged; None if
        there was no such scale, or nothing to average.

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

    @classmethod
    def of(cls, data: Any) -> Observations:
        """Take whatever holds a matrix with missing entries: here input is judged.

        Parameters
        ----------
        data : Observations, data frame, array, masked array or sparse matrix
            A data frame is judged as in `from_table`, all else as in `from_matrix`.
        """
        if isinstance(data, Observations):
            return data
        if isinstance(data, (str, PathLike)):
            raise InputError(f"a matrix or a table is needed; got a path. Use read({str(data)!r}).")
        return cls.from_table(data) if is_table(data) else cls.from_matrix(data)

    @classmethod
    def from_triplets(
        cls, rows: Any, columns: Any, values: Any, *, duplicates: Duplicates = "error"
    ) -> Observations:
        """Take one (row name, column name, value) per entry.

        Parameters
        ----------
        rows, columns : array of names
            Numbers, text or dates. 1 and "1" are two names.
        values : array of real numbers
            NaN says nothing about an entry, but its row and column are kept.
        duplicates : {"error", "mean", "last", "first"}
            What to do if a (row, column) pair comes more than once.

        Examples
        --------
        >>> Observations.from_triplets([1, 1], [7, 7], [2.0, 4.0], duplicates="mean").values
        array([3.])
        """
        rows, columns = as_names(rows), as_names(columns)
        values = np.atleast_1d(as_real(values, "values"))
        named = number_names(rows, columns, values)
        return cls.from_positions(*named, Origin("triplets"), duplicates)

    @classmethod
    def from_matrix(cls, X: Any, *, duplicates: Duplicates = "error") -> Observations:
        """Take a matrix whose rows and columns are named 0, 1, 2, ...

        Parameters
        ----------
        X : array, masked array or sparse matrix
            NaN is missing, and so is what is masked. In a sparse matrix what is not stored is
            missing, and a stored 0 is a value of 0.
        duplicates : {"error", "mean", "last", "first"}
            What to do if a sparse matrix stores an entry more than once.

        Examples
        --------
        >>> Observations.from_matrix([[1.0, float("nan")], [0.0, 4.0]]).values
        array([1., 0., 4.])
        """
        if is_table(X):
            raise InputError("X must be an array or a sparse matrix; use from_table for tables.")
        if sp.issparse(X):
            triplets, origin = stored_triplets(X), Origin("sparse")
        else:
            triplets, origin = observed_cells(dense_matrix(X)), Origin("matrix")
        n_rows, n_columns = np.shape(X)
        return cls.from_positions(
            triplets, np.arange(n_rows), np.arange(n_columns), origin, duplicates
        )

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
    ) -> Observations:
        """Take a data frame: pandas, polars, pyarrow or another that narwhals knows.

        Parameters
        ----------
        table : data frame
        row, column, value : name of a column
            Of a long table, with one line per entry: where its row name, its column name and its
            value are. Other columns are left alone.
        layout : {"auto", "long", "wide"}
            Without those names, a table is long if its columns are named like one (user, item,
            rating; row, column, value; ...), and otherwise wide: one cell per entry. "long" takes
            the first three columns if their names say nothing. The row names of a wide table are
            its index in pandas, unless that only counts; else its only column of text or dates;
            else 0, 1, 2, ...
        duplicates : {"error", "mean", "last", "first"}
            What to do if a (row, column) pair of a long table comes more than once.

        Examples
        --------
        >>> import polars as pl
        >>> table = pl.DataFrame({"who": ["Ana", "Ben"], "tea": [5, None], "milk": [1, 2]})
        >>> Observations.from_table(table).row_labels
        array(['Ana', 'Ben'], dtype=object)
        """
        frame = as_frame(table)
        fields = given_fields(row, column, value, layout) or named_fields(frame.columns, layout)
        if fields is not None:
            rows, columns, values, origin = long_columns(frame, fields)
            return cls.from_positions(*number_names(rows, columns, values), origin, duplicates)
        matrix, row_labels, column_labels, origin = wide_table(frame)
        return cls.from_positions(
            observed_cells(matrix), row_labels, column_labels, origin, duplicates
        )

    @classmethod
    def from_positions(
        cls,
        triplets: Triplets,
        row_labels: np.ndarray,
        column_labels: np.ndarray,
        origin: Origin,
        duplicates: Duplicates = "error",
    ) -> Observations:
        """Take positions and values together with all names: what the other ways end in."""
        by_column = gather_columns(triplets, row_labels, column_labels)
        return cls.from_columns(by_column, row_labels, column_labels, origin, duplicates)

    @classmethod
    def from_columns(
        cls,
        by_column: Entries,
        row_labels: np.ndarray,
        column_labels: np.ndarray,
        origin: Origin,
        duplicates: Duplicates = "error",
    ) -> Observations:
        """Take entries that are gathered by column already, by `gather_columns`."""
        by_row = put_in_order(by_column, row_labels, column_labels, duplicates)
        # A mean of ratings may be on none of their levels, but the scale is still theirs.
        is_averaged = duplicates == "mean" and by_row.n_entries < by_column.n_entries
        scale = rating_scale(by_column.values) if is_averaged else None
        return cls(*by_row, row_labels, column_labels, origin, scale)

    @property
    def row_index(self) -> np.ndarray:
        """The position of the row of each entry, made anew whenever it is asked for."""
        return self.row_index_of(0, self.shape[0])

    def row_index_of(self, row_start: int, row_stop: int) -> np.ndarray:
        """The part of ``row_index`` for a block of rows: memory is that of the block alone."""
        counts = np.diff(self.pointers[row_start : row_stop + 1])
        return np.repeat(np.arange(row_start, row_stop, dtype=np.int32), counts)

    @property
    def values(self) -> np.ndarray:
        """The value of each entry in float64, made anew if they are held in float32."""
        return self.stored_values.astype(np.float64, copy=False)

    @property
    def rows(self) -> np.ndarray:
        """The row name of each entry."""
        return self.row_labels[self.row_index]

    @property
    def columns(self) -> np.ndarray:
        """The column name of each entry."""
        return self.column_labels[self.column_index]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns, empty ones included."""
        return len(self.row_labels), len(self.column_labels)

    @property
    def n_entries(self) -> int:
        """The number of observed entries."""
        return len(self.column_index)

    @property
    def density(self) -> float:
        """The share of all cells that is observed."""
        n_rows, n_columns = self.shape
        return self.n_entries / (n_rows * n_columns)

    def __len__(self) -> int:
        return self.n_entries

    def __repr__(self) -> str:
        n_rows, n_columns = self.shape
        if not self.n_entries:  # of a model that was saved without them
            return f"<Observations: {n_rows:,} rows x {n_columns:,} columns, entries not kept>"
        low, high = self.stored_values.min(), self.stored_values.max()
        return (
            f"<Observations: {n_rows:,} rows x {n_columns:,} columns, {self.n_entries:,} entries "
            f"({100 * self.density:.3g}% observed), values {low:g} to {high:g}>"
        )

    def __getitem__(self, key: Any) -> Observations:
        """Pick entries by position: those alone are observed then, and all names stay.

        Parameters
        ----------
        key : array of whole numbers
            From 0, each once, in any order: the entries keep theirs. scikit-learn asks for
            ``(key, ...)``, and gets it for the unsigned numbers that `EntryKFold` gives: those of
            other splitters are signed, and mean rows.

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
                "observations.split() for two parts."
            )
        if positions.ndim != 1 or positions.dtype.kind not in "iu" or not positions.size:
            raise InputError(
                "Observations are no array: their entries are picked by a list of positions, as in "
                f"observations[[0, 2]]; got {positions.dtype} of shape {positions.shape}. Of a mask "
                "take np.flatnonzero(mask)."
            )
        positions = np.sort(positions)
        if positions[0] < 0 or positions[-1] >= self.n_entries:
            raise InputError(
                f"positions of entries must be from 0 to {self.n_entries - 1}; "
                f"got {positions[0]} to {positions[-1]}."
            )
        if len(again := positions[1:][positions[1:] == positions[:-1]]):
            raise InputError(
                f"each entry can be picked once; position {again[0]} came twice. "
                "Use np.unique(positions)."
            )
        return self._keep(positions)

    def by_row(self) -> Entries:
        """Gather the entries by row."""
        return Entries(self.pointers, self.column_index, self.values)

    def by_column(self) -> Entries:
        """Gather the entries by column: the rows of the transpose."""
        return turned(self.by_row(), self.shape[1])

    @cached_property
    def _row_names(self) -> NameIndex:
        return NameIndex(self.row_labels, "row")

    @cached_property
    def _column_names(self) -> NameIndex:
        return NameIndex(self.column_labels, "column")

    def row_positions(self, names: Any, allow_unknown: bool = False) -> np.ndarray:
        """Find the positions of rows by name.

        Parameters
        ----------
        names : name or array of names
        allow_unknown : bool
            Whether names that are not known have the position -1, instead of raising an error.

        Returns
        -------
        ndarray of int64
            One-dimensional; of length 1 for a single name.

        Examples
        --------
        >>> Observations.from_triplets(["Ana", "Ben"], [0, 1], [5, 3]).row_positions("Ben")
        array([1])
        """
        return self._row_names.positions(names, allow_unknown)

    def column_positions(self, names: Any, allow_unknown: bool = False) -> np.ndarray:
        """Find the positions of columns by name; see `row_positions`."""
        return self._column_names.positions(names, allow_unknown)

    def split(
        self, test_fraction: float = 0.2, random_state: Any = None
    ) -> tuple[Observations, Observations]:
        """Part the entries at random into two sets that share all names.

        Parameters
        ----------
        test_fraction : float
            Above 0 and below 1: the share of the second set. Each set has an entry at least.
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
            raise InputError("at least 2 entries are needed for a split; got 1.")
        n_test = min(max(round(test_fraction * self.n_entries), 1), self.n_entries - 1)
        chosen = generator(random_state).choice(self.n_entries, n_test, replace=False)
        in_test = np.zeros(self.n_entries, dtype=bool)
        in_test[chosen] = True
        return self._keep(np.flatnonzero(~in_test)), self._keep(np.flatnonzero(in_test))

    def _keep(self, positions: np.ndarray) -> Observations:
        """The entries at these positions, which ascend."""
        return replace(
            self,
            pointers=np.searchsorted(positions, self.pointers),
            column_index=self.column_index[positions],
            stored_values=self.stored_values[positions],
        )

    def value_range(self) -> tuple[float, float] | None:
        """Find the ends of the rating scale, or None if the values do not look like ratings.

        They do if there are 2 to 20 equally spaced levels, with 10 entries each on average. If
        duplicates were averaged, the values that came count, not their means.

        Examples
        --------
        >>> Observations.from_matrix([[1, 2, 3, 4, 5] * 10]).value_range()
        (1.0, 5.0)
        """
        return self.scale_before_averaging or rating_scale(self.stored_values)

    def missing_positions(self, row_start: int, row_stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the missing cells of a block of rows: memory is that of the block alone.

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
        check_whole("row_stop", row_stop, 0, n_rows)
        check_whole("row_start", row_start, 0, row_stop)
        first, last = self.pointers[[row_start, row_stop]]
        missing = np.ones((row_stop - row_start, n_columns), dtype=bool)
        observed = self.row_index_of(row_start, row_stop) - row_start
        missing[observed, self.column_index[first:last]] = False
        rows, columns = np.nonzero(missing)
        return rows + row_start, columns
