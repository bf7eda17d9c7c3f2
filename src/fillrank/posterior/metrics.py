"""How good predictions are: errors as the paper has them, coverage and score of intervals."""

import numpy as np


def rmse(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Root mean squared error.

    Examples
    --------
    >>> rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.4142135623730951
    """
    return float(np.sqrt(np.mean((truth - predicted) ** 2))) if truth.size else float("nan")


def mae(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Mean absolute error.

    Examples
    --------
    >>> mae(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.0
    """
    return float(np.mean(np.abs(truth - predicted))) if truth.size else float("nan")


def nmae(truth: np.ndarray, predicted: np.ndarray, value_range: tuple[float, float]) -> float:
    """Mean absolute error divided by the range of values, as in the paper.

    Examples
    --------
    >>> nmae(np.array([1.0, 2.0]), np.array([1.0, 4.0]), (1.0, 5.0))
    0.25
    """
    low, high = value_range
    return mae(truth, predicted) / (high - low) if high > low else float("nan")


def coverage(truth: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """The share of values that are in their intervals.

    Examples
    --------
    >>> coverage(np.array([1.0, 2.0]), np.array([0.0, 3.0]), np.array([1.5, 4.0]))
    0.5
    """
    return float(np.mean((low <= truth) & (truth <= high)))


def interval_score(truth: np.ndarray, low: np.ndarray, high: np.ndarray, level: float) -> float:
    """Mean width of intervals, plus a penalty for values outside; lower is better.

    The penalty is 2 / (1 - level) times the distance from the interval (Gneiting and Raftery 2007), so
    that intervals at the true quantiles have the lowest expected score.

    Examples
    --------
    >>> round(interval_score(np.array([1.0, 2.0]), np.array([0.0, 3.0]), np.array([2.0, 4.0]), 0.9), 2)
    11.5
    """
    if not truth.size:
        return float("nan")
    outside = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    return float(np.mean(high - low + 2.0 / (1.0 - level) * outside))
