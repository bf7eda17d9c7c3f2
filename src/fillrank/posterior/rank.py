"""The number of factors, from the singular values of Z, which are identified.

A draw's rank is the number of singular values of its low-rank part above the level at which noise
would hide them. Single components are not identified: they can share a factor or change places.
"""

import numpy as np

from fillrank.solvers.rank import detection_level

# A factor a thousand times weaker than the largest is not counted, however small the noise: without
# noise, remainders of spare components would count.
_SMALLEST_SHARE = 1e-3


def rank_probabilities(
    spectra: np.ndarray, shape: tuple[int, int], n_entries: int, noise_variance: float
) -> dict[int, float]:
    """The share of draws at each rank, in ascending order of rank; none is above the smaller side.

    It describes the draws of the signal. It is not the posterior of a rank parameter: there is none.

    Parameters
    ----------
    spectra : array (chains, draws, r)
        Singular values of the draws, in the units of ``noise_variance``.
    """
    level = detection_level(shape, n_entries, noise_variance)
    floor = np.maximum(level, _SMALLEST_SHARE * spectra.max(axis=-1, keepdims=True, initial=0.0))
    ranks, counts = np.unique(
        np.minimum((spectra > floor).sum(axis=-1), min(shape)), return_counts=True
    )
    return {int(k): float(c / counts.sum()) for k, c in zip(ranks, counts, strict=True)}


def most_probable(probabilities: dict[int, float]) -> int:
    """The rank of most draws; the smaller one of equals."""
    return max(probabilities, key=lambda k: (probabilities[k], -k))
