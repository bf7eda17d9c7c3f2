"""SoftImpute by alternating least squares, as a scikit-learn estimator."""

from __future__ import annotations

from fillrank.estimators.spectral import Context, Setting, SpectralEstimator
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.solvers.soft_impute_als import soft_impute_als


class SoftImputeALS(SpectralEstimator):
    """SoftImpute's problem by alternating regressions (Hastie, Mazumder, Lee, Zadeh 2015).

    The minimum over A, B of 1/2 ||P_Omega(X - A B^T)||^2 + penalty/2 (||A||^2 + ||B||^2): the solution
    of SoftImpute, if max_rank is at least its rank. Parameters and attributes are those of
    `SpectralEstimator`.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImputeALS(random_state=0, progress=False).fit(observations)
    >>> fr.score(observations, model)["rmse"] < 0.3
    True
    """

    def _solve(self, data: Data, setting: Setting, context: Context, start: Factors | None) -> Fit:
        return soft_impute_als(data, setting.penalty, context.limits, context.workers, start)
