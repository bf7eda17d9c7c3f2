"""Blocks of features of the rows (or columns) of a table, as the samplers take them.

A block F (m, p) is centred, and its columns are orthogonal: F = P S of the thin singular value
decomposition F_0 = P S Q^T of the centred raw features F_0. So F F^T, on which the model depends, is the
same, and new rows get their values by F_0 Q.
"""

from typing import Literal, NamedTuple

import numpy as np

# The name of the block that comes from the pattern of missing values.
MISSINGNESS = "missingness"


class Field(NamedTuple):
    """How one field of a table of features is coded.

    A number x becomes (x - mean) / scale. A category has one term for each of its ``levels``: 1 where it
    has that level, 0 elsewhere. A value that is missing, or a level that was not there at the fit, has
    the mean; with ``has_missing`` one more term says that the value is missing.
    """

    name: str
    kind: Literal["number", "category"]
    mean: float
    scale: float
    levels: tuple[str, ...]
    has_missing: bool

    @property
    def n_terms(self) -> int:
        """How many terms it has."""
        return (1 if self.kind == "number" else len(self.levels)) + self.has_missing


class TableCode(NamedTuple):
    """How new rows get the values of a block that comes from a table of features.

    The coded terms, minus ``means`` (q,), times ``directions`` (q, p). A row without features has zeros.
    """

    fields: tuple[Field, ...]
    means: np.ndarray
    directions: np.ndarray


class PatternCode(NamedTuple):
    """How new rows get the values of a block that comes from the pattern of their entries.

    With o_j = 1 where column j of the row is observed and n of them, (o / sqrt(n) - ``means``) times
    ``directions`` (columns, p). A row without entries has zeros.
    """

    means: np.ndarray
    directions: np.ndarray


class TimeBasis(NamedTuple):
    """The terms of time features: weight * cos(frequency * x + phase) at the position x of a time.

    Attributes
    ----------
    of_dates : bool
        Whether times are dates, in microseconds since 1970; otherwise they are numbers.
    origin : float
        The middle of the times of the fit, which has the position 0.
    reach : float
        The trend is constant where x is beyond this distance from the middle.
    n_trend : int
        The number of terms of the trend, which are the first.
    frequencies, phases, weights : ndarray (p,)
    names : tuple of str
    """

    of_dates: bool
    origin: float
    reach: float
    n_trend: int
    frequencies: np.ndarray
    phases: np.ndarray
    weights: np.ndarray
    names: tuple[str, ...]


class TimeCode(NamedTuple):
    """How new rows get the values of a block that comes from times.

    The terms of the basis at their times, minus ``means`` (q,), times ``directions`` (q, p).
    """

    basis: TimeBasis
    means: np.ndarray
    directions: np.ndarray


class Block(NamedTuple):
    """A block of features of one side: its name, the values F (m, p), and how new rows get theirs.

    ``terms`` are the names of the rows of ``code.directions``, and empty for the pattern.
    """

    name: str
    values: np.ndarray
    code: TableCode | PatternCode | TimeCode
    terms: tuple[str, ...]

    def astype(self, dtype: np.dtype) -> "Block":
        """The same in another precision, except for the means."""
        code = self.code._replace(directions=self.code.directions.astype(dtype, copy=False))
        return self._replace(values=self.values.astype(dtype, copy=False), code=code)


class Blocks(NamedTuple):
    """The blocks of features of the rows and of the columns."""

    rows: tuple[Block, ...] = ()
    columns: tuple[Block, ...] = ()

    def joined(self, other: "Blocks") -> "Blocks":
        """The blocks of both, side by side."""
        return Blocks(self.rows + other.rows, self.columns + other.columns)

    def astype(self, dtype: np.dtype) -> "Blocks":
        """The same in another precision, except for the means: as models store them."""
        return Blocks(*(tuple(block.astype(dtype) for block in side) for side in self))


NO_BLOCKS = Blocks()
