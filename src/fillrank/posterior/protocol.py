"""What the posterior of a completed table supports, by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from fillrank.features.blocks import Blocks
from fillrank.features.new_rows import Axis
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.imputation import Imputations
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.predictive import Kind, Statistic
from fillrank.posterior.recommend import Top, TopQuery
from fillrank.runtime.threads import Workers
from fillrank.table.entries import Entries
from fillrank.table.latent import Coding
from fillrank.table.units import Units


class Posterior(Protocol):
    """The posterior of a completed table, or the solution of a solver.

    Rows and columns are positions; `Completion` knows their labels. Predictions are in the units of
    the data. The properties say what is supported: a query that is not raises NotSupportedError.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    def units(self) -> Units:
        """The units of the data, and the range that predictions are clipped to."""

    @property
    def has_draws(self) -> bool:
        """Whether there are draws of the signal, for intervals and imputations."""

    @property
    def n_draws(self) -> int:
        """The number of stored draws; 0 without any."""

    @property
    def levels(self) -> np.ndarray | None:
        """The ordered levels that are predicted; None if predictions are numbers."""

    @property
    def blocks(self) -> Blocks:
        """The features of rows and columns; empty for methods that take none."""

    @property
    def scorers(self) -> Sequence[Scorer]:
        """What predicts ordered levels by margins; empty if there is a signal."""

    @property
    def signal(self) -> SignalPosterior:
        """The same, as the posterior of a signal; NotSupportedError for margins."""

    @property
    def latent_columns(self) -> np.ndarray:
        """The column of each latent column; a category has several, all others have one."""

    @property
    def new_row_nbytes(self) -> int:
        """The memory that a new row takes while it is folded in."""

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors (left, right) whose product is the signal, or the score of levels."""

    def predict(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        workers: Workers,
        statistic: Statistic = "auto",
    ) -> np.ndarray:
        """Predictions of the cells (rows_p, columns_p).

        ``statistic`` says which number of the predictive distribution, for tables of kinds.
        """

    def average_prediction(
        self, rows: np.ndarray, columns: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Means over the draws of what each predicts for the cells (rows_p, columns_p)."""

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Predictions of all cells of the given rows and columns: a matrix."""

    @property
    def has_own_kinds(self) -> bool:
        """Whether new columns have kinds of their own, so that `fold_in_columns` takes them."""

    @property
    def column_kinds(self) -> list[str]:
        """The kind of the values of each column."""

    @property
    def level_columns(self) -> np.ndarray:
        """Whether the values of each column are levels with probabilities."""

    def level_values(self, column: int) -> np.ndarray:
        """The values of the levels of a column, ascending, as `probabilities` has them."""

    def fold_in(
        self,
        entries: Entries,
        axis: Axis,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> Self:
        """The posterior of new rows (or columns) with these entries, in the units of the data.

        ``features`` (n_new, p) are their values in the blocks of given features, and ``intervals``
        (k, 2) the ends of the intervals of which entries have numbers.
        """

    def top(self, query: TopQuery, workers: Workers) -> Top:
        """The best columns of some rows."""


class SignalPosterior(Posterior, Protocol):
    """A posterior whose values follow from a low-rank signal with noise: of all methods but margins."""

    @property
    def low_rank(self) -> LowRankPosterior:
        """The posterior of the signal."""

    @property
    def coding(self) -> Coding | None:
        """How values of several kinds are coded as latent numbers; None if all are numbers."""

    def probabilities(self, rows: np.ndarray, column: int, workers: Workers) -> np.ndarray:
        """The probabilities (cells, levels) of the levels of a column."""

    def interval(
        self, rows: np.ndarray, columns: np.ndarray, level: float, kind: Kind, workers: Workers
    ) -> tuple[np.ndarray, np.ndarray]:
        """Credible intervals (low, high) of the cells, for the signal or for a new observation."""

    def within(
        self, rows: np.ndarray, columns: np.ndarray, ends: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Predictions of values that are known to be in intervals with the ends (cells, 2)."""

    def log_density(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Logarithms of the predictive density at new observations of the cells."""

    def log_likelihood(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray | None,
    ) -> np.ndarray:
        """Logarithms of the density of observed values under every draw, (draws, cells)."""

    def fold_in_columns(
        self,
        entries: Entries,
        coding: Coding,
        workers: Workers,
        features: np.ndarray | None = None,
        intervals: np.ndarray | None = None,
    ) -> Self:
        """The posterior of new columns that are coded in their own way, as in `fold_in`."""

    def update(
        self,
        entries: Entries,
        positions: np.ndarray,
        axis: Axis,
        workers: Workers,
        source: Self,
        intervals: np.ndarray | None = None,
    ) -> Self:
        """The same with some rows (or columns) drawn again, given all of their entries.

        ``source`` is the posterior by which new rows (or columns) are folded in.
        """

    def noise_scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means of the noise standard deviation of each row, and of each column."""

    def imputations(self, n: int, seed: int) -> Imputations:
        """Draws of complete tables."""
