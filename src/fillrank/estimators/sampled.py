"""What the estimators with a sampler share: chains, the run, kept draws, warnings, diagnostics."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.data.checks import check_whole
from fillrank.data.observations import Observations
from fillrank.data.standard import standardise
from fillrank.errors import ConvergenceWarning
from fillrank.estimators.base import MatrixCompleter, one_blas_thread
from fillrank.estimators.checks import check_choice, check_value_range, seed_from
from fillrank.estimators.warn import warn_user, why_not_to_trust
from fillrank.kernels.compiled import must_compile
from fillrank.kernels.workers import Workers
from fillrank.posterior.diagnostics import SMALLEST_ESS, Diagnostics, diagnose_run
from fillrank.posterior.posterior import Posterior, Units
from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.run.chains import Chain, Sampler
from fillrank.run.loop import AUTO_BURN_IN, AUTO_MOST_SWEEPS, Outcome, Plan, execute
from fillrank.run.progress import say
from fillrank.samplers.draw import Draw
from fillrank.samplers.state import Data

# The power of the data's unit that a traced quantity carries.
_UNIT_POWERS = {"residual_variance": 2, "noise_variance": 2, "b": 1}


class SampledCompleter(MatrixCompleter):
    """A method that samples a posterior in standard units.

    Subclasses check their own settings in `_check`, and give `_sampler` and `_first_chain`.
    """

    max_rank: int | Literal["auto"]
    n_sweeps: int | Literal["auto"]
    burn_in: int | Literal["auto"]
    n_chains: int
    dtype: Literal["float32", "float64"]
    value_range: Any
    random_state: Any
    progress: bool

    def _check(self) -> None:
        """Refuse settings that only the subclass knows."""
        raise NotImplementedError

    @property
    def _centred(self) -> bool:
        """Whether the overall mean is taken off beforehand."""
        return True

    @property
    def _judged(self) -> bool:
        """Whether a short run is warned of."""
        return True

    def _sampler(self) -> Sampler:
        raise NotImplementedError

    def _first_chain(self, data: Data, scale: float, workers: Workers, seed: list[int]) -> Chain:
        """A chain at its start; ``seed`` is [the fit's seed, the chain's number]."""
        raise NotImplementedError

    def _fit(self, observations: Observations) -> None:
        plan = self._plan()
        self._check_common()
        self._check()
        value_range = check_value_range(self.value_range, observations)
        seed = seed_from(self.random_state)
        standard = standardise(observations, self._centred, np.dtype(self.dtype))
        data = Data(standard.rows, standard.columns)
        say("compiling, at first use only; some seconds.", self.progress and must_compile())
        with one_blas_thread(), self._workers() as workers:
            chains = [
                self._first_chain(data, standard.scale, workers, [seed, c])
                for c in range(self.n_chains)
            ]
            outcome = execute(
                chains, data, self._sampler(), plan, np.random.default_rng(seed), self.progress
            )
        self.observations_ = observations
        self._keep(outcome, Units(standard.location, standard.scale, value_range))
        self._warn(outcome)

    def _check_common(self) -> None:
        check_choice("dtype", self.dtype, ("float32", "float64"))
        check_whole("n_chains", self.n_chains, 1)
        if self.max_rank != "auto":
            check_whole("max_rank", self.max_rank, 1)
        if self.n_threads is not None:
            check_whole("n_threads", self.n_threads, 1)

    def _plan(self) -> Plan:
        auto = self.n_sweeps == "auto"
        most = AUTO_MOST_SWEEPS if auto else check_whole("n_sweeps", self.n_sweeps, 1)
        if self.burn_in == "auto":
            burn_in = min(AUTO_BURN_IN, most // 2)
        else:
            burn_in = check_whole("burn_in", self.burn_in, 0, most - 1)
        return Plan(most, burn_in, n_adapt=burn_in, until_enough=auto)

    def _keep(self, outcome: Outcome, units: Units) -> None:
        """Turn the record of a run into fitted attributes, in the data's units."""
        recorder = outcome.recorder
        n_rows, n_columns = self.observations_.shape
        draws, spectra = recorder.draws, recorder.spectra
        # A single row or column was given an empty twin, which goes here.
        draws = [Draw(w.left[:n_rows], w.right[:n_columns], w.noise_variance) for w in draws]
        noise = float(np.mean([draw.noise_variance for draw in draws]))
        self.posterior_ = Posterior(draws, units)
        self.rank_probabilities_ = rank_probabilities(
            spectra, (n_rows, n_columns), len(self.observations_), noise
        )
        self.rank_ = most_probable(self.rank_probabilities_)
        self.singular_values_ = units.scale * spectra.mean(axis=(0, 1))
        self.noise_variance_ = noise * units.scale**2
        self.n_sweeps_ = outcome.n_sweeps
        self.stop_reason_ = outcome.stop_reason
        self.interrupted_ = outcome.interrupted
        self.history_ = {
            name: trace * units.scale ** _UNIT_POWERS.get(name, 0)
            for name, trace in recorder.history().items()
        }
        self._recorder = recorder

    def _warn(self, outcome: Outcome) -> None:
        """Say so if the run cannot be trusted."""
        kept = len(outcome.recorder.draws)
        if message := why_not_to_trust(outcome, self._judged):
            if self.n_chains == 1 and not outcome.interrupted:
                message += " With n_chains=2, diagnostics() judges by the agreement of chains."
        elif self._judged and kept < SMALLEST_ESS:
            message = (
                f"Only {kept} draws of a table of this size are kept in memory: intervals will be "
                "too narrow. Lower max_rank, or fit a part of the rows."
            )
        else:
            return
        warn_user(message, ConvergenceWarning)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of identified quantities, with a verdict."""
        check_is_fitted(self)
        return diagnose_run(self._recorder, self.rank_)
