"""The probabilities of the levels of missing cells: some rows of each column, as bars."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.report.columns import level_names
from fillrank.report.names import Name, Names
from fillrank.table.observations import Observations

# Columns, rows of each and levels that the report shows.
_MOST_COLUMNS, _MOST_ROWS, _MOST_LEVELS = 8, 6, 7
# Missing cells of a column among which these rows are chosen.
_MOST_CELLS = 2000


class LevelLine(NamedTuple):
    """The probabilities of the levels in one row of the table."""

    name: Name
    shares: list[float]


class LevelTable(NamedTuple):
    """The probabilities of the levels of a column; ``n_others`` less probable levels are summed up."""

    name: Name
    levels: list[str]
    n_others: int
    rows: list[LevelLine]


def level_tables(model: Any, names: Names) -> list[LevelTable]:
    """Tables of the first columns with levels that have missing cells."""
    if not model.posterior_.has_draws:
        return []
    data = model.observations_
    tables: list[LevelTable] = []
    for j in np.flatnonzero(model.posterior_.level_columns).tolist():
        rows = _missing_rows(data, j)
        if rows.size and len(tables) < _MOST_COLUMNS:
            tables.append(_level_table(model, j, rows, names))
    return tables


def _missing_rows(data: Observations, j: int) -> np.ndarray:
    """Rows without a value in a column: all, or a random sample."""
    is_missing = np.ones(data.shape[0], dtype=bool)
    is_missing[data.row_index[data.column_index == j]] = False
    rows = np.flatnonzero(is_missing)
    if rows.size > _MOST_CELLS:
        rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_CELLS, replace=False))
    return rows


def _level_table(model: Any, j: int, rows: np.ndarray, names: Names) -> LevelTable:
    """Some of the rows, from the most certain to the least certain one."""
    data = model.observations_
    with model.completion_.workers() as workers:
        found = model.posterior_.signal.probabilities(rows, j, workers)
    by_certainty = np.argsort(-found.max(axis=1), kind="stable")
    places = np.unique(np.linspace(0, rows.size - 1, _MOST_ROWS).round().astype(int))
    chosen = by_certainty[places]
    levels, shares, n_others = _most_probable(level_names(model, j), found)
    lines = [
        LevelLine(names.row(data.row_labels[rows[k]]), shares[k].tolist()) for k in chosen.tolist()
    ]
    return LevelTable(names.column(data.column_labels[j]), levels, n_others, lines)


def _most_probable(names: list[str], shares: np.ndarray) -> tuple[list[str], np.ndarray, int]:
    """The most probable levels, in their order, and the sum of the others as the last one."""
    n_others = len(names) - _MOST_LEVELS
    if n_others <= 1:
        return names, shares, 0
    first = np.sort(np.argsort(-shares.mean(axis=0), kind="stable")[:_MOST_LEVELS])
    rest = 1.0 - shares[:, first].sum(axis=1, keepdims=True)
    return [names[k] for k in first], np.hstack([shares[:, first], rest]), n_others
