"""Values that are known to be in an interval: below a limit, above one, or between two."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting


class IntervalValues(NamedTuple):
    """Values as `Observations` store them; ``cells`` and ``intervals`` are None if all are exact."""

    values: np.ndarray
    cells: np.ndarray | None = None
    intervals: np.ndarray | None = None


def number_intervals(
    low: np.ndarray, high: np.ndarray, cell: Callable[[int], str]
) -> IntervalValues:
    """Number the intervals of values that are not exact.

    Parameters
    ----------
    low, high : ndarray (n,)
        The ends of each value: equal for an exact value, infinite without a limit, both NaN for a
        missing value.
    cell : callable
        Returns the row and column of a value as text, from its position.

    Examples
    --------
    >>> found = number_intervals(np.array([1.0, -np.inf]), np.array([1.0, 0.5]), str)
    >>> found.values, found.cells, found.intervals
    (array([1. , 0.5]), array([-1,  0], dtype=int32), array([[-inf,  0.5]]))
    """
    is_missing = np.isnan(low) & np.isnan(high)
    _check_ends(low, high, is_missing, cell)
    is_interval = ~is_missing & (low != high)
    if not is_interval.any():
        return IntervalValues(low)
    pairs = np.column_stack([low, high])[is_interval]
    intervals, number = np.unique(pairs, axis=0, return_inverse=True)
    cells = np.full(low.size, -1, dtype=np.int32)
    cells[is_interval] = number.ravel()
    values = low.copy()
    values[is_interval] = _representatives(*pairs.T)
    return IntervalValues(values, cells, intervals)


def _check_ends(
    low: np.ndarray, high: np.ndarray, is_missing: np.ndarray, cell: Callable[[int], str]
) -> None:
    wrong = np.flatnonzero(~is_missing & ~(low <= high))
    if not wrong.size:
        return
    first = int(wrong[0])
    ends = float(low[first]), float(high[first])
    allowed = "at least the lower end"
    if np.isnan(ends).any():
        allowed = "missing where the value is, and a number elsewhere"
    raise InputError(
        f"the upper end of a value must be {allowed}",
        place=cell(first),
        value=ends,
        advice=("Check ", Setting("upper"), "; infinity means that there is no limit."),
    )


def _representatives(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A finite number for each interval: its middle, or its finite end; NaN for the entire line."""
    with np.errstate(invalid="ignore"):
        middle = low + (high - low) / 2
    values = np.where(np.isfinite(low), np.where(np.isfinite(high), middle, low), high)
    return np.where(np.isfinite(values), values, np.nan)
