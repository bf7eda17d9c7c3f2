"""BPMF as a scikit-learn estimator; the mathematics is in samplers/bpmf.py."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Literal

import numpy as np

from fillrank.draws.streams import chain_key
from fillrank.errors import InputError, NotSupportedError
from fillrank.estimators.checks import FEWEST_ENTRIES
from fillrank.estimators.sampled import SamplerEstimator
from fillrank.estimators.table_model import Choices, Likelihood, TableModel
from fillrank.noise.laws import GAUSSIAN
from fillrank.run.chains import Chain, Resumption, Sampler
from fillrank.run.loop import Plan
from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data
from fillrank.samplers.noise_steps import first_noise
from fillrank.samplers.valid_states import is_valid_bpmf_state
from fillrank.solvers.rank import largest_rank
from fillrank.solvers.starts import column_noise_start, spectral_start
from fillrank.validation import check_choice, check_real

_USUAL_MAX_RANK = 30
# The authors' beta_0; nu_0 is the rank.
_BETA = 2.0
# The initial noise variance if it is sampled, in units of the data's variance: low enough that the
# factors fit the signal from the first sweeps on.
_FIRST_NOISE = 0.5


class BPMF(SamplerEstimator):
    """Bayesian probabilistic matrix factorisation (Salakhutdinov and Mnih, 2008).

    The overall mean plus a product of two factor matrices, whose rows come from Gaussians with learned
    means and covariances. All ``max_rank`` factors are used: unlike GASR, it only shrinks those that
    the data do not need.

    Parameters
    ----------
    max_rank : int or "auto"
        The number of factors; "auto" uses 30, or fewer if the table is too small.
    n_sweeps : int or "auto"
        Sweeps of the sampler. "auto" stops when more sweeps would not improve predictions, or after
        2,000, and up to 4,000 in small tables.
    burn_in : int or "auto"
        Sweeps at the start that are discarded: 50 to 200 by default, more for small tables, or half of
        ``n_sweeps`` if that is less. With 0, there is no warning if the run has not converged.
    start : {"spectral", "random"}
        Where the chains start: at a spectral estimate, or at small random factors.
    noise_precision : "sampled" or float
        The inverse of the noise variance, in the units of the table; or sampled.
    inverse_scale : float
        w_0 of the prior of the factors' precisions, Wishart(I/w_0), in standard units: the smaller it
        is, the more the factors that the data do not need are shrunk. The authors use 1.
    row_draws : {"entries", "joint"}
        How a row's factors are drawn: entry by entry in a basis that makes them nearly independent,
        or all at once by a Cholesky decomposition. Both are exact.
    units : {"auto", "table", "columns"}
        Whether all values are in one unit, or each column has its own; see `GASR`.
    noise : {"auto", "one", "rows", "columns", "both"}
        How the noise level differs; see `GASR`. With a given ``noise_precision`` it does not.
    robust : bool
        Whether the noise has a Student-t distribution, so that single outlying values count less.
    missingness : bool
        Whether the pattern of missing values is used as features of the rows and columns; see `GASR`.
    keep_empty_features : bool
        Whether columns without any value are filled, if columns have their own units.
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
    n_chains : int
        The number of independent chains. Their agreement shows whether the run has converged; for a
        single chain, the agreement of its halves does.
    n_threads : int or None
        None uses all processors. The result does not depend on it.
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

    Attributes
    ----------
    completion_ : Completion
        The result of the fit, to which the methods below delegate.
    observations_ : Observations
        The entries that were fitted.
    rank_ : int
        The number of factors that are stronger than the noise in most draws.
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
        Posterior means of the singular values of the signal minus its mean, descending.
    units_, noise_ : str
        The units and the noise that were chosen.
    notes_ : list of str
        What was chosen and why, and what to know about single columns.
    history_ : dict of ndarray
        Traces (chains, sweeps) of residual variance, noise variance, and the share that features
        explain of the variance of the factors; see `GASR`.
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
    >>> model = fr.BPMF(max_rank=4, n_sweeps=300, random_state=0).fit(observations)
    >>> low, high = model.predict_interval([0, 1], [5, 5])
    >>> bool(((low < truth[:2, 5]) & (truth[:2, 5] < high)).all())
    True
    """

    _fewest_entries = FEWEST_ENTRIES["BPMF"]

    def __init__(
        self,
        *,
        max_rank: int | Literal["auto"] = "auto",
        n_sweeps: int | Literal["auto"] = "auto",
        burn_in: int | Literal["auto"] = "auto",
        start: Literal["spectral", "random"] = "spectral",
        noise_precision: float | Literal["sampled"] = "sampled",
        inverse_scale: float = 0.1,
        row_draws: Literal["entries", "joint"] = "entries",
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
        n_chains: int = 2,
        n_threads: int | None = None,
        dtype: Literal["float32", "float64"] = "float32",
        value_range: Any = "auto",
        random_state: Any = None,
        progress: bool = True,
        add_indicator: bool = False,
        missing_values: Any = np.nan,
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.max_rank = max_rank
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.start = start
        self.noise_precision = noise_precision
        self.inverse_scale = inverse_scale
        self.row_draws = row_draws
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
        self.n_chains = n_chains
        self.n_threads = n_threads
        self.dtype = dtype
        self.value_range = value_range
        self.random_state = random_state
        self.progress = progress
        self.add_indicator = add_indicator
        self.missing_values = missing_values
        self.checkpoint = checkpoint

    @classmethod
    def as_published(cls, **changes: Any) -> BPMF:
        """BPMF as in the comparison of the GASR paper: 100 sweeps, all averaged, 30 factors.

        With its authors' noise precision of 2, in the units of the table; W_0 = I, in standard units;
        rows drawn jointly; and a random start (its authors start from a fit of PMF, the method without
        draws).

        Parameters
        ----------
        **changes
            Other settings, by name.

        Returns
        -------
        BPMF
        """
        settings: dict[str, Any] = {
            "max_rank": 30,
            "n_sweeps": 100,
            "burn_in": 0,
            "n_chains": 1,
            "start": "random",
            "noise_precision": 2.0,
            "inverse_scale": 1.0,
            "row_draws": "joint",
            "units": "table",
            "noise": "one",
            "missingness": False,
            "likelihood": "gaussian",
        }
        return cls(**(settings | changes))

    def _check(self) -> None:
        check_choice("start", self.start, ("spectral", "random"))
        check_choice("row_draws", self.row_draws, ("entries", "joint"))
        check_real("inverse_scale", self.inverse_scale, "above 0", lambda v: v > 0)
        if self.noise_precision != "sampled":
            check_real(
                "noise_precision", self.noise_precision, '"sampled" or above 0', lambda v: v > 0
            )
            if self.noise not in ("auto", "one") or self.robust or self.units == "columns":
                raise InputError(
                    "a given noise_precision is that of all entries, in one unit; got it with "
                    f"units={self.units!r}, noise={self.noise!r}, robust={self.robust!r}."
                )
            if self._law is not GAUSSIAN:
                raise InputError(
                    "a given noise_precision is that of Gaussian noise; got it with "
                    f"likelihood={self.likelihood!r}."
                )
        if self._law is not GAUSSIAN and self.row_draws == "joint":
            raise InputError(
                f"likelihood={self.likelihood!r} needs row_draws='entries'; got 'joint'."
            )
        if self.robust and self.row_draws == "joint":
            raise InputError("robust noise needs row_draws='entries'; got 'joint'.")

    def _check_for_cluster(self) -> None:
        super()._check_for_cluster()
        if self.row_draws != "entries" or self.units == "columns":
            raise NotSupportedError(
                "on a cluster rows are drawn with row_draws='entries', with one unit for all columns; "
                f"got row_draws={self.row_draws!r}, units={self.units!r}."
            )

    @property
    def _judged(self) -> bool:
        return self.burn_in != 0  # no warnings for runs that are averaged from the first sweep on

    def _choices(self, value_range: tuple[float, float] | None) -> Choices:
        choices = super()._choices(value_range)
        is_given = self.noise_precision != "sampled"
        return choices._replace(units="table", noise="one") if is_given else choices

    def _sampler(self, model: TableModel) -> Sampler:
        return Sampler(
            bpmf.sweep,
            bpmf.draw,
            bpmf.spectrum,
            partial(bpmf.history, noise=model.noise, features=model.features),
            uses_complete_tables=True,
            resumption=Resumption(
                bpmf.Info,
                bpmf.traced(model.noise, model.features),
                partial(is_valid_bpmf_state, intervals=model.intervals),
                model.features.some_values(),
            ),
        )

    def _first_chain(
        self, data: Data, model: TableModel, plan: Plan, workers: Workers, seed: list[int]
    ) -> Chain:
        state = self._first_state(data, model, workers, np.random.default_rng(seed))
        is_sampled = self.noise_precision == "sampled"
        if self.noise_precision != "sampled":
            variance = 1.0 / (self.noise_precision * model.units.shared_scale**2)
            noise = first_noise(variance, len(state.left), np.ones(len(state.right)), model.noise)
            state = state._replace(noise=noise)
        rank = state.left.shape[1]
        prior = bpmf.Hyperprior(_BETA, float(rank), self.inverse_scale)
        context = bpmf.Context(
            prior,
            self.row_draws == "joint",
            chain_key(*seed),
            workers,
            model.noise,
            is_sampled,
            model.features,
            model.intervals,
        )
        return Chain(state, context)

    def _first_state(
        self, data: Data, model: TableModel, workers: Workers, rng: np.random.Generator
    ) -> bpmf.State:
        dtype = np.dtype(self.dtype)
        if self.max_rank != "auto":
            rank = self.max_rank
        elif model.by_column:
            rank = max(1, min(_USUAL_MAX_RANK, *(n - 1 for n in data.shape)))
        else:
            rank = min(_USUAL_MAX_RANK, largest_rank(data.shape))
        if self.start == "random":
            return bpmf.init(
                data.shape,
                rank,
                _FIRST_NOISE,
                dtype,
                rng,
                model.noise,
                model.features,
                model.intervals,
            )
        no_effects = Options(row_effects=False, column_effects=False, centres=False)
        start = column_noise_start if model.by_column else spectral_start
        guess = start(data, rank, no_effects, workers, rng)
        return bpmf.init_at(guess, dtype, rng, model.noise, model.features, model.intervals)
