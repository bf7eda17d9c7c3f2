"""The best columns for a row, by position: by the mean, cautious, or curious.

No array of the size of the table is made. In addition to the result, memory contains the factors of
some rows and of some columns in all draws: at most 16 MB each in single precision, or those of one row
and one column if that is more. The result of a row depends neither on the other rows nor on the number
of threads.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from fillrank.kernels.ordinal import Scorer
from fillrank.kernels.predictions import (
    Columns,
    Heaps,
    QuantilePosition,
    quantile_position,
    update_best,
)
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw
from fillrank.table.entries import Entries, places_in_rows

# Numbers in the factors of the rows, or of the columns, that are processed together.
_AT_ONCE = 2**22
# In a heap, the column of an empty position: worse than any other.
_NONE = np.iinfo(np.int64).max
# The only position in a single draw.
_SINGLE = QuantilePosition(1, 0.0)


By = Literal["mean", "cautious", "curious"]


class Top(NamedTuple):
    """The best columns of rows, best first, and their scores in the data's units (rows, n).

    Of equal scores the smaller column comes first. If a row has fewer than n columns, the rest is -1
    and NaN. Scores are clipped to the rating scale, but columns are compared without clipping.
    """

    columns: np.ndarray
    scores: np.ndarray


class LeftOut(NamedTuple):
    """Columns to leave out: ``indices[pointers[p]:pointers[p + 1]]`` for the p-th row of the query."""

    pointers: np.ndarray
    indices: np.ndarray


class TopQuery(NamedTuple):
    """A query for the n best columns of some rows, without those left out.

    ``by`` is the order: by the posterior mean, by a low quantile, or by a random draw. ``quantile`` is
    for "cautious", ``rng`` for "curious". ``only`` has the columns to choose from, None for all.
    """

    rows: np.ndarray
    left_out: LeftOut
    n: int
    by: By = "mean"
    quantile: float = 0.1
    rng: np.random.Generator | None = None
    only: np.ndarray | None = None

    def part(self, places: np.ndarray) -> "TopQuery":
        """The query for some of the rows."""
        return self._replace(rows=self.rows[places], left_out=seen(self.left_out, places))


class _Factors(NamedTuple):
    """How to gather the factors (.., N, K) of some rows, and of some columns, in N draws."""

    left: Callable[[np.ndarray], np.ndarray]
    right: Callable[[np.ndarray], np.ndarray]


class _Rows(NamedTuple):
    """A block of rows: their factors (rows, N, K), what is left out, and the best so far."""

    left: np.ndarray
    left_out: LeftOut
    heaps: Heaps


def nothing_left_out(n_rows: int) -> LeftOut:
    """No columns to leave out, for this number of rows."""
    return LeftOut(np.zeros(n_rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))


def seen(entries: Entries | LeftOut, rows: np.ndarray) -> LeftOut:
    """The columns of the entries in each of the rows, which can be in any order and repeat."""
    pointers, places = places_in_rows(entries.pointers, rows)
    return LeftOut(pointers, entries.indices[places])


def union(first: LeftOut, second: LeftOut) -> LeftOut:
    """The columns that either leaves out, for the same rows; a column may be there twice."""
    n_rows = first.pointers.size - 1
    rows = [np.repeat(np.arange(n_rows), np.diff(each.pointers)) for each in (first, second)]
    order = np.argsort(np.concatenate(rows), kind="stable")
    columns = np.concatenate([first.indices, second.indices])
    return LeftOut(first.pointers + second.pointers, columns[order])


def best_by_mean(mean: Draw, query: TopQuery, workers: Workers) -> Top:
    """The columns with the largest posterior means."""
    order = np.arange(len(mean.right))
    return _best(query, _stacked([mean]), _SINGLE, order, workers)


def best_by_quantile(draws: list[Draw], mean: Draw, query: TopQuery, workers: Workers) -> Top:
    """The columns with the largest quantiles of the signal over the stored draws.

    The quantile is at position q (N + 1) among N sorted draws, or the smallest draw where that is
    below 1. A low quantile is fast: half the draws are needed for the median of a cell, nearly all
    for a high quantile.
    """
    position = quantile_position(query.quantile, len(draws))
    # Columns that are good for most rows come first: the sooner a row has n good ones, the less work.
    order = np.argsort(-(mean.right @ mean.left[query.rows].sum(axis=0)), kind="stable")
    return _best(query, _stacked(draws), position, order, workers)


def best_by_draw(draws: list[Draw], query: TopQuery, workers: Workers) -> Top:
    """The columns that are best under one of the stored draws, chosen at random for each row.

    This is Thompson sampling: the probability that a column is first is the posterior probability that
    it is the best. A row that is queried twice gets two draws.
    """
    assert query.rng is not None
    n_rows, n = query.rows.size, query.n
    order = np.arange(len(draws[0].right))
    choice = query.rng.integers(len(draws), size=n_rows)
    top = Top(np.empty((n_rows, n), dtype=np.int64), np.empty((n_rows, n)))
    for t in np.unique(choice):
        mine = np.flatnonzero(choice == t)
        part = _best(query.part(mine), _stacked([draws[t]]), _SINGLE, order, workers)
        top.columns[mine], top.scores[mine] = part
    return top


def best_by_score(scorers: list[Scorer], query: TopQuery, workers: Workers) -> Top:
    """The columns with the largest scores, averaged over the scorers of a max-margin method.

    Scores are in double precision, as predictions are, so the gathered factors take twice the memory.
    """

    def side(factors: list[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda places: np.concatenate(
            [each[places].astype(np.float64) for each in factors], axis=1
        )[:, np.newaxis]

    factors = _Factors(
        side([scorer.left for scorer in scorers]), side([scorer.right for scorer in scorers])
    )
    return _best(query, factors, _SINGLE, np.arange(len(scorers[0].right)), workers)


def _stacked(draws: list[Draw]) -> _Factors:
    return _Factors(
        lambda rows: np.stack([draw.left[rows] for draw in draws], axis=1),
        lambda columns: np.stack([draw.right[columns] for draw in draws], axis=1),
    )


def _best(
    query: TopQuery,
    factors: _Factors,
    position: QuantilePosition,
    order: np.ndarray,
    workers: Workers,
) -> Top:
    """The result in standard units. It does not depend on the order in which columns are visited."""
    number = np.full(order.size, -1)  # of columns that are not visited
    if query.only is not None:
        order = order[np.isin(order, query.only)]
    number[order] = np.arange(order.size)
    left_out = LeftOut(query.left_out.pointers, number[query.left_out.indices])
    size = query.rows.size, query.n
    heaps = Heaps(np.full(size, -np.inf), np.full(size, _NONE))
    N, K = factors.left(query.rows[:0]).shape[1:]
    at_once = max(1, _AT_ONCE // max(1, N * K))
    for r in range(0, query.rows.size, at_once):
        block = slice(r, r + at_once)
        left = factors.left(query.rows[block])
        own = LeftOut(left_out.pointers[r : r + at_once + 1], left_out.indices)
        rows = _Rows(left, own, Heaps(heaps.scores[block], heaps.columns[block]))
        for c in range(0, order.size, at_once):
            positions = order[c : c + at_once]
            columns = Columns(c, positions, factors.right(positions))
            _update_best(rows, columns, position, workers)
    return _sorted(heaps)


def _update_best(
    rows: _Rows, columns: Columns, position: QuantilePosition, workers: Workers
) -> None:
    """Compare one block of rows with one block of columns, on all threads."""

    def work(start: int, stop: int) -> None:
        update_best(rows.left, columns, rows.left_out, position, rows.heaps, start, stop)

    workers.for_rows(work, columns.factors.size * np.arange(len(rows.left) + 1))


def _sorted(heaps: Heaps) -> Top:
    """Best first, with -1 and NaN in empty positions."""
    order = np.lexsort((heaps.columns, -heaps.scores), axis=-1)
    columns = np.take_along_axis(heaps.columns, order, axis=1)
    scores = np.take_along_axis(heaps.scores, order, axis=1)
    free = columns == _NONE
    return Top(np.where(free, -1, columns), np.where(free, np.nan, scores))
