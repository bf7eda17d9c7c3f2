"""Whether a state that was read from a file is one that a chain can go on from.

All numbers are known to be finite already. The bounds are far beyond what occurs in standard units; they
keep products and squares within the range of single precision, where rejection samplers still end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fillrank.samplers import bpmf
from fillrank.samplers.state import SMALLEST_NOISE, Effect, Info, State

_LARGEST = 1e9
_LARGEST_SIGNAL = 1e12
_SMALLEST = 1e-20


def gasr_is_sound(state: State, infos: Sequence[Info]) -> bool:
    """Whether a chain of GASR can go on from here."""
    r = state.d.size
    own, other = (
        np.abs(side).max(axis=0, initial=0.0).astype(np.float64)
        for side in (state.left, state.right)
    )
    signal = own * other * np.append(state.d, [1.0, 1.0])
    return (
        bool((state.d >= 0).all() and (state.gamma > 0).all())
        and all(_are_small(part) for part in (state.d, state.mu, state.nu, own, other))
        and bool((signal <= _LARGEST_SIGNAL).all())
        and all(_is_amount(number) for number in (state.a, state.b))
        and all(map(_is_effect, (state.row_effect, state.column_effect)))
        and SMALLEST_NOISE <= state.noise_variance <= _LARGEST
        and all(_is_info(info, r) for info in infos)
    )


def bpmf_is_sound(state: bpmf.State, infos: Sequence[Any]) -> bool:
    """Whether a chain of BPMF can go on from here."""
    own, other = (float(np.abs(side).max(initial=0.0)) for side in (state.left, state.right))
    return (
        not infos
        and max(own, other) <= _LARGEST
        and own * other <= _LARGEST_SIGNAL
        and state.noise_variance > 0  # the user may have fixed it, in other units
    )


def _is_info(info: Info, r: int) -> bool:
    sound = info.d.dtype == np.float64 and info.d.shape == (r,) and info.residual_square >= 0
    return sound and bool((info.d >= 0).all()) and _are_small(info.d)


def _is_effect(effect: Effect) -> bool:
    return abs(effect.mean) <= _LARGEST and _is_amount(effect.variance)


def _is_amount(number: float) -> bool:
    return _SMALLEST <= number <= _LARGEST


def _are_small(array: np.ndarray) -> bool:
    return bool((np.abs(array) <= _LARGEST).all())
