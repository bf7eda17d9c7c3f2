"""Draws rounded to half precision, where predictions change little: they take half the space in a file.

In memory the numbers have single precision, which kernels need. Each of them is exact in half
precision, so that saving and loading does not change them.
"""

import numpy as np

from fillrank.samplers.model import Draw

# Rounding may change predictions by this share of their posterior standard deviation.
_UNSEEN = 0.01


def halved(draws: list[Draw], rows: np.ndarray, columns: np.ndarray) -> list[Draw]:
    """The draws rounded to half precision, if the cells (rows_p, columns_p) change little.

    Otherwise, or if they are in double precision, the draws are returned unchanged.
    """
    if len(draws) == 1 or draws[0].left.dtype != np.float32:
        return draws
    values = np.array([draw.at(rows, columns) for draw in draws])
    rounded = [_rounded(draw) for draw in draws]
    moved = np.array([draw.at(rows, columns) for draw in rounded]) - values
    spread = np.sqrt(values.var(axis=0).mean())
    small = np.sqrt(np.mean(moved**2)) <= _UNSEEN * spread  # False if a number was too large
    return rounded if small and all(map(_has_finite_weights, rounded)) else draws


def _rounded(draw: Draw) -> Draw:
    """The same signal with factors of equal size on both sides, to avoid overflow in half precision."""
    sizes = [np.linalg.norm(side, axis=0) for side in (draw.left, draw.right)]
    both = (sizes[0] > 0) & (sizes[1] > 0)
    ratio = np.divide(sizes[1], sizes[0], out=np.ones_like(sizes[0]), where=both)
    balance = np.sqrt(ratio)
    row_weights, column_weights = draw.row_weights, draw.column_weights
    with np.errstate(over="ignore"):
        return Draw(
            _half(draw.left * balance),
            _half(draw.right / balance),
            draw.noise,
            # The weights of features are in the coordinates of the factors.
            _half(row_weights * balance) if row_weights.size else row_weights,
            _half(column_weights / balance) if column_weights.size else column_weights,
            draw.limits,
            draw.row_thresholds,
            draw.column_thresholds,
        )


def _half(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16).astype(np.float32)


def _has_finite_weights(draw: Draw) -> bool:
    return all(bool(np.isfinite(each).all()) for each in (draw.row_weights, draw.column_weights))
