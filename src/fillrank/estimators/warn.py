"""Warnings about runs that ended too early."""

from fillrank.data.warn import warn_user
from fillrank.errors import ConvergenceWarning
from fillrank.posterior.diagnostics import complaint
from fillrank.run.loop import Outcome


def warn_unconverged(method: object, reason: str) -> None:
    """Say that a solver stopped before its certificate was good."""
    warn_user(
        f"{type(method).__name__} has not converged: {reason}. Raise max_iterations, or tolerance if "
        "that is good enough.",
        ConvergenceWarning,
    )


def why_not_to_trust(outcome: Outcome, judged: bool = True) -> str:
    """What a user should know of a run that was cut short or is too short; empty if nothing."""
    recorder = outcome.run.recorder
    if outcome.interrupted:
        return f"Fit {outcome.stop_reason}; {len(recorder.draws)} draws are kept."
    if judged and (wrong := complaint(recorder.probes)):
        return (
            f"The run is too short to be trusted: {wrong}. Set n_sweeps above the "
            f"{outcome.run.n_sweeps} of this run."
        )
    return ""
