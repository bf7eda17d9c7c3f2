"""The average of the signals of the stored draws as one product of factors.

The average of T products of rank k has rank T k, but nearly all of it is in a space of 2k dimensions.
The rest is below the Monte Carlo error (docs/figures.md has numbers). A prediction then costs 2k
products instead of T k.
"""

import numpy as np

from fillrank.kernels.factors import orthonormalise
from fillrank.kernels.gaussian_rows import NO_THRESHOLDS
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import NO_WEIGHTS, Draw, Noise
from fillrank.table.entries import iter_blocks

# The smallest number of factors of a mean; it is exact for tables with a shorter side.
_FEWEST = 64
_ROWS = 4096  # processed together
_ALONE = Workers(1)


def mean_draw(draws: list[Draw]) -> Draw:
    """The draw whose signal is the average of all draws; exact if a side is short.

    Parameters
    ----------
    draws : list of Draw
        All of k factors. The signal of a single one is its own average.

    Returns
    -------
    Draw
        Of at most 2k factors, or 64 if that is more, in the precision of the draws, with Gaussian
        noise whose variances, of the table and of each row and column, are averages of those of the
        draws. It has no weights of features.
    """
    if len(draws) == 1:
        return draws[0]._replace(
            row_weights=NO_WEIGHTS, column_weights=NO_WEIGHTS, row_thresholds=NO_THRESHOLDS
        )
    m, n = len(draws[0].left), len(draws[0].right)
    sides = [(draw.left, draw.right) for draw in draws]
    noise = _average_noise([draw.noise for draw in draws])
    if n <= m:
        left, right = _average(sides)
    else:
        right, left = _average([(right, left) for left, right in sides])
    return Draw(left, right, noise)


def _average_noise(noises: list[Noise]) -> Noise:
    """Gaussian noise whose variances, of the table, each row and each column, are the averages.

    Draws are averaged by their cells: sigma^2 and the precisions share a scale that varies from draw to
    draw, so that averages of each alone would belong together in no draw.
    """
    total = 0.0
    rows, columns = np.zeros(noises[0].rows.size), np.zeros(noises[0].columns.size)
    for noise in noises:
        of_table = noise.average()
        total += of_table
        rows += of_table * _relative(noise.rows)
        columns += of_table * _relative(noise.columns)
    return Noise(total / len(noises), total / rows, total / columns)


def _relative(precisions: np.ndarray) -> np.ndarray:
    """The variances for some precisions, over their mean."""
    variances = 1.0 / precisions
    return variances / variances.mean()


def _average(sides: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(M W, W) for M = average of L_t R_t^T, with orthonormal W that spans nearly all of M's rows.

    This is one step of subspace iteration, from the span of the factors of some draws that are far
    apart in the run.
    """
    dtype = sides[0][0].dtype
    turned = [(right, left) for left, right in sides]
    n, k = sides[0][1].shape
    width = max(2 * k, _FEWEST)
    if n <= width:
        W = np.eye(n, dtype=dtype)
    else:
        some = np.linspace(0, len(sides) - 1, -(-width // k)).round().astype(int)
        W = np.hstack([sides[t][1] for t in some])[:, :width]
        Q = _average_product(sides, W)
        orthonormalise(Q, _ALONE)
        W = _average_product(turned, Q)
        orthonormalise(W, _ALONE)
    return _average_product(sides, W), W


def _average_product(sides: list[tuple[np.ndarray, np.ndarray]], X: np.ndarray) -> np.ndarray:
    """M X in the precision of the draws, summed in double precision, some rows at a time."""
    inner = [right.T @ X for _, right in sides]
    m, dtype = len(sides[0][0]), sides[0][0].dtype
    out = np.empty((m, X.shape[1]), dtype=dtype)
    for rows in iter_blocks(m, _ROWS):
        total = np.zeros((rows.stop - rows.start, X.shape[1]))
        for (left, _), G in zip(sides, inner, strict=True):
            total += left[rows] @ G
        out[rows] = total / len(sides)
    return out
