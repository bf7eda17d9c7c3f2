"""What the samplers of GASR hold and share: the state of a chain and how it begins."""

import math
import sys
from typing import NamedTuple

import numpy as np

from fillrank.kernels.dense_rows import Dense
from fillrank.kernels.remote import Remote
from fillrank.runtime.workers import Workers
from fillrank.table.entries import Entries

# The smallest noise variance, in units of the data's: below it single precision sees nothing.
SMALLEST_NOISE = 1e-10
# Where a and b begin, in units of the data's standard deviation.
_FIRST_A, _FIRST_B = 1.0, 1.0
# How far draws are carried beyond their means once a chain has burned in: predictions then have about
# twice as many effective draws a sweep. Before, it would hold the chain back: how large factors are,
# and with them the noise, moves the slower for it (docs/defaults.md).
RELAXATION = -0.5
# Factors start a little inside their balls, and spare components at this share of the noise.
_FIRST_NORM = 0.95
_SPARE_SCALE = 1e-2


class Data(NamedTuple):
    """The observed entries from both sides, standardised."""

    rows: Entries
    columns: Entries

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.rows.pointers.size - 1, self.columns.pointers.size - 1

    @property
    def n_entries(self) -> int:
        """How many entries are observed."""
        return self.rows.n_entries

    @property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of entries in each row, and in each column."""
        return np.diff(self.rows.pointers), np.diff(self.columns.pointers)


class RemoteData(NamedTuple):
    """The same of a table whose entries lie with the workers of a cluster."""

    rows: Remote
    columns: Remote

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.rows.pointers.size - 1, self.columns.pointers.size - 1

    @property
    def n_entries(self) -> int:
        """How many entries are observed."""
        return self.rows.n_entries

    @property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of entries in each row, and in each column."""
        return np.diff(self.rows.pointers), np.diff(self.columns.pointers)


class FullData(NamedTuple):
    """The same of a table without holes, whose cells stand in one array for both sides.

    Beside it are the sums of squares of each row and of each column.
    """

    values: np.ndarray
    row_squares: np.ndarray
    column_squares: np.ndarray

    @property
    def rows(self) -> Dense:
        """The table by row."""
        return Dense(self.values, self.row_squares)

    @property
    def columns(self) -> Dense:
        """The table by column: a view."""
        return Dense(self.values.T, self.column_squares)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        m, n = self.values.shape
        return m, n

    @property
    def n_entries(self) -> int:
        """How many entries are observed: all."""
        return self.values.size

    @property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of entries in each row, and in each column."""
        m, n = self.shape
        return np.full(m, n), np.full(n, m)


def full_if_so(data: Data) -> Data | FullData:
    """The data of a table without holes as such; any other as they are. No values are copied."""
    if data.n_entries < math.prod(data.shape):
        return data
    X = data.rows.values.reshape(data.shape)
    by_row, by_column = (
        np.einsum(sums, X, X, dtype=np.float64) for sums in ("ij,ij->i", "ij,ij->j")
    )
    return FullData(X, by_row, by_column)


class Options(NamedTuple):
    """Which parts of the model are on."""

    row_effects: bool
    column_effects: bool
    centres: bool


class Effect(NamedTuple):
    """The Gaussian from which the effects of one side come."""

    mean: float
    variance: float


class State(NamedTuple):
    """All that the next sweep needs.

    ``left`` (m, r + 2) holds u_k + mu_k in its first r columns, then alpha, then ones; ``right``
    (n, r + 2) holds v_k + nu_k, then ones, then beta. So left diag(d, 1, 1) right^T is the whole
    signal.
    """

    left: np.ndarray
    right: np.ndarray
    d: np.ndarray
    gamma: np.ndarray
    mu: np.ndarray
    nu: np.ndarray
    row_effect: Effect
    column_effect: Effect
    a: float
    b: float
    noise_variance: float
    sweep: int


class Info(NamedTuple):
    """What an observer wants to know of a sweep: the sum of squared residuals, and d."""

    residual_square: float
    d: np.ndarray


class Frame(NamedTuple):
    """What stays the same from sweep to sweep: the model's options, the chain's key, the threads.

    From the sweep ``relaxed_from`` on, draws are carried beyond their means (`RELAXATION`); from the
    sweep ``noise_from`` on, the noise variance is sampled, which is never by default.
    """

    options: Options
    key: np.uint64
    workers: Workers
    relaxed_from: int
    noise_from: int = sys.maxsize


class Start(NamedTuple):
    """A first guess: effects with their laws, Z = U diag(s) V^T with at most ``max_rank`` terms."""

    row_effects: np.ndarray
    column_effects: np.ndarray
    row_effect: Effect
    column_effect: Effect
    U: np.ndarray
    s: np.ndarray
    V: np.ndarray
    noise_variance: float
    max_rank: int


def relaxation(sweep: int, relaxed_from: int) -> float:
    """How a sweep draws: see `Prior`."""
    return RELAXATION if sweep >= relaxed_from else 0.0


def _on_sphere(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """k random directions in R^n."""
    g = rng.standard_normal((n, k))
    return g / np.linalg.norm(g, axis=0)


def init(start: Start, dtype: np.dtype, rng: np.random.Generator) -> State:
    """The state that begins at a guess; components that it lacks begin at random, very small."""
    r, q = start.max_rank, start.s.size
    m, n = start.U.shape[0], start.V.shape[0]
    noise_variance = max(start.noise_variance, SMALLEST_NOISE)
    left, right = np.ones((m, r + 2), dtype), np.ones((n, r + 2), dtype)
    for factors, guess in ((left, start.U), (right, start.V)):
        factors[:, :q] = _FIRST_NORM * guess
        factors[:, q:r] = _FIRST_NORM * _on_sphere(rng, len(factors), r - q)
    left[:, r], right[:, r + 1] = start.row_effects, start.column_effects
    spare = np.full(r - q, _SPARE_SCALE * math.sqrt(noise_variance))
    return State(
        left,
        right,
        d=np.append(start.s, spare).astype(np.float64) / _FIRST_NORM**2,
        gamma=np.ones(r),
        mu=np.zeros(r),
        nu=np.zeros(r),
        row_effect=start.row_effect,
        column_effect=start.column_effect,
        a=_FIRST_A,
        b=_FIRST_B,
        noise_variance=noise_variance,
        sweep=0,
    )


def signal_factors(state: State) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) with d taken into left, so that left right^T is the signal."""
    left = state.left.copy()
    left[:, : state.d.size] *= state.d.astype(left.dtype)
    return left, state.right
