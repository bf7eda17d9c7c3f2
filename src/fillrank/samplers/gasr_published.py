"""GASR as published: the conditionals of Song and Zhu (AAAI 2016), in their order.

    gamma_k ~ Gamma(a + 1, rate b + d_k)
    d_k     ~ N(-B/A, sigma^2/A) on [0, inf)
    u_ki    ~ N(-D/C, sigma^2/C) on [-rho, rho], and v_kj likewise

with A, B, C, D and rho as in ``fillrank.kernels.published``. This is the posterior of
``samplers.gasr`` without effects and centres, and the reference to check it against.
"""

import numpy as np

from fillrank.draws import streams
from fillrank.draws.streams import Address
from fillrank.kernels.products import residual
from fillrank.kernels.published import ball_rows, published_scales
from fillrank.samplers.gasr import B_BOUNDS, Context, Info, State, draw_rates, init, signal_factors
from fillrank.samplers.model import SMALLEST_NOISE, Data, Effect, Start

# The paper does not give the initial values of a, b and sigma^2. These are those of the authors'
# program (github.com/yang-song/GASR, 2015), in the units of the data.
_FIRST_NOISE = 1.0
_FIRST_A, _FIRST_B = 100.0, 100.0
_FIRST_NORM = 0.9


def published_start(
    data: Data, scale: float, max_rank: int, dtype: np.dtype, rng: np.random.Generator
) -> State:
    """The authors' start: entries of U and V uniform on (0, 1), norms of 0.9, d = 0.

    Parameters
    ----------
    data : Data
    scale : float
        The unit of ``data``, in the units of the table, in which the start is defined. For
        extremely small or large values the start is limited to the bounds of the estimates.
    max_rank : int
    dtype : numpy.dtype
    rng : numpy.random.Generator
    """
    m, n = data.shape
    noise_variance = min(_FIRST_NOISE / scale**2, 1.0 / SMALLEST_NOISE)
    nothing = Start(
        np.zeros(m), np.zeros(n), Effect(0.0, 1.0), Effect(0.0, 1.0),
        np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)), noise_variance, np.ones(n), max_rank,
    )  # fmt: skip
    state = init(nothing, dtype, rng)
    for factors in (state.left, state.right):
        entries = rng.uniform(0.0, 1.0, (factors.shape[0], max_rank))
        factors[:, :max_rank] = _FIRST_NORM * entries / np.linalg.norm(entries, axis=0)
    b = min(max(_FIRST_B / scale, B_BOUNDS[0]), B_BOUNDS[1])
    return state._replace(d=np.zeros(max_rank), a=_FIRST_A, b=b)


def sweep(state: State, data: Data, context: Context) -> tuple[State, Info]:
    """One sweep: gamma, d, U, V."""
    key, t, noise = context.key, state.sweep, state.noise.cells.variance
    gamma = draw_rates(key, t, state.d, state.a, state.b)

    e = residual(data.rows, *signal_factors(state), context.workers).values
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
