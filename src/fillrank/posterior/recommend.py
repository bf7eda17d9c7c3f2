"""The best columns for a row, asked by position: by the mean, cautiously, or curiously.

Nothing of the size of the table is made. Beside the answer there are the factors of some rows and of
some columns in all draws: at most 16 MB each in single precision, or those of one row and one column
if that is more. A row's answer depends neither on the other rows nor on the number of threads.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fillrank.kernels.predictions import Columns, Heaps, Place, keep_best, place_of
from fillrank.posterior.ordinal import OrdinalPosterior
from fillrank.posterior.posterior import Posterior
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw
from fillrank.table.entries import Entries

# Numbers in the factors of the rows, or of the columns, that are worked on at once.
_AT_ONCE = 2**22
# In a heap, the column of a place that is not taken: worse than any.
_NONE = np.iinfo(np.int64).max
# The only one of a single draw.
_SINGLE = Place(1, 0.0)


class Top(NamedTuple):
    """The best columns of rows, best first, and their scores in the data's units (rows, n).

    Of equal scores the smaller column comes first. Where a row has fewer than n columns to offer, the
    rest is -1 and NaN. Scores end at the rating scale, but columns are compared as if they did not.
    """

    columns: np.ndarray
    scores: np.ndarray


class LeftOut(NamedTuple):
    """Columns that are no answer: ``indices[pointers[p]:pointers[p + 1]]`` for the p-th row asked."""

    pointers: np.ndarray
    indices: np.ndarray


class _Asked(NamedTuple):
    """The n best columns of the rows, but for those left out."""

    rows: np.ndarray
    left_out: LeftOut
    n: int

    def part(self, places: np.ndarray) -> "_Asked":
        """The question for some of the rows."""
        return _Asked(self.rows[places], seen(self.left_out, places), self.n)


class _Factors(NamedTuple):
    """How to gather the factors (.., N, K) of some rows, and of some columns, in N draws."""

    left: Callable[[np.ndarray], np.ndarray]
    right: Callable[[np.ndarray], np.ndarray]


class _Rows(NamedTuple):
    """A block of rows: their factors (rows, N, K), what is left out, and the best so far."""

    left: np.ndarray
    left_out: LeftOut
    heaps: Heaps


def seen(entries: Entries | LeftOut, rows: np.ndarray) -> LeftOut:
    """The columns of the entries in each of the rows, which can come in any order and repeat."""
    first = entries.pointers[rows]
    sizes = entries.pointers[rows + 1] - first
    pointers = np.append(0, np.cumsum(sizes))
    places = np.arange(pointers[-1]) + np.repeat(first - pointers[:-1], sizes)
    return LeftOut(pointers, entries.indices[places])


def by_mean(
    posterior: Posterior, rows: np.ndarray, left_out: LeftOut, n: int, workers: Workers
) -> Top:
    """The columns with the largest posterior means."""
    asked = _Asked(rows, left_out, n)
    order = np.arange(posterior.shape[1])
    return _restored(_best(asked, _stacked([posterior.mean]), _SINGLE, order, workers), posterior)


def by_quantile(
    posterior: Posterior,
    rows: np.ndarray,
    left_out: LeftOut,
    n: int,
    quantile: float,
    workers: Workers,
) -> Top:
    """The columns with the largest quantiles of the signal over the kept draws.

    A low quantile is cautious: it wants columns that are good for sure. The quantile stands at q (N + 1)
    among N sorted draws, and is the smallest draw where that is below 1. It is quick if low: half the
    draws have to be looked at for the median of a cell, nearly all for a high quantile.
    """
    asked = _Asked(rows, left_out, n)
    place = place_of(quantile, len(posterior.draws))
    # What is good for most rows comes first: the sooner a row has n good ones, the less is to be done.
    left, right, _ = posterior.mean
    order = np.argsort(-(right @ left[rows].sum(axis=0)), kind="stable")
    return _restored(_best(asked, _stacked(posterior.draws), place, order, workers), posterior)


def by_draw(
    posterior: Posterior,
    rows: np.ndarray,
    left_out: LeftOut,
    n: int,
    rng: np.random.Generator,
    workers: Workers,
) -> Top:
    """The columns that are best under one of the kept draws, chosen at random for each row asked.

    Curious (Thompson's way): a column leads as often as the posterior has it as the best, so that one
    that may be very good is tried. A row that is asked twice gets two draws.
    """
    asked = _Asked(rows, left_out, n)
    order = np.arange(posterior.shape[1])
    choice = rng.integers(len(posterior.draws), size=rows.size)
    top = Top(np.empty((rows.size, n), dtype=np.int64), np.empty((rows.size, n)))
    for t in np.unique(choice):
        mine = np.flatnonzero(choice == t)
        factors = _stacked([posterior.draws[t]])
        part = _best(asked.part(mine), factors, _SINGLE, order, workers)
        top.columns[mine], top.scores[mine] = part
    return _restored(top, posterior)


def by_level(
    posterior: OrdinalPosterior, rows: np.ndarray, left_out: LeftOut, n: int, workers: Workers
) -> Top:
    """The columns with the highest predicted levels; of the same level, with the largest margins.

    The levels of a row rise with its score averaged over the scorers, so that this score decides. It
    is taken in double precision, as predictions are: what is gathered takes twice the memory.
    """

    def side(factors: list[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda places: np.concatenate(
            [each[places].astype(np.float64) for each in factors], axis=1
        )[:, np.newaxis]

    factors = _Factors(
        side([scorer.left for scorer in posterior.scorers]),
        side([scorer.right for scorer in posterior.scorers]),
    )
    order = np.arange(posterior.shape[1])
    top = _best(_Asked(rows, left_out, n), factors, _SINGLE, order, workers)
    p, k = np.nonzero(top.columns >= 0)
    top.scores[p, k] = posterior.predict(rows[p], top.columns[p, k], workers)
    return top


def _stacked(draws: list[Draw]) -> _Factors:
    return _Factors(
        lambda rows: np.stack([draw.left[rows] for draw in draws], axis=1),
        lambda columns: np.stack([draw.right[columns] for draw in draws], axis=1),
    )


def _restored(top: Top, posterior: Posterior) -> Top:
    """Scores in the data's units: at the end, since beyond the rating scale all would tie."""
    return top._replace(scores=posterior.units.restore(top.scores))


def _best(
    asked: _Asked, factors: _Factors, place: Place, order: np.ndarray, workers: Workers
) -> Top:
    """The answer in standard units, from the columns in the given order, on which it does not depend."""
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    left_out = LeftOut(asked.left_out.pointers, number[asked.left_out.indices])
    size = asked.rows.size, asked.n
    heaps = Heaps(np.full(size, -np.inf), np.full(size, _NONE))
    N, K = factors.left(asked.rows[:0]).shape[1:]
    at_once = max(1, _AT_ONCE // max(1, N * K))
    for r in range(0, asked.rows.size, at_once):
        block = slice(r, r + at_once)
        left = factors.left(asked.rows[block])
        own = LeftOut(left_out.pointers[r : r + at_once + 1], left_out.indices)
        rows = _Rows(left, own, Heaps(heaps.scores[block], heaps.columns[block]))
        for c in range(0, order.size, at_once):
            positions = order[c : c + at_once]
            columns = Columns(c, positions, factors.right(positions))
            _keep_best(rows, columns, place, workers)
    return _sorted(heaps)


def _keep_best(rows: _Rows, columns: Columns, place: Place, workers: Workers) -> None:
    """One block of rows meets one block of columns, on all threads."""

    def work(start: int, stop: int) -> None:
        keep_best(rows.left, columns, rows.left_out, place, rows.heaps, start, stop)

    workers.for_rows(work, columns.factors.size * np.arange(len(rows.left) + 1))


def _sorted(heaps: Heaps) -> Top:
    """Best first, and -1 and NaN in the places that are not taken."""
    order = np.lexsort((heaps.columns, -heaps.scores), axis=-1)
    columns = np.take_along_axis(heaps.columns, order, axis=1)
    scores = np.take_along_axis(heaps.scores, order, axis=1)
    free = columns == _NONE
    return Top(np.where(free, -1, columns), np.where(free, np.nan, scores))
