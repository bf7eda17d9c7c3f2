"""HASI as a scikit-learn estimator."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from fillrank.estimators.spectral import Context, Setting, SpectralEstimator, with_progress
from fillrank.samplers.model import Data
from fillrank.solvers.beta_search import Found, refit_best, rough_limits, walk_betas
from fillrank.solvers.fit import Errors, Factors, Fit
from fillrank.solvers.hasi import hasi
from fillrank.solvers.soft_impute import soft_impute


class HASI(SpectralEstimator):
    """Hierarchical adaptive soft impute (Todeschini, Caron, Chavent 2013).

    Large singular values are shrunk less than small ones. HASI assumes a known noise variance. Here it
    is 1 in standard units, which is v = Var(x), the variance of the observed values (their mean square
    if ``effects=None``), in the units of the table. Each singular value has an exponential prior
    whose rate is gamma distributed, with mean ``penalty / v`` and shape ``penalty * beta / v``. With the
    rates integrated out, the fit minimises ::

        1/2 ||P_Omega(X - Z)||^2 + (penalty * beta + v) sum_k log(1 + s_k(Z) / beta)

    so that a singular value s is shrunk by ``(penalty * beta + v) / (beta + s)``. As beta grows this
    becomes SoftImpute, and ``beta_`` is inf if that was best. The other parameters and the
    attributes are those of `SpectralEstimator`.

    The search for the penalty and beta uses rough fits (at most 30 iterations, a tolerance of 1e-3)
    and skips settings that shrink less where that has increased the error on held-out entries. The
    best one to three are repeated with ``max_iterations`` and ``tolerance``, and the best of those is
    chosen. The other points of ``path_`` are rough.

    Parameters
    ----------
    beta : float or "auto"
        The scale below which singular values are shrunk hardest, in the units of the table.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.HASI(random_state=0, progress=False).fit(observations)
    >>> fr.score(observations, model)["rmse"] < 0.3
    True
    """

    def __init__(
        self,
        *,
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

    def _solve(self, data: Data, setting: Setting, context: Context, start: Factors | None) -> Fit:
        penalty, beta = setting
        limits, workers, _ = context
        if math.isinf(beta):  # all singular values are shrunk by the same amount
            return soft_impute(data, penalty, limits, workers, start)
        return hasi(data, penalty, beta, limits, workers, start)

    def _search(
        self, train: Data, penalties: np.ndarray, context: Context, errors: Errors
    ) -> Found:
        rough_context = context._replace(limits=rough_limits(context.limits))

        def rough(penalty: float, beta: float, start: Factors | None) -> Fit:
            return self._solve(train, Setting(penalty, beta), rough_context, start)

        def full(penalty: float, beta: float, start: Factors | None) -> Fit:
            return self._solve(train, Setting(penalty, beta), context, start)

        def betas(first: Fit) -> list[float]:
            return self._betas(first, context.units.shared_scale)

        points = walk_betas(penalties, rough, betas, errors)
        return refit_best(with_progress(points, penalties, self.progress), full, errors)
