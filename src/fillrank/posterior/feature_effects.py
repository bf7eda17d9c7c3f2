r"""What features change in the predictions, and how much of the signal they explain.

With the coded terms x (q,) of the features of a row, their means and the directions Q (q, p) of a block,
the features of the row are (x - means) Q. Under a draw with the weights B (p, K) of the block and the
factors R (n, K) of the columns, a change dx of the terms changes the signal of the row by dx Q B R^T.
The sums over columns follow from the mean of R and from R^T R, so no array of the size of the table is
made.
"""

from typing import NamedTuple

import numpy as np

from fillrank.features.blocks import Block, TableCode
from fillrank.features.new_rows import Axis, side_of
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.predictive import quantiles
from fillrank.samplers.model import Draw


class FeatureEffects(NamedTuple):
    """Of each term of given features: its effect on an average cell, with an interval, and its strength.

    Strongest first.
    """

    name: np.ndarray
    effect: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    strength: np.ndarray


class _Changes(NamedTuple):
    """Changes of features that are compared: their names, and the changes (q, p) of all features."""

    names: list[str]
    features: np.ndarray


def feature_effects(posterior: LowRankPosterior, axis: Axis, level: float) -> FeatureEffects:
    """The effects of given features of the rows (or columns).

    Parameters
    ----------
    posterior : LowRankPosterior
        With a block from a table of features on this side.
    axis : {"rows", "columns"}
    level : float
        Of the intervals.
    """
    changes = _changes(side_of(posterior.blocks, axis))
    scale = posterior.units.shared_scale
    effects, strengths = [], []
    for draw in _turned(posterior, axis):
        shifts = changes.features @ draw.row_weights.astype(np.float64)
        right = draw.right.astype(np.float64)
        effects.append(scale * shifts @ right.mean(axis=0))
        squares = np.einsum("qk,qk->q", shifts @ (right.T @ right), shifts) / len(right)
        strengths.append(scale * np.sqrt(np.maximum(squares, 0.0)))
    lower, upper = quantiles(np.array(effects), (0.5 * (1.0 - level), 0.5 * (1.0 + level)))
    strength = np.mean(strengths, axis=0)
    order = np.argsort(-strength, kind="stable")
    names = np.array(changes.names, dtype=object)
    found = FeatureEffects(names, np.mean(effects, axis=0), lower, upper, strength)
    return FeatureEffects(*(each[order] for each in found))


def _turned(posterior: LowRankPosterior, axis: Axis) -> list[Draw]:
    """The draws, transposed for features of columns."""
    if axis == "rows":
        return posterior.draws
    return [draw.transpose() for draw in posterior.draws]


def _changes(side: tuple[Block, ...]) -> _Changes:
    """The change of all features for each term of the blocks from tables."""
    width = sum(block.values.shape[1] for block in side)
    names: list[str] = []
    parts = []
    start = 0
    for block in side:
        stop = start + block.values.shape[1]
        if isinstance(block.code, TableCode):
            names += block.terms
            part = np.zeros((len(block.terms), width))
            part[:, start:stop] = _term_changes(block.code) @ block.code.directions
            parts.append(part)
        start = stop
    return _Changes(names, np.vstack(parts))


def _term_changes(code: TableCode) -> np.ndarray:
    """The change (q, q) of the coded terms for each term."""
    changes = np.eye(len(code.means))
    start = 0
    for field in code.fields:
        stop = start + field.n_terms
        part = slice(start, stop)
        if field.kind == "category":
            changes[part, part] -= code.means[part]
        if field.has_missing:
            # The other terms of a missing value have their means.
            changes[stop - 1, start : stop - 1] = 0.0
            changes[stop - 1, stop - 1] = 1.0 - code.means[stop - 1]
        start = stop
    return changes


def variance_shares(posterior: LowRankPosterior) -> dict[Axis, dict[str, float]]:
    """How much of the differences between rows, and between columns, each block of features explains.

    Parameters
    ----------
    posterior : LowRankPosterior

    Returns
    -------
    dict of {"rows", "columns"} to dict of name to share
        For each side with features, the variance over all cells of F_g B_g R^T for each block g, by its
        name, and of what is left, "rest", relative to their sum. Posterior means.
    """
    axes: tuple[Axis, ...] = ("rows", "columns")
    return {axis: _side_shares(posterior, axis) for axis in axes if side_of(posterior.blocks, axis)}


def _side_shares(posterior: LowRankPosterior, axis: Axis) -> dict[str, float]:
    side = side_of(posterior.blocks, axis)
    names = [*(block.name for block in side), "rest"]
    shares = [_draw_shares(draw, side) for draw in _turned(posterior, axis)]
    return dict(zip(names, np.mean(shares, axis=0).tolist(), strict=True))


def _draw_shares(draw: Draw, side: tuple[Block, ...]) -> np.ndarray:
    """The shares of the blocks, and of the rest, under one draw; the rest has all if nothing varies."""
    gram = draw.right.T.astype(np.float64) @ draw.right
    variances, rest, start = [], draw.left, 0
    for block in side:
        stop = start + block.values.shape[1]
        part = block.values @ draw.row_weights[start:stop]
        variances.append(_variance(part, gram))
        rest = rest - part
        start = stop
    variances.append(_variance(rest, gram))
    total = sum(variances)
    return np.array(variances) / total if total > 0 else np.eye(len(variances))[-1]


def _variance(left: np.ndarray, gram: np.ndarray) -> float:
    """The sum of squares of the columns of left right^T about their means, for right^T right."""
    centred = left - left.mean(axis=0, dtype=np.float64)
    return max(0.0, float(np.sum((centred.T @ centred) * gram)))
