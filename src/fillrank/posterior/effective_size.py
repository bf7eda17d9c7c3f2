"""Split R-hat and effective sample sizes of many quantities at once.

They are those of ArviZ, ``rhat(method="split")`` and ``ess(method="mean")``, which take a quantity at a
time. Here one Fourier transform has the autocovariances of all.

References
----------
.. [1] A. Gelman et al. (2013). Bayesian Data Analysis, 3rd edition, section 11.4.
.. [2] C. J. Geyer (1992). Practical Markov chain Monte Carlo. Statistical Science 7(4), 473-483.
.. [3] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner (2021). Rank-normalization,
   folding, and localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis
   16(2), 667-718.
"""

import math

import numpy as np

# Numbers that are transformed at once, for little memory.
_BLOCK = 1 << 18


def rhat_and_ess(traces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split R-hat, and the effective sample size of the mean.

    Parameters
    ----------
    traces : array (chains, draws, quantities)
        At least 4 draws. Both results are nan for a quantity with a value that is not finite.

    Returns
    -------
    rhat, ess : arrays (quantities,)

    Examples
    --------
    >>> independent = np.random.default_rng(0).standard_normal((2, 1000, 3))
    >>> rhat, ess = rhat_and_ess(independent)
    >>> rhat.round(2), ess.round(-3)
    (array([1., 1., 1.]), array([2000., 2000., 2000.]))
    """
    n_chains, n_draws, n_quantities = traces.shape
    width = max(1, _BLOCK // (n_chains * n_draws))
    rhat, ess = np.empty((2, n_quantities))
    for start in range(0, n_quantities, width):
        block = slice(start, start + width)
        halves = _halves_of_chains(traces[..., block])
        with np.errstate(divide="ignore", invalid="ignore"):  # constant chains
            rhat[block], ess[block] = _rhat(halves), _ess(halves)
    return rhat, ess


def _halves_of_chains(traces: np.ndarray) -> np.ndarray:
    """(quantities, 2 * chains, draws // 2): a chain that drifts differs from itself."""
    half = traces.shape[1] // 2
    halves = np.concatenate((traces[:, :half], traces[:, -half:]))
    return np.ascontiguousarray(halves.transpose(2, 0, 1), dtype=np.float64)


def _rhat(chains: np.ndarray) -> np.ndarray:
    """By the variance of the chains' means and the mean of their variances."""
    n_draws = chains.shape[-1]
    between = n_draws * chains.mean(axis=-1).var(axis=-1, ddof=1)
    within = chains.var(axis=-1, ddof=1).mean(axis=-1)
    return np.sqrt((between / within + n_draws - 1) / n_draws)


def _ess(chains: np.ndarray) -> np.ndarray:
    """The number of draws over their autocorrelation time, by Geyer's initial monotone sequence.

    The autocorrelations at lags (0, 1), (2, 3), ... have positive sums that decrease, in theory. The
    estimates are cut off before the first pair whose sum is not positive, of which the first is kept if
    it is positive, and no pair counts for more than those before it.
    """
    _, n_chains, n_draws = chains.shape
    covariance = _autocovariances(chains)
    within = covariance[:, 0] * (n_draws / (n_draws - 1.0))
    variance = covariance[:, 0] + chains.mean(axis=-1).var(axis=-1, ddof=1)
    rho = 1.0 - (within[:, np.newaxis] - covariance) / variance[:, np.newaxis]
    rho[:, 0] = 1.0

    n_pairs = max(1, (n_draws - 1) // 2)
    even = rho[:, 0 : 2 * n_pairs : 2]
    pairs = even + rho[:, 1 : 2 * n_pairs : 2]
    positive = pairs > 0.0
    last = np.where(positive.all(axis=1), n_pairs - 1, np.argmin(positive, axis=1))
    rows = np.arange(len(rho))
    counted = np.arange(n_pairs) < last[:, np.newaxis]
    monotone = np.minimum.accumulate(pairs, axis=1)
    final = even[rows, last]
    final = np.where(pairs[rows, last] >= 0.0, final, np.maximum(final, 0.0))
    time = -1.0 + 2.0 * np.where(counted, monotone, 0.0).sum(axis=1) + final

    size = n_chains * n_draws
    # Chains may be better than independent draws, but not by any factor.
    ess = size / np.maximum(time, 1.0 / math.log10(size))
    still = np.ptp(chains, axis=(1, 2)) < np.finfo(np.float64).resolution
    ess[np.isnan(rho).any(axis=1)] = np.nan
    return np.where(still, float(size), ess)


def _autocovariances(chains: np.ndarray) -> np.ndarray:
    """The mean over chains at every lag, (quantities, draws)."""
    n_draws = chains.shape[-1]
    length = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(chains - chains.mean(axis=-1, keepdims=True), n=length)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    return np.fft.irfft(power, n=length)[:, :n_draws] / n_draws
