"""New rows and columns of a fitted table, by their labels: their entries and their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from fillrank.completions.alignment import align, with_known_side
from fillrank.completions.fitted_table import FittedTable
from fillrank.errors import InputError, NotSupportedError, Setting, UnknownNameError
from fillrank.features.new_rows import (
    SIDES,
    Axis,
    code_given,
    feature_labels,
    side_of,
    takes_features,
)
from fillrank.noise.laws import LAWS
from fillrank.posterior.protocol import Posterior
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.entries import Entries, rows_of
from fillrank.table.kinds import check_kinds
from fillrank.table.new_columns import code_new_columns
from fillrank.table.observations import Observations
from fillrank.table.weights import refuse_weights, refuse_weights_of_levels

# New rows that are folded in together: their draws take about 100 MB at most.
_ROWS_AT_ONCE = 4096

Table = TypeVar("Table", bound=FittedTable)
# The kinds of new columns: by their values, or by label.
Kinds = Literal["auto"] | Mapping[Any, str]


class UnknownFeatures(NamedTuple):
    """The features of rows and of columns that are not known (n, p), None without any."""

    rows: np.ndarray | None = None
    columns: np.ndarray | None = None


class GivenFeatures(NamedTuple):
    """The features of new rows and of new columns, as users give them."""

    rows: Any = None
    columns: Any = None


def fold_in(
    model: Table, table: Any, axis: Axis, given_features: GivenFeatures, kinds: Kinds
) -> Table:
    """Complete new rows, or new columns; see `Completion.fold_in`."""
    features = _features_of(axis, *given_features)
    source = source_of(model, axis)
    _check_kinds(source, axis, kinds)
    if features is not None:
        check_features(model, source, axis)
    new = _new_side(model, source, table, features, axis)
    check_weights(model, new)
    positions = _align_known(model.observations, new, axis)
    labels = new.row_labels if axis == "rows" else new.column_labels
    by_new = new.by_row() if axis == "rows" else new.by_column()
    given = code_given(side_of(source.blocks, axis), features, labels, axis)
    with one_blas_thread():
        entries = _reindex(by_new, positions)
        posterior: Posterior
        if axis == "columns" and source.has_own_kinds:
            coding = code_new_columns(new, kinds)
            with model.workers() as workers:
                posterior = source.signal.fold_in_columns(
                    entries, coding, workers, given, new.intervals
                )
        else:
            posterior = _folded_in(model, source, entries, axis, given, new.intervals)
    return replace(
        model,
        posterior=posterior,
        observations=with_known_side(model.observations, new, positions, axis),
        # The noise of rows and columns is that of the table that was fitted.
        record=replace(model.record, traces=None, row_noise=None, column_noise=None),
        feature_names=model.feature_names if axis == "rows" else None,
        folded_in=tuple(sorted({*model.folded_in, axis})),
        sources={**model.sources, axis: source},
    )


def predict_rows(model: FittedTable, observations: Observations) -> np.ndarray:
    """Predict all cells of new rows."""
    n_rows, n_columns = observations.shape
    model.check_table_memory(n_rows * n_columns, "Give fewer rows at a time.")
    check_weights(model, observations)
    columns = align(model.observations, observations, "columns")
    entries = _reindex(observations.by_row(), columns)
    matrix = np.empty((n_rows, n_columns))
    source = source_of(model, "rows")
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        with one_blas_thread():
            part = rows_of(entries, block)
            rows = _folded_in(model, source, part, "rows", intervals=observations.intervals)
            matrix[block] = rows.block(np.arange(rows.shape[0]), columns)
    return matrix


def without_entries(
    model: FittedTable, new_row: bool, new_column: bool, new: UnknownFeatures
) -> Posterior:
    """The posterior of rows, columns or both without entries: one, or one for each in ``new``."""
    posterior = model.posterior
    with one_blas_thread():
        if new_row:
            source = source_of(model, "rows")
            posterior = _folded_in(model, source, _no_entries(new.rows), "rows", new.rows)
        if new_column:
            source = source_of(model, "columns") if "columns" in model.folded_in else posterior
            entries = _no_entries(new.columns)
            posterior = _folded_in(model, source, entries, "columns", new.columns)
    return posterior


def source_of(model: FittedTable, axis: Axis) -> Posterior:
    """The posterior by which new rows (or columns) are completed: that of the fit.

    Rows that were folded in did not change it, and may be too few to estimate a prior from.
    """
    if axis not in model.folded_in:
        return model.posterior
    if len(model.folded_in) == 2 or axis not in model.sources:  # as after loading a file
        raise NotSupportedError(
            f"this model of new {' and '.join(model.folded_in)} cannot take further {axis}: it does "
            f"not know the {axis} of the fit. Give them to the model that it came from."
        )
    return model.sources[axis]


def check_features(model: FittedTable, source: Posterior, axis: Axis) -> None:
    """Raise NotSupportedError if new rows (or columns) cannot have features."""
    if takes_features(side_of(source.blocks, axis)):
        return
    if not model.posterior.has_draws:
        raise NotSupportedError(f"{model.method} takes no features. GASR and BPMF do.")
    setting = f"{SIDES[axis]}_features"
    raise NotSupportedError(
        f"this model was fitted without features of {axis}, so it cannot use those of new ones",
        advice=("Fit it with ", Setting(setting, ...), ", or leave them out here."),
    )


def check_weights(model: FittedTable, new: Observations) -> None:
    """Reject weights of new entries, unless the method uses them."""
    if model.posterior.levels is not None or not model.posterior.has_draws:
        refuse_weights(new, model.method)
    law = model.record.law
    if law is not None and LAWS[law].of_levels:
        refuse_weights_of_levels(new, law)


def _check_kinds(source: Posterior, axis: Axis, kinds: Kinds) -> None:
    """Reject kinds unless new columns can have their own."""
    check_kinds(kinds)
    if not isinstance(kinds, str) and (axis == "rows" or not source.has_own_kinds):
        raise InputError(
            "kinds are for new columns of a table of mixed kinds; new rows have the kinds of the fit, "
            "and new columns of a table of one kind have that kind",
            place=Setting("kinds"),
            advice="Leave it out.",
        )


def _features_of(axis: Axis, row_features: Any, column_features: Any) -> Any:
    """The features of the new rows (or columns); those of known ones are refused."""
    own, other = row_features, column_features
    if axis == "columns":
        own, other = other, own
    if other is not None:
        known: Axis = "columns" if axis == "rows" else "rows"
        raise InputError(
            f"{SIDES[axis]}_features are allowed when {axis} are folded in; got {SIDES[known]}_features",
            advice=("Leave them out, or set ", Setting("axis", known), "."),
        )
    return own


def _new_side(
    model: FittedTable, source: Posterior, table: Any, features: Any, axis: Axis
) -> Observations:
    """The new rows (or columns) as a table; without entries if only their features are given."""
    if table is not None:
        return Observations.of(table, like=model.observations if axis == "rows" else None)
    if features is None:
        raise InputError(
            f"fold_in needs a table of the new {axis}, or {SIDES[axis]}_features; got neither."
        )
    data = model.observations
    labels = feature_labels(features, side_of(source.blocks, axis), axis)
    both = (labels, data.column_labels) if axis == "rows" else (data.row_labels, labels)
    return Observations.without_entries(*both, data.origin)


def _align_known(known: Observations, new: Observations, axis: Axis) -> np.ndarray:
    """The positions of the columns of new rows (or of the rows of new columns) at fit."""
    known_axis: Axis = "columns" if axis == "rows" else "rows"
    try:
        return align(known, new, known_axis)
    except UnknownNameError as error:
        raise error.with_advice(
            f"New {axis} can have values only in {known_axis} that the model was fitted on: leave "
            "others out."
        ) from error


def _folded_in(
    model: FittedTable,
    source: Posterior,
    entries: Entries,
    axis: Axis,
    features: np.ndarray | None = None,
    intervals: np.ndarray | None = None,
) -> Posterior:
    with model.workers() as workers:
        return source.fold_in(entries, axis, workers, features, intervals)


def _no_entries(features: np.ndarray | None) -> Entries:
    """The entries of rows without entries: one, or one for each line of features."""
    n = 1 if features is None else len(features)
    return Entries(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))


def _reindex(entries: Entries, positions: np.ndarray) -> Entries:
    """Entries at the positions that their columns have at fit, in the type that entries of fits have."""
    return entries._replace(indices=positions[entries.indices].astype(np.int32))
