"""Has the run converged? R-hat and effective sample sizes of quantities that are identified."""

import math
from dataclasses import dataclass

import numpy as np

from fillrank.data.cache_folder import some_home
from fillrank.run.recorder import Traces

# Vehtari et al. (2021) ask for R-hat below 1.01 before a draw is reported. Predictions are means over
# many weakly identified factors, and are steady long before every singular value is.
LARGEST_RHAT = 1.1
SMALLEST_ESS = 25
_FEWEST_DRAWS = 8
# Cells that are enough to tell whether a run has converged; each costs a millisecond.
_CELLS_TO_JUDGE_BY = 50
# Singular values to look at.
_LEADING = 5


@dataclass(frozen=True)
class Diagnostics:
    """R-hat and effective sample size by quantity; `print` shows a table.

    ``rhat`` and ``ess`` map the names of quantities to numbers: how well the entries are fitted, as
    ``residual_variance`` or ``hinge_loss``, the leading singular values, and ``prediction (median)``
    and ``prediction (worst 5%)`` over cells chosen at random. A quantity that never moved has R-hat 1.
    """

    rhat: dict[str, float]
    ess: dict[str, float]
    n_draws: int
    n_chains: int

    @property
    def converged(self) -> bool:
        """Whether the predictions can be trusted as means over the posterior."""
        median = "prediction (median)"
        return not _complaint(self.n_draws, self.rhat[median], self.ess[median])

    def __str__(self) -> str:
        lines = [f"{'quantity':<26}{'R-hat':>8}{'ESS':>10}"]
        lines += [f"{name:<26}{self.rhat[name]:>8.3f}{self.ess[name]:>10.0f}" for name in self.rhat]
        lines.append(f"{self.n_draws} draws in {self.n_chains} chain(s)")
        return "\n".join(lines)


def _complaint(n_draws: int, rhat: float, ess: float) -> str:
    if n_draws < _FEWEST_DRAWS:
        return f"{n_draws} draws in a chain are too few to judge by"
    if not rhat < LARGEST_RHAT:
        return f"the R-hat of the predictions is {rhat:.2f}, and should be below {LARGEST_RHAT}"
    if not ess >= SMALLEST_ESS:
        return f"the predictions rest on {ess:.0f} effective draws, and should on {SMALLEST_ESS}"
    return ""


def _judge(trace: np.ndarray) -> tuple[float, float]:
    """(R-hat, ESS) of a trace (chains, draws)."""
    if trace.shape[1] < _FEWEST_DRAWS:
        return math.inf, float("nan")
    if np.ptp(trace) == 0.0:
        return 1.0, float(trace.size)
    # Imported late: it costs a quarter of the package's import time.
    with some_home():
        from arviz_stats.base import array_stats

    if len(trace) == 1:  # a single chain is judged by the agreement of its halves
        half = trace.shape[1] // 2
        trace = trace[0, -2 * half :].reshape(2, half)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that stand still, apart
        rhat = array_stats.rhat(trace, chain_axis=0, draw_axis=1)
        ess = array_stats.ess(trace, chain_axis=0, draw_axis=1, method="mean")
    return float(rhat), float(ess)


def _judge_each(probes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R-hat, ESS) of every probe."""
    each = np.array([_judge(probes[..., p]) for p in range(probes.shape[-1])])
    return each[:, 0], each[:, 1]


def complaint(probes: np.ndarray) -> str:
    """What keeps a run from being trusted, in words; empty if nothing does.

    The verdict of `diagnose`, but from some of the probes alone, so that every fit can ask for it.
    """
    rhat, ess = _judge_each(probes[..., :_CELLS_TO_JUDGE_BY])
    return _complaint(probes.shape[1], float(np.median(rhat)), float(np.median(ess)))


def diagnose(
    traces: dict[str, np.ndarray], spectra: np.ndarray, probes: np.ndarray, n_leading: int
) -> Diagnostics:
    """Judge named traces (chains, draws), spectra (chains, draws, r), (chains, draws, probes).

    ``n_leading`` says how many singular values to look at.
    """
    judged = {name: _judge(trace) for name, trace in traces.items()}
    for k in range(n_leading):
        judged[f"singular_value {k + 1}"] = _judge(spectra[..., k])
    rhat, ess = _judge_each(probes)
    judged["prediction (median)"] = float(np.median(rhat)), float(np.median(ess))
    judged["prediction (worst 5%)"] = (
        float(np.quantile(rhat, 0.95, method="higher")),
        float(np.quantile(ess, 0.05, method="lower")),
    )
    return Diagnostics(
        {name: value[0] for name, value in judged.items()},
        {name: value[1] for name, value in judged.items()},
        n_draws=probes.shape[1],
        n_chains=probes.shape[0],
    )


def diagnose_run(traces: Traces, n_factors: int) -> Diagnostics:
    """Judge a run by the quality of its fit and by its largest factors."""
    name, trace = next(iter(traces.history.items()))
    n_leading = min(n_factors, _LEADING)
    return diagnose({name: trace[:, traces.burn_in :]}, traces.spectra, traces.probes, n_leading)
