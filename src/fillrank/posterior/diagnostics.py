"""Whether a run has converged: R-hat, effective sample sizes and Monte Carlo errors.

Predictions are judged by the worst 5% of some cells chosen at random: they need a small R-hat and a
minimum effective sample size. Scalars, such as the residual variance or a singular value, need a small
R-hat, or a Monte Carlo error that is small relative to their value: with many entries the posterior of
a residual variance is so narrow that its R-hat is large even if chains differ by only a thousandth of
it. And the Monte Carlo error must enlarge the error of predictions by little, as in runs with
n_sweeps="auto".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fillrank.posterior.effective_size import rhat_and_ess
from fillrank.run.loop import ENOUGH, added_error
from fillrank.run.recorder import Traces
from fillrank.runtime.cache_folder import temporary_home
from fillrank.table.html import html_table

# Vehtari et al. (2021) recommend an R-hat below 1.01. Predictions are means over many weakly identified
# factors, and converge long before every singular value does.
LARGEST_RHAT = 1.1
SMALLEST_ESS = 25
# Of a scalar, relative to its value.
LARGEST_ERROR = 0.02
_FEWEST_DRAWS = 8
# The number of singular values that are judged.
_LEADING = 5
MEDIAN, WORST = "prediction (median)", "prediction (worst 5%)"


class Judged(NamedTuple):
    """A quantity that was traced over the run.

    ``error`` is the Monte Carlo standard error relative to the size of the quantity, and None for
    predictions, which are judged by their effective sample size.
    """

    rhat: float
    ess: float
    error: float | None = None

    @property
    def converged(self) -> bool:
        """Whether more draws would change it by little."""
        if self.error is None:
            return self.rhat < LARGEST_RHAT and self.ess >= SMALLEST_ESS
        return self.rhat < LARGEST_RHAT or self.error < LARGEST_ERROR


@dataclass(frozen=True)
class Diagnostics:
    """The traced quantities of a run, and whether it has converged; `print` shows a table.

    ``quantities`` maps names to R-hat, effective sample size and relative Monte Carlo error: the quality
    of the fit, as ``residual_variance`` or ``hinge_loss``, the leading singular values, and
    ``prediction (median)`` and ``prediction (worst 5%)`` over cells chosen at random. A constant
    quantity has R-hat 1. ``ended`` says why a run ended too early, and is empty otherwise.
    ``added_error`` is the share by which the Monte Carlo error enlarges the error of predictions, and
    None for a method that is not judged by it.
    """

    quantities: Mapping[str, Judged]
    n_draws: int
    n_chains: int
    ended: str = ""
    added_error: float | None = None

    @property
    def rhat(self) -> dict[str, float]:
        """R-hat by quantity."""
        return {name: judged.rhat for name, judged in self.quantities.items()}

    @property
    def ess(self) -> dict[str, float]:
        """Effective sample size by quantity."""
        return {name: judged.ess for name, judged in self.quantities.items()}

    @property
    def worst(self) -> Judged:
        """The worst 5% of predictions."""
        return self.quantities[WORST]

    @property
    def converged(self) -> bool:
        """Whether predictions and intervals can be relied on."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why the run has not converged; empty if it has."""
        if self.ended:
            return self.ended
        if self.n_draws < _FEWEST_DRAWS:
            return f"{self.n_draws} draws in a chain are too few to judge by"
        worst = self.worst
        if not worst.rhat < LARGEST_RHAT:
            return (
                f"the R-hat of the worst 5% of predictions is {worst.rhat:.2f}, and should be below "
                f"{LARGEST_RHAT}"
            )
        if not worst.ess >= SMALLEST_ESS:
            return (
                f"the worst 5% of predictions have {worst.ess:.0f} effective draws, and should have "
                f"{SMALLEST_ESS}"
            )
        for name, judged in self.quantities.items():
            if judged.error is not None and not judged.converged:
                return (
                    f"the R-hat of {name} is {judged.rhat:.2f}, and should be below {LARGEST_RHAT}, or "
                    f"its Monte Carlo error {100 * LARGEST_ERROR:g}% of its value at most and not "
                    f"{100 * judged.error:.2g}%"
                )
        if not self.is_precise:
            return (
                f"the Monte Carlo error enlarges the error of predictions by "
                f"{100 * (self.added_error or 0):.2g}%, and should by less than {100 * ENOUGH:g}%"
            )
        return ""

    @property
    def is_precise(self) -> bool:
        """Whether the Monte Carlo error enlarges the error of predictions by little."""
        return self.added_error is None or self.added_error < ENOUGH

    def __str__(self) -> str:
        lines = [f"{'quantity':<26}{'R-hat':>8}{'ESS':>10}{'MC error':>10}"]
        for name, rhat, ess, share in self._rows():
            lines.append(f"{name:<26}{rhat:>8}{ess:>10}{share:>10}".rstrip())
        return "\n".join([*lines, *self._remarks()])

    def _repr_html_(self) -> str:
        header = ("quantity", "R-hat", "ESS", "MC error")
        return html_table(self._rows(), header, "; ".join(self._remarks()), numbers=True)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """The quantities as text."""
        return [
            (name, f"{rhat:.3f}", f"{ess:.0f}", "" if error is None else f"{100 * error:.2g}%")
            for name, (rhat, ess, error) in self.quantities.items()
        ]

    def _remarks(self) -> list[str]:
        """What is below the quantities."""
        remarks = [f"{self.n_draws} draws in {self.n_chains} chain(s)"]
        if self.added_error is not None:
            error = f"{100 * self.added_error:.2g}%"
            remarks.insert(0, f"the Monte Carlo error enlarges the error of predictions by {error}")
        return [*remarks, "converged" if self.converged else f"not converged: {self.reason}"]


def as_two_chains(trace: np.ndarray) -> np.ndarray:
    """A single chain (1, draws, ...) as two: it is judged by the agreement of its halves."""
    half = trace.shape[1] // 2
    return trace[0, -2 * half :].reshape(2, half, *trace.shape[2:])


def _judge(trace: np.ndarray) -> tuple[float, float]:
    """(R-hat, effective sample size) of a trace (chains, draws)."""
    if trace.shape[1] < _FEWEST_DRAWS:
        return math.inf, float("nan")
    if np.ptp(trace) == 0.0:
        return 1.0, float(trace.size)
    # Imported late: it takes a quarter of the package's import time.
    with temporary_home():
        from arviz_stats.base import array_stats

    if len(trace) == 1:
        trace = as_two_chains(trace)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that are constant, but differ
        rhat = array_stats.rhat(trace, chain_axis=0, draw_axis=1, method="rank")
        ess = array_stats.ess(trace, chain_axis=0, draw_axis=1, method="mean")
    return float(rhat), float(ess)


def _judge_scalar(trace: np.ndarray) -> Judged:
    trace = np.ascontiguousarray(trace)  # for the same bits, however it is stored
    rhat, ess = _judge(trace)
    if not ess > 0:
        return Judged(rhat, ess, math.inf)
    sd, size = float(trace.std()), abs(float(trace.mean()))
    return Judged(rhat, ess, sd / math.sqrt(ess) / size if sd > 0 else 0.0)


def _judge_cells(probes: np.ndarray) -> dict[str, Judged]:
    """The median and the worst 5% of the cells' R-hat and ESS.

    Their R-hat is not rank-normalised, which would take twenty times as long: predictions have no heavy
    tails.
    """
    n_chains, n_draws, n_cells = probes.shape
    if n_draws < _FEWEST_DRAWS:
        rhat, ess = np.full(n_cells, math.inf), np.full(n_cells, math.nan)
    else:
        rhat, ess = rhat_and_ess(as_two_chains(probes) if n_chains == 1 else probes)
        still = np.ptp(probes, axis=(0, 1)) == 0.0
        rhat[still], ess[still] = 1.0, n_chains * n_draws
    return {
        MEDIAN: Judged(float(np.median(rhat)), float(np.median(ess))),
        WORST: Judged(
            float(np.quantile(rhat, 0.95, method="higher")),
            float(np.quantile(ess, 0.05, method="lower")),
        ),
    }


def diagnose(
    traces: Mapping[str, np.ndarray],
    spectra: np.ndarray,
    probes: np.ndarray,
    n_leading: int,
    ended: str = "",
    judges_error: bool = True,
) -> Diagnostics:
    """Judge named traces (chains, draws), spectra (chains, draws, r), (chains, draws, probes).

    ``n_leading`` is the number of singular values to judge, ``judges_error`` whether the Monte Carlo
    error of the predictions counts.
    """
    quantities = {name: _judge_scalar(trace) for name, trace in traces.items()}
    for k in range(n_leading):
        quantities[f"singular_value {k + 1}"] = _judge_scalar(spectra[..., k])
    n_chains, n_draws, _ = probes.shape
    error = added_error(probes) if judges_error else None
    return Diagnostics(quantities | _judge_cells(probes), n_draws, n_chains, ended, error)


def diagnose_run(
    traces: Traces, n_factors: int, ended: str = "", judges_error: bool = True
) -> Diagnostics:
    """Judge a run by the quality of its fit, by its largest factors and by its predictions."""
    name, trace = next(iter(traces.history.items()))
    _, n_kept, n_values = traces.spectra.shape
    # Singular values are those of stored draws, which can be too few for a very large table.
    n_leading = min(n_factors, _LEADING, n_values) if n_kept >= SMALLEST_ESS else 0
    scalars = {name: trace[:, traces.burn_in :]}
    return diagnose(scalars, traces.spectra, traces.probes, n_leading, ended, judges_error)
