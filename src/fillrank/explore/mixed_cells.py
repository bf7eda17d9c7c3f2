"""Cells of tables with values of different kinds, as the page shows them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fillrank.completion import Completion
from fillrank.completions.user_values import decode
from fillrank.report.columns import level_names, limit_sides, standard_of
from fillrank.report.summary import format_together
from fillrank.runtime.threads import Workers
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

# Levels whose probabilities are shown, the most probable ones.
_MOST_BARS = 6
# The ends of an axis without observed values, in standard deviations from the mean.
_ENDS = 3.0


class CellNumbers(NamedTuple):
    """A cell: its position, its number or code of a level, and the ends of its interval."""

    row: int
    column: int
    value: float
    is_known: bool
    low: float
    high: float


class MixedCells:
    """The texts, axes and bars of the cells of a model."""

    def __init__(self, model: Completion):
        self._model = model
        self._has_levels = model.posterior.level_columns
        self._kinds = model.posterior.column_kinds
        self._names: dict[int, list[str]] = {}

    def describe(self, cell: CellNumbers, own_axis: bool) -> dict[str, Any]:
        """What the page shows of a cell; with ``own_axis``, its column has one of its own."""
        j = cell.column
        found: dict[str, Any] = {"text": self.text(j, cell.value)}
        if cell.is_known:
            found |= self._limit(cell.row, j)
        elif self._has_levels[j]:
            found["bars"] = self._bars(cell.row, j)
        if not cell.is_known and math.isfinite(cell.low):
            found["text"], low, high = self._texts(j, cell)
            found["between"] = f"{low} to {high}"
        if own_axis:
            found["axis"] = None if self._has_levels[j] else self._axis(j, cell.low, cell.high)
        return found

    def text(self, j: int, value: float) -> str:
        """A value of a column as text."""
        return value_text(self._model.observations, j, value, self._kinds[j])

    def _texts(self, j: int, cell: CellNumbers) -> list[str]:
        """A value and the ends of its interval, with the decimals that the interval needs."""
        values = (cell.value, cell.low, cell.high)
        if self._kinds[j] in ("number", "positive") and not _is_date(self._model.observations, j):
            return format_together(*values, width=cell.high - cell.low)
        return [self.text(j, value) for value in values]

    def has_axis(self, j: int) -> bool:
        """Whether the values of a column are on a scale of numbers."""
        return not self._has_levels[j]

    def has_order(self, j: int) -> bool:
        """Whether the values of a column have an order; yes and no, and categories, have none."""
        return self._kinds[j] not in ("yes_no", "category")

    def _limit(self, i: int, j: int) -> dict[str, Any]:
        """The limit of an observed value, if no more is known of it."""
        data = self._model.observations
        if data.cells is None or data.intervals is None:
            return {}
        start, stop = data.pointers[i], data.pointers[i + 1]
        entry = int(start + np.searchsorted(data.column_index[start:stop], j))
        if data.cells[entry] < 0:
            return {}
        low, high = data.intervals[data.cells[entry]].tolist()
        side = int(limit_sides(data, np.array([entry]))[0])
        if side == 0:
            return {"text": f"{self.text(j, low)} to {self.text(j, high)}"}
        text = f"< {self.text(j, high)}" if side < 0 else f"> {self.text(j, low)}"
        return {"text": text, "limit": side}

    def _bars(self, i: int, j: int) -> list[list[Any]]:
        """The most probable levels, in their order, with their probabilities."""
        if j not in self._names:
            self._names[j] = level_names(self._model, j)
        with Workers(1) as worker:
            shares = self._model.posterior.signal.probabilities(np.array([i]), j, worker)[0]
        shown = np.sort(np.argsort(-shares, kind="stable")[:_MOST_BARS]).tolist()
        return [[self._names[j][k], round(float(shares[k]), 4)] for k in shown]

    def _axis(self, j: int, *values: float) -> list[float]:
        low, high = self._ends[:, j].tolist()
        finite = [value for value in values if math.isfinite(value)]
        low, high = min([low, *finite]), max([high, *finite])
        return [low, high] if low < high else [low - 1.0, high + 1.0]

    @cached_property
    def _ends(self) -> np.ndarray:
        """The smallest and the largest observed value of each column."""
        data, standard = self._model.observations, standard_of(self._model)
        if len(data) == 0:
            return np.array(
                [standard.mean - _ENDS * standard.sd, standard.mean + _ENDS * standard.sd]
            )
        low, high = np.full((2, data.shape[1]), np.nan)
        np.fmin.at(low, data.column_index, data.values)
        np.fmax.at(high, data.column_index, data.values)
        return np.array([np.where(np.isnan(end), standard.mean, end) for end in (low, high)])


def _is_date(data: Observations, j: int) -> bool:
    return data.column_types is not None and data.column_types[j].values == "datetime"


def value_text(data: Observations, j: int, value: float, kind: str) -> str:
    """A value of a column as text: whole counts, days of dates, and levels as users have them."""
    if kind == "count" or _is_date(data, j):
        value = float(np.rint(value))
    decoded = decode(data, np.array([j]), np.array([value]))[0]
    return f"{decoded:.4g}" if isinstance(decoded, float) else as_text(decoded)
