"""Rating scales and ordered levels, such as stars."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.table.entries import Entries, iter_blocks
from fillrank.validation import as_real

MOST_LEVELS = 20
ENTRIES_PER_LEVEL = 10  # on average, because a few measurements can be evenly spaced by chance
_SHOWN = 5  # values in a message


def rating_scale(values: np.ndarray) -> tuple[float, float] | None:
    """The ends of the rating scale, or None if the values do not look like ratings.

    Ratings have few evenly spaced levels, with enough values at each on average.

    Examples
    --------
    >>> rating_scale(np.array([1.0, 1.5, 2.0] * 10))
    (1.0, 2.0)
    >>> rating_scale(np.array([1.0, 1.7, 2.0] * 10)) is None
    True
    """
    levels = _few_distinct(values)
    if levels.size < 2 or values.size < ENTRIES_PER_LEVEL * levels.size:
        return None
    if not are_evenly_spaced(levels):
        return None
    return float(levels[0]), float(levels[-1])


def _few_distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, ascending; none if there are too many for a rating scale."""
    levels = np.empty(0)
    for part in iter_blocks(values.size):
        block = values[part]
        levels = np.union1d(levels, block[~np.isin(block, levels)])
        if levels.size > MOST_LEVELS:
            return np.empty(0)
    return levels


def are_evenly_spaced(levels: np.ndarray) -> bool:
    """Whether the steps between ascending levels are all the same."""
    steps = np.diff(levels)
    return bool(np.allclose(steps, steps[:1], rtol=1e-9, atol=0))


class Levels(NamedTuple):
    """The values that occur, ascending; the code of a level counts from 1."""

    values: np.ndarray

    @property
    def size(self) -> int:
        """The number of levels."""
        return self.values.size

    def encode(self, entries: Entries) -> Entries:
        """The entries with codes of levels, 1 to ``size``, in place of values."""
        halfway = 0.5 * (self.values[:-1] + self.values[1:])
        positions = np.searchsorted(halfway, entries.values)
        unknown = np.unique(entries.values[~_same(self.values[positions], entries.values)])
        if unknown.size:
            raise InputError(
                f"values must be among the levels {_format(self.values)}; got {_format(unknown)}."
            )
        return entries._replace(values=(positions + 1).astype(np.int8))


def find_levels(values: np.ndarray, levels: Literal["auto"] | Sequence[float]) -> Levels:
    """The levels of values: those that occur if they are evenly spaced, or those given.

    Raises InputError if the values are not on such a scale, or if a level never occurs.
    """
    present = _distinct(values)
    if isinstance(levels, str) and levels == "auto":
        _check_scale(present)
        return Levels(present)
    given = _given_levels(levels)
    unknown = present[~_same(present[:, None], given).any(axis=1)]
    if unknown.size:
        raise InputError(
            f"all values must be among levels={_format(given)}; got also {_format(unknown)}. Add "
            "these levels, or remove their entries."
        )
    unused = given[~_same(given[:, None], present).any(axis=1)]
    if unused.size:
        raise InputError(
            f"every level must occur among the entries, so that its threshold can be learned; "
            f"{_format(unused)} never does. Remove it from levels."
        )
    return Levels(given)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether values are equal up to rounding, as 0.1 + 0.2 and 0.3 are."""
    same: np.ndarray = np.isclose(a, b, rtol=1e-9, atol=1e-12)
    return same


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, ascending; the first of those that differ only by rounding."""
    distinct: np.ndarray = np.unique(values).astype(np.float64)
    repeated = np.flatnonzero(_same(distinct[1:], distinct[:-1])) + 1
    return np.delete(distinct, repeated)


def _given_levels(levels: Sequence[float]) -> np.ndarray:
    try:
        given = _distinct(as_real(levels, "levels"))
    except InputError as error:
        raise InputError(f'levels must be "auto" or numbers, got {levels!r} instead.') from error
    if not np.isfinite(given).all():
        raise InputError('levels must be "auto" or finite numbers; got NaN or infinity.')
    if given.size == 0:
        raise InputError("levels must have at least one number; got none.")
    if given.size > np.iinfo(np.int8).max:
        raise InputError(f"there can be at most {np.iinfo(np.int8).max} levels, got {given.size}.")
    return given


def _check_scale(present: np.ndarray) -> None:
    if present.size > MOST_LEVELS:
        raise InputError(
            f"this method is for ratings on an ordered scale of at most {MOST_LEVELS} levels; got "
            f"{present.size} distinct values: {_format(present)}. For measurements use GASR; for "
            "ratings with more levels list all of them in levels=[...]."
        )
    if not are_evenly_spaced(present):
        raise InputError(
            "values must be on an evenly spaced scale, or their levels must be given; got "
            f"{_format(present)}. If these are the levels, pass levels={present.tolist()}."
        )


def _format(values: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:_SHOWN])
    return f"[{shown}{', ...' if values.size > _SHOWN else ''}]"
