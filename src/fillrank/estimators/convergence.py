"""The warning about a fit that has not converged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fillrank.completions.convergence import convergence_of
from fillrank.errors import Text
from fillrank.runtime.warnings import warn_user

if TYPE_CHECKING:
    from fillrank.estimators.base import Estimator


def warn_unconverged(model: Estimator, *further: Text) -> bool:
    """Warn if a model has not converged, with further advice; return whether it has not."""
    verdict = convergence_of(model)
    if verdict.converged is not False:
        return False
    is_run = model.completion_.record.traces is not None
    what = "The run" if is_run else type(model).__name__
    warn_user(verdict.warning(f"{what} has not converged").with_advice(*further))
    return True
