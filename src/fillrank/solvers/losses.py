r"""Convex losses of an observed value x at a signal z: minus the logarithm of a likelihood.

- logistic: log(1 + e^z) - x z for x in {0, 1}. Its second derivative is at most 1/4;
- ordered levels: -log(Phi(theta_x - z) - Phi(theta_{x-1} - z)), where level x = 0, 1, ... is the
  interval from theta_{x-1} to theta_x of a latent number N(z, 1). The second derivative is 1 less the
  variance of a normal variable in an interval, so at most 1. With two levels it is the probit loss;
- absolute: \|x - z\|, which has no second derivative; `fillrank.solvers.soft_impute_absolute` does
  without. Effects of rows and columns are estimated with Huber's loss in its place, which is
  (x - z)^2 / 2 up to an error of 1, and linear beyond.

The loss of ordered levels is convex in z and the thresholds together, since the probability of an
interval is a log-concave function of them (Prekopa 1973). So thresholds are estimated by Newton's
method, in alternation with z. So that a level without entries has an interval, too, every level has
half an entry more, at z = 0.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, ndtr

from fillrank.kernels.interval_losses import end_derivatives, interval_losses
from fillrank.runtime.threads import Workers

# Half an entry more for every level.
_PSEUDOCOUNT = 0.5
# Newton's method for thresholds: how often a step may be halved.
_HALVINGS = 30
# When it ends: after so many steps, or when a step lowers the loss of an entry by less than this.
_SETTLING_STEPS, _SETTLED = 50, 1e-10
# The cost of a loss, for the distribution over threads.
_COST = 16


class Evaluated(NamedTuple):
    """The losses of entries, and their derivatives by the signal."""

    values: np.ndarray
    slopes: np.ndarray


class Loss(Protocol):
    """A convex loss."""

    @property
    def curvature(self) -> float:
        """A bound of the second derivative; infinite if there is none."""

    @property
    def ends(self) -> np.ndarray:
        """Where the intervals of the levels begin and end (2, L); empty without levels."""

    @property
    def constant(self) -> float:
        """What the objective has in addition to the losses of the entries."""

    def evaluate(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> Evaluated:
        """The loss of each entry."""

    def smallest(self, x: np.ndarray) -> float:
        """The sum of the smallest losses of the entries, over all signals."""

    def refine(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> tuple[Loss, float]:
        """The loss with better parameters of its own, and by how much they should lower the sum."""


class Logistic(NamedTuple):
    """The logistic loss of values 0 and 1, whose latent numbers are below and above 0."""

    curvature: float = 0.25
    constant: float = 0.0

    @property
    def ends(self) -> np.ndarray:
        """See `Loss`."""
        return np.array([[-np.inf, 0.0], [0.0, np.inf]])

    def evaluate(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> Evaluated:
        """See `Loss`."""
        return Evaluated(np.logaddexp(0.0, np.where(x > 0.5, -z, z)), expit(z) - x)

    def smallest(self, x: np.ndarray) -> float:
        """0, far on the right side."""
        return 0.0

    def refine(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> tuple[Loss, float]:
        """It has no parameters."""
        return self, 0.0


class Absolute(NamedTuple):
    """The absolute error."""

    curvature: float = np.inf
    constant: float = 0.0
    ends: np.ndarray = np.zeros((2, 0))

    def evaluate(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> Evaluated:
        """See `Loss`."""
        return Evaluated(np.abs(z - x), np.sign(z - x))

    def smallest(self, x: np.ndarray) -> float:
        """0, where z = x."""
        return 0.0

    def refine(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> tuple[Loss, float]:
        """It has no parameters."""
        return self, 0.0


class Huber(NamedTuple):
    """Huber's loss: squares up to an error of 1, absolute values beyond."""

    curvature: float = 1.0
    constant: float = 0.0
    ends: np.ndarray = np.zeros((2, 0))

    def evaluate(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> Evaluated:
        """See `Loss`."""
        slopes = np.clip(z - x, -1.0, 1.0)
        return Evaluated(slopes * (z - x - 0.5 * slopes), slopes)

    def smallest(self, x: np.ndarray) -> float:
        """0, where z = x."""
        return 0.0

    def refine(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> tuple[Loss, float]:
        """It has no parameters."""
        return self, 0.0


class Ordered(NamedTuple):
    """The loss of ordered levels 0, 1, ..., L - 1 with these thresholds (L - 1,)."""

    thresholds: np.ndarray
    curvature: float = 1.0

    @property
    def ends(self) -> np.ndarray:
        """Where the intervals of the levels begin and end (2, L)."""
        return np.array([[-np.inf, *self.thresholds], [*self.thresholds, np.inf]])

    @property
    def constant(self) -> float:
        """The loss of half an entry of every level at z = 0."""
        low, high = ndtr(self.ends)
        return float(-_PSEUDOCOUNT * np.log(high - low).sum())

    def evaluate(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> Evaluated:
        """See `Loss`."""
        found = Evaluated(np.empty(z.size), np.empty(z.size))
        work = partial(interval_losses, z, x.astype(np.int64), self.ends, *found)
        workers.for_rows(work, _COST * np.arange(z.size + 1))
        return found

    def smallest(self, x: np.ndarray) -> float:
        """Those of the middles of intervals, and 0 at both ends."""
        widths = np.diff(self.thresholds)
        middle = -np.log(2.0 * ndtr(0.5 * widths) - 1.0)
        counts = np.bincount(x.astype(np.int64), minlength=self.thresholds.size + 1)
        return float(counts[1:-1] @ middle)

    def refine(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> tuple[Loss, float]:
        """Newton's step for the thresholds, halved until it lowers the sum."""
        step, decrease = self._newton_step(x, z)
        now = self.total(x, z, workers)
        for _ in range(_HALVINGS):
            new = self._replace(thresholds=self.thresholds + step)
            if (np.diff(new.thresholds) > 0).all() and new.total(x, z, workers) <= now:
                return new, decrease
            step = 0.5 * step
        return self, decrease

    def total(self, x: np.ndarray, z: np.ndarray, workers: Workers) -> float:
        """The sum of all losses."""
        return float(self.evaluate(x, z, workers).values.sum()) + self.constant

    def _newton_step(self, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, float]:
        """The step, and the decrease that it promises: half of the product with the gradient."""
        n_levels = self.thresholds.size + 1
        sums = end_derivatives(z, x.astype(np.int64), self.ends)
        sums += _PSEUDOCOUNT * end_derivatives(np.zeros(n_levels), np.arange(n_levels), self.ends)
        A, B, AA, BB, AB = sums.T
        gradient = A[1:] - B[:-1]
        hessian = np.diag(AA[1:] + BB[:-1])
        between = np.arange(n_levels - 2)
        hessian[between, between + 1] = hessian[between + 1, between] = -AB[1:-1]
        step = -np.linalg.solve(hessian, gradient)
        return step, float(-0.5 * gradient @ step)


def settle(loss: Loss, x: np.ndarray, z: np.ndarray, workers: Workers) -> Loss:
    """The loss with the best parameters of its own for these signals."""
    for _ in range(_SETTLING_STEPS):
        loss, decrease = loss.refine(x, z, workers)
        if decrease <= _SETTLED * x.size:
            break
    return loss
