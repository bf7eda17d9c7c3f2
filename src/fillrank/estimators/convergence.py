"""The verdict on convergence: one for all methods, in the same words in Python, reports and pages."""

from __future__ import annotations

from typing import Any, NamedTuple

from fillrank.errors import ConvergenceWarning, Setting, Text
from fillrank.runtime.warnings import warn_user


class Convergence(NamedTuple):
    """Whether a fit has converged; if not, why, and what to do.

    ``converged`` is None if it is not known: for a model of new rows or columns, which had no fit of
    its own, and for a model of an optimiser from a file of an older version.
    """

    converged: bool | None
    reason: str = ""
    advice: Text = ""

    def __str__(self) -> str:
        if self.converged is None:
            return "not known"
        return "converged" if self.converged else str(self.warning("not converged"))

    def warning(self, verdict: str) -> ConvergenceWarning:
        """The warning that begins with ``verdict``, with the reason and the advice."""
        return ConvergenceWarning(f"{verdict}: {self.reason}", advice=self.advice)


def convergence_of(model: Any) -> Convergence:
    """The verdict on a fitted model of any method."""
    if not hasattr(model, "stop_reason_") or getattr(model, "folded_in_", None):
        return Convergence(None)
    if hasattr(model, "traces_"):
        reason = model.diagnostics().reason
        return Convergence(False, reason, _advice(model)) if reason else Convergence(True)
    converged = getattr(model, "converged_", None)
    if converged is None and getattr(model, "violation_", float("inf")) <= model.tolerance:
        converged = True
    if converged is not False:
        return Convergence(converged)
    advice = "Raise max_iterations, or tolerance if that is good enough."
    return Convergence(False, model.stop_reason_, advice)


def _advice(model: Any) -> Text:
    """What to do about a run that has not converged."""
    n = getattr(model, "n_sweeps_", model.n_sweeps)  # not in all files of older versions
    if model.interrupted_:
        return "Call run_longer, or fit again." if hasattr(model, "run_longer") else "Fit again."
    if getattr(model, "reached_limit_", False):
        return "Set ", Setting("n_sweeps", 2 * n), "."
    return "Set ", Setting("n_sweeps"), f" above the {n} of this run."


def warn_unconverged(model: Any, *further: Text) -> bool:
    """Warn if a model has not converged, with further advice; return whether it has not."""
    verdict = convergence_of(model)
    if verdict.converged is not False:
        return False
    what = "The run" if hasattr(model, "traces_") else type(model).__name__
    warning = verdict.warning(f"{what} has not converged").with_advice(*further)
    warn_user(warning)
    return True
