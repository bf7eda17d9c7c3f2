"""Leave-one-out cross-validation of entries by Pareto-smoothed importance sampling.

References
----------
.. [1] A. Vehtari, A. Gelman and J. Gabry (2017). Practical Bayesian model evaluation using leave-one-out
   cross-validation and WAIC. Statistics and Computing 27(5), 1413-1432.
.. [2] A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry (2024). Pareto smoothed importance
   sampling. Journal of Machine Learning Research 25(72), 1-58.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillrank.runtime.cache_folder import temporary_home

# Entries whose log-likelihoods are in memory together.
_BLOCK = 4096
# Estimates with a larger k are unreliable, however many draws there are.
LARGEST_K = 0.7


@dataclass(frozen=True, eq=False, repr=False)
class Loo:
    """Leave-one-out predictive densities of entries; `print` shows the sums.

    Attributes
    ----------
    elpd : ndarray
        The expected log predictive density of each entry, given all others.
    pareto_k : ndarray
        The shape of the tail of the importance ratios of each entry: how much it changes the posterior.
    p_loo : ndarray
        The difference to the log density given all entries: its sum is the effective number of
        parameters.
    good_k : float
        The largest k for which the estimate of an entry is reliable with this number of draws.
    entries : table
        The same by row and column, those with the largest k first.
    """

    elpd: np.ndarray
    pareto_k: np.ndarray
    p_loo: np.ndarray
    good_k: float
    entries: Any

    @property
    def total(self) -> float:
        """The sum of ``elpd``: larger is better, among models of the same entries."""
        return float(self.elpd.sum())

    @property
    def standard_error(self) -> float:
        """Of the sum."""
        return float(math.sqrt(self.elpd.size) * self.elpd.std())

    @property
    def n_bad(self) -> int:
        """The number of entries whose k is above ``good_k``."""
        return int(np.count_nonzero(~(self.pareto_k <= self.good_k)))

    def __repr__(self) -> str:
        n = self.elpd.size
        return "\n".join(
            [
                f"leave-one-out of {n:,} entries",
                f"elpd     {self.total:.1f} +- {self.standard_error:.1f}, {self.total / n:.3f} an entry",
                f"p_loo    {self.p_loo.sum():.1f}",
                f"k above {self.good_k:.2f}: {self.n_bad:,} entries ({self.n_bad / n:.1%})",
            ]
        )


def good_k(n_draws: int) -> float:
    """The largest k for which estimates from so many draws are reliable, by Vehtari et al. (2024).

    Examples
    --------
    >>> round(good_k(128), 2), good_k(4000)
    (0.53, 0.7)
    """
    return min(1.0 - 1.0 / math.log10(max(n_draws, 11)), LARGEST_K)


def leave_one_out(
    log_likelihood: Callable[[slice], np.ndarray], n_entries: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(elpd, k, p_loo) of every entry, from log-likelihoods (draws, entries) of blocks of them."""
    # Imported late: it takes a quarter of the package's import time.
    with temporary_home():
        from arviz_stats.base import array_stats

    out = np.empty((3, n_entries))
    for start in range(0, n_entries, _BLOCK):
        block = slice(start, min(start + _BLOCK, n_entries))
        terms = log_likelihood(block)[np.newaxis]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = array_stats.loo(terms, chain_axis=0, draw_axis=1)
        out[:, block] = np.array(found, dtype=np.float64)
    elpd, k, p_loo = out
    return elpd, k, p_loo
