"""What the posterior of a completed table supports, by position."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from fillrank.features.blocks import Blocks
from fillrank.posterior.imputation import Imputations
from fillrank.posterior.low_rank import Axis, Kind
from fillrank.posterior.recommend import Top, TopQuery
from fillrank.runtime.threads import Workers
from fillrank.table.entries import Entries
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
    def new_row_nbytes(self) -> int:
        """The memory that a new row takes while it is folded in."""

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors (left, right) whose product is the signal, or the score of levels."""

    def predict(self, rows: np.ndarray, columns: np.ndarray, workers: Workers) -> np.ndarray:
        """Predictions of the cells (rows_p, columns_p)."""

    def average_prediction(
        self, rows: np.ndarray, columns: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Means over the draws of what each predicts for the cells (rows_p, columns_p)."""

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Predictions of all cells of the given rows and columns: a matrix."""

    def interval(
        self, rows: np.ndarray, columns: np.ndarray, level: float, kind: Kind, workers: Workers
    ) -> tuple[np.ndarray, np.ndarray]:
        """Credible intervals (low, high) of the cells, for the signal or for a new observation."""

    def log_density(
        self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, workers: Workers
    ) -> np.ndarray:
        """Logarithms of the predictive density at new observations of the cells."""

    def fold_in(
        self, entries: Entries, axis: Axis, workers: Workers, features: np.ndarray | None = None
    ) -> Self:
        """The posterior of new rows (or columns) with these entries, in the units of the data.

        ``features`` (n_new, p) are their values in the blocks of given features.
        """

    def update(
        self,
        entries: Entries,
        positions: np.ndarray,
        axis: Axis,
        workers: Workers,
        source: Self,
    ) -> Self:
        """The same with some rows (or columns) drawn again, given all of their entries.

        ``source`` is the posterior by which new rows (or columns) are folded in.
        """

    def top(self, query: TopQuery, workers: Workers) -> Top:
        """The best columns of some rows."""

    def imputations(self, n: int, seed: int) -> Imputations:
        """Draws of complete tables."""
