"""Small checks that several doors of the package share."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from fillrank.errors import InputError

REAL_KINDS = "biuf"  # numpy's kinds of bool, integers and floats


def as_real(values: Any, what: str) -> np.ndarray:
    """Give ``values`` as float64; refuse what is no real number.

    Text is refused even where it would parse: whether "1,5" is 1.5 is for a reader to know.
    """
    try:
        values = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} must be an array of real numbers; got ragged lists.") from error
    if values.dtype.kind not in REAL_KINDS:
        raise InputError(
            f"{what} must be real numbers (float, integer or boolean); got dtype {values.dtype}. "
            "Convert first, for example by .astype(float)."
        )
    return values.astype(np.float64, copy=False)


def check_whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Give ``value`` as an int if it is a whole number from ``low`` to ``high``."""
    allowed = f"at least {low}" if high is None else f"from {low} to {high}"
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        raise InputError(f"{name} must be a whole number {allowed}, got {value!r} instead.")
    return int(value)


def check_real(name: str, value: Any, allowed: str, is_allowed: Callable[[Any], bool]) -> float:
    """Give ``value`` as a float if it is a number and ``is_allowed(value)``."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not is_allowed(value):
        raise InputError(f"{name} must be {allowed}, got {value!r} instead.")
    return float(value)


def generator(random_state: Any) -> np.random.Generator:
    """Make numpy's generator from a seed, from None or from a generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            "random_state must be None, a whole number of at least 0 or a numpy Generator, "
            f"got {random_state!r} instead."
        ) from error
