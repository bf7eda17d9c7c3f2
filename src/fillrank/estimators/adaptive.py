"""What HASI and its relaxed form share: a second setting, beta, looked for beside the penalty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from fillrank.errors import InputError
from fillrank.estimators.spectral import Frame, Setting, SpectralCompleter
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Factors, Fit
from fillrank.validation import check_real

# Where beta is looked for, as shares of the largest singular value.
_SHARES = (1.0, 0.1, 0.01, 0.001)


def is_soft_impute(beta: float) -> bool:
    """Whether beta is at its limit, where all singular values are shrunk alike."""
    return math.isinf(beta)


class AdaptiveCompleter(SpectralCompleter):
    """A method that shrinks large singular values less: with a ``beta`` beside the penalty.

    Parameters
    ----------
    beta : float or "auto"
        The scale below which singular values are shrunk hardest, in the units of the table. "auto"
        looks for it together with the penalty.
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
        self.beta = beta

    def _candidates(
        self, data: Data, penalty: float, frame: Frame, start: Factors | None
    ) -> Iterator[tuple[float, Fit]]:
        """SoftImpute, which is beta = inf and the start of the others; then each beta."""
        first = self._solve(data, Setting(penalty, math.inf), frame, start)
        yield math.inf, first
        for beta in self._betas(first):
            yield beta, self._solve(data, Setting(penalty, beta), frame, first.factors)

    def _betas(self, first: Fit) -> list[float]:
        if (given := self._given_beta()) is not None:
            return [given]
        s = first.factors.s
        return [share * float(s[0]) for share in _SHARES] if s.size else []

    def _given_beta(self) -> float | None:
        if self.beta == "auto":
            if self.penalty != "auto":
                raise InputError('with a penalty given, beta must be given too; got beta="auto".')
            return None
        return check_real("beta", self.beta, "above 0", lambda v: v > 0) / self._units.scale

    def _keep(self, fit: Fit, setting: Setting, *rest: Any) -> None:
        super()._keep(fit, setting, *rest)
        self.beta_ = setting.beta * self._units.scale
