r"""SoftImpute with absolute errors: minimise F(Z) = sum_Omega \|x_ij - z_ij\| + lambda ||Z||_*.

The loss has no second derivative, so there is no upper bound to descend on. The saddle point of

    <W, X - Z> + lambda ||Z||_*   over Z, and W on Omega with \|W_ij\| <= 1,

is found by the primal-dual method of Chambolle and Pock (2011), which is ADMM here: with a step
rho > 0 and Z_{-1} = Z_0,

    W <- clip(W + rho P_Omega(X - 2 Z_t + Z_{t-1}), -1, 1),   Z <- S_{lambda / rho}(Z_t + W / rho).

The step on Z is that of the other losses, with W in the place of -G and rho in that of L. rho is
adapted in the first iterations, so that W / rho and Z move by similar amounts. F may rise in between.

The certificate: with c = min(1, lambda / ||W||_2), F(Y) >= c <W, X> for all Y, since
\|x - y\| >= c w (x - y) and lambda ||Y||_* >= c <W, Y>.
"""

import math
from functools import partial

import numpy as np

from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.certificates import (
    Progress,
    Slope,
    change,
    is_due,
    judge,
    relative_change,
    sparse_norm,
    with_advice,
)
from fillrank.solvers.fit import Completed, Factors, Fit, Limits, no_factors
from fillrank.solvers.soft_impute_losses import LossData
from fillrank.solvers.soft_threshold import (
    FIRST_TOLERANCE,
    first_factors,
    next_tolerance,
    soft_threshold,
)

# rho is adapted in every fifth of the first iterations, if W / rho and Z move by amounts whose ratio
# is above this, and at most by this factor.
_ADAPT_EVERY, _ADAPT_UNTIL = 5, 100
_UNEQUAL, _LARGEST_FACTOR = 3.0, 10.0


def largest_absolute_penalty(data: Data, workers: Workers) -> float:
    """||sign(X)||_2 on Omega: from this penalty on, Z = 0 is optimal."""
    signs = (entries._replace(values=np.sign(entries.values)) for entries in data)
    return sparse_norm(Data(*signs), workers)


def _adapted(rho: float, moved_dual: float, moved: float) -> float:
    """rho, such that W / rho moves about as much as Z."""
    if moved_dual == 0.0 or moved == 0.0:
        return rho
    ratio = moved_dual / (rho * moved)
    if 1.0 / _UNEQUAL <= ratio <= _UNEQUAL:
        return rho
    return rho * min(max(math.sqrt(ratio), 1.0 / _LARGEST_FACTOR), _LARGEST_FACTOR)


def _relative_gap(value: float, overlap: float, scale: float, penalty: float, norm: float) -> float:
    """The gap between F(Z) and c <W, X>, as a share of F(Z); ``scale`` is against rounding."""
    c = 1.0 if norm <= penalty else penalty / norm
    return (value - c * overlap) / max(value, scale)


def soft_impute_absolute(
    data: LossData, penalty: float, limits: Limits, workers: Workers, start: Factors | None = None
) -> Fit:
    """Minimise sum_Omega |x_ij - z_ij| + penalty ||Z||_*.

    Parameters
    ----------
    data : LossData
        In float64, without offsets, in units in which a usual value is about 1: the first rho.
    penalty : float
        lambda, 0 or more. It has no unit: F of a table times c is c times F.
    limits : Limits
        As in `fillrank.solvers.soft_impute.soft_impute`.
    start : Factors, optional
        For example the solution at a similar penalty; the default is Z = 0.
    """
    x = data.x
    zero_value = float(np.abs(x).sum())
    largest = largest_absolute_penalty(data.data, workers)
    if largest <= penalty:
        reason = f"Z = 0 is optimal: the penalty is at least {largest:.6g}"
        return Fit(no_factors(data.data), (zero_value,), 0.0, True, reason)
    rng, rho, tolerance = np.random.default_rng(0), 1.0, FIRST_TOLERANCE
    new = first_factors(data.data, start, limits.max_rank)
    right, z = new.V, data.signals(new, workers)
    z_old, w = z, np.zeros(x.size)
    objectives: list[float] = []
    while True:
        w_old, w = w, np.clip(w + rho * (x - 2.0 * z + z_old), -1.0, 1.0)
        W = Completed(data.sparse(w / rho), new, workers)
        guess = (new.s.size, right, tolerance)
        step = soft_threshold(W, penalty / rho, limits.max_rank, guess, rng)
        old, new, right = new, step.factors, step.right
        z_old, z = z, data.signals(new, workers)
        value = float(np.abs(x - z).sum() + penalty * new.s.sum())
        objectives.append(value)
        moved, done = change(old, new), len(objectives)
        tolerance = next_tolerance(moved, step.norm)
        if is_due(done, limits):
            scale = np.finfo(float).eps * zero_value
            stop = judge(
                partial(_relative_gap, value, float(w @ x), scale, penalty),
                Slope(data.sparse(w), new.V),
                Progress(done, relative_change(old, new), step.at_rank_limit),
                limits,
                workers,
            )
            if stop is not None:
                return Fit(new, tuple(objectives), *with_advice(stop, step.at_rank_limit))
        if done % _ADAPT_EVERY == 0 and done <= _ADAPT_UNTIL:
            rho = _adapted(rho, float(np.linalg.norm(w - w_old)), moved)
