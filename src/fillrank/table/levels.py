"""Ordered levels, such as the stars of ratings: which there are, and which of them a value is."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.table.entries import Entries
from fillrank.table.observations import Observations
from fillrank.table.rating_scale import MOST_LEVELS, evenly_spaced
from fillrank.validation import as_real

_SHOWN = 5


class Levels(NamedTuple):
    """The values that occur, ascending; a level's number counts from 1."""

    values: np.ndarray

    @property
    def size(self) -> int:
        """How many levels there are."""
        return self.values.size

    def numbered(self, entries: Entries) -> Entries:
        """The entries with numbers of levels, 1 to ``size``, in place of values."""
        halfway = 0.5 * (self.values[:-1] + self.values[1:])
        places = np.searchsorted(halfway, entries.values)
        strange = np.unique(entries.values[~_same(self.values[places], entries.values)])
        if strange.size:
            raise InputError(
                f"values must be among the levels {_listed(self.values)}; got {_listed(strange)}."
            )
        return entries._replace(values=(places + 1).astype(np.int8))


def find_levels(observations: Observations, levels: Literal["auto"] | Sequence[float]) -> Levels:
    """The levels of a table: the values that occur if these are evenly spaced, or those named.

    Raises InputError if the values are not on such a scale, if there are fewer than two levels, or if
    a level never occurs.
    """
    present = _distinct(observations.stored_values)
    if isinstance(levels, str) and levels == "auto":
        _check_scale(present)
        return Levels(present)
    named = _named(levels)
    strange = present[~_same(present[:, None], named).any(axis=1)]
    if strange.size:
        raise InputError(
            f"all values must be among levels={_listed(named)}; got also {_listed(strange)}. Name "
            "these too, or take their entries out."
        )
    idle = named[~_same(named[:, None], present).any(axis=1)]
    if idle.size:
        raise InputError(
            f"every level must occur among the entries, so that its threshold can be learned; "
            f"{_listed(idle)} never does. Leave it out of levels."
        )
    return Levels(named)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal but for rounding: 0.1 + 0.2 is 0.3 stars."""
    return np.isclose(a, b, rtol=1e-9, atol=1e-12)


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, ascending; of those that differ by rounding alone, the first."""
    values = np.unique(values).astype(np.float64)
    return values[np.append(True, ~_same(values[1:], values[:-1]))]


def _named(levels: Sequence[float]) -> np.ndarray:
    try:
        named = _distinct(as_real(levels, "levels"))
    except InputError as error:
        raise InputError(f'levels must be "auto" or numbers, got {levels!r} instead.') from error
    if not np.isfinite(named).all():
        raise InputError('levels must be "auto" or finite numbers; got NaN or infinity.')
    _check_number(named)
    if named.size > np.iinfo(np.int8).max:
        raise InputError(f"levels must be at most {np.iinfo(np.int8).max}, got {named.size}.")
    return named


def _check_number(levels: np.ndarray) -> None:
    if levels.size < 2:
        raise InputError(
            f"there must be at least two levels to tell apart; got only {_listed(levels)}."
        )


def _check_scale(present: np.ndarray) -> None:
    _check_number(present)
    if present.size > MOST_LEVELS:
        raise InputError(
            f"this method is for ratings on an ordered scale of at most {MOST_LEVELS} levels; got "
            f"{present.size} distinct values: {_listed(present)}. For measurements use GASR; for "
            "ratings on more levels name them all by levels=[...]."
        )
    if not evenly_spaced(present):
        raise InputError(
            "values must be on an evenly spaced scale, or their levels be named; got "
            f"{_listed(present)}. If these are the levels, say levels={present.tolist()}."
        )


def _listed(values: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:_SHOWN])
    return f"[{shown}{', ...' if values.size > _SHOWN else ''}]"
