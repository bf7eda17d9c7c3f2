"""The paper's relaxed problems, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from fillrank.estimators.adaptive import AdaptiveCompleter, is_soft_impute
from fillrank.estimators.checks import check_choice
from fillrank.estimators.spectral import Frame, Setting
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.solvers.relaxed_spectral import relaxed_marginal, relaxed_spectral
from fillrank.table.observations import Observations


class RelaxedSpectral(AdaptiveCompleter):
    """Singular vectors in balls instead of on spheres: the problems of Song and Zhu (2016).

    The minimum over d, u, v of 1/2 ||P_Omega(X - sum_k d_k u_k v_k^T)||^2 + sum_k gamma_k d_k, with
    d_k >= 0 and u_k, v_k in unit balls; docs/theorem.md says what the relaxation leaves as it was. The
    other parameters and the attributes are those of `SpectralCompleter`.

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
    ):
        super().__init__(
            penalty=penalty,
            beta=beta,
            max_rank=max_rank,
            max_iterations=max_iterations,
            tolerance=tolerance,
            effects=effects,
            n_threads=n_threads,
            value_range=value_range,
            random_state=random_state,
            progress=progress,
        )
        self.form = form

    def _fit(self, observations: Observations) -> None:
        check_choice("form", self.form, ("marginal", "P2", "P3"))
        super()._fit(observations)

    def _solve(self, data: Data, setting: Setting, frame: Frame, start: Factors | None) -> Fit:
        penalty, beta = setting
        if is_soft_impute(beta):
            return relaxed_spectral(data, penalty, *frame, start)
        if self.form == "marginal":
            return relaxed_marginal(data, penalty * beta, beta, *frame, start)
        first = start or relaxed_spectral(data, penalty, *frame).factors
        s = np.zeros(frame.limits.max_rank)
        s[: first.s.size] = first.s[: s.size]
        return relaxed_spectral(data, (penalty * beta + 1.0) / (beta + s), *frame, first)

    def _given_beta(self) -> float | None:
        return float("inf") if self.form == "P2" else super()._given_beta()

    def _betas(self, first: Fit) -> list[float]:
        return [] if self.form == "P2" else super()._betas(first)
