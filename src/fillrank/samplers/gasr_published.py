"""GASR as published: the conditionals of Song and Zhu (AAAI 2016), in their order.

    gamma_k ~ Gamma(a + 1, rate b + d_k)
    d_k     ~ N(-B/A, sigma^2/A) on [0, inf)
    u_ki    ~ N(-D/C, sigma^2/C) on [-rho, rho], and v_kj likewise

with A, B, C, D and rho as in ``fillrank.kernels.published``. The same posterior as ``samplers.gasr``
without effects and centres, and the reference that it is checked against.
"""

import numpy as np

from fillrank.draws import streams
from fillrank.kernels.gaussian_rows import Address
from fillrank.kernels.products import residual
from fillrank.kernels.published import ball_rows, published_scales
from fillrank.samplers.gasr import draw_rates
from fillrank.samplers.state import Data, Effect, Frame, Info, Start, State, init, signal_factors

# The paper is silent on where a, b and sigma^2 begin, and sigma^2 is decisive: it sets how fast the
# components come in. At Var(x) the chain can stay at Z = 0 for hundreds of sweeps; at this share of it
# 100 sweeps of MovieLens 1M end near the paper's RMSE, which it was chosen for (docs/figures.md).
_FIRST_NOISE = 0.3
_FIRST_NORM = 0.9


def published_start(data: Data, max_rank: int, dtype: np.dtype, rng: np.random.Generator) -> State:
    """The paper's start: uniform entries, norms of 0.9, d = 0."""
    m, n = data.shape
    nothing = Start(
        np.zeros(m), np.zeros(n), Effect(0.0, 1.0), Effect(0.0, 1.0),
        np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)), _FIRST_NOISE, max_rank,
    )  # fmt: skip
    state = init(nothing, dtype, rng)
    for factors in (state.left, state.right):
        entries = rng.uniform(-1.0, 1.0, (factors.shape[0], max_rank))
        factors[:, :max_rank] = _FIRST_NORM * entries / np.linalg.norm(entries, axis=0)
    return state._replace(d=np.zeros(max_rank))


def sweep(state: State, data: Data, frame: Frame) -> tuple[State, Info]:
    """One sweep: gamma, d, U, V."""
    key, t, noise = frame.key, state.sweep, state.noise_variance
    gamma = draw_rates(key, t, state.d, state.a, state.b)

    e = residual(data.rows, *signal_factors(state), frame.workers).values
    d = state.d.copy()
    where = Address(key, t, streams.ROW_SCALARS)
    published_scales(data.rows, state.left, state.right, d, gamma, noise, where, e)

    left, right = state.left.copy(), state.right.copy()
    squares = np.empty(data.shape[0])
    ball_rows(data.rows, left, right, d, noise, Address(key, t, streams.ROWS), squares)
    squares = np.empty(data.shape[1])
    ball_rows(data.columns, right, left, d, noise, Address(key, t, streams.COLUMNS), squares)
    state = state._replace(left=left, right=right, d=d, gamma=gamma, sweep=t + 1)
    return state, Info(float(squares.sum()), d)
