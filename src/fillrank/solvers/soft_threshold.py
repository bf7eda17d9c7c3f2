"""The step that solvers of problems with a nuclear norm share: singular values less a threshold."""

from typing import NamedTuple

import numpy as np

from fillrank.samplers.model import Data
from fillrank.solvers.fit import Completed, Factors, no_factors
from fillrank.solvers.truncated_svd import leading

# Singular values computed beyond the rank of Z: one below the penalty shows that none is missing.
_SPARE = 5
# Accuracy of the singular vectors: at first, and later as a share of how far Z has moved, within
# limits. The objective decreases at any accuracy, since the search for S_lambda(W) starts in the row
# space of Z.
FIRST_TOLERANCE = 1e-10
_SHARE_OF_CHANGE = 0.1
_SMALLEST_TOLERANCE, _LARGEST_TOLERANCE = 1e-13, 1e-3


class Thresholded(NamedTuple):
    """S_lambda(W); of W: right singular vectors for the next start, norm, whether rank was cut."""

    factors: Factors
    right: np.ndarray
    norm: float
    at_rank_limit: bool


def first_factors(data: Data, start: Factors | None, max_rank: int) -> Factors:
    """The start, cut to the rank limit; Z = 0 without one."""
    U, s, V = no_factors(data) if start is None else start
    return Factors(U[:, :max_rank], s[:max_rank], V[:, :max_rank])


def soft_threshold(
    W: Completed,
    threshold: float,
    max_rank: int,
    guess: tuple[int, np.ndarray, float],
    rng: np.random.Generator,
) -> Thresholded:
    """S_lambda(W) = U diag((s_k - lambda)_+) V^T, cut to the rank limit.

    ``guess`` is the expected rank, approximate right singular vectors, and the accuracy of the new ones.
    """
    rank, right, tolerance = guess
    most = min(max_rank + _SPARE, *W.shape)
    k = min(rank + _SPARE, most)
    while True:
        U, s, V = leading(W, k, right, rng, above=threshold, tolerance=tolerance)
        if s[-1] <= threshold or k == most:
            break
        k, right = min(2 * k, most), V
    n_above = int(np.sum(s > threshold))
    q = min(n_above, max_rank)
    factors = Factors(U[:, :q].copy(), s[:q] - threshold, V[:, :q].copy())
    return Thresholded(factors, V[:, : q + _SPARE], float(s[0]), n_above > q)


def next_tolerance(moved: float, norm: float) -> float:
    """The accuracy of the next step, given how far Z has moved in this one, and the norm of W."""
    share = _SHARE_OF_CHANGE * moved / norm
    return min(max(share, _SMALLEST_TOLERANCE), _LARGEST_TOLERANCE)
