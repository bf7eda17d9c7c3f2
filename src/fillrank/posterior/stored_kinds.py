"""The kinds of values of a table in a model file, and what is checked in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from fillrank.errors import ReadError
from fillrank.posterior.kinds import KindPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.samplers.model import Draw
from fillrank.samplers.threshold_steps import are_valid_limits
from fillrank.table.column_types import ColumnType
from fillrank.table.kinds import MOST_CATEGORIES
from fillrank.table.latent import FAR, Coding, Scale

_Level = str | int | float | bool
# More scales than columns that a table can have are not possible, nor is a location beyond this.
_LARGEST = 1e300


class StoredScale(NamedTuple):
    """A scale of values; bounds may be infinite."""

    kind: Literal["number", "positive", "ordered", "yes_no", "count", "category"]
    levels: np.ndarray
    location: float
    scale: float
    first: int
    bounds: tuple[float, float]


class StoredCoding(NamedTuple):
    """The coding of a table, and the ends (draws, 2, k) of the intervals of levels in every draw."""

    scales: list[StoredScale]
    scale_of: np.ndarray
    limits: np.ndarray

    @property
    def thresholds(self) -> None:
        """None: thresholds do not differ by row."""
        return


class StoredRowCoding(NamedTuple):
    """The same where thresholds differ by row: (draws, m, L - 1). Other files do not change."""

    scales: list[StoredScale]
    scale_of: np.ndarray
    limits: np.ndarray
    thresholds: np.ndarray


class StoredType(NamedTuple):
    """What a column contained. Types of a data frame's library are not stored."""

    values: Literal["number", "integer", "boolean", "text", "category", "datetime"]
    levels: list[_Level]
    is_ordered: bool


def stored_coding(coding: Coding, draws: list[Draw]) -> StoredCoding | StoredRowCoding:
    """The coding of a table and the limits of draws, as a file has them."""
    stored = StoredCoding(
        [StoredScale(*scale) for scale in coding.scales],
        coding.scale_of,
        np.array([draw.limits for draw in draws]),
    )
    if not draws[0].row_thresholds.size:
        return stored
    return StoredRowCoding(*stored, np.array([draw.row_thresholds[:, 1:-1] for draw in draws]))


def restored_coding(stored: StoredCoding | StoredRowCoding, labels: np.ndarray) -> Coding:
    """The coding of a file; its intervals are those of the first draw.

    Raises ReadError if it is not that of a table with these columns.
    """
    scales = tuple(Scale(*scale) for scale in stored.scales)
    scale_of, limits = stored.scale_of, stored.limits
    _require(
        scale_of.dtype == np.int64
        and scale_of.shape == labels.shape
        and bool(((scale_of >= 0) & (scale_of < len(scales))).all()),
        "every column must have one of its kinds",
    )
    _require(
        limits.ndim == 3 and len(limits) > 0 and all(map(are_valid_limits, limits)),
        "intervals must have a lower and an upper end",
    )
    for scale in scales:
        _check_scale(scale, limits.shape[2])
    sizes = np.array([each.n_latent for each in scales])[scale_of]
    return Coding(scales, scale_of, np.append(0, np.cumsum(sizes)), limits[0], labels)


def check_types(coding: Coding, types: tuple[ColumnType, ...] | None) -> None:
    """Raise ReadError if columns of levels that are text do not have as many levels as their scale."""
    for j, each in enumerate(types or ()):
        if each.is_coded:
            codes = np.sort(coding.scale(j).levels)
            _require(
                np.array_equal(codes, np.arange(len(each.levels))),
                "columns of text must have the levels of their kind",
            )


def restored_posterior(
    low_rank: LowRankPosterior, stored: StoredCoding | StoredRowCoding, coding: Coding
) -> KindPosterior:
    """The posterior with the intervals of its draws."""
    _require(len(stored.limits) == len(low_rank.draws), "every draw must have its intervals")
    draws = [
        draw._replace(limits=limits)
        for draw, limits in zip(low_rank.draws, stored.limits, strict=True)
    ]
    if stored.thresholds is not None:
        ends = _restored_ends(stored.thresholds, stored.limits, low_rank.shape[0])
        draws = [draw._replace(row_thresholds=own) for draw, own in zip(draws, ends, strict=True)]
    # The solution of a solver is its only draw.
    mean = low_rank.mean if low_rank.has_draws else draws[0]
    return KindPosterior(replace(low_rank, draws=draws, mean=mean), coding)


def _restored_ends(inner: np.ndarray, limits: np.ndarray, n_rows: int) -> np.ndarray:
    """The ends (draws, m, L + 1) of the intervals of levels in every row, from the inner ones."""
    n_draws, _, n_levels = limits.shape
    _require(
        inner.shape == (n_draws, n_rows, n_levels - 1)
        and inner.dtype in (np.float32, np.float64)
        and bool((np.abs(inner) <= FAR).all() and (np.diff(inner, axis=2) >= 0).all()),
        "every row must have ascending thresholds between its levels",
    )
    outer = np.full((n_draws, n_rows, 1), FAR, inner.dtype)
    return np.concatenate([-outer, inner, outer], axis=2)


def _check_scale(scale: Scale, n_intervals: int) -> None:
    levels = scale.levels
    is_valid = (
        levels.ndim == 1
        and levels.dtype == np.float64
        and bool(np.isfinite(levels).all())
        and np.unique(levels).size == levels.size
        and (2 <= levels.size <= MOST_CATEGORIES if scale.has_levels else levels.size == 0)
        and (scale.kind != "yes_no" or levels.size == 2)
    )
    _require(is_valid, "levels must be different finite numbers")
    # The location is NaN in a column without values.
    is_number = not abs(scale.location) >= _LARGEST and 0 < scale.scale < _LARGEST
    _require(is_number, "a column must have a location and a scale")
    _require(scale.bounds[0] < scale.bounds[1], "bounds must be a lower and an upper one")
    n_own = 2 * scale.n_latent if scale.kind == "category" else levels.size
    _require(scale.first >= 0 and scale.first + n_own <= n_intervals, "levels must have intervals")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ReadError(f"{message}.")


def stored_types(types: tuple[ColumnType, ...] | None) -> list[StoredType] | None:
    """The types of columns, as a file has them."""
    if types is None:
        return None
    return [StoredType(each.values, [*each.levels], each.is_ordered) for each in types]


def restored_types(
    stored: list[StoredType] | None, n_columns: int
) -> tuple[ColumnType, ...] | None:
    """The types of columns of a file."""
    if stored is None:
        return None
    _require(len(stored) == n_columns, "every column must have a type")
    types = tuple(ColumnType(each.values, tuple(each.levels), each.is_ordered) for each in stored)
    for each in types:
        _require(len(set(each.levels)) == len(each.levels), "the levels of a column must differ")
        _require(each.is_coded == bool(each.levels), "columns of levels must have some")
    return types
