"""Whether a fit has converged: one rule and one text for Python, the command line and reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fillrank.errors import ConvergenceWarning, Setting, Text
from fillrank.posterior.diagnostics import SMALLEST_ESS

if TYPE_CHECKING:
    from fillrank.completions.fitted_table import FittedTable


class Fitted(Protocol):
    """A fitted estimator, or its completion."""

    @property
    def completion_(self) -> FittedTable: ...


class Convergence(NamedTuple):
    """Whether a fit has converged; if not, why, and what to do.

    ``converged`` is None if it is not known: for new rows or columns, which were not fitted, and for
    the model of a solver from a file of an older version.
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


def convergence_of(model: Fitted) -> Convergence:
    """Whether a fitted model of any method has converged."""
    completion = model.completion_
    record = completion.record
    if completion.folded_in:
        return Convergence(None)
    if record.traces is not None:
        reason = completion.diagnostics().reason
        return Convergence(False, reason, _advice(completion)) if reason else Convergence(True)
    converged = record.converged
    violation = math.inf if record.violation is None else record.violation
    if converged is None and violation <= completion.settings.get("tolerance", 0.0):
        converged = True
    if converged is not False:
        return Convergence(converged)
    advice = "Raise max_iterations, or tolerance if that is good enough."
    return Convergence(False, record.stop_reason, advice)


def few_draws(model: Fitted) -> ConvergenceWarning | None:
    """The warning that a run has stored too few draws for its intervals; None if it has enough."""
    posterior = model.completion_.posterior
    if not posterior.has_draws or posterior.n_draws >= SMALLEST_ESS:
        return None
    # A run that is too short has its own warning.
    if not convergence_of(model).converged:
        return None
    return ConvergenceWarning(
        f"Only {posterior.n_draws} draws of a table of this size fit in memory: intervals will be too "
        "narrow",
        advice=("Lower ", Setting("max_rank"), ", or fit a subset of the rows."),
    )


def _advice(completion: FittedTable) -> Text:
    """What to do about a run that has not converged."""
    record = completion.record
    if record.interrupted:
        # The Gibbs sampler of levels cannot run longer.
        return "Call run_longer, or fit again." if completion.posterior.has_draws else "Fit again."
    # Not all files of older versions have the number of sweeps.
    n = completion.settings.get("n_sweeps") if record.n_sweeps is None else record.n_sweeps
    if record.reached_limit:
        return "Set ", Setting("n_sweeps", 2 * (n or 0)), "."
    return "Set ", Setting("n_sweeps"), f" above the {n} of this run."
