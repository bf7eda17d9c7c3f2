"""Posterior predictive checks: whether data that the model replicates look like the observed ones.

References
----------
.. [1] A. Gelman et al. (2013). Bayesian Data Analysis, 3rd edition, section 6.3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.completions.fitted_table import FittedTable
from fillrank.completions.missing_cells import imputations_of
from fillrank.features.new_rows import Axis
from fillrank.table.column_types import coded_columns
from fillrank.table.frames import to_label_table
from fillrank.table.units import column_statistics

STATISTICS = ("mean", "sd", "min", "max", "lowest", "highest", "usual")
_NUMBERS = ("number", "positive", "count", "ordered")
# A value that occurs so often is taken for a level, whose share is checked.
_FEWEST_EQUAL = 2
_FEWEST_ENTRIES = 2


class _Groups(NamedTuple):
    """The entries of rows or columns: their order by group, where groups start, and their group."""

    order: np.ndarray
    starts: np.ndarray
    group: np.ndarray
    positions: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.group, minlength=self.positions.size)

    def total(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.group, values, self.positions.size)


class _Cells(NamedTuple):
    """Entries that are checked, and how their values are compared within a group."""

    rows: np.ndarray
    columns: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    is_whole: np.ndarray
    weights: np.ndarray | None

    def standard(self, values: np.ndarray) -> np.ndarray:
        return (np.where(self.is_whole, np.rint(values), values) - self.location) / self.scale


class _References(NamedTuple):
    """The lowest, the highest and the most frequent observed value of each group."""

    lowest: np.ndarray
    highest: np.ndarray
    usual: np.ndarray


def predictive_check(model: FittedTable, by: Axis, n_draws: int | None, random_state: int) -> Any:
    """Observed and replicated statistics; see `Completion.predictive_check`."""
    model.check_draws("replicated data")
    n = model.posterior.n_draws if n_draws is None else n_draws
    replicates = imputations_of(model, n, random_state)
    cells, values = _cells(model, by)
    groups = _group(cells.rows if by == "rows" else cells.columns)
    observed_values = cells.standard(values)
    references = _references(observed_values, groups)
    observed = _statistics(observed_values, groups, references)
    sums, squares, above = np.zeros((3, *observed.shape))
    for number in range(n):
        drawn = replicates.replicate(number, cells.rows, cells.columns, cells.weights)
        difference = _statistics(cells.standard(drawn), groups, references) - observed
        sums += difference
        squares += difference**2
        above += np.where(difference == 0.0, 0.5, difference > 0.0)
    mean = sums / n
    sd = np.sqrt(np.maximum(squares / n - mean**2, 0.0) * (n / max(n - 1, 1)))
    chosen = _meaningful(model, by, groups, observed_values, references)
    g, k = np.nonzero(chosen)
    labels = model.observations.row_labels if by == "rows" else model.observations.column_labels
    fields = {
        "statistic": np.array(STATISTICS, dtype=object)[k],
        "observed": observed[g, k],
        "replicated": (observed + mean)[g, k],
        "sd": sd[g, k],
        "p_value": (above / n)[g, k],
    }
    return to_label_table(model.observations, by, labels[groups.positions[g]], fields)


def _cells(model: FittedTable, by: Axis) -> tuple[_Cells, np.ndarray]:
    """The exact entries; of rows those of numbers, in standard units if columns have their own."""
    data = model.observations
    chosen = np.ones(len(data), dtype=bool) if data.cells is None else data.cells < 0
    if by == "rows":
        chosen &= _number_columns(model)[data.column_index]
    rows, columns = data.row_index[chosen], data.column_index[chosen]
    location, scale = np.zeros(data.shape[1]), np.ones(data.shape[1])
    if by == "rows" and not _has_one_unit(model):
        _, location, scale = column_statistics(data)
        scale = np.where(scale > 0, scale, 1.0)
    is_whole = np.zeros(data.shape[1], dtype=bool)
    if model.settings.get("round", False) and data.origin.layout == "wide":
        is_whole = data.whole_columns()
    weights = None if data.weights is None else data.weights[chosen]
    cells = _Cells(rows, columns, location[columns], scale[columns], is_whole[columns], weights)
    return cells, data.values[chosen]


def _has_one_unit(model: FittedTable) -> bool:
    return model.posterior.units.are_shared and len(set(model.posterior.column_kinds)) == 1


def _number_columns(model: FittedTable) -> np.ndarray:
    """Columns whose values can be averaged: numbers, and ordered levels that are numbers."""
    is_number = np.isin(model.posterior.column_kinds, _NUMBERS)
    coded = coded_columns(model.observations.column_types)
    return is_number if coded is None else is_number & ~coded


def _group(of_entries: np.ndarray) -> _Groups:
    positions, index = np.unique(of_entries, return_inverse=True)
    order = np.argsort(index, kind="stable")
    return _Groups(
        order, np.searchsorted(index[order], np.arange(positions.size)), index, positions
    )


def _references(values: np.ndarray, groups: _Groups) -> _References:
    ordered = values[groups.order]
    lowest = np.minimum.reduceat(ordered, groups.starts)
    highest = np.maximum.reduceat(ordered, groups.starts)
    usual = np.empty(groups.positions.size)
    for g, part in enumerate(np.split(ordered, groups.starts[1:])):
        distinct, counts = np.unique(part, return_counts=True)
        usual[g] = distinct[counts.argmax()]
    return _References(lowest, highest, usual)


def _statistics(values: np.ndarray, groups: _Groups, references: _References) -> np.ndarray:
    """(groups, statistics), in the order of `STATISTICS`."""
    n, index = groups.sizes, groups.group
    mean = groups.total(values) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        sd = np.sqrt(groups.total((values - mean[index]) ** 2) / (n - 1))
    ordered = values[groups.order]
    return np.column_stack(
        [
            mean,
            sd,
            np.minimum.reduceat(ordered, groups.starts),
            np.maximum.reduceat(ordered, groups.starts),
            groups.total(values <= references.lowest[index]) / n,
            groups.total(values >= references.highest[index]) / n,
            groups.total(values == references.usual[index]) / n,
        ]
    )


def _meaningful(
    model: FittedTable, by: Axis, groups: _Groups, values: np.ndarray, references: _References
) -> np.ndarray:
    """Which statistics say something about which groups, (groups, statistics).

    Shares at the lowest and the highest value are for values that occur more than once: levels, ends of
    a scale, zeros. Categories have no order, and so only the share of the most frequent one.
    """
    is_number = np.ones(groups.positions.size, dtype=bool)
    is_category = np.zeros(groups.positions.size, dtype=bool)
    has_ends = is_number & (by == "columns" or _has_one_unit(model))
    if by == "columns":
        is_number = _number_columns(model)[groups.positions]
        is_category = np.array(model.posterior.column_kinds)[groups.positions] == "category"
    index = groups.group
    at_low = groups.total(values == references.lowest[index]) >= _FEWEST_EQUAL
    at_high = groups.total(values == references.highest[index]) >= _FEWEST_EQUAL
    chosen = [
        *[is_number] * 4,
        has_ends & at_low & ~is_category,
        has_ends & at_high & ~is_category,
        is_category,
    ]
    return np.column_stack(chosen) & (groups.sizes >= _FEWEST_ENTRIES)[:, np.newaxis]
