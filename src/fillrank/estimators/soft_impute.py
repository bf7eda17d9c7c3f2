"""SoftImpute as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, get_args

from fillrank.estimators.checks import EFFECTS, check_value_range, seed_from, warn_of_units
from fillrank.estimators.convergence import warn_unconverged
from fillrank.estimators.loss_fit import LossSettings, fit_loss
from fillrank.estimators.spectral import Context, Setting, SpectralEstimator
from fillrank.posterior.record import LossName
from fillrank.runtime.threads import one_blas_thread
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.solvers.soft_impute import soft_impute
from fillrank.table.observations import Observations
from fillrank.validation import check_choice

# The loss, by name: "gaussian" is squares.
Likelihood = Literal["gaussian", LossName]


class SoftImpute(SpectralEstimator):
    """Completion by a penalty on the sum of singular values (Mazumder, Hastie, Tibshirani 2010).

    The minimum over Z of sum_Omega loss(x_ij, z_ij) + penalty * sum_k s_k(Z), with its duality gap. The
    loss is half of the squared error, or minus the logarithm of another likelihood: then Z is the most
    probable matrix under a prior proportional to exp(-penalty * sum_k s_k). The other parameters and
    attributes are those of `SpectralEstimator`.

    Parameters
    ----------
    likelihood : {"gaussian", "laplace", "logistic", "ordered"}
        "gaussian": squared errors. "laplace": absolute errors, so that outlying values count little. Its
        penalty has no unit, and a fit may take ten times ``max_iterations``. "logistic": the values are
        one of two, with the logistic link. "ordered": they are levels of one scale, such as ratings,
        with normal noise of variance 1 and thresholds that are estimated. With the last two, Z is on the
        scale of a latent number, and `predict_proba` has the probabilities of the levels. The penalty is
        chosen by the mean loss of held-out entries.

    Attributes
    ----------
    likelihood_ : str
        The likelihood, if it is not Gaussian. Then ``validation_error`` and ``training_error`` of the
        path are mean losses, and ``noise_variance_`` is that of a Laplace distribution with the mean
        absolute residual, or that of the latent number of levels.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImpute(random_state=0, progress=False).fit(observations)
    >>> fr.score(observations, model)["rmse"] < 0.3
    True

    Of the same values only the sign is known:

    >>> signs = fr.Observations.from_triplets(
    ...     observations.rows, observations.columns, (observations.values > 0).astype(float)
    ... )
    >>> model = fr.SoftImpute(likelihood="logistic", random_state=0, progress=False).fit(signs)
    >>> model.predict_proba([0, 1], 0).round(1).shape
    (2, 2)
    """

    def __init__(
        self,
        *,
        likelihood: Likelihood = "gaussian",
        penalty: float | Literal["auto"] = "auto",
        max_rank: int | Literal["auto"] = "auto",
        max_iterations: int = 100,
        tolerance: float = 1e-5,
        effects: Literal["both", "rows", "columns", "mean"] | None = "both",
        n_threads: int | None = None,
        value_range: Any = "auto",
        random_state: Any = None,
        progress: bool = True,
    ):
        super().__init__(
            penalty=penalty,
            max_rank=max_rank,
            max_iterations=max_iterations,
            tolerance=tolerance,
            effects=effects,
            n_threads=n_threads,
            value_range=value_range,
            random_state=random_state,
            progress=progress,
        )
        self.likelihood = likelihood

    def _complete(self, observations: Observations) -> None:
        check_choice("likelihood", self.likelihood, get_args(Likelihood))
        if self.likelihood == "gaussian":
            super()._complete(observations)
            return
        check_choice("effects", self.effects, EFFECTS)
        if self.likelihood == "laplace":
            warn_of_units(observations)
        limits = self._limits(observations)
        value_range = check_value_range(self.value_range, observations)
        seed = seed_from(self.random_state)
        with one_blas_thread(), self._workers() as workers:
            settings = LossSettings(
                self.likelihood, self.penalty, self.effects, value_range, limits, seed,
                self.progress, workers,
            )  # fmt: skip
            found = fit_loss(observations, settings)
        self._store(observations, *found)
        warn_unconverged(self)

    def _solve(self, data: Data, setting: Setting, context: Context, start: Factors | None) -> Fit:
        return soft_impute(data, setting.penalty, context.limits, context.workers, start)
