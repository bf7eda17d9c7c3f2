"""Whether a state that was read from a file is one that a chain can go on from.

All numbers are known to be finite already. What the model says of a state is demanded of it; other
bounds are far beyond what occurs in standard units. Within them products and squares stay in the
range of single precision, and rejection samplers end soon.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fillrank.samplers import bpmf
from fillrank.samplers.hyperparameters import A_BOUNDS, B_BOUNDS
from fillrank.samplers.state import SMALLEST_NOISE, Effect, Info, State

_LARGEST = 1e9
_LARGEST_SIGNAL = 1e12
_SMALLEST = 1e-20
# How far rounding may take a factor out of the unit ball, for itself and by the size of its centre.
_BEYOND, _ROUNDING = 1e-2, 1e-6


def gasr_is_sound(state: State, infos: Sequence[Info]) -> bool:
    """Whether a chain of GASR can go on from here."""
    r = state.d.size
    own, other = _largest(state.left), _largest(state.right)
    signal = own * other * np.append(state.d, [1.0, 1.0])
    return (
        bool((state.d >= 0).all() and (state.gamma > 0).all())
        and all(_are_small(part) for part in (state.d, state.mu, state.nu, own, other))
        and bool((signal <= _LARGEST_SIGNAL).all())
        and _is_in_ball(state.left[:, :r], state.mu)
        and _is_in_ball(state.right[:, :r], state.nu)
        and A_BOUNDS[0] <= state.a <= A_BOUNDS[1]
        and B_BOUNDS[0] <= state.b <= B_BOUNDS[1]
        and all(map(_is_effect, (state.row_effect, state.column_effect)))
        and SMALLEST_NOISE <= state.noise_variance <= 1.0 / SMALLEST_NOISE
        and all(_is_info(info, r) for info in infos)
    )


def bpmf_is_sound(state: bpmf.State, infos: Sequence[Any]) -> bool:
    """Whether a chain of BPMF can go on from here."""
    own, other = _largest(state.left).max(), _largest(state.right).max()
    return (
        not infos
        and max(own, other) <= _LARGEST
        and own * other <= _LARGEST_SIGNAL
        and state.noise_variance > 0  # the user may have fixed it, in other units
    )


def _largest(factors: np.ndarray) -> np.ndarray:
    """The largest entry of each factor, without its sign."""
    return np.abs(factors).max(axis=0).astype(np.float64)


def _is_in_ball(factors: np.ndarray, centres: np.ndarray) -> bool:
    """Whether every factor, without its centre, is within the unit ball."""
    norms = np.linalg.norm(factors - centres, axis=0)
    rounding = _ROUNDING * np.sqrt(len(factors)) * np.abs(centres)
    return bool((norms <= 1.0 + _BEYOND + rounding).all())


def _is_info(info: Info, r: int) -> bool:
    sound = info.d.dtype == np.float64 and info.d.shape == (r,)
    return (
        sound
        and bool((info.d >= 0).all())
        and _are_small(info.d)
        and 0 <= info.residual_square <= _LARGEST_SIGNAL
    )


def _is_effect(effect: Effect) -> bool:
    return abs(effect.mean) <= _LARGEST and _SMALLEST <= effect.variance <= _LARGEST


def _are_small(array: np.ndarray) -> bool:
    return bool((np.abs(array) <= _LARGEST).all())
