"""The posterior of a low-rank signal in a model file, and what is checked in it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import ReadError
from fillrank.features.blocks import Blocks
from fillrank.noise.laws import LAWS, LawName
from fillrank.posterior.kinds import KindPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.posterior.protocol import SignalPosterior
from fillrank.posterior.record import Record
from fillrank.posterior.stored_features import (
    StoredSide,
    restored_blocks,
    restored_weights,
    stored_side,
)
from fillrank.posterior.stored_kinds import (
    StoredCoding,
    StoredRowCoding,
    check_types,
    restored_coding,
    restored_posterior,
    stored_coding,
)
from fillrank.posterior.validation import check_history, check_posterior, check_traces
from fillrank.samplers.feature_steps import share_name
from fillrank.samplers.model import Draw, Noise
from fillrank.table.latent import Coding
from fillrank.table.observations import Observations
from fillrank.table.units import Units


class StoredNoise(NamedTuple):
    """The noise of a draw; None for precisions that are all 1."""

    variance: float
    rows: np.ndarray | None
    columns: np.ndarray | None
    degrees: float


class StoredDraw(NamedTuple):
    """A draw; the weights of features and the intervals of levels are stored for all draws together."""

    left: np.ndarray
    right: np.ndarray
    noise: StoredNoise


class StoredLowRank(NamedTuple):
    """The posterior of a low-rank signal, and the kinds of values if they are not all numbers."""

    draws: list[StoredDraw]
    units: Units
    mean: StoredDraw
    row_features: StoredSide | None
    column_features: StoredSide | None
    coding: StoredCoding | StoredRowCoding | None


class StoredLowRank3(NamedTuple):
    """The same in layout 3."""

    draws: list[StoredDraw]
    units: Units
    mean: StoredDraw
    row_features: StoredSide | None
    column_features: StoredSide | None


class StoredLowRank2(NamedTuple):
    """The posterior of a method that predicts numbers, in layout 2."""

    draws: list[StoredDraw]
    units: Units
    mean: StoredDraw


class _StoredDraw1(NamedTuple):
    """A draw in layout 1."""

    left: np.ndarray
    right: np.ndarray
    noise_variance: float


class _StoredUnits1(NamedTuple):
    """Units in layout 1."""

    location: float
    scale: float
    value_range: tuple[float, float] | None


class StoredLowRank1(NamedTuple):
    """The posterior of a method that predicts numbers, in layout 1."""

    draws: list[_StoredDraw1]
    units: _StoredUnits1
    mean: _StoredDraw1


_AnyLowRank = StoredLowRank | StoredLowRank3 | StoredLowRank2 | StoredLowRank1
# The types in older layouts.
OLDER_LOW_RANK: dict[int, Any] = {1: StoredLowRank1, 2: StoredLowRank2, 3: StoredLowRank3}


def stored_low_rank(posterior: SignalPosterior) -> StoredLowRank:
    """The posterior of numbers, or of kinds of values, as a file has it."""
    signal, coding = posterior.low_rank, posterior.coding
    draws, blocks = signal.draws, signal.blocks
    return StoredLowRank(
        [_stored_draw(draw) for draw in draws],
        signal.units,
        _stored_draw(signal.mean),
        stored_side(blocks.rows, [draw.row_weights for draw in draws]),
        stored_side(blocks.columns, [draw.column_weights for draw in draws]),
        None if coding is None else stored_coding(coding, draws),
    )


def _stored_draw(draw: Draw) -> StoredDraw:
    variance, rows, columns, degrees = draw.noise
    noise = StoredNoise(variance, _unless_ones(rows), _unless_ones(columns), degrees)
    return StoredDraw(draw.left, draw.right, noise)


def _unless_ones(precisions: np.ndarray) -> np.ndarray | None:
    return None if bool((precisions == 1.0).all()) else precisions


def restored_signal(
    part: _AnyLowRank, record: Record, observations: Observations
) -> LowRankPosterior | KindPosterior:
    """The posterior of a signal, or of the kinds of values that follow from it."""
    part = _updated(part, observations.shape)
    law = _law_of(record)
    of_levels = record.loss in ("logistic", "ordered")
    if record.n_sweeps is None and of_levels != (part.coding is not None):
        raise ReadError("its likelihood is not that of its values.")
    if part.coding is None:
        if LAWS[law].of_levels:
            raise ReadError(f"its likelihood, {law}, is for two levels, and it has numbers.")
        return _low_rank_of(part, record, observations.shape)
    coding = restored_coding(part.coding, observations.column_labels)
    if law != "gaussian":
        _check_two_levels(coding, law)
    check_types(coding, observations.column_types)
    latent_shape = observations.shape[0], coding.n_latent
    return restored_posterior(_low_rank_of(part, record, latent_shape), part.coding, coding)


def _updated(part: _AnyLowRank, shape: tuple[int, int]) -> StoredLowRank:
    """The posterior of a file in any layout, as the present one has it."""
    if isinstance(part, StoredLowRank1):
        part = _from_layout_1(part, shape)
    if isinstance(part, StoredLowRank2):
        part = StoredLowRank3(*part, row_features=None, column_features=None)
    if isinstance(part, StoredLowRank3):
        part = StoredLowRank(*part, coding=None)
    return part


def _from_layout_1(part: StoredLowRank1, shape: tuple[int, int]) -> StoredLowRank2:
    """The posterior of a file in layout 1, as layout 2 has it."""
    draws = [
        StoredDraw(left, right, StoredNoise(noise_variance, None, None, math.inf))
        for left, right, noise_variance in (*part.draws, part.mean)
    ]
    location, scale, value_range = part.units
    return StoredLowRank2(
        draws[:-1], Units.equal(location, scale, shape[1], value_range), draws[-1]
    )


def _law_of(record: Record) -> LawName:
    """The distribution of the noise. Solvers have none, but the link of two levels."""
    if record.loss == "logistic":
        return "logistic"
    return record.law or "gaussian"


def _check_two_levels(coding: Coding, law: LawName) -> None:
    """Raise ReadError unless all values are one of the same two levels."""
    has_two_levels = [each.kind for each in coding.scales] == ["yes_no"]
    if not has_two_levels or not LAWS[law].of_levels:
        raise ReadError(f"its likelihood, {law}, is not for its kinds of values.")


def _low_rank_of(part: StoredLowRank, record: Record, shape: tuple[int, int]) -> LowRankPosterior:
    is_sampled = record.n_sweeps is not None
    sides = part.row_features, part.column_features
    weights = zip(*(restored_weights(side, len(part.draws)) for side in sides), strict=True)
    draws = [
        _restored_draw(draw, shape)._replace(row_weights=row_weights, column_weights=column_weights)
        for draw, (row_weights, column_weights) in zip(part.draws, weights, strict=True)
    ]
    posterior = LowRankPosterior(
        draws,
        part.units,
        _restored_draw(part.mean, shape),
        has_draws=is_sampled,
        blocks=Blocks(*map(restored_blocks, sides)),
        law=_law_of(record),
    )
    check_posterior(posterior, shape)
    if is_sampled:
        _check_sampler(posterior, record, shape)
    elif any(sides):
        raise ReadError("it has features, which no solver takes.")
    return posterior


def _restored_draw(draw: StoredDraw, shape: tuple[int, int]) -> Draw:
    variance, rows, columns, degrees = draw.noise
    noise = Noise.equal(variance, shape)._replace(degrees=degrees)
    if rows is not None:
        noise = noise._replace(rows=rows)
    if columns is not None:
        noise = noise._replace(columns=columns)
    return Draw(draw.left, draw.right, noise)


def _check_sampler(posterior: LowRankPosterior, record: Record, shape: tuple[int, int]) -> None:
    by_chain = len(check_history(record.history)) == 2
    if not by_chain or min(trace.min() for trace in record.history.values()) < 0:
        raise ReadError("its history is not that of a sampler's variances and scales.")
    if min(draw.noise.variance for draw in posterior.draws) <= 0:
        raise ReadError("its noise variance is 0, which no sampler gives.")
    row_shares = (share_name("row", block.name) for block in posterior.blocks.rows)
    column_shares = (share_name("column", block.name) for block in posterior.blocks.columns)
    if not {*row_shares, *column_shares} <= record.history.keys():
        raise ReadError("its features are not those of its history.")
    if record.traces is not None:
        check_traces(record.traces, shape)
        assert record.singular_values is not None  # a required part
        if record.traces.spectra.shape[2] != record.singular_values.size:
            raise ReadError("its singular values are not those of its draws.")
