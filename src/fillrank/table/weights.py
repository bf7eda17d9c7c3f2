"""Weights of entries: how precise each entry is, relative to the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, NotSupportedError, Setting
from fillrank.table.layout import LONG_HINT

if TYPE_CHECKING:
    from fillrank.table.observations import Observations

# Sums of weighted squares must neither overflow nor underflow in single precision.
_SMALLEST, _LARGEST = 1e-12, 1e12
_LARGEST_RATIO = 1e6  # of a standard error to the median; its square is the ratio of weights
_METHODS = ("GASR", "BPMF")


class WeightField(NamedTuple):
    """The column of a long table that contains weights, or else standard errors."""

    name: Any
    is_error: bool

    @property
    def setting(self) -> Setting:
        """The argument by which users name the column."""
        return Setting("standard_error" if self.is_error else "weight")


def given_weight(weight: Any, standard_error: Any) -> WeightField | None:
    """The column with the weights or the standard errors; None if there is none."""
    if weight is not None and standard_error is not None:
        raise InputError(
            place=Setting("standard_error"),
            allowed=("left out if ", Setting("weight"), " is given"),
            value=standard_error,
        )
    if standard_error is not None:
        return WeightField(standard_error, is_error=True)
    return None if weight is None else WeightField(weight, is_error=False)


def refuse_for_wide(field: WeightField | None) -> None:
    """Raise InputError if a column with weights was named, but the table is not long."""
    if field is not None:
        raise InputError(
            "only a long table has a column of weights, and this one is not long",
            place=field.setting,
            value=field.name,
            advice=[LONG_HINT, ("Or give fit an array, ", Setting("weights", ...), ".")],
        )


def refuse_weights(observations: Observations, method: str) -> None:
    """Raise NotSupportedError if the entries have weights, for a method that cannot use them."""
    if observations.weights is not None:
        raise NotSupportedError(
            f"{method} cannot use the weights of entries; {' and '.join(_METHODS)} can",
            advice="Use one of them, or leave the weights out.",
        )


def refuse_weights_of_levels(observations: Observations, likelihood: str) -> None:
    """Raise NotSupportedError if entries have weights, for two levels with noise of a given scale."""
    if observations.weights is not None:
        raise NotSupportedError(
            f'likelihood="{likelihood}" cannot use the weights of entries: its noise has a given scale',
            advice="Leave the weights out.",
        )


def check_weights(weights: np.ndarray, cell: Callable[[int], str]) -> None:
    """Raise InputError if a weight is not in the allowed range.

    Parameters
    ----------
    weights : ndarray
    cell : callable
        Returns the row and column of an entry as text, from its position.
    """
    wrong = np.flatnonzero(~((weights >= _SMALLEST) & (weights <= _LARGEST)))
    if wrong.size:
        raise InputError(
            place=f"the weight of {cell(wrong[0])}",
            allowed=f"a number from {_SMALLEST:g} to {_LARGEST:g}",
            value=float(weights[wrong[0]]),
            advice="Weights are relative: that of a typical entry is best near 1.",
        )


def weights_from_errors(errors: np.ndarray, cell: Callable[[int], str]) -> np.ndarray:
    """Convert standard errors to weights: the weight of an entry with the median error is 1.

    Examples
    --------
    >>> weights_from_errors(np.array([0.5, 1.0, 2.0]), str)
    array([4.  , 1.  , 0.25])
    """

    def refuse(wrong: np.ndarray, allowed: str) -> None:
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(
                place=f"the standard error of {cell(first)}",
                allowed=allowed,
                value=float(errors[first]),
            )

    refuse(~(np.isfinite(errors) & (errors > 0)), "a finite number above 0")
    ratio = float(np.median(errors)) / errors
    refuse(
        (ratio > _LARGEST_RATIO) | (ratio < 1.0 / _LARGEST_RATIO),
        f"within a factor of {_LARGEST_RATIO:g} of the median of all standard errors",
    )
    return ratio**2
