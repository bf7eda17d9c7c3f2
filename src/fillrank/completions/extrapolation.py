"""Missing values that are predicted far outside the observed values of their column, or of its unit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fillrank.errors import FillrankWarning, Setting, SettingFormat, describe
from fillrank.table.labels import as_text

if TYPE_CHECKING:
    from fillrank.completions.fitted_table import FittedTable

# Far is more than this share of the observed range beyond its ends.
_FAR = 0.5
# The range of fewer values says little, and predictions of more cells take too long.
_FEWEST_VALUES, _MOST_CELLS = 20, 5_000_000
_CELLS_AT_ONCE = 2**18
_KINDS = ("number", "positive")
_MOST_NAMED = 5  # columns


class Extrapolation(NamedTuple):
    """The column at a position, with predictions of missing values far outside its observed values.

    ``n_below`` and ``n_above`` are the numbers of those far below and above them; ``observed`` and
    ``predicted`` are the ranges, in the units of the data.
    """

    column: int
    n_below: int
    n_above: int
    observed: tuple[float, float]
    predicted: tuple[float, float]

    @property
    def n_far(self) -> int:
        """The number of such predictions."""
        return self.n_below + self.n_above

    def warning(self, model: FittedTable) -> FillrankWarning:
        """What was predicted, and what to do about it."""
        name = as_text(model.observations.column_labels[self.column])
        low, high = self.observed
        values = "1 missing value is" if self.n_far == 1 else f"{self.n_far:,} missing values are"
        ends = [
            f"{what} {predicted:.4g}"
            for what, predicted, n in zip(
                ("down to", "up to"), self.predicted, (self.n_below, self.n_above), strict=True
            )
            if n
        ]
        return FillrankWarning(
            f"column {name!r}: {values} predicted far outside the observed range of {low:.4g} to "
            f"{high:.4g}, {' and '.join(ends)}",
            advice=(
                "If such values are impossible, limit them by ", Setting("bounds"),
                ", or choose another kind for the column by ", Setting("kinds"), ".",
            ),
        )  # fmt: skip


def describe_extrapolations(model: FittedTable, setting: SettingFormat = str) -> list[str]:
    """A warning for each of the first columns with such predictions, and the number of the others."""
    found = find_extrapolations(model)
    texts = [describe(each.warning(model), setting) for each in found[:_MOST_NAMED]]
    if n_more := len(found) - len(texts):
        columns = "1 more column has" if n_more == 1 else f"{n_more:,} more columns have"
        texts.append(f"{columns} predictions far outside the observed range.")
    return texts


def find_extrapolations(model: FittedTable) -> list[Extrapolation]:
    """The columns of numbers with such predictions, in the order of the table."""
    data = model.observations
    if len(data) == 0 or math.prod(data.shape) > _MOST_CELLS:
        return []
    low, high, is_judged = _observed_ranges(model)
    margin = _FAR * (high - low)
    lowest, highest = low.copy(), high.copy()
    n_below, n_above = np.zeros((2, low.size), dtype=np.int64)
    for columns, predicted in _predictions(model, is_judged):
        np.fmin.at(lowest, columns, predicted)
        np.fmax.at(highest, columns, predicted)
        np.add.at(n_below, columns, predicted < (low - margin)[columns])
        np.add.at(n_above, columns, predicted > (high + margin)[columns])
    ranges = np.column_stack([low, high, lowest, highest]).tolist()
    return [
        Extrapolation(
            j, int(n_below[j]), int(n_above[j]), tuple(ranges[j][:2]), tuple(ranges[j][2:])
        )
        for j in np.flatnonzero(n_below + n_above).tolist()
    ]


def _observed_ranges(model: FittedTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The lowest and the highest exact value of each column, and whether it is judged by these.

    If all columns have one unit, they are those of all columns: rows may differ in their level.
    """
    data, n_columns = model.observations, model.observations.shape[1]
    is_exact = np.ones(len(data), dtype=bool) if data.cells is None else data.cells < 0
    columns, values = data.column_index[is_exact], data.values[is_exact]
    is_judged = np.isin(model.posterior.column_kinds, _KINDS)
    if data.column_types is not None:
        is_judged &= np.array([each.values != "datetime" for each in data.column_types])
    is_judged &= np.bincount(columns, minlength=n_columns) >= _FEWEST_VALUES
    low, high = np.full(n_columns, math.inf), np.full(n_columns, -math.inf)
    np.minimum.at(low, columns, values)
    np.maximum.at(high, columns, values)
    if not model.record.has_own_units and is_judged.any():
        low[:], high[:] = low[is_judged].min(), high[is_judged].max()
    # A range of no values is not used.
    low[~is_judged], high[~is_judged] = 0.0, 0.0
    return low, high, is_judged & (high > low)


def _predictions(
    model: FittedTable, is_judged: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The columns of missing cells, and what is predicted there, in blocks of rows."""
    with model.workers() as workers:
        for i, j in model.observations.missing_blocks(_CELLS_AT_ONCE):
            rows, columns = i[is_judged[j]], j[is_judged[j]]
            if rows.size:
                yield columns, model.posterior.predict(rows, columns, workers)
