"""What the page asks of a model, answered by positions, as plain values that JSON can hold."""

from __future__ import annotations

import math
from functools import cached_property
from threading import Lock
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fillrank.errors import NotSupportedError
from fillrank.estimators.convergence import convergence_of
from fillrank.estimators.recommending import By, Recommending
from fillrank.explore.names import Names
from fillrank.posterior.similarity import Similarity, signal_factors
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.table.entries import Entries

Side = Literal["rows", "columns"]
Order = Literal["high", "low"]
Shown = Literal["all", "known", "filled"]
LEVEL = 0.9
PAGE = 50  # cells that are shown at once
MATCHES = 12  # names that a search gives
BEST = 10  # recommendations, and rows that are alike
QUANTILE = 0.1  # of a cautious recommendation
# So many intervals say how much room an axis needs beyond the values.
_PROBES = 64


class Query(NamedTuple):
    """Which cells of a row (or column) to show: which of them, in which order, from where on."""

    order: Order = "high"
    shown: Shown = "all"
    start: int = 0


class Answers:
    """A model that is asked by the page.

    Parameters
    ----------
    model : fitted model
        Of any method.
    title : str
        What the page calls it.
    """

    def __init__(self, model: Recommending, title: str):
        self.model = model
        self.title = title
        data = model.observations_
        self.names: dict[Side, Names] = {
            "rows": Names(data.row_labels),
            "columns": Names(data.column_labels),
        }
        self._similarity: dict[Side, Similarity] = {}
        self._making = Lock()

    @cached_property
    def _known(self) -> dict[Side, Entries]:
        data = self.model.observations_
        return {"rows": data.by_row(), "columns": data.by_column()}

    @cached_property
    def has_intervals(self) -> bool:
        """Whether the method knows how sure it is."""
        try:
            self.model._check_draws("intervals")
        except NotSupportedError:
            return False
        return True

    @property
    def has_entries(self) -> bool:
        """Whether the model knows what was observed."""
        return len(self.model.observations_) > 0

    def about(self) -> dict[str, Any]:
        """What there is to know of the model before anything is asked."""
        data = self.model.observations_
        n_rows, n_columns = data.shape
        rank = getattr(self.model, "rank_", None)
        found = convergence_of(self.model)
        return {
            "title": self.title,
            "method": type(self.model).__name__,
            "rows": n_rows,
            "columns": n_columns,
            "entries": len(data) if self.has_entries else None,
            "rank": None if rank is None else int(rank),
            "not_converged": str(found) if found.converged is False else None,
            "intervals": self.has_intervals,
            "level": LEVEL,
            "orders": list(get_args(By)) if self.has_intervals else ["mean"],
        }

    def search(self, side: Side, part: str) -> dict[str, Any]:
        """Rows or columns by a part of their name."""
        names = self.names[side]
        found = names.search(part, MATCHES)
        matches = [{"at": i, "name": names.texts[i]} for i in found.positions]
        return {"matches": matches, "total": found.total}

    def line(self, side: Side, at: int, query: Query) -> dict[str, Any]:
        """The values of a row (or column): those known as they are, the others filled in."""
        names = self.names[self._other(side)]
        values, known = self._values(side, at)
        cells = np.arange(values.size)
        if query.shown != "all":
            cells = cells[known if query.shown == "known" else ~known]
        order = np.argsort(values[cells] if query.order == "low" else -values[cells], kind="stable")
        page = cells[order[query.start : query.start + PAGE]]
        low, high = self.interval(side, at, page)
        return {
            "name": self.names[side].texts[at],
            "n": values.size,
            "known": int(known.sum()) if self.has_entries else None,
            "total": cells.size,
            "start": query.start,
            "axis": self._axis(side, at, values),
            "cells": [
                {"at": int(j), "name": names.texts[j], "value": number(values[j])}
                | ({"known": True} if known[j] else {"low": number(a), "high": number(b)})
                for j, a, b in zip(page, low, high, strict=True)
            ],
        }

    def recommend(self, at: int, by: By) -> dict[str, Any]:
        """The best columns for a row, among those of which no value is known."""
        model, names = self.model, self.names["columns"]
        row = np.array([at])
        left_out = model._left_out("seen" if self.has_entries else None, row)
        n = min(BEST, model.observations_.shape[1])
        top = model._top(row, left_out, n, by, QUANTILE, random_state=None)
        there = top.columns >= 0
        best, scores = top.columns[there], top.scores[there]
        values, _ = self._values("rows", at)
        low, high = self.interval("rows", at, best)
        return {
            "axis": self._axis("rows", at, values),
            "cells": [
                {
                    "at": int(j),
                    "name": names.texts[j],
                    "value": number(score),
                    "low": number(a),
                    "high": number(b),
                }
                for j, score, a, b in zip(best, scores, low, high, strict=True)
            ],
        }

    def nearest(self, side: Side, at: int) -> dict[str, Any]:
        """The rows (or columns) whose values go up and down with those of this one."""
        texts = self.names[side].texts
        with self._making, one_blas_thread():
            if side not in self._similarity:
                left, right = signal_factors(self.model.posterior_)
                sides = (left, right) if side == "rows" else (right, left)
                self._similarity[side] = Similarity(*sides)
        found = self._similarity[side].nearest(at, BEST)
        return {"nearest": [{"at": i, "name": texts[i], "similarity": number(c)} for i, c in found]}

    def interval(self, side: Side, at: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where new observations of cells would be; NaN if the method cannot say."""
        if not self.has_intervals:
            return np.full(cells.size, np.nan), np.full(cells.size, np.nan)
        i, j = self._pairs(side, at, cells)
        with Workers(1) as alone:
            return self.model.posterior_.interval(i, j, LEVEL, "observation", alone)

    def _values(self, side: Side, at: int) -> tuple[np.ndarray, np.ndarray]:
        """All values of a row (or column), and which of them are known."""
        n = len(self.names[self._other(side)].texts)
        with Workers(1) as alone:
            values = self.model.posterior_.predict(*self._pairs(side, at, np.arange(n)), alone)
        pointers, indices, observed = self._known[side]
        own = slice(pointers[at], pointers[at + 1])
        known = np.zeros(n, dtype=bool)
        known[indices[own]] = True
        values[indices[own]] = observed[own]
        return values, known

    def _axis(self, side: Side, at: int, values: np.ndarray) -> list[float]:
        """The ends of a scale for the values of a row (or column) and their intervals."""
        if (ends := self.model.posterior_.units.value_range) is not None:
            return list(ends)
        order = np.argsort(values, kind="stable")
        some = order[np.unique(np.linspace(0, values.size - 1, _PROBES).astype(np.int64))]
        low, high = self.interval(side, at, some)
        return axis_of(values, low, high)

    @staticmethod
    def _other(side: Side) -> Side:
        return "columns" if side == "rows" else "rows"

    @staticmethod
    def _pairs(side: Side, at: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = np.full(cells.size, at, dtype=np.int64)
        return (own, cells) if side == "rows" else (cells, own)


def axis_of(*values: np.ndarray) -> list[float]:
    """The ends of a scale on which all values that are numbers have room."""
    given = np.concatenate(values)
    given = given[np.isfinite(given)]
    low, high = (float(given.min()), float(given.max())) if given.size else (0.0, 0.0)
    return [low, high] if low < high else [low - 1.0, high + 1.0]


def number(value: Any) -> float | None:
    """A number with as many digits as anyone reads; None for what is none."""
    return float(f"{value:.7g}") + 0.0 if math.isfinite(value) else None
