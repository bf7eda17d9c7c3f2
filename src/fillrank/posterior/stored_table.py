"""The table that was fitted in a model file, and what is checked in it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, ReadError
from fillrank.posterior.stored_kinds import StoredType, restored_types, stored_types
from fillrank.storage.serialization import Labels
from fillrank.table.entries import compact_floats
from fillrank.table.frames import Origin
from fillrank.table.labels import check_unique
from fillrank.table.observations import Observations

_Field = str | int | float | bool | None


class _StoredEntries(NamedTuple):
    """The entries that were fitted."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray


class _StoredWeightedEntries(NamedTuple):
    """The entries that were fitted, with weights. Files of entries without weights do not change."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray
    weights: np.ndarray


class _StoredMixedEntries(NamedTuple):
    """The entries that were fitted, of which some are known to be in an interval (k, 2)."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    cells: np.ndarray
    intervals: np.ndarray


class StoredTable(NamedTuple):
    """The table that was fitted: its labels and layout, and its entries on request."""

    row_labels: Labels
    column_labels: Labels
    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Literal["pandas", "polars", "pyarrow", "modin", "cudf"] | None
    row_field: _Field
    column_field: _Field
    value_field: _Field
    rows_in_index: bool
    entries: _StoredEntries | _StoredWeightedEntries | _StoredMixedEntries | None
    column_types: list[StoredType] | None


class StoredTable3(NamedTuple):
    """The same in layouts up to 3."""

    row_labels: Labels
    column_labels: Labels
    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Literal["pandas", "polars", "pyarrow", "modin", "cudf"] | None
    row_field: _Field
    column_field: _Field
    value_field: _Field
    rows_in_index: bool
    entries: _StoredEntries | _StoredWeightedEntries | None


def stored_table(observations: Observations, with_data: bool) -> StoredTable:
    """The table as a file has it, with or without its entries."""
    origin = observations.origin
    entries: _StoredEntries | _StoredWeightedEntries | _StoredMixedEntries | None = None
    if with_data:
        entries = _StoredEntries(
            observations.row_index, observations.column_index, observations.values
        )
        if observations.cells is not None and observations.intervals is not None:
            entries = _StoredMixedEntries(
                *entries, observations.weights, observations.cells, observations.intervals
            )
        elif observations.weights is not None:
            entries = _StoredWeightedEntries(*entries, observations.weights)
    return StoredTable(
        observations.row_labels,
        observations.column_labels,
        origin.layout,
        None if origin.backend is None else origin.backend.value,
        origin.row_field,
        origin.column_field,
        origin.value_field,
        origin.rows_in_index,
        entries,
        stored_types(observations.column_types),
    )


def restored_table(table: StoredTable | StoredTable3 | None) -> Observations:
    """The table of a file; raises ReadError if it is not one."""
    if table is None:
        raise ReadError("it does not say which table it was fitted on.")
    try:
        check_unique(table.row_labels, "row")
        check_unique(table.column_labels, "column")
    except InputError as error:
        raise ReadError(f"its labels are not valid: {error}") from error
    shape = len(table.row_labels), len(table.column_labels)
    if 0 in shape:
        raise ReadError("its table has no rows, or no columns.")
    none = np.zeros(0, dtype=np.int32)
    entries = table.entries or _StoredEntries(none, none, np.zeros(0))
    if table.entries is not None:
        _check_entries(entries, shape)
    backend = None
    if table.backend is not None and find_spec(table.backend) is not None:
        backend = nw.Implementation.from_string(table.backend)
    origin = Origin(
        table.layout,
        backend,
        table.row_field,
        table.column_field,
        table.value_field,
        table.rows_in_index,
    )
    pointers = np.searchsorted(entries.row_index, np.arange(shape[0] + 1))
    mixed = entries if isinstance(entries, _StoredMixedEntries) else None
    types = None
    if isinstance(table, StoredTable):
        types = restored_types(table.column_types, shape[1])
    return Observations(
        pointers,
        entries.column_index,
        compact_floats(entries.values),
        table.row_labels,
        table.column_labels,
        origin,
        weights=None if isinstance(entries, _StoredEntries) else entries.weights,
        column_types=types,
        cells=None if mixed is None else mixed.cells,
        intervals=None if mixed is None else mixed.intervals,
    )


def _check_entries(
    entries: _StoredEntries | _StoredWeightedEntries | _StoredMixedEntries, shape: tuple[int, int]
) -> None:
    """Entries as Observations have them: within the table, in order, each cell once."""
    i, j, values = entries.row_index, entries.column_index, entries.values
    valid = (
        i.dtype == j.dtype == np.int32
        and values.dtype == np.float64
        and i.ndim == 1
        and i.shape == j.shape == values.shape
        and i.size > 0
        and np.isfinite(values).all()
        and all((k >= 0).all() and (k < n).all() for k, n in zip((i, j), shape, strict=True))
        and (np.diff(i.astype(np.int64) * shape[1] + j) > 0).all()
    )
    if not valid:
        raise ReadError("its entries are not those of a table of its size.")
    if isinstance(entries, _StoredMixedEntries):
        _check_intervals(entries)
    weights = None if isinstance(entries, _StoredEntries) else entries.weights
    if weights is not None:
        is_known = weights.dtype == np.float64 and weights.shape == values.shape
        if not is_known or not (np.isfinite(weights) & (weights > 0)).all():
            raise ReadError("its weights must be finite and above 0, one for each entry.")


def _check_intervals(entries: _StoredMixedEntries) -> None:
    """Numbers of intervals that are there, with a lower and an upper end."""
    cells, intervals = entries.cells, entries.intervals
    is_valid = (
        cells.dtype == np.int32
        and cells.shape == entries.values.shape
        and intervals.dtype == np.float64
        and intervals.ndim == 2
        and intervals.shape[1] == 2
        and bool(((cells >= -1) & (cells < len(intervals))).all())
        and bool((intervals[:, 0] < intervals[:, 1]).all())
    )
    if not is_valid:
        raise ReadError("its intervals of values are not valid.")
