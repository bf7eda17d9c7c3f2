"""Small plots of columns: how observed values are distributed, and how those that are filled in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fillrank.report.columns import format_values, level_names

WIDTH, HEIGHT = 120.0, 26.0  # of a plot, in units of its view box
_N_BINS = 16
_MOST_VALUES = 12  # distinct values that have a bar each
_MOST_ROWS = 1000  # whose predictions stand for those of all rows
_QUANTILES = (0.005, 0.995)  # the first and the last bar also have what is beyond


class Bar(NamedTuple):
    """A bar for observed values, and one in front of it for values that are filled in."""

    x: float
    width: float
    observed: float
    filled: float
    tip: str


class Distribution(NamedTuple):
    """The bars of a column, in units of the view box."""

    bars: list[Bar]


def distributions_of(model: Any, columns: Iterable[int]) -> dict[int, Distribution]:
    """Return the distributions of these columns.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    >>> len(distributions_of(model, [0, 5])[5].bars)
    16
    """
    data = model.observations_
    # Entries of a column are next to each other in this order.
    order = np.argsort(data.column_index, kind="stable")
    ends = np.searchsorted(data.column_index[order], np.arange(data.shape[1] + 1))
    return {j: _distribution(model, j, order[ends[j] : ends[j + 1]]) for j in columns}


def _distribution(model: Any, j: int, entries: np.ndarray) -> Distribution:
    data = model.observations_
    observed = data.values[entries]
    missing = np.setdiff1d(np.arange(data.shape[0]), data.row_index[entries])
    some = missing[:: 1 + missing.size // _MOST_ROWS]
    filled = model.posterior_.block(some, np.array([j]))[:, 0] if some.size else np.empty(0)
    edges, names = _bins(model, j, observed, filled)
    shares = [_shares(values, edges) for values in (observed, filled)]
    top = max(float(each.max()) for each in shares) or 1.0
    step = WIDTH / len(names)
    bars = [
        Bar(
            round(k * step, 1),
            round(0.86 * step, 1),
            round(HEIGHT * mine / top, 1),
            round(HEIGHT * other / top, 1),
            f"{name}: {mine:.0%} of observed values, {other:.0%} of those filled in",
        )
        for k, (name, mine, other) in enumerate(
            zip(names, *map(np.ndarray.tolist, shares), strict=True)
        )
    ]
    return Distribution(bars)


def _bins(
    model: Any, j: int, observed: np.ndarray, filled: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the inner edges of bins, and their names: a bin for each of a few values, or ranges."""
    data = model.observations_
    if model.posterior_.level_columns[j]:
        values = model.posterior_.level_values(j)
        return (values[1:] + values[:-1]) / 2, level_names(model, j)
    values = np.unique(observed)
    if 0 < values.size <= _MOST_VALUES:
        return (values[1:] + values[:-1]) / 2, format_values(data, j, values)
    low, high = np.quantile(np.append(observed, filled), _QUANTILES)
    edges = np.linspace(low, high, _N_BINS + 1)
    texts = format_values(data, j, edges)
    return edges[1:-1], [f"{a} to {b}" for a, b in pairwise(texts)]


def _shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the share of values in each bin."""
    counts = np.bincount(np.searchsorted(edges, values), minlength=edges.size + 1)
    shares: np.ndarray = counts / max(1, values.size)
    return shares
