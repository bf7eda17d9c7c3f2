r"""SoftImpute for other losses than squares.

The problem is to minimise F(Z) = sum_Omega f(x_ij, o_ij + z_ij) + lambda ||Z||_*, where f is convex with
a second derivative of at most L, and the offsets o are known. With the derivatives G of f at Y, the
losses at Z are at most L/2 ||P_Omega(Y - G / L - Z)||^2 and a constant. So one step is

    Z <- S_{lambda / L}(Y - P_Omega(G) / L),

extrapolated and restarted as in `fillrank.solvers.soft_impute`, which is the case f = (x - z)^2 / 2.
F never increases. The loss of ordered levels has thresholds: in every fifth iteration Newton's method
improves them for the present Z, and F is convex in both together.

The certificate: tangents are below f, and so is its minimum. So for c <= 1 and all Y

    f(y) >= c (f(z) + g (y - z)) + (1 - c) min f,

and lambda ||Y||_* >= -c <G, Y> if c ||G||_2 <= lambda. The sum over Omega,

    F(Y) >= c (sum f(z) - <G, Z>) + (1 - c) sum min f,   c = min(1, lambda / ||G||_2),

bounds the minimum. For c = 1 it is the dual objective -sum f*(G), by Fenchel's equality, and for c < 1
a bound of -sum f*(c G), since the conjugate f* is convex. The gap is 0 if ||G||_2 <= lambda and
-<G, Z> = lambda ||Z||_*, which are the conditions for a minimum. Thresholds are not part of the bound:
what Newton's method would still gain by them is added to the gap.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from fillrank.kernels.products import residual
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
from fillrank.solvers.fit import Completed, Factors, Fit, Limits, extrapolate, no_factors
from fillrank.solvers.losses import Evaluated, Loss, settle
from fillrank.solvers.soft_threshold import (
    FIRST_TOLERANCE,
    Thresholded,
    first_factors,
    next_tolerance,
    soft_threshold,
)
from fillrank.table.entries import Entries, transpose

# Iterations between two steps for the parameters of the loss.
_REFINE_EVERY = 5


class LossData(NamedTuple):
    """Observed entries for a loss, whose signals are ``offsets`` (by row) plus Z.

    ``order`` are the positions by row of the entries by column.
    """

    data: Data
    offsets: np.ndarray
    order: np.ndarray

    @staticmethod
    def of(data: Data, offsets: np.ndarray) -> LossData:
        """The same with its order."""
        numbers = data.rows._replace(values=np.arange(float(data.n_entries)))
        order = transpose(numbers, data.shape[1]).values.astype(np.int64)
        return LossData(data, offsets, order)

    @property
    def x(self) -> np.ndarray:
        """The values, by row."""
        return self.data.rows.values

    def sparse(self, values: np.ndarray) -> Data:
        """The matrix on Omega with these values, given by row."""
        rows, columns = self.data
        return Data(rows._replace(values=values), columns._replace(values=values[self.order]))

    def signals(self, factors: Factors, workers: Workers) -> np.ndarray:
        """The offsets plus Z on Omega, by row."""
        return signals(self.data.rows, self.offsets, factors, workers)


def signals(
    entries: Entries, offsets: np.ndarray, factors: Factors, workers: Workers
) -> np.ndarray:
    """The offsets of entries plus Z."""
    left = np.ascontiguousarray(factors.U * factors.s)
    right = np.ascontiguousarray(factors.V)
    return -residual(entries._replace(values=-offsets), left, right, workers).values


class LossFit(NamedTuple):
    """A solution, and the loss with its final parameters."""

    fit: Fit
    loss: Loss


class _Problem(NamedTuple):
    """What does not change from step to step."""

    data: LossData
    penalty: float
    max_rank: int
    workers: Workers
    rng: np.random.Generator


class _Point(NamedTuple):
    """Z with its signals, the losses there, and F(Z)."""

    factors: Factors
    z: np.ndarray
    losses: Evaluated
    objective: float


def _point(problem: _Problem, loss: Loss, factors: Factors) -> _Point:
    z = problem.data.signals(factors, problem.workers)
    losses = loss.evaluate(problem.data.x, z, problem.workers)
    value = float(losses.values.sum() + problem.penalty * factors.s.sum()) + loss.constant
    return _Point(factors, z, losses, value)


def _step(
    problem: _Problem,
    loss: Loss,
    at: tuple[Factors, np.ndarray],
    guess: tuple[int, np.ndarray, float],
) -> Thresholded:
    """The minimum of the upper bound at Y, which is given with its slopes."""
    Y, slopes = at
    sparse = problem.data.sparse(-slopes / loss.curvature)
    W = Completed(sparse, Y, problem.workers)
    threshold = problem.penalty / loss.curvature
    return soft_threshold(W, threshold, problem.max_rank, guess, problem.rng)


def relative_gap(
    data: LossData, loss: Loss, point: _Point, setting: tuple[float, float], norm: float
) -> float:
    """The gap between F(Z) and the bound, as a share of F(Z), given the norm of the slopes.

    ``setting`` is the penalty, and what better parameters of the loss would gain.
    """
    values, slopes = point.losses
    penalty, gain = setting
    c = 1.0 if norm <= penalty else penalty / norm
    at_zero = float(values.sum() - slopes @ (point.z - data.offsets))
    bound = c * at_zero + (1.0 - c) * loss.smallest(data.x) + loss.constant
    return (point.objective - bound + gain) / point.objective


def largest_loss_penalty(data: LossData, loss: Loss, workers: Workers) -> float:
    """||G||_2 at Z = 0: from this penalty on, Z = 0 is optimal."""
    return sparse_norm(data.sparse(loss.evaluate(data.x, data.offsets, workers).slopes), workers)


def _zero(problem: _Problem, loss: Loss) -> LossFit | None:
    """The fit Z = 0 if it is optimal, otherwise None."""
    data, penalty, _, workers, _ = problem
    if largest_loss_penalty(data, loss, workers) > penalty:
        return None
    loss = settle(loss, data.x, data.offsets, workers)
    largest = largest_loss_penalty(data, loss, workers)
    if largest > penalty:
        return None
    point = _point(problem, loss, no_factors(data.data))
    reason = f"Z = 0 is optimal: the penalty is at least {largest:.6g}"
    return LossFit(Fit(point.factors, (point.objective,), 0.0, True, reason), loss)


def soft_impute_loss(
    data: LossData,
    loss: Loss,
    penalty: float,
    limits: Limits,
    workers: Workers,
    start: Factors | None = None,
) -> LossFit:
    """Minimise sum f + penalty ||Z||_*, over Z and the parameters of the loss.

    Parameters
    ----------
    data : LossData
        In float64.
    loss : Loss
        With its parameters at the start.
    penalty : float
        lambda, 0 or more.
    limits : Limits
        As in `fillrank.solvers.soft_impute.soft_impute`.
    start : Factors, optional
        For example the solution at a similar penalty; the default is Z = 0.
    """
    problem = _Problem(data, penalty, limits.max_rank, workers, np.random.default_rng(0))
    zero = _zero(problem, loss)
    if zero is not None:
        return zero
    new = old = _point(problem, loss, first_factors(data.data, start, limits.max_rank))
    right, tolerance, t = new.factors.V, FIRST_TOLERANCE, 1
    objectives: list[float] = []
    while True:
        guess, weight = (new.factors.s.size, right, tolerance), (t - 1) / (t + 2)
        if weight > 0.0:
            Y = extrapolate(new.factors, old.factors, weight)
            ahead = loss.evaluate(data.x, new.z + weight * (new.z - old.z), workers)
            step = _step(problem, loss, (Y, ahead.slopes), guess)
            point = _point(problem, loss, step.factors)
        if weight == 0.0 or point.objective > new.objective:
            t = 1
            step = _step(problem, loss, (new.factors, new.losses.slopes), guess)
            point = _point(problem, loss, step.factors)
        old, new, right, t = new, point, step.right, t + 1
        objectives.append(new.objective)
        tolerance = next_tolerance(change(old.factors, new.factors), step.norm)
        due = is_due(len(objectives), limits)
        if not due and len(objectives) % _REFINE_EVERY:
            continue
        better, gain = loss.refine(data.x, new.z, workers)
        if due:
            stop = judge(
                partial(relative_gap, data, loss, new, (penalty, gain)),
                Slope(data.sparse(new.losses.slopes), new.factors.V),
                Progress(
                    len(objectives), relative_change(old.factors, new.factors), step.at_rank_limit
                ),
                limits,
                workers,
            )
            if stop is not None:
                stop = with_advice(stop, step.at_rank_limit)
                return LossFit(Fit(new.factors, tuple(objectives), *stop), loss)
        if better is not loss:
            loss, new = better, _point(problem, better, new.factors)
