"""IPM3F as a scikit-learn estimator; the mathematics is in solvers/ipm3f.py and samplers/ipm3f.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.estimators.convergence import warn_unconverged
from fillrank.estimators.margin import Context, MarginEstimator, Solution
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.posterior.levels import FitRows, FitRowsVariationally, SampleRows
from fillrank.posterior.record import Record
from fillrank.run.chains import Chain, Sampler
from fillrank.run.loop import Outcome, Plan, execute, start_run
from fillrank.samplers import ipm3f as gibbs
from fillrank.samplers.model import Data
from fillrank.solvers import ipm3f as variational
from fillrank.solvers.fit import Limits, PathPoint
from fillrank.validation import check_choice, check_integer

# Sweeps of the chains that compare penalties; the first half is discarded.
_TRIAL_SWEEPS = 40
_BURN_IN = 20


class IPM3F(MarginEstimator):
    """Infinite probabilistic max-margin matrix factorisation (Xu, Zhu and Zhang, 2012 and 2013).

    For ratings on few ordered levels. Rows have binary features, whose number is estimated, and each
    row has thresholds that divide its scores into levels. It predicts one of the levels.

    Parameters
    ----------
    penalty : float or "auto"
        The inverse of the weight C of the hinge loss. "auto" chooses it on a held-out fifth of the
        entries, and fits again on all of them.
    max_rank : int
        The largest number of features.
    inference : {"variational", "gibbs"}
        Find the best factorised approximation, or sample.
    max_iterations, tolerance : int, float
        For the variational fit: it ends when ten iterations in a row have each lowered the objective by
        a share below the tolerance.
    n_sweeps, burn_in : int
        For the sampler: all sweeps, and those at the start that are discarded: 20 by default, or half
        of ``n_sweeps`` if that is less. To choose a penalty, a shorter chain is run for each.
    levels : "auto" or sequence of numbers
        The levels of the scale. "auto" uses the values that occur, if these are evenly spaced.
    n_threads : int or None
        None uses all processors. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Determines which entries are held out, where the fit starts, and what is drawn.
    progress : bool
        Show a bar in a terminal, or a line every ten seconds elsewhere.
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
        The expected number of features in use.
    history_ : dict
        ``objective`` after each iteration; or ``hinge_loss`` and ``n_features`` after each sweep.
    stop_reason_ : str
        Why the fit ended.
    converged_ : bool
        For the variational fit: whether it ended by its tolerance.
    n_sweeps_, interrupted_ : int, bool
        For the sampler: the number of sweeps, and whether Ctrl-C ended the run.

    Examples
    --------
    >>> import fillrank as fr
    >>> scores, _ = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> stars = np.clip(np.rint(scores.values + 3), 1, 5)
    >>> ratings = fr.Observations.from_triplets(scores.rows, scores.columns, stars)
    >>> model = fr.IPM3F(penalty=1.0, max_rank=8, random_state=0).fit(ratings)
    >>> errors = np.abs(model.predict(ratings.rows, ratings.columns) - ratings.values)
    >>> bool(errors.mean() < 0.3)
    True
    """

    def __init__(
        self,
        *,
        penalty: float | Literal["auto"] = "auto",
        max_rank: int = 30,
        inference: Literal["variational", "gibbs"] = "variational",
        max_iterations: int = 50,
        tolerance: float = 1e-3,
        n_sweeps: int = 100,
        burn_in: int | Literal["auto"] = "auto",
        levels: Literal["auto"] | Sequence[float] = "auto",
        n_threads: int | None = None,
        random_state: Any = None,
        progress: bool = True,
        add_indicator: bool = False,
        missing_values: Any = np.nan,
    ):
        self.penalty = penalty
        self.max_rank = max_rank
        self.inference = inference
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.levels = levels
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress
        self.add_indicator = add_indicator
        self.missing_values = missing_values

    # From large penalties the features that rows share never come back.
    _upwards = True

    def _limits(self) -> Limits:
        check_choice("inference", self.inference, ("variational", "gibbs"))
        if self.inference == "gibbs":
            most = check_integer("n_sweeps", self.n_sweeps, 1)
            if self.burn_in != "auto":
                check_integer("burn_in", self.burn_in, 0, most - 1)
        return super()._limits()

    @property
    def _patience(self) -> float:
        # Errors of short chains are noisy: three increases in a row can be due to chance.
        return math.inf if self.inference == "gibbs" else super()._patience

    def _burn_in(self) -> int:
        return min(_BURN_IN, self.n_sweeps // 2) if self.burn_in == "auto" else self.burn_in

    def _solve(self, data: Data, penalty: float, context: Context, carry: Any) -> Solution:
        if self.inference == "gibbs":
            plan = Plan(self.n_sweeps, self._burn_in(), n_adapt=0, until_enough=False)
            return self._sample(data, penalty, context, plan, self.progress)
        return self._approximate(data, penalty, context, carry)

    def _try(self, data: Data, penalty: float, context: Context, carry: Any) -> Solution:
        if self.inference == "gibbs":
            n = min(_TRIAL_SWEEPS, self.n_sweeps)
            plan = Plan(n, n // 2, n_adapt=0, until_enough=False)
            solution = self._sample(data, penalty, context, plan, show=False)
            if not solution.converged:  # Ctrl-C also ends the choice of the penalty
                raise KeyboardInterrupt
            return solution
        return self._solve(data, penalty, context, carry)

    def _approximate(self, data: Data, penalty: float, context: Context, carry: Any) -> Solution:
        hyper = variational.usual_hyper(1.0 / penalty)
        if carry is None:
            rng = np.random.default_rng(context.seed)
            K = context.limits.max_rank
            start = variational.first_state(data, context.n_levels, K, hyper, rng)
        else:
            start = carry[1]
            if start.duals.size != data.n_entries:  # these are per entry
                start = start._replace(duals=np.zeros(data.n_entries))
        fit, state = variational.ipm3f(data, hyper, context.limits, context.workers, start)
        rank = variational.effective_features(state.psi)
        return Solution([fit.scorer], rank, (fit, state), len(fit.objectives), fit.converged)

    def _hyper(self, penalty: float, n_levels: int) -> gibbs.Hyper:
        usual = variational.usual_hyper(1.0 / penalty)
        return gibbs.Hyper(*usual, n_levels=n_levels, max_features=self.max_rank)

    def _sample(
        self, data: Data, penalty: float, context: Context, plan: Plan, show: bool
    ) -> Solution:
        ordinal = gibbs.ordinal_data(data)
        hyper = self._hyper(penalty, context.n_levels)
        rng = np.random.default_rng(context.seed)
        state = gibbs.init(ordinal, hyper, self.max_rank, rng)
        chain = Chain(state, gibbs.Context(hyper, chain_key(context.seed, 0), context.workers))
        sampler = Sampler(gibbs.sweep, gibbs.draw, gibbs.spectrum, gibbs.history)
        run = start_run([chain], ordinal, sampler, plan, rng)
        outcome = execute(run, ordinal, sampler, plan, show)
        scorers = outcome.run.recorder.draws
        rank = float(np.mean([scorer.left.shape[1] for scorer in scorers]))
        return Solution(scorers, rank, outcome, outcome.run.n_sweeps, not outcome.interrupted)

    def _fit_rows(self, penalty: float, solution: Solution) -> FitRows:
        if self.inference == "gibbs":
            return SampleRows(penalty, self.max_rank)
        _, state = solution.carry
        return FitRowsVariationally(penalty, state.g)

    def _record(self, penalty: float, path: list[PathPoint], solution: Solution) -> Record:
        rank = round(solution.rank)
        if self.inference == "variational":
            fit, state = solution.carry
            history = {"objective": np.array(fit.objectives)}
            return Record(
                rank,
                history,
                fit.reason,
                penalty=penalty,
                path=path,
                converged=fit.converged,
                sticks=state.g,
            )
        outcome: Outcome = solution.carry
        traces = outcome.run.recorder.traces()
        return Record(
            rank,
            traces.history,
            outcome.stop_reason,
            n_sweeps=outcome.run.n_sweeps,
            interrupted=outcome.interrupted,
            traces=traces,
            penalty=penalty,
            path=path,
        )

    def _warn(self, solution: Solution) -> None:
        if self.inference == "variational" or not solution.carry.interrupted:
            warn_unconverged(self)
            return
        n_draws = len(solution.carry.run.recorder.draws)
        warn_unconverged(self, f"Stored draws: {n_draws}.")

    def predict_mean(self, rows: Any, columns: Any) -> np.ndarray:
        """Means over the draws of the predicted levels, by labels; for ``inference="gibbs"``."""
        return self._completion.predict_mean(rows, columns)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of scores and loss; for ``inference="gibbs"``."""
        return self._completion.diagnostics()
