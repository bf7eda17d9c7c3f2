r"""Monte Carlo EM for a, b and sigma^2 (the paper's "Hyperparameter estimation").

With <.> the mean over the last draws, the M step maximises

.. math:: Q(a, b, \sigma) = -N \log\sigma - \langle RSS \rangle / (2\sigma^2)
          + \sum_k [a \log b - \log\Gamma(a) + a \langle\log\gamma_k\rangle - b \langle\gamma_k\rangle].

So sigma^2 = <RSS>/N, b = a / gbar with gbar the mean of <gamma_k>, and a solves
log a - psi(a) = s, where s = log gbar - mean <log gamma_k> >= 0.

The expectations of gamma are given d, which is exact and has less noise than the draws of gamma:
E[gamma | d] = (a + 1)/(b + d), E[log gamma | d] = psi(a + 1) - log(b + d).
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import digamma, polygamma

from fillrank.samplers.gasr import A_BOUNDS, B_BOUNDS, Info, State
from fillrank.samplers.model import SMALLEST_NOISE


def solve_shape(s: float) -> float:
    """The root a of log a - psi(a) = s, for s > 0.

    The root lies in (1/(2s), 1/s), and from the left end Newton's steps for psi(a) - log a + s, which
    is increasing and concave, ascend to it.

    Examples
    --------
    >>> from scipy.special import digamma
    >>> a = solve_shape(math.log(3.0) - digamma(3.0))
    >>> round(float(a), 9)
    3.0
    """
    a = 0.5 / s
    if s < 1e-6:  # log a - psi(a) cancels here; its expansion does not
        return a + 1.0 / 6.0
    for _ in range(50):
        step = (digamma(a) - math.log(a) + s) / (polygamma(1, a) - 1.0 / a)
        a -= step
        if abs(step) <= 1e-12 * a:
            break
    return float(a)


def estimate_rates(a: float, b: float, d: np.ndarray) -> tuple[float, float]:
    """The M step for (a, b), from draws of d (any shape) made under the current (a, b)."""
    gbar = float(np.mean((a + 1.0) / (b + d)))
    log_mean = float(np.mean(digamma(a + 1.0) - np.log(b + d)))
    s = max(math.log(gbar) - log_mean, 1e-12)
    a = min(max(solve_shape(s), A_BOUNDS[0]), A_BOUNDS[1])
    return a, min(max(a / gbar, B_BOUNDS[0]), B_BOUNDS[1])


def estimate_noise(residual_squares: np.ndarray, n_entries: int) -> float:
    """The M step for sigma^2: the mean squared residual."""
    return max(float(np.mean(residual_squares)) / n_entries, SMALLEST_NOISE)


def adapt(state: State, infos: Sequence[Info], n_entries: int) -> State:
    """The state with a, b and sigma^2 estimated from the last sweeps."""
    a, b = estimate_rates(state.a, state.b, np.array([info.d for info in infos]))
    squares = np.array([info.residual_square for info in infos])
    cells = state.noise.cells._replace(variance=estimate_noise(squares, n_entries))
    noise = state.noise._replace(cells=cells)
    return state._replace(a=a, b=b, noise=noise)
