"""SoftImpute as a scikit-learn estimator."""

from __future__ import annotations

from fillrank.estimators.spectral import Frame, Setting, SpectralCompleter
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.solvers.soft_impute import soft_impute


class SoftImpute(SpectralCompleter):
    """Completion by a penalty on the sum of singular values (Mazumder, Hastie, Tibshirani 2010).

    The minimum over Z of 1/2 ||P_Omega(X - Z)||^2 + penalty * sum_k s_k(Z), with its duality gap.
    Parameters and attributes are those of `SpectralCompleter`.

    Examples
    --------
    >>> import fillrank as fr
    >>> observations, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
    >>> model = fr.SoftImpute(random_state=0, progress=False).fit(observations)
    >>> fr.score(observations, model)["rmse"] < 0.3
    True
    """

    def _solve(self, data: Data, setting: Setting, frame: Frame, start: Factors | None) -> Fit:
        return soft_impute(data, setting.penalty, *frame, start)
