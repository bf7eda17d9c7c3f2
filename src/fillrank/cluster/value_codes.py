"""How workers code the values of a table: as numbers in standard units, or as levels of one scale."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from fillrank.table.entries import Entries
from fillrank.table.latent import Coding, expected_values


class DataFormat(NamedTuple):
    """The data that a sampler needs.

    Attributes
    ----------
    centre : bool
        Whether the mean of numbers is subtracted.
    dtype : dtype
        Of the values.
    width : int
        The number of factors.
    ordered : bool
        Whether all values are levels of one scale.
    n_chains : int
        The number of chains, which sweep at the same time.
    """

    centre: bool
    dtype: np.dtype
    width: int
    ordered: bool = False
    n_chains: int = 1

    @property
    def n_level_chains(self) -> int:
        """The number of chains that draw thresholds between levels."""
        return self.n_chains if self.ordered else 0


class ValueCode(Protocol):
    """How values are coded for the shuffle, and how entries follow from the codes."""

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The codes of values."""
        ...

    def decode(self, entries: Entries) -> Entries:
        """Entries with codes for values, as samplers take them."""
        ...


class StandardUnits(NamedTuple):
    """Values in standard units are (value - location) / scale, in this precision."""

    location: float
    scale: float
    dtype: np.dtype

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The values in standard units."""
        return ((values.astype(np.float64) - self.location) / self.scale).astype(self.dtype)

    def decode(self, entries: Entries) -> Entries:
        """The entries as they are."""
        return entries


class LevelCodes(NamedTuple):
    """Values are one of these levels, ascending; ``starts`` has what chains start at for each."""

    levels: np.ndarray
    starts: np.ndarray

    @staticmethod
    def of(coding: Coding, dtype: np.dtype) -> LevelCodes:
        """The codes of the only scale of a table."""
        return LevelCodes(coding.scales[0].levels, expected_values(coding.limits).astype(dtype))

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The numbers of the levels, in one byte: there are at most 50."""
        return np.searchsorted(self.levels, values.astype(np.float64)).astype(np.int8)

    def decode(self, entries: Entries) -> Entries:
        """The entries with the intervals of their levels."""
        return entries._replace(
            values=self.starts[entries.values], cells=entries.values.astype(np.int32)
        )
