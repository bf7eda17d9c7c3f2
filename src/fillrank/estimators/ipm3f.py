"""IPM3F as a scikit-learn estimator; the mathematics is in solvers/ipm3f.py and samplers/ipm3f.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.draws.streams import chain_key
from fillrank.errors import NotSupportedError, ReadError
from fillrank.estimators.checks import check_choice
from fillrank.estimators.convergence import warn_unconverged
from fillrank.estimators.ordinal import Frame, OrdinalCompleter, Solution
from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.diagnostics import Diagnostics, diagnose_run
from fillrank.posterior.validation import check_traces
from fillrank.run.chains import Chain, Sampler
from fillrank.run.loop import Outcome, Plan, execute, start_run
from fillrank.run.recorder import Traces
from fillrank.runtime.threads import Workers
from fillrank.samplers import ipm3f as gibbs
from fillrank.samplers.model import Data
from fillrank.solvers import ipm3f as variational
from fillrank.solvers.fit import Limits
from fillrank.table.entries import Entries
from fillrank.validation import check_integer

# Sweeps of the chains that compare penalties; half of them are not kept.
_TRIAL_SWEEPS = 40
_BURN_IN = 20
# Sweeps over a new row under each kept draw: it begins without features.
_NEW_ROW_SWEEPS, _NEW_ROW_SEED = 10, 0


class IPM3F(OrdinalCompleter):
    """Infinite probabilistic max-margin matrix factorisation (Xu, Zhu and Zhang, 2012 and 2013).

    For ratings on few ordered levels. Rows have binary features, whose number the data choose, and
    thresholds of their own that part their scores into levels. Predicts one of the levels.

    Parameters
    ----------
    penalty : float or "auto"
        One over the weight C of the margins' loss. "auto" chooses it on a fifth of the entries, and
        fits again on all of them.
    max_rank : int
        The most features.
    inference : {"variational", "gibbs"}
        Find the best factorised approximation, or sample.
    max_iterations, tolerance : int, float
        Of the variational fit: it ends when ten iterations in a row have lowered the objective by a
        share below the tolerance.
    n_sweeps, burn_in : int
        Of the sampler: sweeps in all, and those at the start that are not kept: 20 by default, or half
        of ``n_sweeps`` if that is less. To choose a penalty, a shorter chain is run for each.
    levels : "auto" or sequence of numbers
        The levels of the scale. "auto" takes the values that occur, if these are evenly spaced.
    n_threads : int or None
        None uses all processors. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Decides which entries are held out, where the fit begins, and what is drawn.
    progress : bool
        Show a bar in a terminal, or a line every ten seconds elsewhere.

    Attributes
    ----------
    penalty_ : float
    path_ : list of PathPoint
        What was tried: penalty, rank, training_error, validation_error (mean absolute errors),
        n_iterations, converged. Empty if the penalty was given.
    levels_ : ndarray
    rank_ : int
        The expected number of features in use.
    history_ : dict
        ``objective`` after each iteration; or ``hinge_loss`` and ``n_features`` after each sweep.
    stop_reason_ : str
        Why the fit ended.
    converged_ : bool
        Of the variational fit: whether the objective had stopped to fall.
    n_sweeps_, interrupted_ : int, bool
        Of the sampler: how many sweeps there were, and whether Ctrl-C ended them.

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

    _kept: ClassVar[dict[str, Any]] = OrdinalCompleter._kept | {
        "n_sweeps_": int,
        "interrupted_": bool,
        "traces_": Traces,
        "sticks_": np.ndarray,
    }

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
        # Errors of short chains are noisy: three rises in a row may mean nothing.
        return math.inf if self.inference == "gibbs" else super()._patience

    def _burn_in(self) -> int:
        return min(_BURN_IN, self.n_sweeps // 2) if self.burn_in == "auto" else self.burn_in

    def _solve(self, data: Data, penalty: float, frame: Frame, carry: Any) -> Solution:
        if self.inference == "gibbs":
            plan = Plan(self.n_sweeps, self._burn_in(), n_adapt=0, until_enough=False)
            return self._sample(data, penalty, frame, plan, self.progress)
        return self._approximate(data, penalty, frame, carry)

    def _try(self, data: Data, penalty: float, frame: Frame, carry: Any) -> Solution:
        if self.inference == "gibbs":
            n = min(_TRIAL_SWEEPS, self.n_sweeps)
            plan = Plan(n, n // 2, n_adapt=0, until_enough=False)
            solution = self._sample(data, penalty, frame, plan, show=False)
            if not solution.converged:  # Ctrl-C ended the chain, and should end the choice too
                raise KeyboardInterrupt
            return solution
        return self._solve(data, penalty, frame, carry)

    def _approximate(self, data: Data, penalty: float, frame: Frame, carry: Any) -> Solution:
        hyper = variational.usual_hyper(1.0 / penalty)
        if carry is None:
            rng = np.random.default_rng(frame.seed)
            K = frame.limits.max_rank
            start = variational.first_state(data, frame.n_levels, K, hyper, rng)
        else:
            start = carry[1]
            if start.duals.size != data.n_entries:  # they belong to the entries
                start = start._replace(duals=np.zeros(data.n_entries))
        fit, state = variational.ipm3f(data, hyper, frame.limits, frame.workers, start)
        rank = variational.effective_features(state.psi)
        return Solution([fit.scorer], rank, (fit, state), len(fit.objectives), fit.converged)

    def _hyper(self, penalty: float, n_levels: int) -> gibbs.Hyper:
        usual = variational.usual_hyper(1.0 / penalty)
        return gibbs.Hyper(*usual, n_levels=n_levels, max_features=self.max_rank)

    def _sample(self, data: Data, penalty: float, frame: Frame, plan: Plan, show: bool) -> Solution:
        ordinal = gibbs.ordinal_data(data)
        hyper = self._hyper(penalty, frame.n_levels)
        rng = np.random.default_rng(frame.seed)
        state = gibbs.init(ordinal, hyper, self.max_rank, rng)
        chain = Chain(state, gibbs.Context(hyper, chain_key(frame.seed, 0), frame.workers))
        sampler = Sampler(gibbs.sweep, gibbs.draw, gibbs.spectrum, gibbs.history)
        run = start_run([chain], ordinal, sampler, plan, rng)
        outcome = execute(run, ordinal, sampler, plan, show)
        scorers = outcome.run.recorder.draws
        rank = float(np.mean([scorer.left.shape[1] for scorer in scorers]))
        return Solution(scorers, rank, outcome, outcome.run.n_sweeps, not outcome.interrupted)

    def _new_rows(self, entries: Entries, workers: Workers) -> list[Scorer]:
        if self.inference == "gibbs":
            kept = enumerate(self.posterior_.scorers)
            return [self._sample_rows(entries, scorer, t, workers) for t, scorer in kept]
        hyper = variational.usual_hyper(1.0 / self.penalty_)
        return [variational.fit_rows(entries, self._state(), hyper, workers)]

    def _state(self) -> variational.State:
        """The variational solution, as far as new rows need it."""
        psi, Lam, thresholds = self.posterior_.scorers[0]
        return variational.State(psi, Lam, thresholds, self.sticks_, np.zeros(0))

    def _sample_rows(self, entries: Entries, kept: Scorer, t: int, workers: Workers) -> Scorer:
        """New rows under the t-th kept draw."""
        hyper = self._hyper(self.penalty_, self.levels_.size)
        state = gibbs.State(kept.left, kept.right, kept.thresholds, sweep=0)
        new = gibbs.init_rows(entries.pointers.size - 1, state, hyper)
        # A stream of its own for each draw; the same rows get the same answer every time.
        sampling = gibbs.Context(hyper, chain_key(_NEW_ROW_SEED, t), workers)
        for _ in range(_NEW_ROW_SWEEPS):
            new = gibbs.sweep_rows(new, entries, state, sampling)
        return Scorer(new.Z, kept.right, new.thresholds)

    def _keep(self, solution: Solution) -> None:
        if self.inference == "gibbs":
            self._keep_run(solution.carry)
            return
        fit, state = solution.carry
        self.sticks_ = state.g
        self.history_ = {"objective": np.array(fit.objectives)}
        self.stop_reason_ = fit.reason
        self.converged_ = fit.converged
        warn_unconverged(self)

    def _keep_run(self, outcome: Outcome) -> None:
        self.traces_ = outcome.run.recorder.traces()
        self.history_ = self.traces_.history
        self.stop_reason_ = outcome.stop_reason
        self.n_sweeps_ = outcome.run.n_sweeps
        self.interrupted_ = outcome.interrupted
        n_draws = len(outcome.run.recorder.draws)
        warn_unconverged(self, *([f"Stored draws: {n_draws}."] if outcome.interrupted else []))

    def predict_mean(self, rows: Any, columns: Any) -> np.ndarray:
        """Means over the draws of the predicted levels, by names; for ``inference="gibbs"``."""
        i, j = self._positions(rows, columns, "error")
        self._must_sample("means over draws")
        with self._workers() as workers:
            return self.posterior_.mean(i, j, workers)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of scores and loss; for ``inference="gibbs"``."""
        check_is_fitted(self)
        self._must_sample("diagnostics of chains")
        if not hasattr(self, "traces_"):
            raise NotSupportedError(
                "a model of new rows has no chains of its own; ask the one that it came from."
            )
        ended = self.stop_reason_ if self.interrupted_ else ""
        return diagnose_run(self.traces_, self.rank_, ended, judges_error=False)

    def _must_sample(self, what: str) -> None:
        if self.inference != "gibbs":
            raise NotSupportedError(
                f'the variational fit draws nothing, so it has no {what}; inference="gibbs" has.'
            )

    def _forget_run(self) -> None:
        if hasattr(self, "traces_"):
            del self.traces_

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_choice("inference", self.inference, ("variational", "gibbs"))
        if hasattr(self, "traces_"):
            self.__dict__.setdefault("interrupted_", False)
            check_traces(self.traces_, self.observations_.shape)
        if self.inference == "variational":
            sticks = vars(self).get("sticks_", np.zeros(0))
            features = self.posterior_.scorers[0].left.shape[1]
            if sticks.shape != (features, 2) or not (np.isfinite(sticks) & (sticks > 0)).all():
                raise ReadError("its features are not those of its predictions.")
