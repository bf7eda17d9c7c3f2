"""The best columns for rows of a fitted table, and for new rows of which features are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fillrank.completions.candidates import find_candidates
from fillrank.completions.fitted_table import FittedTable
from fillrank.completions.new_rows import (
    UnknownFeatures,
    check_features,
    source_of,
    without_entries,
)
from fillrank.completions.unknown_labels import number_unknown
from fillrank.errors import Setting
from fillrank.features.new_rows import feature_labels, side_of
from fillrank.posterior.recommend import By, LeftOut, Top, TopQuery
from fillrank.runtime.memory import check_memory
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.frames import to_long
from fillrank.table.labels import as_labels
from fillrank.table.observations import Observations
from fillrank.validation import as_generator

_BYTES_PER_RECOMMENDATION = 100


class Order(NamedTuple):
    """How many columns to recommend for a row, and what they are ordered by."""

    n: int
    by: By
    quantile: float


class Choice(NamedTuple):
    """Which cells can be recommended, as users give it: see `find_candidates`."""

    leave_out: Any
    only: Any


def recommend(
    model: FittedTable, rows: Any, order: Order, choice: Choice, random_state: Any
) -> Any:
    """The best columns for some rows, or for all, as a long table."""
    data = model.observations
    i = np.arange(data.shape[0]) if rows is None else data.row_positions(rows)
    candidates = find_candidates(model, *choice)
    top = _top(model, i, order, candidates.left_out(i), candidates.only, random_state)
    return _to_table(data, data.row_labels[i], top)


def recommend_new(
    model: FittedTable, rows: Any, order: Order, choice: Choice, random_state: Any, features: Any
) -> Any:
    """The same for known rows, and for others of which only features are known."""
    source = source_of(model, "rows")
    check_features(model, source, "rows")
    if rows is None:
        rows = feature_labels(features, side_of(source.blocks, "rows"), "rows")
    data, labels = model.observations, as_labels(rows)
    positions = data.row_positions(labels, allow_unknown=True)
    i, given = number_unknown(model, positions, labels, features, "rows")
    candidates = find_candidates(model, *choice, labels.tolist())
    if given is None:
        top = _top(model, i, order, candidates.left_out(i), candidates.only, random_state)
        return _to_table(data, labels, top)
    rng = as_generator(random_state)
    is_new = i < 0
    new = replace(model, posterior=without_entries(model, True, False, UnknownFeatures(given)))
    left_out = candidates.left_out_of_new(labels[is_new])
    found = _top(new, -1 - i[is_new], order, left_out, candidates.only, rng)
    top = Top(*(np.empty((i.size, each.shape[1]), each.dtype) for each in found))
    top.columns[is_new], top.scores[is_new] = found
    if not is_new.all():
        left_out = candidates.left_out(i[~is_new])
        known = _top(model, i[~is_new], order, left_out, candidates.only, rng)
        top.columns[~is_new], top.scores[~is_new] = known
    return _to_table(data, labels, top)


def best_columns(model: FittedTable, query: TopQuery) -> Top:
    """The best columns of some rows, by position."""
    if query.by != "mean":
        needs = (Setting("by", query.by), " needs them, ", Setting("by", "mean"), " does not.")
        model.check_draws("draws to recommend by", needs)
    with one_blas_thread(), model.workers() as workers:
        return model.posterior.top(query, workers)


def _top(
    model: FittedTable,
    i: np.ndarray,
    order: Order,
    left_out: LeftOut,
    only: np.ndarray | None,
    random_state: Any,
) -> Top:
    """The best columns of the rows at some positions."""
    n = min(order.n, model.observations.shape[1])
    check_memory(
        _BYTES_PER_RECOMMENDATION * i.size * n,
        f"a result of {i.size * n:,} lines",
        "Request fewer rows at a time, or a smaller n.",
    )
    rng = as_generator(random_state) if order.by == "curious" else None
    return best_columns(model, TopQuery(i, left_out, n, order.by, order.quantile, rng, only))


def _to_table(data: Observations, labels: np.ndarray, top: Top) -> Any:
    """The best columns of rows with these labels, as a long table."""
    there = top.columns >= 0
    return to_long(
        data,
        np.repeat(labels, there.sum(axis=1)),
        data.column_labels[top.columns[there]],
        {"value": top.scores[there]},
    )
