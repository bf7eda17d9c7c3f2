"""GASR as a scikit-learn estimator: it checks, runs and keeps; the mathematics is in samplers/."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from fillrank.data.checks import check_whole
from fillrank.data.observations import Observations
from fillrank.data.standard import standardise
from fillrank.draws.streams import chain_key
from fillrank.errors import ConvergenceWarning, InputError
from fillrank.estimators.base import MatrixCompleter, one_blas_thread
from fillrank.estimators.checks import EFFECTS, check_choice, check_value_range, seed_from
from fillrank.estimators.warn import warn_user
from fillrank.kernels.compiled import must_compile
from fillrank.kernels.workers import Workers
from fillrank.posterior.diagnostics import SMALLEST_ESS, Diagnostics, complaint, diagnose
from fillrank.posterior.posterior import Posterior, Units
from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.run.chains import Chain, Sweep
from fillrank.run.loop import AUTO_BURN_IN, AUTO_MOST_SWEEPS, Outcome, Plan, execute
from fillrank.run.progress import say
from fillrank.run.recorder import Draw
from fillrank.samplers import gasr, gasr_published
from fillrank.samplers.state import Data, Frame, Options, State, init
from fillrank.solvers.solver_starts import hasi_start, soft_impute_start
from fillrank.solvers.spectral_start import random_start, spectral_start

_STARTS = {
    "spectral": spectral_start,
    "random": random_start,
    "soft_impute": soft_impute_start,
    "hasi": hasi_start,
}
_LEADING = 5  # singular values that the diagnostics look at


class GASR(MatrixCompleter):
    """Bayesian matrix completion by adaptive relaxed spectral regularization.

    Fills in the missing entries of a matrix as the sum of a low-rank matrix, row and column effects
    and noise. It finds the rank, the noise level and all other settings by itself, and says how sure
    it is of every entry.

    Parameters
    ----------
    max_rank : int or "auto"
        The most factors there can be; those that the data do not need are shrunk away.
    n_sweeps : int or "auto"
        Sweeps of the sampler. "auto" stops when more of them would not make predictions better.
    burn_in : int or "auto"
        Sweeps at the start that are not kept, and that settle the noise level and the other
        hyperparameters: 50 by default, or half of ``n_sweeps`` if that is less.
    n_chains : int
        Independent chains. With two or more, convergence is judged by their agreement.
    n_threads : int or None
        None uses all processors. The result does not depend on it.
    effects : {"both", "rows", "columns", "mean", None}
        What is modelled beside the factors: an effect for each row, each column, both, only the
        overall mean, or nothing.
    centres : bool
        Whether factors may have means of their own, as they do in ratings.
    start : {"spectral", "soft_impute", "hasi", "random"}
        Where the chains begin: at a quick spectral estimate, at the solution of a solver, or at random.
    dtype : {"float32", "float64"}
    value_range : "auto", (low, high) or None
        Predictions are kept within this range. "auto" finds it if the values are ratings.
    random_state : int, RandomState, Generator or None
        The same seed gives the same numbers, on any number of threads.
    progress : bool
        Show a bar in a terminal, or a line every ten seconds elsewhere.
    sampler : {"mixture", "published"}
        The engine's sampler, or the one of the paper; see `as_published`.

    Attributes
    ----------
    rank_ : int
        The most probable number of factors, beside the effects, that stand above the noise.
    rank_probabilities_ : dict
        The posterior probability of each rank.
    noise_variance_ : float
    singular_values_ : ndarray
        Posterior means of the singular values of the low-rank part, descending. With effects, the
        part is first centred by rows, columns or both: what is constant there may be an effect.
    history_ : dict of ndarray
        Traces (chains, sweeps) of residual variance, noise variance, a and b.
    n_sweeps_ : int
    stop_reason_ : str
        Why the run ended.
    interrupted_ : bool
        Whether it was Ctrl-C.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(observations)
    >>> model.rank_
    2
    >>> low, high = model.predict_interval([0, 1], [5, 5])
    >>> bool(((low < truth[:2, 5]) & (truth[:2, 5] < high)).all())
    True
    """

    def __init__(
        self,
        *,
        max_rank: int | Literal["auto"] = "auto",
        n_sweeps: int | Literal["auto"] = "auto",
        burn_in: int | Literal["auto"] = "auto",
        n_chains: int = 1,
        n_threads: int | None = None,
        effects: Literal["both", "rows", "columns", "mean"] | None = "both",
        centres: bool = True,
        start: Literal["spectral", "soft_impute", "hasi", "random"] = "spectral",
        dtype: Literal["float32", "float64"] = "float32",
        value_range: Any = "auto",
        random_state: Any = None,
        progress: bool = True,
        sampler: Literal["mixture", "published"] = "mixture",
    ):
        self.max_rank = max_rank
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.n_threads = n_threads
        self.effects = effects
        self.centres = centres
        self.start = start
        self.dtype = dtype
        self.value_range = value_range
        self.random_state = random_state
        self.progress = progress
        self.sampler = sampler

    @classmethod
    def as_published(cls, **changes: Any) -> GASR:
        """The method as the paper has it: its conditionals, start, schedule and averaging.

        100 sweeps, all of them averaged, at most 30 factors, the overall mean removed. Settings can
        be changed by name.
        """
        settings: dict[str, Any] = {
            "sampler": "published",
            "max_rank": 30,
            "n_sweeps": 100,
            "burn_in": 0,
            "effects": "mean",
            "centres": False,
            "start": "random",
        }
        return cls(**(settings | changes))

    def _fit(self, observations: Observations) -> None:
        plan = self._plan()
        options = self._options()
        value_range = check_value_range(self.value_range, observations)
        seed = seed_from(self.random_state)
        standard = standardise(observations, self.effects is not None, np.dtype(self.dtype))
        data = Data(standard.rows, standard.columns)
        say("compiling, at first use only; some seconds.", self.progress and must_compile())
        with one_blas_thread(), self._workers() as workers:
            chains = self._first_chains(data, options, workers, seed)
            outcome = execute(
                chains, data, self._sweep(), plan, np.random.default_rng(seed), self.progress
            )
        self.observations_ = observations
        self._keep(outcome, Units(standard.location, standard.scale, value_range))
        self._warn(outcome)

    def _options(self) -> Options:
        check_choice("effects", self.effects, EFFECTS)
        check_choice("dtype", self.dtype, ("float32", "float64"))
        check_choice("start", self.start, tuple(_STARTS))
        check_choice("sampler", self.sampler, ("mixture", "published"))
        published = self.sampler == "published"
        check_choice("centres", self.centres, (True, False))
        plain = not self.centres and self.effects in (None, "mean") and self.start == "random"
        if published and not plain:
            raise InputError(
                "the published sampler has a random start, no centres, and no effects but the mean; got "
                f"start={self.start!r}, centres={self.centres!r}, effects={self.effects!r}. "
                "Use GASR.as_published()."
            )
        if self.n_threads is not None:
            check_whole("n_threads", self.n_threads, 1)
        return Options(
            row_effects=self.effects in ("rows", "both"),
            column_effects=self.effects in ("columns", "both"),
            centres=bool(self.centres),
        )

    def _plan(self) -> Plan:
        auto = self.n_sweeps == "auto"
        most = AUTO_MOST_SWEEPS if auto else check_whole("n_sweeps", self.n_sweeps, 1)
        if self.burn_in == "auto":
            burn_in = min(AUTO_BURN_IN, most // 2)
        else:
            burn_in = check_whole("burn_in", self.burn_in, 0, most - 1)
        n_adapt = most if self.sampler == "published" else burn_in
        return Plan(most, burn_in, n_adapt, until_enough=auto)

    def _first_chains(
        self, data: Data, options: Options, workers: Workers, seed: int
    ) -> list[Chain]:
        n_chains = check_whole("n_chains", self.n_chains, 1)
        max_rank = None if self.max_rank == "auto" else check_whole("max_rank", self.max_rank, 1)
        dtype = np.dtype(self.dtype)

        def first_state(chain: int) -> State:
            rng = np.random.default_rng([seed, chain])
            if self.sampler == "published":
                return gasr_published.published_start(data, max_rank or 30, dtype, rng)
            guess = _STARTS[self.start](data, max_rank, options, workers, rng)
            return init(guess, dtype, rng)

        return [
            Chain(first_state(c), Frame(options, chain_key(seed, c), workers))
            for c in range(n_chains)
        ]

    def _sweep(self) -> Sweep:
        return gasr_published.sweep if self.sampler == "published" else gasr.sweep

    def _keep(self, outcome: Outcome, units: Units) -> None:
        """Turn the record of a run into fitted attributes, in the data's units."""
        recorder = outcome.recorder
        n_rows, n_columns = self.observations_.shape
        draws, spectra = recorder.draws, recorder.spectra
        if recorder.data.shape != (n_rows, n_columns):  # a single row or column has an empty twin
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
        history = recorder.history()
        self.history_ = {
            "residual_variance": history["residual_variance"] * units.scale**2,
            "noise_variance": history["noise_variance"] * units.scale**2,
            "a": history["a"],
            "b": history["b"] * units.scale,
        }
        self._recorder = recorder

    def _warn(self, outcome: Outcome) -> None:
        """Say so if the run cannot be trusted.

        The published schedule averages from the first sweep on, whatever that means for convergence:
        who asks for it is not told off.
        """
        kept = len(outcome.recorder.draws)
        if outcome.interrupted:
            message = f"Fit {outcome.stop_reason}; {kept} draws are kept."
        elif self.sampler == "published":
            return
        elif wrong := complaint(outcome.recorder.probes):
            message = (
                f"The run is too short to be trusted: {wrong}. Set n_sweeps above the "
                f"{outcome.n_sweeps} of this run."
            )
            if self.n_chains == 1:
                message += " With n_chains=2, diagnostics() judges by the agreement of chains."
        elif kept < SMALLEST_ESS:
            message = (
                f"Only {kept} draws of a table of this size are kept in memory: intervals will be "
                "too narrow. Lower max_rank, or fit a part of the rows."
            )
        else:
            return
        warn_user(message, ConvergenceWarning)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of identified quantities, with a verdict."""
        burn_in = self.n_sweeps_ - self._recorder.n_recorded
        return diagnose(
            self._recorder.history()["residual_variance"][:, burn_in:],
            self._recorder.spectra,
            self._recorder.probes,
            n_leading=min(self.rank_, _LEADING),
        )
