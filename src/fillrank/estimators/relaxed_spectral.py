"""The paper's relaxed problems, as a scikit-learn estimator."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from fillrank.estimators.spectral import Context, Setting, SpectralEstimator
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.solvers.relaxed_spectral import relaxed_marginal, relaxed_spectral
from fillrank.table.observations import Observations
from fillrank.validation import check_choice


class RelaxedSpectral(SpectralEstimator):
    """Singular vectors in balls instead of on spheres: the problems of Song and Zhu (2016).

    The minimum over d, u, v of 1/2 ||P_Omega(X - sum_k d_k u_k v_k^T)||^2 + sum_k gamma_k d_k, with
    d_k >= 0 and u_k, v_k in unit balls; docs/theorem.md shows what the relaxation changes. The other
    parameters and the attributes are those of `SpectralEstimator`.

    Parameters
    ----------
    form : {"marginal", "P2", "P3"}
        "P2": the same gamma for all factors, which is SoftImpute's problem. "P3": a gamma_k for each,
        set once from the singular values of P2. "marginal": gamma_k integrated out, HASI's problem.
    beta : float or "auto"
        As in `HASI`; "P2" has none.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.RelaxedSpectral(random_state=0, progress=False).fit(observations)
    >>> fr.score(observations, model)["rmse"] < 0.3
    True
    """

    def __init__(
        self,
        *,
        form: Literal["marginal", "P2", "P3"] = "marginal",
        penalty: float | Literal["auto"] = "auto",
        beta: float | Literal["auto"] = "auto",
        max_rank: int | Literal["auto"] = "auto",
        max_iterations: int = 100,
        tolerance: float = 1e-5,
        effects: Literal["both", "rows", "columns", "mean"] | None = "both",
        n_threads: int | None = None,
        value_range: Any = "auto",
        random_state: Any = None,
        progress: bool = True,
        add_indicator: bool = False,
        missing_values: Any = np.nan,
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
            add_indicator=add_indicator,
            missing_values=missing_values,
        )
        self.beta = beta
        self.form = form

    def _complete(self, observations: Observations) -> None:
        check_choice("form", self.form, ("marginal", "P2", "P3"))
        super()._complete(observations)

    def _solve(self, data: Data, setting: Setting, context: Context, start: Factors | None) -> Fit:
        penalty, beta = setting
        limits, workers, _ = context
        if math.isinf(beta):  # all singular values are shrunk by the same amount
            return relaxed_spectral(data, penalty, limits, workers, start)
        if self.form == "marginal":
            return relaxed_marginal(data, penalty * beta, beta, limits, workers, start)
        first = start or relaxed_spectral(data, penalty, limits, workers).factors
        s = np.zeros(limits.max_rank)
        s[: first.s.size] = first.s[: s.size]
        return relaxed_spectral(data, (penalty * beta + 1.0) / (beta + s), limits, workers, first)

    def _given_beta(self, scale: float) -> float | None:
        return math.inf if self.form == "P2" else super()._given_beta(scale)
