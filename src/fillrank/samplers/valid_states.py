"""Whether a chain can continue from a state that was read from a file.

All numbers are known to be finite. A state must satisfy the constraints of the model; the other bounds
are far beyond what occurs in standard units, and within them rejection samplers end soon.
"""

from collections.abc import Sequence

import numpy as np

from fillrank.runtime.threads import Workers
from fillrank.samplers import bpmf, gasr
from fillrank.samplers.feature_steps import (
    WITHOUT_FEATURES,
    BothFeatures,
    Features,
    Weights,
    are_valid_weights,
    explained,
    weight_squares,
    without_explained,
)
from fillrank.samplers.model import LARGEST_ENTRY, LARGEST_SIGNAL, Effect
from fillrank.samplers.threshold_steps import (
    NO_INTERVALS,
    Intervals,
    are_valid_limits,
    are_valid_row_thresholds,
)

_SMALLEST_VARIANCE = 1e-20  # of effects
# Rounding may take a factor out of the unit ball by the first of these, and by the second times the size
# of its centre.
_BEYOND, _ROUNDING = 1e-2, 1e-6


def is_valid_gasr_state(
    state: gasr.State,
    infos: Sequence[gasr.Info],
    features: BothFeatures = WITHOUT_FEATURES,
    intervals: Intervals = NO_INTERVALS,
) -> bool:
    """Whether a state of GASR is valid, with what the last sweeps found."""
    r = state.d.size
    own, other = _largest_entries(state.left), _largest_entries(state.right)
    signal = own * other * np.append(state.d, [1.0, 1.0])
    weights = state.row_weights, state.column_weights
    return (
        bool((state.d >= 0).all() and (state.gamma > 0).all())
        and all(_are_small(values) for values in (state.d, state.mu, state.nu, own, other))
        and bool((signal <= LARGEST_SIGNAL).all())
        and all(are_valid_weights(each, LARGEST_ENTRY) for each in weights)
        and _is_in_ball(state.left, state.mu, state.row_weights, features.rows)
        and _is_in_ball(state.right, state.nu, state.column_weights, features.columns)
        and gasr.A_BOUNDS[0] <= state.a <= gasr.A_BOUNDS[1]
        and gasr.B_BOUNDS[0] <= state.b <= gasr.B_BOUNDS[1]
        and all(map(_is_valid_effect, (state.row_effect, state.column_effect)))
        and state.noise.is_valid
        and state.limits.shape == intervals.limits.shape
        and are_valid_limits(state.limits)
        and are_valid_row_thresholds(state.row_thresholds, intervals, len(state.left))
        and all(_is_valid_info(info, r) for info in infos)
    )


def is_valid_bpmf_state(
    state: bpmf.State, infos: Sequence[bpmf.Info], intervals: Intervals = NO_INTERVALS
) -> bool:
    """Whether a state of BPMF is valid."""
    own, other = _largest_entries(state.left).max(), _largest_entries(state.right).max()
    return (
        not infos
        and all(
            are_valid_weights(weights, LARGEST_ENTRY)
            for weights in (state.row_weights, state.column_weights)
        )
        and max(own, other) <= LARGEST_ENTRY
        and own * other <= LARGEST_SIGNAL
        and state.noise.cells.is_valid
        and state.noise.cells.variance > 0  # the user may have fixed it, in other units
        and state.noise.has_valid_precisions
        and state.noise.has_valid_degrees
        and state.limits.shape == intervals.limits.shape
        and are_valid_limits(state.limits)
        and are_valid_row_thresholds(state.row_thresholds, intervals, len(state.left))
    )


def _largest_entries(factors: np.ndarray) -> np.ndarray:
    """The largest absolute value of each factor."""
    return np.abs(factors).max(axis=0).astype(np.float64)


def _is_in_ball(
    factors: np.ndarray, centres: np.ndarray, weights: Weights, features: Features
) -> bool:
    """Whether every factor, without its centre and what features explain, is within the unit ball."""
    rest = without_explained(factors, explained(features, weights.B, Workers(1)))
    squares = np.square(rest[:, : centres.size] - centres).sum(axis=0)
    norms = np.sqrt(squares + weight_squares(weights, features)[: centres.size])
    rounding = _ROUNDING * np.sqrt(len(factors)) * np.abs(centres)
    return bool((norms <= 1.0 + _BEYOND + rounding).all())


def _is_valid_info(info: gasr.Info, r: int) -> bool:
    return (
        info.d.dtype == np.float64
        and info.d.shape == (r,)
        and bool((info.d >= 0).all())
        and _are_small(info.d)
        and 0 <= info.residual_square <= LARGEST_SIGNAL
    )


def _is_valid_effect(effect: Effect) -> bool:
    return (
        abs(effect.mean) <= LARGEST_ENTRY and _SMALLEST_VARIANCE <= effect.variance <= LARGEST_ENTRY
    )


def _are_small(array: np.ndarray) -> bool:
    return bool((np.abs(array) <= LARGEST_ENTRY).all())
