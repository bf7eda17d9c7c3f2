"""What the samplers and the solvers share: the data of a table, starts, draws, and draws of rows.

The columns of a table are the rows of its transpose, so that one function serves both sides.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fillrank.draws.streams import Address
from fillrank.kernels.dense_rows import Dense, RowPrior, dense_rows
from fillrank.kernels.gaussian_rows import (
    NO_LIMITS,
    NO_THRESHOLDS,
    Prior,
    RowNoise,
    RowSums,
    align_rows,
    gaussian_rows,
)
from fillrank.kernels.interval_values import draw_values
from fillrank.kernels.joint_rows import JointPrior, joint_rows
from fillrank.kernels.mask import mask_product
from fillrank.kernels.products import Fitted
from fillrank.runtime.threads import Workers
from fillrank.samplers.level_likelihood import EntryLikelihood, LevelLikelihood, level_entries
from fillrank.table.entries import Entries

# The smallest noise variance, in units of the data's: single precision resolves nothing below it.
SMALLEST_NOISE = 1e-10
# Bounds of a valid state, far beyond what occurs in standard units. Within them products and squares
# stay in the range of single precision.
LARGEST_ENTRY = 1e9
LARGEST_SIGNAL = 1e12
# The weights of no features.
NO_WEIGHTS = np.zeros((0, 0), np.float32)
_AnyPrior = TypeVar("_AnyPrior", Prior, JointPrior, RowPrior)
# The product of a matrix with a block of columns.
Product = Callable[[np.ndarray], np.ndarray]


class Remote(ABC):
    """One side of a table whose entries are on other machines; ``pointers`` are those of all rows."""

    pointers: np.ndarray
    dtype: np.dtype

    @property
    def n_entries(self) -> int:
        """How many entries there are."""
        return int(self.pointers[-1])

    @abstractmethod
    def digest(self) -> int:
        """A digest of the entries that does not depend on how they are partitioned."""

    @abstractmethod
    def draw_rows(
        self,
        own: np.ndarray,
        other: np.ndarray,
        prior: Prior,
        noise: RowNoise,
        address: Address,
    ) -> RowSums:
        """Draw the coefficients of all rows, in place."""

    @abstractmethod
    def residual_products(
        self, fitted: Fitted, block: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.residual_products`."""

    @abstractmethod
    def effect_sums(self, own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.effect_sums`."""

    @abstractmethod
    def mask_product(self, block: np.ndarray) -> np.ndarray:
        """As `fillrank.kernels.mask.mask_product`."""

    @abstractmethod
    def level_likelihood(
        self, factors: tuple[np.ndarray, np.ndarray], noise: RowNoise, n_intervals: int
    ) -> LevelLikelihood:
        """The likelihood of the levels of entries, as in `Data`."""


class Data(NamedTuple):
    """The observed entries from both sides, standardised."""

    rows: Entries
    columns: Entries

    @property
    def is_complete(self) -> bool:
        """Whether all cells are in one array."""
        return False

    @property
    def is_remote(self) -> bool:
        """Whether the entries are on other machines."""
        return False

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

    def entries_by_row(self) -> Entries:
        """The entries by row, for steps that only one machine takes."""
        return self.rows

    def mask_products(self, workers: Workers) -> tuple[Product, Product]:
        """Products of a block with the mask of the entries, and with its transpose."""
        rows, columns = (
            partial(mask_product, side.pointers, side.indices, workers=workers) for side in self
        )
        return rows, columns

    def level_likelihood(
        self,
        factors: tuple[np.ndarray, np.ndarray],
        noise: RowNoise,
        n_intervals: int,
        workers: Workers,
    ) -> LevelLikelihood:
        """The likelihood of the levels of entries, for the intervals before ``n_intervals``.

        ``factors`` (own, other) and ``noise`` are as in a half-sweep of the columns.
        """
        entries = level_entries(self.columns, factors, noise, n_intervals, workers)
        return EntryLikelihood(entries, workers)


class RemoteData(NamedTuple):
    """The same for a table whose entries are on the workers of a cluster."""

    rows: Remote
    columns: Remote

    @property
    def is_complete(self) -> bool:
        """Whether all cells are in one array."""
        return False

    @property
    def is_remote(self) -> bool:
        """Whether the entries are on other machines."""
        return True

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

    def entries_by_row(self) -> Entries:
        """As in `Data`; but the entries are on other machines."""
        raise NotImplementedError

    def mask_products(self, workers: Workers) -> tuple[Product, Product]:
        """As in `Data`, with the same bits."""
        return self.rows.mask_product, self.columns.mask_product

    def level_likelihood(
        self,
        factors: tuple[np.ndarray, np.ndarray],
        noise: RowNoise,
        n_intervals: int,
        workers: Workers,
    ) -> LevelLikelihood:
        """As in `Data`."""
        return self.columns.level_likelihood(factors, noise, n_intervals)


class CompleteData(NamedTuple):
    """The same for a table without missing cells: one array of values serves both sides.

    The sums of squares of each row and of each column come with it.
    """

    values: np.ndarray
    row_squares: np.ndarray
    column_squares: np.ndarray

    @property
    def is_complete(self) -> bool:
        """Whether all cells are in one array."""
        return True

    @property
    def is_remote(self) -> bool:
        """Whether the entries are on other machines."""
        return False

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

    def entries_by_row(self) -> Entries:
        """As in `Data`; but such a table has its cells in one array."""
        raise NotImplementedError

    def level_likelihood(
        self,
        factors: tuple[np.ndarray, np.ndarray],
        noise: RowNoise,
        n_intervals: int,
        workers: Workers,
    ) -> LevelLikelihood:
        """As in `Data`; but the values of such a table are exact numbers."""
        raise NotImplementedError


def detect_complete(data: Data) -> Data | CompleteData:
    """The data as `CompleteData` if no cell is missing, otherwise unchanged. No values are copied."""
    if data.n_entries < math.prod(data.shape):
        return data
    X = data.rows.values.reshape(data.shape)
    by_row, by_column = (
        np.einsum(sums, X, X, dtype=np.float64) for sums in ("ij,ij->i", "ij,ij->j")
    )
    return CompleteData(X, by_row, by_column)


class Effect(NamedTuple):
    """The Gaussian prior of the effects of one side."""

    mean: float
    variance: float


class Start(NamedTuple):
    """A first guess: effects with their priors, Z = U diag(s) V^T with at most ``max_rank`` terms.

    The noise variance of column j is ``noise_variance / column_precisions[j]``.
    """

    row_effects: np.ndarray
    column_effects: np.ndarray
    row_effect: Effect
    column_effect: Effect
    U: np.ndarray
    s: np.ndarray
    V: np.ndarray
    noise_variance: float
    column_precisions: np.ndarray
    max_rank: int


class Noise(NamedTuple):
    """The noise of every cell: x_ij ~ N(z_ij, variance / (rows_i columns_j)), in standard units.

    ``rows`` (m,) and ``columns`` (n,) are relative precisions, in float64. With finite ``degrees`` the
    distribution is a Student-t distribution of that many degrees of freedom, with this squared scale.
    """

    variance: float
    rows: np.ndarray
    columns: np.ndarray
    degrees: float = math.inf

    @staticmethod
    def equal(variance: float, shape: tuple[int, int]) -> "Noise":
        """Gaussian noise of one variance in all cells; its arrays take no memory."""
        one = np.float64(1.0)
        return Noise(variance, np.broadcast_to(one, shape[0]), np.broadcast_to(one, shape[1]))

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.rows.nbytes + self.columns.nbytes

    @property
    def is_valid(self) -> bool:
        """Whether its numbers are those of a distribution; variance 0 is that of an exact solution."""
        precisions = self.rows, self.columns
        return (
            0 <= self.variance < math.inf
            and self.degrees > 0
            and all(bool((np.isfinite(each) & (each > 0)).all()) for each in precisions)
        )

    def at(self, rows: Any, columns: Any) -> np.ndarray:
        """The squared scale of the noise in the cells (rows_p, columns_p), by any kind of index."""
        return self.variance / (self.rows[rows] * self.columns[columns])

    def average(self) -> float:
        """The squared scale of the noise, averaged over all cells."""
        return float(self.variance * np.mean(1.0 / self.rows) * np.mean(1.0 / self.columns))

    def row_scales(self) -> np.ndarray:
        """The scale of the noise of each row, its square averaged over the columns."""
        return np.sqrt(self.variance * np.mean(1.0 / self.columns) / self.rows)

    def column_scales(self) -> np.ndarray:
        """The scale of the noise of each column, its square averaged over the rows."""
        return self.transpose().row_scales()

    def transpose(self) -> "Noise":
        """The noise of the transposed table."""
        return self._replace(rows=self.columns, columns=self.rows)


class Draw(NamedTuple):
    """One draw of the signal, left right^T in standard units, and of the noise.

    ``row_weights`` (p, K) are the weights of the p features of rows: F ``row_weights`` is the part of
    ``left`` that they explain. They are empty without features; ``column_weights`` likewise. ``limits``
    (2, k) are the ends of the intervals of values that are not exact; thresholds are among them. If
    these differ by row, ``row_thresholds`` (m, L + 1) has the ends of the L intervals in every row. In
    the draw of a transposed table these are ``column_thresholds``.
    """

    left: np.ndarray
    right: np.ndarray
    noise: Noise
    row_weights: np.ndarray = NO_WEIGHTS
    column_weights: np.ndarray = NO_WEIGHTS
    limits: np.ndarray = NO_LIMITS
    row_thresholds: np.ndarray = NO_THRESHOLDS
    column_thresholds: np.ndarray = NO_THRESHOLDS

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.noise.nbytes + sum(each.nbytes for each in self if isinstance(each, np.ndarray))

    def transpose(self) -> "Draw":
        """The same draw of the transposed table."""
        return Draw(
            self.right,
            self.left,
            self.noise.transpose(),
            self.column_weights,
            self.row_weights,
            self.limits,
            self.column_thresholds,
            self.row_thresholds,
        )

    def thresholds_of(self, rows: np.ndarray) -> np.ndarray:
        """The ends (rows, L + 1) of the intervals of levels in rows; empty if rows do not differ."""
        return self.row_thresholds[rows] if self.row_thresholds.size else NO_THRESHOLDS

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The signal of the cells (rows_p, columns_p)."""
        left, right = self.left[rows], self.right[columns]
        return np.einsum("pk,pk->p", left.astype(np.float64), right)


def draw_rows(
    side: Entries | Dense | Remote,
    own: np.ndarray,
    other: np.ndarray,
    prior: Prior | JointPrior,
    noise: RowNoise,
    address: Address,
    workers: Workers,
) -> RowSums:
    """Draw the coefficients of all rows, in place, given the factors of the other side.

    With entries, the coefficients of a row are drawn one by one for a `Prior`, jointly for a
    `JointPrior`. In a complete table they are always drawn jointly. Joint draws are for Gaussian noise
    without weights that are drawn.
    """
    if isinstance(side, Dense):
        row_prior = _with_shifts(_row_prior(prior), own.dtype)
        return _without_weights(dense_rows(side, own, other, row_prior, noise, address, workers))
    if isinstance(side, Remote):
        assert isinstance(prior, Prior)  # other machines do not draw jointly
        return side.draw_rows(own, other, prior, noise, address)
    if isinstance(prior, JointPrior):
        return _without_weights(_draw_jointly(side, own, other, prior, noise, address, workers))
    return draw_one_by_one(side, own, other, prior, noise, address, workers)


def _without_weights(squares: np.ndarray) -> RowSums:
    """The sums of a half-sweep that draws no weights of entries."""
    return RowSums(squares, np.zeros(0), np.zeros(0))


# Kernels are compiled for each combination of types. That of what is empty is always the same.


def _without_entry_weights(entries: Entries) -> Entries:
    """The entries without weights."""
    return entries._replace(weights=np.zeros(0, entries.dtype))


def _with_shifts(prior: _AnyPrior, dtype: np.dtype) -> _AnyPrior:
    """The prior, with shifts in the type of the factors if there are none."""
    return prior if prior.shifts.size else prior._replace(shifts=np.zeros((0, 0), dtype))


def draw_one_by_one(
    entries: Entries,
    own: np.ndarray,
    other: np.ndarray,
    prior: Prior,
    noise: RowNoise,
    address: Address,
    workers: Workers,
) -> RowSums:
    """Draw the coefficients of all rows, in place, one by one."""
    n = own.shape[0]
    n_weights = n if noise.degrees < math.inf else 0
    sums = RowSums(np.empty(n), np.empty(n_weights), np.empty(n_weights))
    aligned = align_rows(other, noise.roots)
    prior = _with_shifts(prior, own.dtype)
    if not entries.weights.size:
        entries = _without_entry_weights(entries)
    work = partial(gaussian_rows, entries, own, aligned, prior, noise, address, sums)
    workers.for_rows(work, entries.pointers)
    return sums


def _draw_jointly(
    entries: Entries,
    own: np.ndarray,
    other: np.ndarray,
    prior: JointPrior,
    noise: RowNoise,
    address: Address,
    workers: Workers,
) -> np.ndarray:
    if entries.cells.size:
        values = np.empty_like(entries.values)
        work = partial(draw_values, entries, own, other, noise, address, values)
        workers.for_rows(work, entries.pointers)
        entries = entries._replace(values=values)
    squares = np.empty(own.shape[0])
    weights = np.repeat(1.0 / noise.variances, np.diff(entries.pointers))
    if noise.roots.size:
        weights *= noise.roots[entries.indices] ** 2
    if entries.weights.size:
        weights *= entries.weights
    entries, prior = _without_entry_weights(entries), _with_shifts(prior, own.dtype)
    work = partial(joint_rows, entries, weights, own, other, prior, address, squares)
    workers.for_rows(work, entries.pointers)
    return noise.variances * squares  # the kernel's squares are divided by the noise variance


def _row_prior(prior: Prior | JointPrior) -> RowPrior:
    if isinstance(prior, JointPrior):
        return RowPrior(
            np.arange(prior.mean.size), prior.mean, prior.precision, shifts=prior.shifts
        )
    return RowPrior(
        prior.free, prior.mean, np.diag(prior.precision), prior.relaxation, prior.shifts
    )
