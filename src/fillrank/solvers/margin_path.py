"""Which penalties a max-margin method should try on a table."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from fillrank.kernels.max_margin import slopes
from fillrank.kernels.ordinal import Scorer
from fillrank.runtime.workers import Workers
from fillrank.samplers.state import Data
from fillrank.solvers.fit import Limits
from fillrank.solvers.m3f import best_thresholds

# Shares of the largest penalty, in powers of ten, and the number of penalties: steps of an eighth of a
# decade, as the authors of both methods have them.
_DECADES, _POINTS = (-0.25, -2.25), 17
# The thresholds alone need not be better than that.
_THRESHOLDS = Limits(max_rank=1, max_iterations=200, tolerance=1e-4)


def largest_penalty(data: Data, n_levels: int, workers: Workers) -> float:
    """||G||_2 of M3F at scores of 0 and the best thresholds: from this penalty on, that is optimal."""
    m, n = data.shape
    thresholds = best_thresholds(data.rows, n_levels, _THRESHOLDS, workers)
    G = slopes(data.rows, Scorer(np.zeros((m, 1)), np.zeros((n, 1)), thresholds), workers)
    size = float(np.linalg.norm(G.values))
    if min(m, n) < 2 or size < 1e-9:  # svds takes neither
        return size or 1.0
    matrix = csr_matrix((G.values, G.indices, G.pointers), shape=(m, n))
    # A fixed start, so that the bits are the same every time; not of ones, which G may annihilate.
    first = np.random.default_rng(0).standard_normal(min(m, n))
    return float(svds(matrix, k=1, v0=first, return_singular_vectors=False)[0])


def penalty_path(data: Data, n_levels: int, workers: Workers) -> np.ndarray:
    """The penalties to try, in falling order."""
    return largest_penalty(data, n_levels, workers) * np.logspace(*_DECADES, _POINTS)
