"""Which singular values noise hides: detection level, noise edge, shrinkage, largest rank."""

import math

import numpy as np


def detection_level(shape: tuple[int, int], n_entries: int, noise_variance: float) -> float:
    """The smallest singular value of Z that noise does not hide: sigma (m n)^(1/4) / sqrt(p).

    Below this level the leading singular vectors of the data carry no information about those of Z (the
    phase transition of Baik, Ben Arous and Peche 2005, if each entry is observed with probability p).
    """
    m, n = shape
    return math.sqrt(noise_variance) * (m * n) ** 0.25 * math.sqrt(m * n / n_entries)


def noise_edge(shape: tuple[int, int], n_entries: int) -> float:
    """The largest singular value of noise of variance 1 on the mask: sqrt(m p) + sqrt(n p)."""
    m, n = shape
    p = n_entries / (m * n)
    return math.sqrt(m * p) + math.sqrt(n * p)


def shrink_singular_values(
    w: np.ndarray, shape: tuple[int, int], noise_variance: float
) -> np.ndarray:
    """Estimate the singular values of the signal from those of a complete noisy table, w.

    This shrinkage is optimal in the Frobenius norm (Gavish and Donoho 2017): w becomes
    sqrt((w^2 - a - b)^2 - 4 a b) / w, where a and b are sigma^2 times the two lengths. It shrinks a
    factor at the edge of the noise less than a soft threshold does. A chain that starts from a factor
    shrunk too far could lose it, and would find it again slowly.

    Examples
    --------
    >>> shrink_singular_values(np.array([100.0, 67.7]), (100, 100), noise_variance=10.0).round(1)
    array([77.5, 24.2])
    """
    a, b = (noise_variance * length for length in shape)
    return np.sqrt(np.maximum((w**2 - a - b) ** 2 - 4 * a * b, 0.0)) / w


def largest_rank(shape: tuple[int, int]) -> int:
    """The largest number of components that a table identifies; at least 1.

    Ledermann's bound (1937) on the number of factors of p variables with unknown noise, where p is the
    smaller side.

    Examples
    --------
    >>> largest_rank((1000, 3)), largest_rank((20, 10)), largest_rank((500, 500))
    (1, 6, 468)
    """
    p = min(shape)
    return max(1, int((2 * p + 1 - math.sqrt(8 * p + 1)) / 2))
