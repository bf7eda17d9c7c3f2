"""Checks of arguments that several modules share."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from fillrank.errors import InputError, Setting

REAL_KINDS = "biuf"  # numpy's kinds of bool, integers and floats


def as_real(values: Any, what: str) -> np.ndarray:
    """Convert ``values`` to float64; refuse anything but real numbers.

    Text is refused even where it would parse: only a reader knows whether "1,5" is 1.5.
    """
    try:
        array: np.ndarray = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"{what} must be an array of real numbers; got lists of different lengths."
        ) from error
    if array.dtype.kind not in REAL_KINDS:
        raise InputError(
            f"{what} must be real numbers (float, integer or boolean); got dtype {array.dtype}",
            advice="Convert it first, for example with .astype(float).",
        )
    return array.astype(np.float64, copy=False)


def check_fitted(model: Any) -> None:
    """Reject an estimator that was not fitted; a `Completion` always is."""
    if not hasattr(model, "completion_"):
        from sklearn.exceptions import NotFittedError  # imported late: it takes a second

        raise NotFittedError(
            f"this {type(model).__name__} is not fitted yet. Call fit with a table first."
        )


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Reject a value that is not one of those allowed."""
    if value not in allowed:
        raise InputError(place=Setting(name), allowed=f"one of {allowed}", value=value)


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Convert ``value`` to int if it is a whole number from ``low`` to ``high``."""
    allowed = f"at least {low}" if high is None else f"from {low} to {high}"
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        raise InputError(place=Setting(name), allowed=f"a whole number {allowed}", value=value)
    return int(value)


def check_real(name: str, value: Any, allowed: str, is_allowed: Callable[[Any], bool]) -> float:
    """Convert ``value`` to float if it is a number and ``is_allowed(value)``."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not is_allowed(value):
        raise InputError(place=Setting(name), allowed=allowed, value=value)
    return float(value)


def as_generator(random_state: Any) -> np.random.Generator:
    """Make a numpy generator from a seed, None or a generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            place=Setting("random_state"),
            allowed="None, a whole number of at least 0 or a numpy Generator",
            value=random_state,
        ) from error
