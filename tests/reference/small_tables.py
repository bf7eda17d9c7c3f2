"""Small tables with missing cells, and states of the samplers written out from their parts."""

import math
import sys

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.kernels.gaussian_rows import NO_LIMITS
from fillrank.runtime.threads import Workers
from fillrank.samplers.feature_steps import NO_FEATURES, WITHOUT_FEATURES, first_weights
from fillrank.samplers.gasr import Context, Options, State
from fillrank.samplers.model import Data, Effect, Noise, detect_complete
from fillrank.samplers.noise_steps import FIRST_DEGREES, NoiseState
from fillrank.samplers.threshold_steps import NO_INTERVALS, NO_ROW_THRESHOLDS
from fillrank.table.entries import NO_CELLS, NO_WEIGHTS, compress

PLAIN = Options(row_effects=False, column_effects=False, centres=False)
EFFECTS = Options(row_effects=True, column_effects=True, centres=False)
CENTRES = Options(row_effects=False, column_effects=False, centres=True)
NO_EFFECT = Effect(0.0, 1.0)

# The observed entries of a 5 x 4 table: a full row, an empty one, and rows between.
MASK = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]], dtype=bool)
# The same idea on 4 x 3.
SMALL_MASK = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0], [0, 1, 1]], dtype=bool)


class Table:
    """The places of the observed entries; hands out ``Data`` for their values, row by row.

    ``weights`` are those of the entries, row by row; None for none.
    """

    def __init__(self, mask, dtype=np.float64, weights=None):
        self.mask = mask
        self.shape = mask.shape
        self.i, self.j = np.nonzero(mask)
        self.n_entries = self.i.size
        self._dtype = dtype
        m, n = mask.shape
        number = np.arange(self.n_entries)
        self._rows = compress(m, self.i, self.j, number)
        self._columns = compress(n, self.j, self.i, number)
        self._by_column = self._columns.values
        self.weights = np.ones(self.n_entries) if weights is None else np.asarray(weights)
        self._weights = NO_WEIGHTS if weights is None else self.weights.astype(dtype)

    def data(self, x, cells=NO_CELLS):
        """The entries x (in the order of ``i``, ``j``) from both sides.

        ``cells`` are the numbers of their intervals, -1 for exact values.
        """
        x, w = np.asarray(x, dtype=self._dtype), self._weights
        rows = self._rows._replace(values=x, weights=w, cells=cells)
        taken = (each[self._by_column] if each.size else each for each in (x, w, cells))
        values, weights, numbers = taken
        columns = self._columns._replace(values=values, weights=weights, cells=numbers)
        return Data(rows, columns)

    def transposed(self):
        """The places in the transposed table, with the permutation that takes the values along."""
        return Table(self.mask.T, self._dtype), self._by_column


class FullTable(Table):
    """A complete table, whose ``Data`` say so."""

    def __init__(self, shape, dtype=np.float64):
        super().__init__(np.ones(shape, dtype=bool), dtype)

    def data(self, x):
        """The cells x, row by row."""
        return detect_complete(super().data(x))


def table_and_values(mask, X, dtype=np.float64):
    """The table of a mask, with the ``Data`` of a full matrix seen through it."""
    table = Table(mask, dtype)
    return table, table.data(X[table.i, table.j])


def make_noise(variance, shape, rows=None, columns=None, degrees=math.inf, law=None):
    """The noise of a state; ``law`` holds the degrees of freedom of rows and of columns."""
    rows = np.ones(shape[0]) if rows is None else np.array(rows, float)
    columns = np.ones(shape[1]) if columns is None else np.array(columns, float)
    cells = Noise(float(variance), rows, columns, float(degrees))
    return NoiseState(cells, *map(float, law or (FIRST_DEGREES, FIRST_DEGREES)))


def make_state(
    U, V, d, gamma, *, a, b, noise_variance, alpha=0.0, beta=0.0, mu=0.0, nu=0.0,
    row_effect=NO_EFFECT, column_effect=NO_EFFECT, sweep=0, dtype=np.float64, noise=None,
    weights=None, limits=NO_LIMITS,
):  # fmt: skip
    """The state of a chain with factors U (m, r) and V (n, r), less their centres mu and nu.

    ``weights`` are those of the features of rows and of columns; None without features.
    """
    r = d.size
    mu, nu = np.zeros(r) + mu, np.zeros(r) + nu
    left, right = np.ones((U.shape[0], r + 2), dtype), np.ones((V.shape[0], r + 2), dtype)
    left[:, :r], right[:, :r] = U + mu, V + nu
    left[:, r], right[:, r + 1] = alpha, beta
    return State(
        left, right, np.array(d, float), np.array(gamma, float), mu, nu,
        row_effect, column_effect, a, b,
        noise or make_noise(noise_variance, (len(U), len(V))),
        *(weights or [first_weights(NO_FEATURES, r + 2)] * 2), limits, NO_ROW_THRESHOLDS, sweep,
    )  # fmt: skip


def variance_of(state):
    """sigma^2 of a state."""
    return state.noise.cells.variance


def with_variance(state, variance):
    """The state with another sigma^2."""
    return state._replace(
        noise=state.noise._replace(cells=state.noise.cells._replace(variance=variance))
    )


def context_of(
    options=PLAIN, seed=0, workers=None, relaxed_from=sys.maxsize, noise_from=sys.maxsize,
    rates_from=sys.maxsize, features=WITHOUT_FEATURES, intervals=NO_INTERVALS,
):  # fmt: skip
    """What stays fixed over a chain, on one thread."""
    return Context(
        options, chain_key(seed, 0), workers or Workers(1), relaxed_from, noise_from, rates_from,
        features, intervals,
    )  # fmt: skip


def random_state(rng, shape, r, dtype=np.float64, **parameters):
    """A state with columns of norm 0.8 and d around 1."""
    m, n = shape
    U, V = rng.standard_normal((m, r)), rng.standard_normal((n, r))
    U *= 0.8 / np.linalg.norm(U, axis=0)
    V *= 0.8 / np.linalg.norm(V, axis=0)
    fixed = {"a": 5.0, "b": 2.0, "noise_variance": 0.05} | parameters
    d = rng.uniform(0.5, 1.5, r)
    return make_state(U, V, d, rng.uniform(1.0, 3.0, r), dtype=dtype, **fixed)


def dense_signal(state):
    """The whole m x n signal of a state, as a triple loop would have it."""
    r = state.d.size
    scale = np.append(state.d, [1.0, 1.0])
    assert state.left.shape[1] == r + 2
    return np.einsum("ik,k,jk->ij", state.left.astype(float), scale, state.right.astype(float))


def parts_of(value):
    """All arrays and numbers of a state, one after the other."""
    if isinstance(value, tuple):
        return [part for each in value for part in parts_of(each)]
    return [value]
