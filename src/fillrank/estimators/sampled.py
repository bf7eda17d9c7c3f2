"""What the estimators with a sampler share: chains, the run, kept draws, warnings, diagnostics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.errors import (
    ConvergenceWarning,
    InputError,
    NotSupportedError,
    ReadError,
    Setting,
    Text,
)
from fillrank.estimators.base import MatrixCompleter
from fillrank.estimators.checks import (
    check_choice,
    check_value_range,
    seed_from,
    warn_of_few_entries,
)
from fillrank.estimators.convergence import warn_unconverged
from fillrank.kernels.gaussian_rows import gaussian_rows
from fillrank.posterior.diagnostics import SMALLEST_ESS, Diagnostics, diagnose_run
from fillrank.posterior.halves import halved
from fillrank.posterior.mean import mean_draw
from fillrank.posterior.posterior import MOST_DRAWS, Posterior, Units
from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.posterior.to_arviz import to_arviz
from fillrank.posterior.validation import check_history, check_posterior, check_traces
from fillrank.run.chains import Chain, ObservedData, Sampler
from fillrank.run.checkpoint import Checkpoint
from fillrank.run.loop import (
    AUTO_BURN_IN,
    AUTO_MOST_SWEEPS,
    Outcome,
    Plan,
    Run,
    SaveRun,
    execute,
    start_run,
)
from fillrank.run.recorder import Recorder, Traces
from fillrank.runtime.kernel_cache import must_compile
from fillrank.runtime.progress import report_progress
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.runtime.warnings import warn_user
from fillrank.samplers.model import CompleteData, Data, Draw, detect_complete
from fillrank.table.observations import Observations, fingerprint
from fillrank.table.units import Standard, standardise
from fillrank.validation import check_integer

# The power of the data's unit that a traced quantity carries.
_UNIT_POWERS = {"residual_variance": 2, "noise_variance": 2, "b": 1}


# Settings that do not matter to a run that goes on, in this process or from a checkpoint.
_MAY_DIFFER = {"checkpoint", "n_sweeps", "n_threads", "progress"}


class Going(NamedTuple):
    """A run that can go on, with its plan; and the units of its data."""

    run: Run
    plan: Plan
    units: Units


class Begun(NamedTuple):
    """How a run is to go: its plan, its seed, and its checkpoint, if any."""

    plan: Plan
    seed: int
    checkpoint: Checkpoint | None


class SampledCompleter(MatrixCompleter):
    """A method that samples a posterior in standard units.

    Subclasses check their own settings in `_check`, and give `_sampler` and `_first_chain`.
    """

    _kept: ClassVar[dict[str, Any]] = MatrixCompleter._kept | {
        "posterior_": Posterior,
        "rank_": int,
        "rank_probabilities_": dict[int, float],
        "noise_variance_": float,
        "singular_values_": np.ndarray,
        "history_": dict[str, np.ndarray],
        "n_sweeps_": int,
        "stop_reason_": str,
        "interrupted_": bool,
        "reached_limit_": bool,
        "traces_": Traces,
    }
    # A model of new rows has no run of its own, and older files do not store reached_limit_.
    _needed: ClassVar[set[str]] = MatrixCompleter._needed | (
        _kept.keys() - MatrixCompleter._kept.keys() - {"traces_", "reached_limit_"}
    )
    # With fewer entries, intervals are not to be relied on.
    _fewest_entries: ClassVar[int]
    max_rank: int | Literal["auto"]
    n_sweeps: int | Literal["auto"]
    burn_in: int | Literal["auto"]
    n_chains: int
    dtype: Literal["float32", "float64"]
    value_range: Any
    random_state: Any
    progress: bool
    checkpoint: str | os.PathLike[str] | None

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

    @property
    def _not_drawn(self) -> tuple[str, ...]:
        """What `history_` traces although it is estimated or given, and not drawn."""
        raise NotImplementedError

    def _sampler(self) -> Sampler:
        raise NotImplementedError

    def _first_chain(self, data: Data, scale: float, workers: Workers, seed: list[int]) -> Chain:
        """A chain at its start; ``seed`` is [the fit's seed, the chain's number]."""
        raise NotImplementedError

    def _checked_plan(self) -> Plan:
        """The plan, once all settings have been looked at."""
        plan = self._plan()
        self._check_common()
        self._check()
        return plan

    def _fit(self, observations: Observations) -> None:
        with self._begun(partial(fingerprint, observations)) as begun:
            self._fit_begun(observations, begun)

    def _fit_begun(self, observations: Observations, begun: Begun) -> None:
        warn_of_few_entries(len(observations), self._fewest_entries)
        value_range = check_value_range(self.value_range, observations)
        standard = self._standard(observations)
        data = Data(standard.rows, standard.columns)
        units = Units(standard.location, standard.scale, value_range)
        del standard  # so that entries that only the start needs can go
        report_progress(
            "compiling, at first use only; some seconds.",
            self.progress and must_compile(gaussian_rows),
        )
        with one_blas_thread(), self._workers() as workers:
            chains = self._first_chains(data, units.scale, workers, begun.seed)
            swept = self._swept(data)
            del data
            run = self._begin(chains, swept, begun)
            self.observations_ = observations
            self._go_on(Going(run, begun.plan, units), swept, begun.checkpoint)

    def _first_chains(self, data: Any, scale: float, workers: Workers, seed: int) -> list[Chain]:
        return [self._first_chain(data, scale, workers, [seed, c]) for c in range(self.n_chains)]

    def _begin(self, chains: list[Chain], data: ObservedData, begun: Begun) -> Run:
        rng = np.random.default_rng(begun.seed)
        return start_run(chains, data, self._sampler(), begun.plan, rng)

    def _standard(self, observations: Observations) -> Standard:
        return standardise(observations, self._centred, np.dtype(self.dtype))

    def _swept(self, data: Data) -> Data | CompleteData:
        """The data in the form in which the sweeps take them."""
        return detect_complete(data) if self._sampler().uses_complete_tables else data

    def _go_on(
        self, going: Going, data: ObservedData, checkpoint: Checkpoint | None = None
    ) -> None:
        """Run to the end of the plan, and take what came of it as the fitted model."""
        run, plan, units = going
        sampler = self._sampler()
        keep: SaveRun | None = None
        if checkpoint is not None:
            run = checkpoint.restore(run, sampler)
            keep = checkpoint.save
        outcome = execute(run, data, sampler, plan, self.progress, keep, self._reason_to_go_on)
        self._keep(outcome, units)
        unused = outcome.run._replace(chains=_with_workers(outcome.run.chains, None))
        self._going: Going | None = Going(unused, plan, units)
        self._fitted_with = self._settings()
        self._warn(outcome)

    @contextmanager
    def _begun(self, fingerprint_of_entries: Callable[[], str]) -> Iterator[Begun]:
        """How the run is to go: as the one in the checkpoint's folder did, if there is one."""
        plan = self._checked_plan()
        self._checkpoint_sweeps: int | None = None
        if self.checkpoint is None:
            yield Begun(plan, seed_from(self.random_state), None)
            return
        with Checkpoint(self.checkpoint) as checkpoint:
            plan = self._resumed_plan(plan, checkpoint)
            found = checkpoint.found
            is_given = isinstance(self.random_state, Integral)
            seed = seed_from(self.random_state) if is_given or not found else found.seed
            checkpoint.identify(self._identity(fingerprint_of_entries(), plan), seed)
            try:
                yield Begun(plan, seed, checkpoint)
            finally:
                self._checkpoint_sweeps = checkpoint.n_saved

    def _resumed_plan(self, plan: Plan, checkpoint: Checkpoint) -> Plan:
        """The plan with the burn-in of the run that is in the folder, unless one was asked for."""
        burn_in = checkpoint.found.identity.get("burn_in") if checkpoint.found else None
        if self.burn_in != "auto" or not isinstance(burn_in, int) or burn_in < 0:
            return plan
        if burn_in >= plan.n_sweeps:
            raise InputError(
                place=Setting("n_sweeps"),
                allowed=f"above {burn_in}, the burn-in of the run in {checkpoint}, to resume it",
                value=plan.n_sweeps,
            )
        # As published, hyperparameters are estimated all the time.
        n_adapt = burn_in if plan.n_adapt == plan.burn_in else plan.n_adapt
        return plan._replace(burn_in=burn_in, n_adapt=n_adapt)

    def _identity(self, entries: str, plan: Plan) -> dict[str, str | int]:
        """What a run depends on: one in a checkpoint must have had the same."""
        settings = self._settings()
        del settings["value_range"]  # it is not the sampler's: predictions are kept within it
        return settings | {
            "method": type(self).__name__,
            "burn_in": plan.burn_in,
            "entries": entries,
        }

    def _settings(self) -> dict[str, str | int]:
        """The settings that a run depends on, by name."""
        given = self.get_params(deep=False)
        settings: dict[str, str | int] = {
            name: repr(given[name]) for name in given.keys() - _MAY_DIFFER
        }
        whole = isinstance(self.random_state, Integral)
        return settings | {"random_state": int(self.random_state) if whole else "any"}

    def _check_common(self) -> None:
        check_choice("dtype", self.dtype, ("float32", "float64"))
        check_integer("n_chains", self.n_chains, 1)
        if self.max_rank != "auto":
            check_integer("max_rank", self.max_rank, 1)
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1)

    def _plan(self) -> Plan:
        auto = self.n_sweeps == "auto"
        most = AUTO_MOST_SWEEPS if auto else check_integer("n_sweeps", self.n_sweeps, 1)
        if self.burn_in == "auto":
            burn_in = min(AUTO_BURN_IN, most // 2)
        else:
            burn_in = check_integer("burn_in", self.burn_in, 0, most - 1)
        return Plan(most, burn_in, n_adapt=burn_in, until_enough=auto)

    def _keep(self, outcome: Outcome, units: Units) -> None:
        """Turn the record of a run into fitted attributes, in the data's units."""
        recorder = outcome.run.recorder
        n_rows, n_columns = shape = self.observations_.shape
        mean = mean_draw(_within(recorder.draws, shape))
        draws = _within(recorder.spread_draws(MOST_DRAWS), shape)
        traces = recorder.traces()
        draws = halved(draws, traces.probe_rows % n_rows, traces.probe_columns % n_columns)
        self.posterior_ = Posterior(draws, units, mean)
        self.rank_probabilities_ = self._rank_probabilities(recorder, traces)
        self.rank_ = most_probable(self.rank_probabilities_)
        self.singular_values_ = units.scale * traces.spectra.mean(axis=(0, 1))
        self.noise_variance_ = mean.noise_variance * units.scale**2
        self.n_sweeps_ = outcome.run.n_sweeps
        self.stop_reason_ = outcome.stop_reason
        self.interrupted_ = outcome.interrupted
        self.reached_limit_ = outcome.reached_limit
        self.history_ = {
            name: trace * units.scale ** _UNIT_POWERS.get(name, 0)
            for name, trace in traces.history.items()
        }
        self.traces_ = traces

    def _rank_probabilities(self, recorder: Recorder, traces: Traces) -> dict[int, float]:
        noise = float(np.mean([draw.noise_variance for draw in recorder.draws]))
        shape = self.observations_.shape
        return rank_probabilities(traces.spectra, shape, traces.n_entries, noise)

    def _reason_to_go_on(self, recorder: Recorder) -> str:
        """Why a run, as far as it has come, has not converged; empty if it has."""
        traces = recorder.traces()
        rank = most_probable(self._rank_probabilities(recorder, traces))
        return diagnose_run(traces, rank).reason

    def _warn(self, outcome: Outcome) -> None:
        """Warn if the run has not converged, or has too few draws for its intervals."""
        if not (self._judged or outcome.interrupted):
            return
        n_draws = len(outcome.run.recorder.draws)
        further: list[Text] = []
        if outcome.interrupted:
            further = [f"Stored draws: {n_draws}."]
        elif self.n_chains == 1:
            compare = ", diagnostics() also compares the chains."
            further = [("With ", Setting("n_chains", 2), compare)]
        if not warn_unconverged(self, *further) and n_draws < SMALLEST_ESS:
            warn_user(
                ConvergenceWarning(
                    f"Only {n_draws} draws of a table of this size fit in memory: intervals will be "
                    "too narrow",
                    advice=("Lower ", Setting("max_rank"), ", or fit a subset of the rows."),
                )
            )

    @property
    def checkpoint_sweeps(self) -> int | None:
        """How many sweeps of the last fit its checkpoint has; None if nothing was saved."""
        return getattr(self, "_checkpoint_sweeps", None)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of identified quantities, with a verdict."""
        self._check_run("diagnostics")
        ended = self.stop_reason_ if self.interrupted_ or self.reached_limit_ else ""
        return diagnose_run(self.traces_, self.rank_, ended)

    def to_arviz(self) -> Any:
        """The run as ArviZ' data structure, an xarray DataTree; needs ``pip install "fillrank[arviz]"``.

        Returns
        -------
        DataTree
            Group ``posterior`` has what `history_` traces of the draws, after the burn-in, and
            ``prediction``: the signal in 200 cells chosen at random; group ``spectrum`` has the
            singular values of the kept draws. Hyperparameters that are estimated or given, not
            drawn, are in group ``constant_data``, or in ``sample_stats`` if they were estimated anew
            while draws were kept. All in the data's units.
        """
        self._check_run("draws of its own")
        return to_arviz(
            self.traces_,
            self.history_,
            self._not_drawn,
            self.observations_,
            self.posterior_.units,
            type(self).__name__,
        )

    def run_longer(self, n_sweeps: int) -> Self:
        """Take more sweeps, as if the fit had been asked for so many from the beginning.

        The result has the same bits as that of one longer run with the same burn-in.

        Parameters
        ----------
        n_sweeps : int
            How many more.
        """
        self._check_run("chains to go on with")
        if self._going is None:
            raise NotSupportedError(
                "this model was loaded from a file, which has no chains to continue",
                advice=(
                    "Fit with ",
                    Setting("checkpoint", ...),
                    " to be able to continue in another process.",
                ),
            )
        if len(self.observations_) == 0:
            raise NotSupportedError(
                "only the workers of a cluster have the entries that this model was fitted on",
                advice=[
                    ("Fit again with a larger ", Setting("n_sweeps"), "."),
                    ("With ", Setting("checkpoint", ...), " the run resumes."),
                ],
            )
        more = check_integer("n_sweeps", n_sweeps, 1)
        self._check_settings_of_fit()
        run, plan, units = self._going
        plan = plan._replace(n_sweeps=run.n_sweeps + more, until_enough=False)
        standard = self._standard(self.observations_)
        with one_blas_thread(), self._workers() as workers:
            run = run._replace(chains=_with_workers(run.chains, workers))
            data = self._swept(Data(standard.rows, standard.columns))
            self._go_on(Going(run, plan, units), data)
        return self

    def _check_settings_of_fit(self) -> None:
        now = self._settings()
        changed = sorted(name for name in now if now[name] != self._fitted_with.get(name))
        if changed:
            raise InputError(
                f"{', '.join(changed)} has changed since the fit, whose run would go on. "
                "Set it as it was, or fit again."
            )

    def recorded_draws(self) -> list[Draw]:
        """All draws that the run has kept, in standard units; ``posterior_`` has some of them."""
        self._check_run("draws of its own")
        if self._going is None:
            raise NotSupportedError("a model from a file has the draws of its posterior_ alone.")
        return _within(self._going.run.recorder.draws, self.observations_.shape)

    def _check_run(self, what: str) -> None:
        check_is_fitted(self)
        if not hasattr(self, "traces_"):
            raise NotSupportedError(
                f"a model of new rows or columns has no {what}; ask the one that it came from."
            )

    def _forget_run(self) -> None:
        self.__dict__.pop("traces_", None)  # a model of new rows or columns has none already
        self._going = None

    def _check_draws(self, what: str) -> None:
        check_is_fitted(self)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        self._going = None
        self.__dict__.setdefault("reached_limit_", False)
        shape = self.observations_.shape
        check_posterior(self.posterior_, shape)
        by_chain = len(check_history(self.history_)) == 2
        if not by_chain or min(trace.min() for trace in self.history_.values()) < 0:
            raise ReadError("its history is not that of a sampler's variances and scales.")
        if min(draw.noise_variance for draw in self.posterior_.draws) <= 0:
            raise ReadError("its noise is none, and no sampler ends there.")
        if hasattr(self, "traces_"):
            check_traces(self.traces_, shape)
            if self.traces_.spectra.shape[2] != self.singular_values_.size:
                raise ReadError("its singular values are not those of its draws.")


def _within(draws: list[Draw], shape: tuple[int, int]) -> list[Draw]:
    """Draws of the table alone: a single row or column was given an empty twin, which goes here."""
    m, n = shape
    return [Draw(draw.left[:m], draw.right[:n], draw.noise_variance) for draw in draws]


def _with_workers(chains: tuple[Chain, ...], workers: Workers | None) -> tuple[Chain, ...]:
    """The chains with other threads in their frames; without any they can be pickled."""
    return tuple(
        chain._replace(context=chain.context._replace(workers=workers)) for chain in chains
    )
