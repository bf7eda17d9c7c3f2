"""Warnings about runs that ended too early."""

from fillrank.errors import ConvergenceWarning
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.run.loop import Outcome
from fillrank.runtime.warnings import warn_user


def warn_unconverged(method: object, reason: str) -> None:
    """Say that a solver stopped before its certificate was good."""
    warn_user(
        f"{type(method).__name__} has not converged: {reason}. Raise max_iterations, or tolerance if "
        "that is good enough.",
        ConvergenceWarning,
    )


def why_not_to_trust(outcome: Outcome, diagnostics: Diagnostics | None) -> str:
    """What a user should know of a run that was cut short or has not converged; empty if nothing.

    Without ``diagnostics`` it is not judged whether it has converged.
    """
    if outcome.interrupted:
        return f"Fit {outcome.stop_reason}; {len(outcome.run.recorder.draws)} draws are kept."
    if diagnostics is not None and not diagnostics.converged:
        return f"The run has not converged: {diagnostics.reason}. {_remedy(outcome)}"
    return ""


def _remedy(outcome: Outcome) -> str:
    n = outcome.run.n_sweeps
    if outcome.reached_limit:
        return f"Set n_sweeps={2 * n}."
    return f"Set n_sweeps above the {n} of this run."
