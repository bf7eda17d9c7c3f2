"""Errors of predictions, as in the paper, and the coverage of intervals."""

import numpy as np


def rmse(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Root mean squared error.

    Examples
    --------
    >>> rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.4142135623730951
    """
    return float(np.sqrt(np.mean((truth - predicted) ** 2)))


def mae(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Mean absolute error.

    Examples
    --------
    >>> mae(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    1.0
    """
    return float(np.mean(np.abs(truth - predicted)))


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
