"""GASR as a scikit-learn estimator; the mathematics is in samplers/gasr.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.errors import InputError, NotSupportedError
from fillrank.estimators.checks import EFFECTS, FEWEST_ENTRIES
from fillrank.estimators.sampled import SamplerEstimator
from fillrank.estimators.table_model import Likelihood, TableModel
from fillrank.noise.laws import GAUSSIAN
from fillrank.run.chains import Chain, Resumption, Sampler
from fillrank.run.loop import Plan
from fillrank.runtime.threads import Workers
from fillrank.samplers import gasr, gasr_published
from fillrank.samplers.gasr import Context, Info, Options, State, init
from fillrank.samplers.model import Data, Start
from fillrank.samplers.monte_carlo_em import adapt
from fillrank.samplers.valid_states import is_valid_gasr_state
from fillrank.solvers.starts import (
    column_noise_start,
    hasi_start,
    random_start,
    soft_impute_start,
    spectral_start,
)
from fillrank.table.observations import Observations
from fillrank.table.weights import refuse_weights
from fillrank.validation import check_choice

_Start = Callable[[Any, int | None, Options, Workers, np.random.Generator], Start]
_STARTS: dict[str, _Start] = {
    "spectral": spectral_start,
    "random": random_start,
    "soft_impute": soft_impute_start,
    "hasi": hasi_start,
}
# Starts that workers can compute from their own entries.
_STARTS_ON_CLUSTER = ("spectral", "random")
# The noise keeps its first value for so many sweeps, so that it cannot decrease before the factors form.
_NOISE_FROM = 10
_FEWEST_BEFORE_RELAXATION = 50


class GASR(SamplerEstimator):
    """Bayesian matrix completion by adaptive relaxed spectral regularization.

    Fills in the missing values of a matrix as the sum of a low-rank matrix, row and column effects and
    noise. It estimates the rank, the noise level and all other settings, and gives an interval for
    every cell.

    Parameters
    ----------
    max_rank : int or "auto"
        The largest number of factors; those that the data do not need are shrunk to zero.
    n_sweeps : int or "auto"
        Sweeps of the sampler. "auto" stops when more sweeps would not improve predictions, or after
        2,000, and up to 4,000 in small tables.
    burn_in : int or "auto"
        Sweeps at the start that are discarded: 50 to 200 by default, more for small tables, or half of
        ``n_sweeps`` if that is less.
    n_chains : int
        The number of independent chains. Their agreement shows whether the run has converged; for a
        single chain, the agreement of its halves does.
    n_threads : int or None
        None uses all processors. The result does not depend on it.
    units : {"auto", "table", "columns"}
        Whether all values are in one unit, or each column has its own unit, with its own mean and
        standard deviation. "auto" decides by the columns of a wide table; long tables and ratings have
        one unit. All results are in the units of the data.
    noise : {"auto", "one", "rows", "columns", "both"}
        How the noise level differs: not at all, by row, by column, or by both. "auto" takes "columns"
        if columns have their own units, and otherwise "both". For the columns of a wide table in one
        unit it compares "columns" and "both" on held-out entries.
    robust : bool
        Whether the noise has a Student-t distribution, so that single outlying values count less.
    missingness : bool
        Whether the pattern of missing values is used as features of the rows and columns: which cells
        are observed often says something about the values. Where it says nothing, the fit finds that
        out, and predictions hardly change.
    keep_empty_features : bool
        Whether columns without any value are filled, with values around 0, if columns have their own
        units. By default they are left empty, so that the table keeps its columns.
    kinds : "auto" or mapping of column label to kind
        The kind of the values of each column: "number"; "positive", numbers above 0 on the logarithmic
        scale; "ordered", levels whose distances are learned; "yes_no", two values; "count", whole
        numbers from 0; "category", values without an order. With "auto", columns of wide tables are
        chosen by their values and types (``notes_`` says what was chosen), and all values of other
        tables are numbers. A mapping names some columns, and the others are chosen as with "auto".
    likelihood : {"auto", "gaussian", "ordered", "laplace", "logistic", "hinge"}
        "auto": by column, see ``kinds``. "gaussian": all values are numbers. "ordered": all values are
        levels of one scale, such as ratings, with thresholds that are learned. "laplace": all values are
        numbers, with noise of a Laplace distribution, so that outlying values count little. "logistic":
        all values are one of two, with the logistic link. "hinge": the same with the loss of max-margin
        classifiers, which predicts the value; its probabilities are not calibrated.
    thresholds : {"auto", "table", "rows"}
        With ``likelihood="ordered"``, whether the thresholds between levels are the same for all rows
        or differ by row, because people use a scale in different ways. "auto" takes "rows", and on a
        cluster "table".
    bounds : mapping of column label to (low, high), optional
        Predictions and intervals of these columns are clipped to the bounds; None is no bound.
    round : bool
        Whether missing values of columns that have whole numbers only are filled with whole numbers, in
        wide tables.
    effects : {"auto", "both", "rows", "columns", "mean", None}
        What is modelled in addition to the factors: an effect of each row, each column, both, only the
        overall mean, or nothing. "auto" takes "both", or "columns" if columns have their own units: then
        the same effect of a row would be added to columns that have nothing in common.
    centres : bool
        Whether the means of factors are estimated, instead of 0; ratings need this.
    start : {"spectral", "soft_impute", "hasi", "random"}
        Where the chains start: at a spectral estimate, at the solution of a solver, or at random.
    dtype : {"float32", "float64"}
        The precision in which values and factors are stored.
    value_range : "auto", (low, high) or None
        Predictions are clipped to this range. "auto" finds it if the values are ratings.
    random_state : int, RandomState, Generator or None
        The same seed gives the same numbers, on any number of threads.
    progress : bool
        Show a bar in a terminal, or a line every ten seconds elsewhere.
    add_indicator : bool
        Whether `transform` appends a column for each column that had missing values at fit: 1 where a
        value was missing, and 0 elsewhere, as scikit-learn's imputers do.
    missing_values : number, text or list of them
        What stands for a missing value in tables, in addition to NaN, such as -999.
    checkpoint : path, URL or None
        A folder in which the run is saved every minute. If the process is killed, the same call resumes
        it, with exactly the same result; with a larger ``n_sweeps`` it continues, with the same
        burn-in. A URL is one that fsspec supports, such as ``s3://bucket/run``.
    sampler : {"mixture", "published"}
        The sampler of fillrank, or that of the paper; see `as_published`.

    Attributes
    ----------
    completion_ : Completion
        The result of the fit, to which the methods below delegate.
    observations_ : Observations
        The entries that were fitted.
    rank_ : int
        The number of factors that are stronger than the noise, beside the effects: that of most draws.
    rank_probabilities_ : dict
        The share of draws in which so many singular values exceed the detection level, by their
        number. It is not the posterior of a rank parameter, which the model does not have.
    noise_variance_ : float
        The variance of the noise, averaged over all cells; in standard units, if columns have their
        own.
    row_noise_, column_noise_ : ndarray
        Posterior means of the noise standard deviation of each row, in an average column, and of each
        column, in an average row.
    singular_values_ : ndarray
        Posterior means of the singular values of the low-rank part, descending. With effects, it is
        first centred by rows, columns or both, because a constant may be an effect. In standard
        units, if columns have their own.
    units_, noise_ : str
        The units and the noise that were chosen.
    notes_ : list of str
        What was chosen and why, and what to know about single columns.
    history_ : dict of ndarray
        Traces (chains, sweeps) of residual variance, noise variance, a, b, the degrees of freedom of
        unequal noise, and the share that features explain of the variance of the factors, as
        ``row_missingness_share``.
    n_sweeps_ : int
        The number of sweeps of each chain, with the burn-in.
    stop_reason_ : str
        Why the run ended.
    interrupted_ : bool
        Whether Ctrl-C ended the run.

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

    _fewest_entries = FEWEST_ENTRIES["GASR"]

    def __init__(
        self,
        *,
        max_rank: int | Literal["auto"] = "auto",
        n_sweeps: int | Literal["auto"] = "auto",
        burn_in: int | Literal["auto"] = "auto",
        n_chains: int = 2,
        n_threads: int | None = None,
        units: Literal["auto", "table", "columns"] = "auto",
        noise: Literal["auto", "one", "rows", "columns", "both"] = "auto",
        robust: bool = False,
        missingness: bool = True,
        keep_empty_features: bool = False,
        kinds: Any = "auto",
        likelihood: Likelihood = "auto",
        thresholds: Literal["auto", "table", "rows"] = "auto",
        bounds: Any = None,
        round: bool = True,
        effects: Literal["auto", "both", "rows", "columns", "mean"] | None = "auto",
        centres: bool = True,
        start: Literal["spectral", "soft_impute", "hasi", "random"] = "spectral",
        dtype: Literal["float32", "float64"] = "float32",
        value_range: Any = "auto",
        random_state: Any = None,
        progress: bool = True,
        add_indicator: bool = False,
        missing_values: Any = np.nan,
        checkpoint: str | os.PathLike[str] | None = None,
        sampler: Literal["mixture", "published"] = "mixture",
    ):
        self.max_rank = max_rank
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.n_threads = n_threads
        self.units = units
        self.noise = noise
        self.robust = robust
        self.missingness = missingness
        self.keep_empty_features = keep_empty_features
        self.kinds = kinds
        self.likelihood = likelihood
        self.thresholds = thresholds
        self.bounds = bounds
        self.round = round
        self.effects = effects
        self.centres = centres
        self.start = start
        self.dtype = dtype
        self.value_range = value_range
        self.random_state = random_state
        self.progress = progress
        self.add_indicator = add_indicator
        self.missing_values = missing_values
        self.checkpoint = checkpoint
        self.sampler = sampler

    @classmethod
    def as_published(cls, **changes: Any) -> GASR:
        """GASR as in the paper: its conditionals, schedule and averaging.

        100 sweeps, all of them averaged, at most 30 factors. It starts as its authors' program does:
        with uncentred values in their original unit, sigma^2 = 1 and a = b = 100, entries of U and V
        uniform on (0, 1), d = 0. So unlike the default it depends on the unit: it is meant for values
        of the size of ratings.

        Parameters
        ----------
        **changes
            Other settings, by name.

        Returns
        -------
        GASR
        """
        settings: dict[str, Any] = {
            "sampler": "published",
            "max_rank": 30,
            "n_sweeps": 100,
            "burn_in": 0,
            "n_chains": 1,
            "units": "table",
            "noise": "one",
            "missingness": False,
            "likelihood": "gaussian",
            "effects": None,
            "centres": False,
            "start": "random",
        }
        return cls(**(settings | changes))

    def _check(self) -> None:
        check_choice("effects", self.effects, ("auto", *EFFECTS))
        check_choice("start", self.start, tuple(_STARTS))
        check_choice("sampler", self.sampler, ("mixture", "published"))
        check_choice("centres", self.centres, (True, False))
        plain = not self.centres and self.effects in (None, "mean") and self.start == "random"
        one = self.units == "table" and self.noise == "one" and not self.robust
        if self._is_published and not (plain and one and not self.missingness):
            raise InputError(
                "the published sampler has a random start, no centres, no effects but the mean, one "
                f"unit, one noise level and no features; got start={self.start!r}, "
                f"centres={self.centres!r}, effects={self.effects!r}, units={self.units!r}, "
                f"noise={self.noise!r}, robust={self.robust!r}, missingness={self.missingness!r}. "
                "Use GASR.as_published()."
            )

        if self._is_published and self._law is not GAUSSIAN:
            raise InputError(
                f'the published sampler has Gaussian noise; got likelihood="{self.likelihood}".'
            )

    def _check_weights(self, observations: Observations) -> None:
        super()._check_weights(observations)
        if self._is_published:
            refuse_weights(observations, "the published sampler")

    def _check_for_cluster(self) -> None:
        super()._check_for_cluster()
        if self._is_published or self.start not in _STARTS_ON_CLUSTER or self.units == "columns":
            raise NotSupportedError(
                "on a cluster there is the mixture sampler, with one unit for all columns, from one of "
                f"the starts {_STARTS_ON_CLUSTER}; got sampler={self.sampler!r}, "
                f"units={self.units!r}, start={self.start!r}."
            )

    @property
    def _takes_features(self) -> bool:
        return not self._is_published

    @property
    def _is_published(self) -> bool:
        return self.sampler == "published"

    @property
    def _centred(self) -> bool:
        return self.effects is not None

    @property
    def _judged(self) -> bool:
        # The published schedule averages from the first sweep on, so there is no warning about
        # convergence.
        return not self._is_published

    def _options(self, model: TableModel) -> Options:
        effects = self.effects
        if effects == "auto":
            effects = "columns" if model.by_column else "both"
        return Options(
            row_effects=effects in ("rows", "both"),
            column_effects=effects in ("columns", "both"),
            centres=bool(self.centres),
            noise=model.noise,
        )

    def _plan(self, n_entries: int) -> Plan:
        plan = super()._plan(n_entries)
        # As published, hyperparameters are estimated during the complete run.
        return plan._replace(n_adapt=sys.maxsize) if self._is_published else plan

    def _sampler(self, model: TableModel) -> Sampler:
        return Sampler(
            gasr_published.sweep if self._is_published else gasr.sweep,
            gasr.draw,
            partial(gasr.spectrum, options=self._options(model)),
            partial(gasr.history, noise=model.noise, features=model.features),
            adapt if self._is_published else None,
            uses_complete_tables=not self._is_published,
            resumption=Resumption(
                Info,
                gasr.traced(model.noise, model.features),
                partial(is_valid_gasr_state, features=model.features, intervals=model.intervals),
                model.features.some_values(),
            ),
        )

    def _first_chain(
        self, data: Data, model: TableModel, plan: Plan, workers: Workers, seed: list[int]
    ) -> Chain:
        rng = np.random.default_rng(seed)
        # Even if the burn-in is short: overrelaxation would slow down a chain that has not converged.
        relaxed_from = max(plan.burn_in, _FEWEST_BEFORE_RELAXATION)
        context = Context(
            self._options(model),
            chain_key(*seed),
            workers,
            relaxed_from,
            _NOISE_FROM,
            rates_from=0,
            features=model.features,
            intervals=model.intervals,
        )
        return Chain(self._first_state(data, model, context, rng), context)

    def _first_state(
        self, data: Data, model: TableModel, context: Context, rng: np.random.Generator
    ) -> State:
        max_rank = None if self.max_rank == "auto" else self.max_rank
        dtype = np.dtype(self.dtype)
        if self._is_published:
            scale = model.units.shared_scale
            return gasr_published.published_start(data, scale, max_rank or 30, dtype, rng)
        start = _STARTS[self.start]
        if model.by_column and self.start == "spectral":
            start = column_noise_start
        guess = start(data, max_rank, context.options, context.workers, rng)
        return init(guess, dtype, rng, model.noise, model.features, model.intervals)
