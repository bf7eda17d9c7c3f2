"""How well entries that were kept aside are predicted, and how often intervals hold them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.posterior.metrics import coverage, rmse
from fillrank.table.observations import Observations

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Intervals cost far more than means: so many entries tell the coverage of all to within 1%.
_MOST_INTERVALS = 3000


class HeldOut(NamedTuple):
    """Entries kept aside and their predictions.

    ``spread`` is the error of always guessing their average; ``n_fitted`` says how many of them were
    among those that the model was fitted on, which none should be.
    """

    test: Observations
    predicted: np.ndarray
    rmse: float
    median_error: float
    spread: float
    n_fitted: int


class Calibration(NamedTuple):
    """The share of entries within their intervals, for each level; ``n`` entries were looked at."""

    levels: np.ndarray
    shares: np.ndarray
    n: int


def compare(model: Any, test: Any) -> HeldOut:
    """Predict the entries of ``test``, whose rows and columns the model knows."""
    test = Observations.of(test)
    if len(test) == 0:
        raise InputError("there must be an entry kept aside at least; test has none.")
    predicted = model.predict(test.rows, test.columns)
    error = rmse(test.values, predicted)
    median = float(np.median(np.abs(test.values - predicted)))
    return HeldOut(
        test, predicted, error, median, float(test.values.std()), _count_fitted(model, test)
    )


def _count_fitted(model: Any, test: Observations) -> int:
    fitted = model.observations_
    n_columns = fitted.shape[1]
    rows = fitted.row_positions(test.row_labels[np.unique(test.row_index)])
    columns = fitted.column_positions(test.column_labels[np.unique(test.column_index)])
    i = rows[np.unique(test.row_index, return_inverse=True)[1]]
    j = columns[np.unique(test.column_index, return_inverse=True)[1]]
    known = fitted.row_index.astype(np.int64) * n_columns + fitted.column_index
    return int(np.isin(i * n_columns + j, known).sum())


def some_of(test: Observations, most: int = _MOST_INTERVALS) -> np.ndarray:
    """Positions of entries chosen at random, always the same ones: ``most``, or all."""
    return np.random.default_rng(0).permutation(len(test))[:most]


def calibrate(model: Any, test: Any, levels: tuple[float, ...] = LEVELS) -> Calibration:
    """Compare what intervals for a new observation say with how often they hold it."""
    test = Observations.of(test)
    some = some_of(test)
    rows, columns, values = test.rows[some], test.columns[some], test.values[some]
    shares = [
        coverage(values, *model.predict_interval(rows, columns, level, kind="observation"))
        for level in levels
    ]
    return Calibration(np.array(levels), np.array(shares), len(some))
