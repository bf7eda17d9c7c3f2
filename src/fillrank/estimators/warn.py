"""Warnings about runs that ended too early."""

from fillrank.errors import ConvergenceWarning, Setting, Text
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.run.loop import Outcome
from fillrank.runtime.warnings import warn_user


def warn_unconverged(method: object, reason: str) -> None:
    """Warn that a solver stopped before its certificate was small enough."""
    warn_user(
        ConvergenceWarning(
            f"{type(method).__name__} has not converged: {reason}",
            advice=(
                "Raise ",
                Setting("max_iterations"),
                ", or ",
                Setting("tolerance"),
                " if that is good enough.",
            ),
        )
    )


def unconverged(outcome: Outcome, diagnostics: Diagnostics | None) -> ConvergenceWarning | None:
    """The warning about a run that was interrupted or has not converged; None if there is none.

    Without ``diagnostics``, convergence is not checked.
    """
    if outcome.interrupted:
        n_draws = len(outcome.run.recorder.draws)
        return ConvergenceWarning(f"Fit {outcome.stop_reason}; {n_draws} draws are stored.")
    if diagnostics is not None and not diagnostics.converged:
        message = f"The run has not converged: {diagnostics.reason}"
        return ConvergenceWarning(message, advice=_advice(outcome))
    return None


def _advice(outcome: Outcome) -> Text:
    n = outcome.run.n_sweeps
    if outcome.reached_limit:
        return ("Set ", Setting("n_sweeps", 2 * n), ".")
    return ("Set ", Setting("n_sweeps"), f" above the {n} of this run.")
