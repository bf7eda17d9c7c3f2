"""The likelihood of ordered levels, given the signals, as sums over fixed blocks of entries.

A block has entries of one level and one column. So sums over blocks do not depend on the threads, nor on
how the columns of a table are distributed over other machines; added in the order of the columns, they
give the same bits everywhere.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.kernels.interval_values import entry_signals, log_likelihoods, sort_by_interval
from fillrank.runtime.threads import Workers
from fillrank.table.entries import Entries

# The most entries of a block.
_BLOCK = 2**13
# The cost of a likelihood, in entries of a half-sweep.
_COST = 4

# The lower end of an interval, the threshold to the next one, and the upper end of that.
Cuts = tuple[float, float, float]


class LevelLikelihood(ABC):
    """The likelihood of the levels of entries, given their signals and noise.

    Attributes
    ----------
    counts : ndarray
        The number of entries in each interval.
    """

    counts: np.ndarray

    @abstractmethod
    def block_sums(self, c: int, cuts: Cuts) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the blocks of the interval c, and over those of c + 1, in the order of columns."""

    def at(self, c: int, cuts: Cuts) -> float:
        """The log likelihood of the entries in the intervals c and c + 1, with these ends."""
        under, over = self.block_sums(c, cuts)
        return float(under.sum()) + float(over.sum())


class LevelEntries(NamedTuple):
    """The signals of entries, sorted by interval and column, and the inverse sd of their noise.

    Block b has those from ``edges[b]`` to ``edges[b + 1]``, and the interval c the blocks from
    ``starts[c]`` to ``starts[c + 1]``.
    """

    signals: np.ndarray
    precisions: np.ndarray
    edges: np.ndarray
    starts: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """The number of entries in each interval."""
        return np.diff(self.edges[self.starts])


def level_entries(
    columns: Entries,
    factors: tuple[np.ndarray, np.ndarray],
    noise: RowNoise,
    n_intervals: int,
    workers: Workers,
) -> LevelEntries:
    """The entries in the first intervals, by column, with their signals.

    ``factors`` (own, other) are those of the columns and of the rows, as in a half-sweep of the columns.
    """
    places, starts, is_first = sort_by_interval(columns, n_intervals, _BLOCK)
    edges = np.append(np.flatnonzero(is_first), is_first.size)
    signals, precisions = np.empty((2, is_first.size))
    work = partial(entry_signals, columns, *factors, noise, places, signals, precisions)
    workers.for_rows(work, columns.pointers)
    return LevelEntries(signals, precisions, edges, np.searchsorted(edges, starts))


def block_sums(
    entries: LevelEntries, c: int, cuts: Cuts, workers: Workers
) -> tuple[np.ndarray, np.ndarray]:
    """As `LevelLikelihood.block_sums`."""
    low, threshold, high = cuts
    first, between, last = entries.starts[c : c + 3].tolist()
    under = _sums(entries, (low, threshold), first, between, workers)
    return under, _sums(entries, (threshold, high), between, last, workers)


def _sums(
    entries: LevelEntries, ends: tuple[float, float], first: int, last: int, workers: Workers
) -> np.ndarray:
    """The log likelihoods of the blocks first to last."""
    edges, sums = entries.edges[first : last + 1], np.empty(last - first)
    work = partial(log_likelihoods, entries.signals, entries.precisions, ends, edges, sums)
    workers.for_rows(work, _COST * (edges - edges[0]))
    return sums


class EntryLikelihood(LevelLikelihood):
    """The likelihood of the levels of entries on this machine.

    Parameters
    ----------
    entries : LevelEntries
    workers : Workers
    """

    def __init__(self, entries: LevelEntries, workers: Workers):
        self.counts = entries.counts
        self._entries = entries
        self._workers = workers

    def block_sums(self, c: int, cuts: Cuts) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the blocks of the interval c, and over those of c + 1, in the order of columns."""
        return block_sums(self._entries, c, cuts, self._workers)
