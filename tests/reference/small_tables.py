"""Small tables with missing cells, and states of the samplers written out from their parts."""

import sys

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers
from fillrank.samplers.gasr import Context, Options, State
from fillrank.samplers.model import Data, Effect, detect_complete
from fillrank.table.entries import compress

PLAIN = Options(row_effects=False, column_effects=False, centres=False)
EFFECTS = Options(row_effects=True, column_effects=True, centres=False)
CENTRES = Options(row_effects=False, column_effects=False, centres=True)
NO_EFFECT = Effect(0.0, 1.0)

# The observed entries of a 5 x 4 table: a full row, an empty one, and rows between.
MASK = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]], dtype=bool)
# The same idea on 4 x 3.
SMALL_MASK = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0], [0, 1, 1]], dtype=bool)


class Table:
    """The places of the observed entries; hands out ``Data`` for their values, row by row."""

    def __init__(self, mask, dtype=np.float64):
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

    def data(self, x):
        """The entries x (in the order of ``i``, ``j``) from both sides."""
        x = np.asarray(x, dtype=self._dtype)
        return Data(
            self._rows._replace(values=x), self._columns._replace(values=x[self._by_column])
        )

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


def make_state(
    U, V, d, gamma, *, a, b, noise_variance, alpha=0.0, beta=0.0,
    row_effect=NO_EFFECT, column_effect=NO_EFFECT, sweep=0, dtype=np.float64,
):  # fmt: skip
    """The state of a chain with factors U (m, r), V (n, r) and centres at 0."""
    r = d.size
    left, right = np.ones((U.shape[0], r + 2), dtype), np.ones((V.shape[0], r + 2), dtype)
    left[:, :r], right[:, :r] = U, V
    left[:, r], right[:, r + 1] = alpha, beta
    return State(
        left, right, np.array(d, float), np.array(gamma, float), np.zeros(r), np.zeros(r),
        row_effect, column_effect, a, b, noise_variance, sweep,
    )  # fmt: skip


def context_of(
    options=PLAIN, seed=0, workers=None, relaxed_from=sys.maxsize, noise_from=sys.maxsize
):
    """What stays fixed over a chain, on one thread."""
    return Context(options, chain_key(seed, 0), workers or Workers(1), relaxed_from, noise_from)


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
