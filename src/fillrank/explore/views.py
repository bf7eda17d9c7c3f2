"""The data of the page's views of a model, by positions, as values that JSON can represent."""

from __future__ import annotations

import math
from functools import cached_property
from threading import Lock
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fillrank.completion import Completion
from fillrank.completions.convergence import convergence_of
from fillrank.errors import SettingFormat, describe
from fillrank.estimators.base import Estimator
from fillrank.explore.label_search import LabelSearch
from fillrank.explore.mixed_cells import CellNumbers, MixedCells
from fillrank.posterior.recommend import By, TopQuery, nothing_left_out, seen
from fillrank.posterior.similarity import Similarity, signal_factors
from fillrank.report.columns import columns_of_kinds, is_mixed, limit_sides
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.table.entries import Entries
from fillrank.table.titles import NO_TITLES, Titles

Side = Literal["rows", "columns"]
Order = Literal["high", "low"]
Shown = Literal["all", "known", "filled"]
LEVEL = 0.9
PAGE = 50  # cells on a page
MATCHES = 12  # labels that a search returns
BEST = 10  # recommendations, and similar rows
QUANTILE = 0.1  # of a cautious recommendation
# The limits of an axis are taken from this many intervals.
_PROBES = 64


class Query(NamedTuple):
    """Which cells of a row (or column) to show, in which order, from which position."""

    order: Order = "high"
    shown: Shown = "all"
    start: int = 0


class ModelView:
    """A model, as the page shows it.

    Parameters
    ----------
    model : fitted model
        Of any method.
    title : str
        The title of the page.
    row_titles, column_titles : mapping, optional
        What rows and columns are, by the text of their labels, to be shown with these.
    setting : callable
        Writes a setting in advice, as `fillrank.errors.describe` takes it.
    """

    def __init__(
        self,
        model: Estimator | Completion,
        title: str,
        row_titles: Titles | None = None,
        column_titles: Titles | None = None,
        *,
        setting: SettingFormat = str,
    ):
        self.model: Completion = model.completion_
        self.title = title
        self._setting = setting
        data = model.observations_
        self.labels: dict[Side, LabelSearch] = {
            "rows": LabelSearch(data.row_labels, row_titles or NO_TITLES),
            "columns": LabelSearch(data.column_labels, column_titles or NO_TITLES),
        }
        self._titled = [
            side for side, titles in (("rows", row_titles), ("columns", column_titles)) if titles
        ]
        self._similarity: dict[Side, Similarity] = {}
        self._lock = Lock()
        # Of tables whose columns have values of different kinds.
        self.mixed = MixedCells(self.model) if is_mixed(model) else None

    @cached_property
    def _known(self) -> dict[Side, Entries]:
        data = self.model.observations_
        return {"rows": data.by_row(), "columns": data.by_column()}

    @cached_property
    def has_intervals(self) -> bool:
        """Whether the method has intervals."""
        return self.model.posterior.has_draws

    @property
    def has_entries(self) -> bool:
        """Whether the model has the observed entries."""
        return len(self.model.observations_) > 0

    def about(self) -> dict[str, Any]:
        """The description of the model."""
        data = self.model.observations_
        n_rows, n_columns = data.shape
        return {
            "title": self.title,
            "method": self.model.method,
            "rows": n_rows,
            "columns": n_columns,
            "entries": len(data) if self.has_entries else None,
            "rank": int(self.model.record.rank),
            "not_converged": self._describe_convergence(),
            "intervals": self.has_intervals,
            "level": LEVEL,
            "orders": self._orders(),
            "mixed": self.mixed is not None,
            "titled": self._titled,
            "limits": bool(limit_sides(data).any()),
        }

    def _describe_convergence(self) -> str | None:
        """Why the fit has not converged, and what to do; None if it has, or if that is not known."""
        found = convergence_of(self.model)
        if found.converged is not False:
            return None
        return describe(found.warning("not converged"), self._setting)

    def _orders(self) -> list[str]:
        """The orders of recommendations; none if columns cannot be compared with each other."""
        if self.mixed is not None:
            return []
        return list(get_args(By)) if self.has_intervals else ["mean"]

    def search(self, side: Side, part: str) -> dict[str, Any]:
        """Rows or columns by a part of their label or title."""
        labels = self.labels[side]
        found = labels.search(part, MATCHES)
        matches = [{"at": i} | labels.describe(i) for i in found.positions]
        return {"matches": matches, "total": found.total}

    def line(self, side: Side, at: int, query: Query) -> dict[str, Any]:
        """The values of a row (or column): observed ones as they are, the others filled in."""
        labels = self.labels[self._other(side)]
        values, known = self._values(side, at)
        cells = np.arange(values.size)
        if query.shown != "all":
            cells = cells[known if query.shown == "known" else ~known]
        has_order = self._has_order(side, at)
        if has_order:  # else in the order of the table
            order = values[cells] if query.order == "low" else -values[cells]
            cells = cells[np.argsort(order, kind="stable")]
        page = cells[query.start : query.start + PAGE]
        low, high = self.interval(side, at, page)
        return self.labels[side].describe(at) | {
            "n": values.size,
            "known": int(known.sum()) if self.has_entries else None,
            "total": cells.size,
            "start": query.start,
            "ordered": has_order,
            "axis": self._axis(side, at, values) if self._has_axis(side, at) else None,
            "cells": [
                {"at": int(j), "value": number(values[j])}
                | labels.describe(j)
                | ({"known": True} if known[j] else {"low": number(a), "high": number(b)})
                | self._more(side, at, int(j), values, known, (a, b))
                for j, a, b in zip(page, low, high, strict=True)
            ],
        }

    def _has_order(self, side: Side, at: int) -> bool:
        """Whether the values of a row (or column) can be sorted."""
        return self.mixed is None or (side == "columns" and self.mixed.has_order(at))

    def _has_axis(self, side: Side, at: int) -> bool:
        """Whether all values of a row (or column) are on the same scale of numbers."""
        return self.mixed is None or (side == "columns" and self.mixed.has_axis(at))

    def _more(
        self,
        side: Side,
        at: int,
        other: int,
        values: np.ndarray,
        known: np.ndarray,
        ends: tuple[float, float],
    ) -> dict[str, Any]:
        """What the page also shows of a cell of a table of mixed kinds."""
        if self.mixed is None:
            return {}
        i, j = (at, other) if side == "rows" else (other, at)
        cell = CellNumbers(i, j, float(values[other]), bool(known[other]), *map(float, ends))
        return self.mixed.describe(cell, own_axis=side == "rows")

    def recommend(self, at: int, by: By) -> dict[str, Any]:
        """The best columns for a row, among those without an observed value."""
        model, labels = self.model, self.labels["columns"]
        row = np.array([at])
        left_out = (
            seen(model.observations.by_row(), row) if self.has_entries else nothing_left_out(1)
        )
        n = min(BEST, model.observations.shape[1])
        rng = np.random.default_rng()
        top = model.best_columns(TopQuery(row, left_out, n, by, QUANTILE, rng))
        is_found = top.columns >= 0
        best, scores = top.columns[is_found], top.scores[is_found]
        values, _ = self._values("rows", at)
        low, high = self.interval("rows", at, best)
        return {
            "axis": self._axis("rows", at, values),
            "cells": [
                {"at": int(j), "value": number(score), "low": number(a), "high": number(b)}
                | labels.describe(j)
                for j, score, a, b in zip(best, scores, low, high, strict=True)
            ],
        }

    def nearest(self, side: Side, at: int) -> dict[str, Any]:
        """The rows (or columns) with the most similar patterns; categories have no direction."""
        labels = self.labels[side]
        is_left_out = np.zeros(len(labels.texts), dtype=bool)
        if side == "columns":
            is_left_out = columns_of_kinds(self.model, "category")
        if is_left_out[at]:
            return {"nearest": []}
        with self._lock, one_blas_thread():
            if side not in self._similarity:
                left, right = signal_factors(self.model.posterior_)
                sides = (left, right) if side == "rows" else (right, left)
                self._similarity[side] = Similarity(*sides)
        found = self._similarity[side].nearest(at, BEST + int(is_left_out.sum()))
        found = [(i, c) for i, c in found if c > 0 and not is_left_out[i]][:BEST]
        return {
            "nearest": [{"at": i, "similarity": number(c)} | labels.describe(i) for i, c in found]
        }

    def interval(self, side: Side, at: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Intervals for new observations of cells; NaN if the method has none."""
        if not self.has_intervals:
            return np.full(cells.size, np.nan), np.full(cells.size, np.nan)
        i, j = self._pairs(side, at, cells)
        with Workers(1) as worker:
            low, high = self.model.posterior_.signal.interval(i, j, LEVEL, "observation", worker)
        return low, high

    def _values(self, side: Side, at: int) -> tuple[np.ndarray, np.ndarray]:
        """All values of a row (or column), and which of them are observed."""
        n = len(self.labels[self._other(side)].texts)
        with Workers(1) as worker:
            values = self.model.posterior_.predict(*self._pairs(side, at, np.arange(n)), worker)
        pointers, indices, observed, *_ = self._known[side]
        own = slice(pointers[at], pointers[at + 1])
        known = np.zeros(n, dtype=bool)
        known[indices[own]] = True
        values[indices[own]] = observed[own]
        return values, known

    def _axis(self, side: Side, at: int, values: np.ndarray) -> list[float]:
        """The limits of an axis for the values of a row (or column) and their intervals."""
        if (limits := self.model.posterior_.units.value_range) is not None:
            return list(limits)
        order = np.argsort(values, kind="stable")
        some = order[np.unique(np.linspace(0, values.size - 1, _PROBES).astype(np.int64))]
        low, high = self.interval(side, at, some)
        return axis_limits(values, low, high)

    @staticmethod
    def _other(side: Side) -> Side:
        return "columns" if side == "rows" else "rows"

    @staticmethod
    def _pairs(side: Side, at: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = np.full(cells.size, at, dtype=np.int64)
        return (own, cells) if side == "rows" else (cells, own)


def axis_limits(*values: np.ndarray) -> list[float]:
    """The limits of an axis for all finite values."""
    finite = np.concatenate(values)
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return [low, high] if low < high else [low - 1.0, high + 1.0]


def number(value: Any) -> float | None:
    """A number rounded to seven digits; None if it is not finite."""
    return float(f"{value:.7g}") + 0.0 if math.isfinite(value) else None
