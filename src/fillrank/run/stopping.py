"""When a run has enough draws.

A prediction's mean squared error is its posterior variance v plus the variance e of the Monte Carlo
mean; so the finite number of draws enlarges the error by the factor sqrt(1 + e/v). ``added_error`` is
that factor less 1, with e and v averaged over the probes. e comes from batch means: the mean of all
draws has, over k batches, the variance (variance of the batch means) / k.
"""

import math

import numpy as np

# By default a run ends when the draws enlarge the error by less than this.
ENOUGH = 0.0025
_BATCHES = 10


def added_error(probes: np.ndarray) -> float:
    """The share by which Monte Carlo error enlarges the error of predictions.

    Parameters
    ----------
    probes : array (chains, draws, probes)
    """
    chains, n, p = probes.shape
    per_chain = max(2, _BATCHES // chains)
    length = n // per_chain
    if length == 0:
        return math.inf
    batches = (
        probes[:, n - per_chain * length :].reshape(chains * per_chain, length, p).mean(axis=1)
    )
    e = batches.var(axis=0, ddof=1).mean() / len(batches)
    v = probes.var(axis=(0, 1)).mean()
    return math.sqrt(1.0 + e / v) - 1.0 if v > 0 else 0.0
