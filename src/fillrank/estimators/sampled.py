"""What the estimators with a sampler share: chains, the run, stored draws, warnings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.completions.convergence import few_draws
from fillrank.errors import InputError, NotSupportedError, Setting, Text
from fillrank.estimators.base import Estimator
from fillrank.estimators.checks import (
    check_likelihood,
    check_value_range,
    seed_from,
    warn_of_few_entries,
)
from fillrank.estimators.convergence import warn_unconverged
from fillrank.estimators.noise_trial import decide_row_noise
from fillrank.estimators.run_result import reason_to_continue, run_result, within_table
from fillrank.estimators.table_model import (
    LIKELIHOODS,
    NOISES,
    THRESHOLDS,
    UNITS,
    Choices,
    Likelihood,
    TableModel,
    is_plain,
    law_of,
    ratings_model,
    remote_table_model,
    table_model,
)
from fillrank.features.given import NOT_GIVEN, GivenFeatures, given_features
from fillrank.features.new_rows import Axis
from fillrank.features.pattern import mask_of, pattern_blocks
from fillrank.kernels.gaussian_rows import gaussian_rows
from fillrank.noise.law import Law
from fillrank.noise.laws import GAUSSIAN, LAWS
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.posterior.loo import Loo
from fillrank.run.chains import Chain, ObservedData, Sampler
from fillrank.run.checkpoint import Checkpoint
from fillrank.run.loop import (
    Outcome,
    Plan,
    Run,
    SaveRun,
    auto_burn_in,
    auto_most_sweeps,
    execute,
    start_run,
)
from fillrank.runtime.kernel_cache import must_compile
from fillrank.runtime.progress import report_once, report_progress
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.runtime.warnings import warn_user
from fillrank.samplers.model import CompleteData, Data, Draw, RemoteData, detect_complete
from fillrank.table.latent import latent_data
from fillrank.table.observations import Observations, fingerprint
from fillrank.table.units import Units, pad_to_two_rows, standardise
from fillrank.table.weights import refuse_weights_of_levels
from fillrank.validation import check_choice, check_integer

if TYPE_CHECKING:
    from fillrank.cluster.distribute import RemoteTable

# Settings that may change when a run continues, in this process or from a checkpoint.
_MAY_DIFFER = {
    "add_indicator", "checkpoint", "missing_values", "n_sweeps", "n_threads", "progress",
}  # fmt: skip
# The number of factors by which memory on a cluster is estimated, if the table decides it.
_EXPECTED_RANK = 30


class RunState(NamedTuple):
    """A run that can continue, with its plan, and the units and the noise of its table."""

    run: Run
    plan: Plan
    model: TableModel


class RunSetup(NamedTuple):
    """The plan of a run, its seed, and its checkpoint, if any."""

    plan: Plan
    seed: int
    checkpoint: Checkpoint | None


class SamplerEstimator(Estimator):
    """A method that samples a posterior in standard units.

    Subclasses check their own settings in `_check`, and have `_sampler` and `_first_chain`.
    """

    # With fewer entries, intervals are not calibrated.
    _fewest_entries: ClassVar[int]
    max_rank: int | Literal["auto"]
    n_sweeps: int | Literal["auto"]
    burn_in: int | Literal["auto"]
    n_chains: int
    units: Literal["auto", "table", "columns"]
    noise: Literal["auto", "one", "rows", "columns", "both"]
    robust: bool
    missingness: bool
    keep_empty_features: bool
    kinds: Any
    likelihood: Likelihood
    thresholds: Literal["auto", "table", "rows"]
    bounds: Any
    round: bool
    dtype: Literal["float32", "float64"]
    value_range: Any
    random_state: Any
    checkpoint: str | os.PathLike[str] | None

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        weights: Any = None,
        row_features: Any = None,
        column_features: Any = None,
        client: Any = None,
    ) -> Self:
        """Fit the model to the observed entries.

        Parameters
        ----------
        X : Observations, data frame, array, masked array or sparse matrix
            In an array NaN is missing; in a sparse matrix what is not stored is missing. A data
            frame is wide, unless its columns are named like those of a long table. With a client also
            a Dask data frame in long form, or the path or glob of Parquet files with such tables,
            which workers read.
        y : None
            Not used; present for scikit-learn.
        weights : array, sparse matrix or data frame of the shape of X, optional
            How precise each entry is, relative to the others: the variance of its noise is that of the
            model divided by its weight. Weights are above 0, and 1 for a typical entry; where X is
            missing, they are ignored. A data frame has the labels of X. `Observations` have weights of
            their own, and those of a long table are in a column: see `Observations.from_table`.
        row_features, column_features : data frame, array or sparse matrix, optional
            What is known about the rows, or columns, beside their values: a line for each. A data frame
            is matched by labels, which are in its index or in a column; an array or sparse matrix by
            position. Numbers are standardised, categories are coded, and values may be missing. Also
            with a client they are in the memory of this machine.
        client : dask.distributed.Client, optional
            A cluster whose workers hold the entries and draw the factors. The values are numbers of one
            unit, or with ``likelihood="ordered"`` levels of one scale. The same seed gives the same
            numbers as on one machine, except for a complete table of numbers, which one machine handles
            differently. If workers have read the table, the model has its labels only.

        Returns
        -------
        self
        """
        if client is None:
            observations = self._observations(X, reset=True, weights=weights)
            self._check_weights(observations)
            self._complete(observations, self._given(observations, row_features, column_features))
        elif weights is not None:
            raise _no_weights_on_cluster()
        else:
            self._fit_on_cluster(X, client, row_features, column_features)
        return self

    def fit_transform(
        self,
        X: Any,
        y: None = None,
        *,
        weights: Any = None,
        row_features: Any = None,
        column_features: Any = None,
    ) -> Any:
        """Fit, and fill in the missing cells of the same table.

        Parameters
        ----------
        X : table
            As in `fit`.
        y : None
            Not used; present for scikit-learn.
        weights : array, sparse matrix or data frame of the shape of X, optional
            As in `fit`.
        row_features, column_features : data frame, array or sparse matrix, optional
            As in `fit`.

        Returns
        -------
        table
            Of the same type.
        """
        observations = self._observations(X, reset=True, weights=weights)
        self._check_weights(observations)
        given = self._given(observations, row_features, column_features)
        return self._fit_and_fill(observations, partial(self._complete, given=given))

    def _given(
        self, observations: Observations, row_features: Any, column_features: Any
    ) -> GivenFeatures:
        """The features of rows and columns that users have given, and those of dates."""
        is_given = row_features is not None or column_features is not None
        if is_given and not self._takes_features:
            raise NotSupportedError("the published sampler takes no features.")
        if not self._takes_features:
            return NOT_GIVEN
        return given_features(observations, row_features, column_features)

    @property
    def _takes_features(self) -> bool:
        """Whether the sampler takes features."""
        return True

    def _check_weights(self, observations: Observations) -> None:
        """Samplers use the weights of entries, unless values are levels with noise of a given scale."""
        if self._law.of_levels:
            refuse_weights_of_levels(observations, self.likelihood)

    @property
    def _law(self) -> Law:
        """The distribution of the noise of an entry."""
        return LAWS[law_of(self.likelihood)]

    def _check(self) -> None:
        """Check the settings that only the subclass has."""
        raise NotImplementedError

    def _check_for_cluster(self) -> None:
        """Reject settings that work on one machine only; subclasses reject their own."""
        if self.thresholds == "rows":
            raise NotSupportedError(
                "on a cluster all rows have the same thresholds between levels",
                advice=("Leave out ", Setting("thresholds"), "."),
            )
        has_kinds = not isinstance(self.kinds, str)
        if has_kinds or (self.bounds and self.likelihood != "ordered"):
            raise NotSupportedError(
                "on a cluster all values are numbers of one unit, or levels of one scale; kinds and "
                "bounds of single columns are for one machine",
                advice=("Leave out ", Setting("kinds") if has_kinds else Setting("bounds"), "."),
            )

    @property
    def _centred(self) -> bool:
        """Whether the overall mean is subtracted first."""
        return True

    @property
    def _judged(self) -> bool:
        """Whether to warn if a run has not converged."""
        return True

    def _choices(self, value_range: tuple[float, float] | None) -> Choices:
        """What the units and the noise of a table depend on."""
        return Choices(
            self.units,
            self.noise,
            self.robust,
            self._centred,
            self.keep_empty_features,
            value_range,
            self.kinds,
            self.likelihood,
            self.bounds,
            self.thresholds,
        )

    def _sampler(self, model: TableModel) -> Sampler:
        raise NotImplementedError

    def _first_chain(
        self, data: Data, model: TableModel, plan: Plan, workers: Workers, seed: list[int]
    ) -> Chain:
        """A chain at its start; ``seed`` is [the seed of the fit, the number of the chain]."""
        raise NotImplementedError

    def _checked_plan(self, n_entries: int) -> Plan:
        """The plan, after all settings have been checked."""
        plan = self._plan(n_entries)
        self._check_common()
        self._check()
        return plan

    # On one machine

    def _complete(self, observations: Observations, given: GivenFeatures = NOT_GIVEN) -> None:
        known_by = partial(fingerprint, observations)
        with self._setup(known_by, len(observations), given) as setup:
            warn_of_few_entries(len(observations), self._fewest_entries)
            model = self._table_model(observations)
            data = self._standard(observations, model)
            report_progress(
                "compiling, at first use only; some seconds.",
                self.progress and must_compile(gaussian_rows),
            )
            with one_blas_thread(), self._workers() as workers:
                model = self._decide_noise(data, model, setup, workers)
                # After the trial: features must not know which entries it holds out.
                model = self._with_features(
                    _cells_of(observations, data, model), model, given, workers
                )
                for note in model.notes:
                    report_once(note, self.progress)
                chains = self._first_chains(data, model, setup, workers)
                swept = self._swept(data, model)
                del data
                state = RunState(self._start(chains, swept, model, setup), setup.plan, model)
                self._continue(state, swept, observations, setup.checkpoint)

    def _table_model(self, observations: Observations) -> TableModel:
        value_range = check_value_range(self.value_range, observations)
        model = table_model(observations, self._choices(value_range))
        return model._replace(notes=(*observations.notes, *model.notes))

    def _decide_noise(
        self, data: Data, model: TableModel, setup: RunSetup, workers: Workers
    ) -> TableModel:
        """The model; where it is in doubt, with the noise that held-out entries prefer."""
        if not model.in_doubt:
            return model

        def start(train: Data, trial: TableModel, seed: list[int]) -> tuple[Chain, Sampler]:
            chain = self._first_chain(train, trial, setup.plan, workers, seed)
            return chain, self._sampler(trial)

        return decide_row_noise(model, data, setup.seed, start)

    def _with_features(
        self, data: Data | RemoteData, model: TableModel, given: GivenFeatures, workers: Workers
    ) -> TableModel:
        """The model with the features that were given, and those of the missing values."""
        blocks = given.blocks
        if self.missingness and data.n_entries < math.prod(data.shape):
            blocks = blocks.joined(pattern_blocks(mask_of(data, workers)))
        notes = (*model.notes, *given.notes)
        return model._replace(notes=notes).with_blocks(blocks, np.dtype(self.dtype))

    def _first_chains(
        self, data: Any, model: TableModel, setup: RunSetup, workers: Workers
    ) -> list[Chain]:
        return [
            self._first_chain(data, model, setup.plan, workers, [setup.seed, c])
            for c in range(self.n_chains)
        ]

    def _start(
        self, chains: list[Chain], data: ObservedData, model: TableModel, setup: RunSetup
    ) -> Run:
        rng = np.random.default_rng(setup.seed)
        return start_run(chains, data, self._sampler(model), setup.plan, rng)

    def _standard(self, observations: Observations, model: TableModel) -> Data:
        if model.coding is not None:
            return Data(*latent_data(model.coding, observations, np.dtype(self.dtype)))
        return Data(*standardise(observations, model.units, np.dtype(self.dtype)))

    def _swept(self, data: Data, model: TableModel) -> Data | CompleteData:
        """The data in the form that the sweeps take."""
        # Products of complete tables take no weights of entries.
        is_weighted = model.noise.draws_by_entry or data.rows.weights.size > 0
        if is_weighted or data.rows.cells.size or not self._sampler(model).uses_complete_tables:
            return data
        return detect_complete(data)

    # On a cluster: the entries are with its workers, the chains are here

    def _fit_on_cluster(
        self, X: Any, client: Any, row_features: Any = None, column_features: Any = None
    ) -> None:
        self._checked_plan(n_entries=0)
        self._check_for_cluster()
        if self._law is not GAUSSIAN:
            raise NotSupportedError(
                f'on a cluster the noise is Gaussian or robust; got likelihood="{self.likelihood}"',
                advice="Fit the table on one machine.",
            )
        from fillrank.cluster.monitor import allow_large_arguments, check_client

        check_client(client)
        with allow_large_arguments():
            table = self._distribute(X, client)
            # If workers have read the table, its labels are here, and features need no more.
            given = self._given(table.observations, row_features, column_features)
            self._complete_on_cluster(table, given)

    def _complete_on_cluster(self, table: RemoteTable, given: GivenFeatures) -> None:
        observations, data = table.observations, table.data
        choices = self._choices(self._range_of(table))._replace(thresholds="table")
        if table.coding is not None:
            model = ratings_model(table.coding, choices)
        else:
            n_columns, value_range = observations.shape[1], choices.value_range
            units = Units.equal(table.location, table.scale, n_columns, value_range)
            model = remote_table_model(units, choices)
        # If the entries are also here, the same checkpoint can be used on one machine and on a cluster.
        known_by = partial(fingerprint, observations) if len(observations) else table.fingerprint
        with (
            self._setup(known_by, data.n_entries, given) as setup,
            one_blas_thread(),
            self._workers() as workers,
        ):
            model = self._with_features(data, model, given, workers)
            for note in model.notes:
                report_once(note, self.progress)
            chains = self._first_chains(data, model, setup, workers)
            self.n_features_in_ = observations.shape[1]
            state = RunState(self._start(chains, data, model, setup), setup.plan, model)
            self._continue(state, data, observations, setup.checkpoint)

    def _distribute(self, X: Any, client: Any) -> RemoteTable:
        from fillrank.cluster.distribute import distribute_table
        from fillrank.cluster.long_tables import is_partitioned
        from fillrank.cluster.value_codes import DataFormat

        rank = _EXPECTED_RANK if self.max_rank == "auto" else self.max_rank
        data_format = DataFormat(
            self._centred,
            np.dtype(self.dtype),
            rank + 2,
            ordered=self.likelihood == "ordered",
            n_chains=self.n_chains,
        )
        if is_partitioned(X):
            return distribute_table(X, client, data_format)
        observations = self._observations(X, reset=True)
        if observations.weights is not None:
            raise _no_weights_on_cluster()
        if not is_plain(observations):
            raise NotSupportedError(
                "a cluster takes numbers; this table has categories, yes/no values or limits",
                advice="Fit it on one machine, without a client.",
            )
        return distribute_table(observations, client, data_format)

    def _range_of(self, table: RemoteTable) -> tuple[float, float] | None:
        if isinstance(self.value_range, str):
            return table.value_range
        return check_value_range(self.value_range, table.observations)

    # The run

    def _continue(
        self,
        state: RunState,
        data: ObservedData,
        observations: Observations,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Run to the end of the plan, and store the result."""
        run, plan, model = state
        sampler = self._sampler(model)
        keep: SaveRun | None = None
        if checkpoint is not None:
            run = checkpoint.restore(run, sampler)
            keep = checkpoint.save
        shape = model.latent_shape(observations.shape)
        judge = partial(reason_to_continue, shape=shape, law=model.noise.law)
        outcome = execute(run, data, sampler, plan, self.progress, keep, judge)
        self._store(observations, *run_result(outcome, model, shape))
        unused = outcome.run._replace(chains=_with_workers(outcome.run.chains, None))
        self._run_state = RunState(unused, plan, model)
        self._fitted_with = self._settings()
        self._warn(outcome)

    @contextmanager
    def _setup(
        self,
        fingerprint_of_entries: Callable[[], str],
        n_entries: int,
        given: GivenFeatures = NOT_GIVEN,
    ) -> Iterator[RunSetup]:
        """The setup of the run: that of the run in the checkpoint's folder, if there is one."""
        plan = self._checked_plan(n_entries)
        self._checkpoint_sweeps: int | None = None
        if self.checkpoint is None:
            yield RunSetup(plan, seed_from(self.random_state), None)
            return
        with Checkpoint(self.checkpoint) as checkpoint:
            plan = self._resumed_plan(plan, checkpoint)
            found = checkpoint.found
            is_given = isinstance(self.random_state, Integral)
            seed = seed_from(self.random_state) if is_given or not found else found.seed
            identity = self._identity(fingerprint_of_entries(), plan) | given.identity()
            checkpoint.identify(identity, seed)
            try:
                yield RunSetup(plan, seed, checkpoint)
            finally:
                self._checkpoint_sweeps = checkpoint.n_saved

    def _resumed_plan(self, plan: Plan, checkpoint: Checkpoint) -> Plan:
        """The plan with the burn-in of the run in the folder, unless one was set."""
        burn_in = checkpoint.found.identity.get("burn_in") if checkpoint.found else None
        if self.burn_in != "auto" or not isinstance(burn_in, int) or burn_in < 0:
            return plan
        if burn_in >= plan.n_sweeps:
            raise InputError(
                place=Setting("n_sweeps"),
                allowed=f"above {burn_in}, the burn-in of the run in {checkpoint}, to resume it",
                value=plan.n_sweeps,
            )
        # As published, hyperparameters are estimated during the complete run.
        n_adapt = burn_in if plan.n_adapt == plan.burn_in else plan.n_adapt
        return plan._replace(burn_in=burn_in, n_adapt=n_adapt)

    def _identity(self, entries: str, plan: Plan) -> dict[str, str | int]:
        """What a run depends on; a run in a checkpoint must have the same."""
        settings = self._settings()
        del settings["value_range"]  # it does not affect the sampler: predictions are clipped to it
        settings["keep_empty"] = settings.pop("keep_empty_features")  # its name in checkpoints
        return settings | {
            "method": type(self).__name__,
            "burn_in": plan.burn_in,
            "entries": entries,
        }

    def _settings(self) -> dict[str, str | int]:
        """The settings that a run depends on, by name."""
        given = self.get_params(deep=False)
        settings: dict[str, str | int] = {
            name: repr(given[name]) for name in sorted(given.keys() - _MAY_DIFFER)
        }
        whole = isinstance(self.random_state, Integral)
        return settings | {"random_state": int(self.random_state) if whole else "any"}

    def _check_common(self) -> None:
        check_choice("dtype", self.dtype, ("float32", "float64"))
        check_choice("units", self.units, UNITS)
        check_choice("noise", self.noise, NOISES)
        check_choice("robust", self.robust, (True, False))
        check_choice("missingness", self.missingness, (True, False))
        check_choice("keep_empty_features", self.keep_empty_features, (True, False))
        check_choice("likelihood", self.likelihood, LIKELIHOODS)
        check_choice("thresholds", self.thresholds, THRESHOLDS)
        check_choice("round", self.round, (True, False))
        check_likelihood(
            self.likelihood, self.robust, self.units, self.noise, self.kinds, self.thresholds
        )
        check_integer("n_chains", self.n_chains, 1)
        if self.max_rank != "auto":
            check_integer("max_rank", self.max_rank, 1)
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1)

    def _plan(self, n_entries: int) -> Plan:
        auto = self.n_sweeps == "auto"
        most = auto_most_sweeps(n_entries) if auto else check_integer("n_sweeps", self.n_sweeps, 1)
        if self.burn_in == "auto":
            burn_in = min(auto_burn_in(n_entries), most // 2)
        else:
            burn_in = check_integer("burn_in", self.burn_in, 0, most - 1)
        return Plan(most, burn_in, n_adapt=burn_in, until_enough=auto)

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
        if not warn_unconverged(self, *further) and (few := few_draws(self)) is not None:
            warn_user(few)

    @property
    def checkpoint_sweeps(self) -> int | None:
        """How many sweeps of the last fit its checkpoint has; None if nothing was saved."""
        return vars(self).get("_checkpoint_sweeps")

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes, and whether they suffice; see `Completion.diagnostics`."""
        return self._completion.diagnostics()

    def predictive_check(
        self, by: Axis = "columns", n_draws: int | None = None, random_state: int = 0
    ) -> Any:
        """Compare observed and replicated data; see `Completion.predictive_check`."""
        return self._completion.predictive_check(by, n_draws, random_state)

    def loo(self, n_entries: int | None = None, random_state: int = 0) -> Loo:
        """Leave-one-out cross-validation of the entries; see `Completion.loo`."""
        return self._completion.loo(n_entries, random_state)

    def prediction_diagnostics(self, rows: Any, columns: Any) -> Any:
        """Monte Carlo errors of predictions; see `Completion.prediction_diagnostics`."""
        return self._completion.prediction_diagnostics(rows, columns)

    def to_arviz(self) -> Any:
        """The run as ArviZ' data structure; see `Completion.to_arviz`."""
        return self._completion.to_arviz()

    def feature_effects(self, side: Axis = "rows", level: float = 0.9) -> Any:
        """What given features change in predictions; see `Completion.feature_effects`."""
        return self._completion.feature_effects(side, level)

    def explained_variance(self, side: Axis = "rows") -> dict[str, float]:
        """The shares of variance that features explain; see `Completion.explained_variance`."""
        return self._completion.explained_variance(side)

    def run_longer(self, n_sweeps: int) -> Self:
        """Run more sweeps. The result is exactly that of one longer run with the same burn-in.

        Parameters
        ----------
        n_sweeps : int
            The number of additional sweeps.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        observations = self.observations_
        if len(observations) == 0:
            raise NotSupportedError(
                "only the workers of a cluster have the entries that this model was fitted on",
                advice=[
                    ("Fit again with a larger ", Setting("n_sweeps"), "."),
                    ("With ", Setting("checkpoint", ...), " the run resumes."),
                ],
            )
        more = check_integer("n_sweeps", n_sweeps, 1)
        self._check_settings_of_fit()
        run, plan, model = self._run_state
        plan = plan._replace(n_sweeps=run.n_sweeps + more, until_enough=False)
        with one_blas_thread(), self._workers() as workers:
            run = run._replace(chains=_with_workers(run.chains, workers))
            data = self._swept(self._standard(observations, model), model)
            self._continue(RunState(run, plan, model), data, observations)
        return self

    def _check_settings_of_fit(self) -> None:
        now = self._settings()
        changed = sorted(name for name in now if now[name] != self._fitted_with.get(name))
        if changed:
            raise InputError(
                f"{', '.join(changed)} has changed since the fit, so the run cannot continue. "
                "Restore it, or fit again."
            )

    def recorded_draws(self) -> list[Draw]:
        """All draws that the run has stored, in standard units; ``posterior_`` has some of them."""
        check_is_fitted(self)
        shape = self._run_state.model.latent_shape(self.observations_.shape)
        return within_table(self._run_state.run.recorder.draws, shape)


def _cells_of(observations: Observations, data: Data, model: TableModel) -> Data:
    """The observed cells of a table: those of the data, unless it has latent columns."""
    if model.coding is None:
        return data
    return Data(pad_to_two_rows(observations.by_row()), pad_to_two_rows(observations.by_column()))


def _no_weights_on_cluster() -> NotSupportedError:
    return NotSupportedError(
        "a cluster cannot use the weights of entries",
        advice="Fit the table on one machine, or leave the weights out.",
    )


def _with_workers(chains: tuple[Chain, ...], workers: Workers | None) -> tuple[Chain, ...]:
    """The chains with other threads; chains without threads can be pickled."""
    return tuple(
        chain._replace(context=chain.context._replace(workers=workers)) for chain in chains
    )
