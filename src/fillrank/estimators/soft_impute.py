"""SoftImpute as a scikit-learn estimator."""

from __future__ import annotations

from fillrank.estimators.spectral import Context, Setting, SpectralEstimator
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.solvers.soft_impute import soft_impute


class SoftImpute(SpectralEstimator):
    """Completion by a penalty on the sum of singular values (Mazumder, Hastie, Tibshirani 2010).

    The minimum over Z of 1/2 ||P_Omega(X - Z)||^2 + penalty * sum_k s_k(Z), with its duality gap.
    Parameters and attributes are those of `SpectralEstimator`.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImpute(random_state=0, progress=False).fit(observations)
    >>> fr.score(observations, model)["rmse"] < 0.3
    True
    """

    def _solve(self, data: Data, setting: Setting, context: Context, start: Factors | None) -> Fit:
        return soft_impute(data, setting.penalty, context.limits, context.workers, start)
