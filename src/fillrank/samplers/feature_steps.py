r"""The steps of a sweep for the features of rows and columns, which GASR and BPMF share.

F (m, p) are known features of the rows. They move the means of the rows' coefficients A (m, K): with
the blocks F_g of F, the weights B_g and the strength lambda_g of each,

.. math::

    A_i \mid B &\sim N(M + \sum_g F_{gi} B_g,\; \Lambda^{-1}) \\
    B_{gj} &\sim N(0,\; (\lambda_g \Lambda)^{-1}) \quad \text{for each feature } j \\
    1 / \sqrt{\lambda_g} &\sim \text{half-Cauchy}(0, 1)

The rows of a block have a mean squared norm of 1, or less for the pattern of missing values. With 1,
features explain a priori a share of 1 / (1 + lambda) of the variance of A, and the prior of that share
is Beta(1/2, 1/2).

The columns of a block are orthogonal: F_g^T F_g = diag(s). So with T = F_g^T (A - M - the other blocks),
the weights are independent over features,

.. math:: B_{gj} \mid A \sim N(T_j / (s_j + \lambda),\; ((s_j + \lambda) \Lambda)^{-1}),

and lambda is drawn before, with B integrated out, because the two depend strongly on each other:

.. math:: \log p(\lambda \mid A) = \log p(\lambda) + \sum_j \tfrac K2 \log \frac{\lambda}{\lambda + s_j}
          + \frac{T_j \Lambda T_j^T}{2 (\lambda + s_j)}.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from fillrank.draws.normal import row_normals
from fillrank.draws.slice import slice_step
from fillrank.draws.streams import Address
from fillrank.kernels.factors import cross_products, gram, multiplied
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import NO_WEIGHTS

# Bounds of lambda: beyond the first, features explain all, and beyond the second, nothing.
STRENGTHS = (1e-6, 1e8)
# Where in the address of a side's scalars the draws of features are: its first rows are for others.
_STRENGTH_ROW, _WEIGHT_ROW = 32, 64
# The number of rows by which features are recognised.
_RECOGNISED = 100
_ALONE = Workers(1)


def share_name(side: Literal["row", "column"], block: str) -> str:
    """The name of a block's share in the history."""
    return f"{side}_{block}_share"


class Features(NamedTuple):
    """The features of one side: F (m, p), with its blocks side by side, and F^T F.

    ``ends`` are the numbers of features up to the end of each block, ``names`` those of the blocks. The
    columns of F have the mean 0.
    """

    values: np.ndarray
    gram: np.ndarray
    ends: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def n_features(self) -> int:
        """How many there are."""
        return self.values.shape[1]

    def blocks(self) -> Iterator[slice]:
        """The features of each block."""
        start = 0
        for end in self.ends:
            yield slice(start, end)
            start = end


NO_FEATURES = Features(np.zeros((0, 0), np.float32), np.zeros((0, 0)), (), ())


class BothFeatures(NamedTuple):
    """The features of the rows and of the columns."""

    rows: Features = NO_FEATURES
    columns: Features = NO_FEATURES

    def traced(self) -> tuple[str, ...]:
        """The names of what `share_history` returns."""
        rows = (share_name("row", name) for name in self.rows.names)
        columns = (share_name("column", name) for name in self.columns.names)
        return (*rows, *columns)

    def some_values(self) -> tuple[np.ndarray, np.ndarray]:
        """The features of some rows and columns, by which all are recognised."""
        rows, columns = (each.values[:: max(1, len(each.values) // _RECOGNISED)] for each in self)
        return rows, columns


WITHOUT_FEATURES = BothFeatures()


class Weights(NamedTuple):
    """The weights B (p, K) of the features of one side, and the strength lambda of each block."""

    B: np.ndarray
    strengths: np.ndarray


def join_blocks(blocks: dict[str, np.ndarray], dtype: np.dtype) -> Features:
    """The features of one side, from the values of its blocks by name."""
    if not blocks:
        return NO_FEATURES
    parts = [*blocks.values()]
    # Joining one block would copy it.
    values = np.hstack(parts) if len(parts) > 1 else parts[0]
    ends = np.cumsum([part.shape[1] for part in parts]).tolist()
    return Features(np.ascontiguousarray(values, dtype), _gram(values), tuple(ends), tuple(blocks))


def _gram(values: np.ndarray) -> np.ndarray:
    """F^T F in double precision. Values in single precision are not copied."""
    if values.dtype == np.float64:
        return np.asarray(values.T @ values)
    return gram(values, np.zeros(values.shape[1]), np.ones(len(values)), _ALONE)


def share_history(rows: Weights, columns: Weights, features: BothFeatures) -> dict[str, float]:
    """The share 1 / (1 + lambda) of each block.

    Where features explain nothing, all that is known about lambda is that it is large, and its draws
    differ by orders of magnitude. The share is then known to be close to 0.
    """
    strengths = (*rows.strengths.tolist(), *columns.strengths.tolist())
    shares = (1.0 / (1.0 + strength) for strength in strengths)
    return dict(zip(features.traced(), shares, strict=True))


def drawn_weights(weights: Weights, dtype: np.dtype) -> np.ndarray:
    """B as a draw stores it."""
    return weights.B.astype(dtype) if weights.B.size else NO_WEIGHTS


def first_weights(features: Features, width: int) -> Weights:
    """Weights 0: they are drawn after the first rows."""
    return Weights(np.zeros((features.n_features, width)), np.ones(len(features.ends)))


def explained(features: Features, B: np.ndarray, workers: Workers) -> np.ndarray:
    """F B, in the precision of F: what features add to the means of the rows; empty without any."""
    if not features.ends:
        return features.values
    return multiplied(features.values, B, workers)


def without_explained(A: np.ndarray, explained: np.ndarray) -> np.ndarray:
    """A - F B."""
    return A - explained if explained.size else A


def rooted(weights: Weights, features: Features) -> np.ndarray:
    """sqrt(lambda_g) B_g of all blocks, one below the other: (p, K)."""
    sizes = np.diff([0, *features.ends])
    return np.sqrt(np.repeat(weights.strengths, sizes))[:, np.newaxis] * weights.B


def weight_squares(weights: Weights, features: Features) -> np.ndarray:
    """sum_g lambda_g ||B_gk||^2 for each coefficient k."""
    return np.asarray(np.square(rooted(weights, features)).sum(axis=0))


def draw_weights(
    weights: Weights,
    features: Features,
    rest: np.ndarray,
    root: np.ndarray,
    address: Address,
    workers: Workers,
) -> Weights:
    """lambda and B of every block, given ``rest`` = A - F B without its other means.

    ``root`` is a matrix T with Lambda = T T^T.
    """
    B, strengths = weights.B.copy(), weights.strengths.copy()
    products = cross_products(features.values, rest, workers)
    squares = np.diag(features.gram)
    for g, block in enumerate(features.blocks()):
        s = squares[block]
        T = products[block] + s[:, np.newaxis] * B[block]
        strengths[g] = draw_strength(strengths[g], s, T @ root, address, g)
        precision = (s + strengths[g])[:, np.newaxis]
        z = row_normals(address, _WEIGHT_ROW + block.start, T.shape)
        new = T / precision + np.linalg.solve(root.T, z.T).T / np.sqrt(precision)
        products -= features.gram[:, block] @ (new - B[block])
        B[block] = new
    return Weights(B, strengths)


def draw_strength(
    strength: float, s: np.ndarray, standard: np.ndarray, address: Address, g: int
) -> float:
    """lambda_g given A, by a slice step; ``standard`` (p_g, K) is T times a root of Lambda."""
    K, w = standard.shape[1], np.einsum("jk,jk->j", standard, standard)
    low, high = (math.log(bound) for bound in STRENGTHS)

    def log_density(t: float) -> float:
        if not low <= t <= high:
            return -math.inf
        total = math.exp(t) + s
        prior = 0.5 * t - math.log1p(math.exp(t))
        fit = 0.5 * K * (s.size * t - np.log(total).sum()) + 0.5 * (w / total).sum()
        return float(prior + fit)

    t = slice_step(math.log(strength), log_density, 1.0, address, _STRENGTH_ROW + g)
    return math.exp(t)


def are_valid_weights(weights: Weights, largest: float) -> bool:
    """Whether a chain can continue with them."""
    low, high = STRENGTHS
    strengths = weights.strengths
    return bool(
        (np.abs(weights.B) <= largest).all() and ((strengths >= low) & (strengths <= high)).all()
    )
