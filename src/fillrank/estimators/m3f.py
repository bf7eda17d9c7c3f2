"""M3F as a scikit-learn estimator; the mathematics is in solvers/m3f.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fillrank.estimators.convergence import warn_unconverged
from fillrank.estimators.margin import Context, MarginEstimator, Solution
from fillrank.kernels.factors import singular_values
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.levels import FitRows, FitRowsByMargin
from fillrank.posterior.record import Record
from fillrank.samplers.model import Data
from fillrank.solvers.fit import PathPoint
from fillrank.solvers.m3f import first_scorer, m3f
from fillrank.solvers.margin import MarginFit, components


class M3F(MarginEstimator):
    """Fast maximum-margin matrix factorisation (Rennie and Srebro, 2005), for ratings.

    Every row has thresholds that divide its scores into levels; the loss penalises low-rank scores
    within a margin of the thresholds. It predicts one of the levels; there is no posterior, so no
    intervals.

    Parameters
    ----------
    penalty : float or "auto"
        How much factors are shrunk. "auto" chooses it on a held-out fifth of the entries, and fits
        again on all of them.
    max_rank : int
        The largest number of factors.
    max_iterations : int
        For each fit.
    tolerance : float
        A fit ends when the norm of its gradient, relative to the size of the data, is below this.
    levels : "auto" or sequence of numbers
        The levels of the scale. "auto" uses the values that occur, if these are evenly spaced.
    n_threads : int or None
        None uses all processors. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Determines which entries are held out, and where the first fit starts.
    progress : bool
        Show a bar over the penalties in a terminal, or a line every ten seconds elsewhere.
    add_indicator : bool
        Whether `transform` appends a column for each column that had missing values at fit: 1 where a
        value was missing, and 0 elsewhere, as scikit-learn's imputers do.
    missing_values : number, text or list of them
        What stands for a missing value in tables, in addition to NaN, such as -999.

    Attributes
    ----------
    completion_ : Completion
        The result of the fit, to which the methods below delegate.
    observations_ : Observations
        The entries that were fitted.
    penalty_ : float
        The penalty of the fit.
    path_ : list of PathPoint
        The penalties that were tried: penalty, rank, training_error, validation_error (mean absolute
        errors), n_iterations, converged. Empty if the penalty was given.
    levels_ : ndarray
        The levels of the scale.
    rank_ : int
        The number of factors that change a score noticeably.
    singular_values_ : ndarray
        Of the matrix of scores, descending.
    history_ : dict
        ``objective`` after each iteration.
    violation_ : float
        The relative norm of the gradient at the end.
    converged_ : bool
        Whether the gradient is below the tolerance.
    stop_reason_ : str
        Why the fit ended.

    Examples
    --------
    >>> import fillrank as fr
    >>> scores, _ = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> stars = np.clip(np.rint(scores.values + 3), 1, 5)
    >>> ratings = fr.Observations.from_triplets(scores.rows, scores.columns, stars)
    >>> model = fr.M3F(penalty=4.0, max_rank=5, random_state=0).fit(ratings)
    >>> errors = np.abs(model.predict(ratings.rows, ratings.columns) - ratings.values)
    >>> bool(errors.mean() < 0.3)
    True
    """

    def __init__(
        self,
        *,
        penalty: float | Literal["auto"] = "auto",
        max_rank: int = 30,
        max_iterations: int = 100,
        tolerance: float = 1e-3,
        levels: Literal["auto"] | Sequence[float] = "auto",
        n_threads: int | None = None,
        random_state: Any = None,
        progress: bool = True,
        add_indicator: bool = False,
        missing_values: Any = np.nan,
    ):
        self.penalty = penalty
        self.max_rank = max_rank
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.levels = levels
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress
        self.add_indicator = add_indicator
        self.missing_values = missing_values

    def _solve(self, data: Data, penalty: float, context: Context, carry: Any) -> Solution:
        start = carry.scorer if carry else self._start(data, context)
        fit: MarginFit = m3f(
            data, context.n_levels, penalty, context.limits, context.workers, start
        )
        rank = components(fit.scorer.left, fit.scorer.right).s.size
        return Solution([fit.scorer], rank, fit, len(fit.objectives), fit.converged)

    def _start(self, data: Data, context: Context) -> Scorer:
        rng = np.random.default_rng(context.seed)
        return first_scorer(data.shape, context.n_levels, context.limits.max_rank, rng)

    def _fit_rows(self, penalty: float, solution: Solution) -> FitRows:
        return FitRowsByMargin(penalty)

    def _record(self, penalty: float, path: list[PathPoint], solution: Solution) -> Record:
        fit: MarginFit = solution.carry
        return Record(
            rank=round(solution.rank),
            history={"objective": np.array(fit.objectives)},
            stop_reason=fit.reason,
            singular_values=singular_values(fit.scorer.left, fit.scorer.right),
            penalty=penalty,
            path=path,
            violation=fit.violation,
            converged=fit.converged,
        )

    def _warn(self, solution: Solution) -> None:
        warn_unconverged(self)
