"""Scores of recommendations: whether the best columns are those with good held-out values."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fillrank.completion import Completion
from fillrank.completions.unknown_labels import find_cells
from fillrank.errors import InputError, Setting
from fillrank.estimators.base import Estimator
from fillrank.estimators.score import completion_of
from fillrank.posterior.ranking import add_sums, most_popular, sum_measures
from fillrank.posterior.recommend import By, LeftOut, Top, TopQuery, seen
from fillrank.table.entries import iter_blocks
from fillrank.table.observations import Observations
from fillrank.validation import as_generator, check_choice, check_integer, check_real

Relevant = float | Literal["above_mean", "all"]
# "popular" ranks without a model.
Ranking = By | Literal["popular"]
# Recommended columns that are compared with the relevant ones at a time.
_AT_ONCE = 2**20


class _HeldOut(NamedTuple):
    """The rows to score, their relevant columns, and how many rows have held-out entries but none."""

    rows: np.ndarray
    relevant: LeftOut
    n_without: int


class _Order(NamedTuple):
    """The length of the lists, and what they are ordered by."""

    k: int
    by: Ranking
    quantile: float
    rng: np.random.Generator


def score_ranking(
    test: Any,
    model: Estimator | Completion,
    k: int = 10,
    *,
    relevant: Relevant = "above_mean",
    by: Ranking = "mean",
    quantile: float = 0.1,
    random_state: Any = None,
) -> dict[str, float]:
    """Compare a model's recommendations with held-out entries.

    Each row gets a list of k columns, as by `Completion.recommend`: the candidates are all columns in
    which the row has no value in the table that was fitted. A column is a hit if the row has a relevant
    held-out entry there. Rows without a relevant held-out entry are not scored.

    Parameters
    ----------
    test : Observations or table
        Entries that were not fitted. Those of fitted cells are not counted, and neither are those of
        which only an interval is known.
    model : fitted estimator or Completion
        With the entries that it was fitted on.
    k : int
        The length of the lists; a row with fewer candidates has a shorter one.
    relevant : "above_mean", "all" or float
        Which held-out entries are relevant: those above the mean of the fitted values of their row (of
        all fitted values if the row has none), all, or those of at least this value, such as 4 stars.
    by : {"mean", "cautious", "curious", "popular"}
        The order of the columns, as in `recommend`. "popular", for comparison, orders them by their
        number of fitted entries, and needs no model: all rows get the columns that most have.
    quantile : float
        For "cautious".
    random_state : int, Generator or None
        For "curious".

    Returns
    -------
    dict
        Means over the rows that are scored: ``precision``, the share of the list that are hits;
        ``recall``, the share of the relevant columns that are in the list; ``ndcg``, the sum of
        1/log2(1 + position) over the hits, divided by the largest possible sum; ``mrr``, 1/position of
        the first hit, or 0; ``hit_rate``, the share of rows with a hit. ``catalogue_coverage`` is the
        share of all columns that are in the list of any of these rows. ``rows`` is the number of rows
        that are scored, and ``rows_left_out`` that of the others with held-out entries.

    Notes
    -----
    Most columns that a row has no value for are not known to be bad, but count as misses. So the numbers
    are small, and only differences between methods on the same entries mean something.

    See Also
    --------
    score : errors of predictions, and coverage of intervals.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(50, 40, rank=1, noise=0.1, missing=0.2, random_state=0)
    >>> train, test = data.split(random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(train)
    >>> found = fr.score_ranking(test, model, k=3)
    >>> popular = fr.score_ranking(test, model, k=3, by="popular")
    >>> found["precision"] > popular["precision"]
    True
    """
    check_integer("k", k, 1)
    check_choice("by", by, (*get_args(By), "popular"))
    check_real("quantile", quantile, "above 0 and below 0.5", lambda v: 0 < v < 0.5)
    completion = completion_of(model)
    completion.check_entries("Save it with its entries, by save(path, with_data=True).")
    held_out = _held_out(test, completion, relevant)
    n_columns = completion.observations.shape[1]
    order = _Order(min(k, n_columns), by, quantile, as_generator(random_state))
    parts = []
    for block in iter_blocks(held_out.rows.size, max(1, _AT_ONCE // order.k)):
        top = _best(completion, held_out.rows[block], order)
        mine = seen(held_out.relevant, np.arange(block.start, block.stop))
        parts.append(sum_measures(top.columns, mine, n_columns))
    sums = add_sums(parts)
    return sums.measures() | {"rows": sums.n_rows, "rows_left_out": held_out.n_without}


def _best(completion: Completion, rows: np.ndarray, order: _Order) -> Top:
    """The lists of some rows, which are without the cells that were fitted."""
    data, left_out = completion.observations, seen(completion.observations.by_row(), rows)
    if order.by != "popular":
        return completion.best_columns(
            TopQuery(rows, left_out, order.k, order.by, order.quantile, order.rng)
        )
    popularity = np.bincount(data.column_index, minlength=data.shape[1])
    with completion.workers() as workers:
        return most_popular(popularity, TopQuery(rows, left_out, order.k), workers)


def _held_out(test: Any, completion: Completion, relevant: Relevant) -> _HeldOut:
    """The relevant held-out entries, by position."""
    test = Observations.of(test, like=completion.observations)
    if test.cells is not None:
        test = test[np.flatnonzero(test.cells < 0)]
    cells = find_cells(completion, test.rows, test.columns)
    data = completion.observations
    n_columns = data.shape[1]
    fitted = n_columns * data.row_index.astype(np.int64) + data.column_index
    is_new = ~np.isin(n_columns * cells.rows + cells.columns, fitted)
    if not is_new.any():
        raise InputError(
            "test must have at least one entry with an exact value in a cell that was not fitted; got "
            "none."
        )
    is_relevant = is_new & _are_relevant(cells.rows, test.values, data, relevant)
    with_entries = np.unique(cells.rows[is_new])
    rows, numbers = np.unique(cells.rows[is_relevant], return_inverse=True)
    if rows.size == 0:
        raise InputError(
            f"no held-out entry is relevant: the largest of their values is "
            f"{test.values[is_new].max():g}",
            advice=("Choose another threshold than ", Setting("relevant", relevant), "."),
        )
    order = np.argsort(numbers, kind="stable")
    pointers = np.cumsum([0, *np.bincount(numbers)], dtype=np.int64)
    columns = cells.columns[is_relevant][order]
    return _HeldOut(rows, LeftOut(pointers, columns), with_entries.size - rows.size)


def _are_relevant(
    rows: np.ndarray, values: np.ndarray, fitted: Observations, relevant: Relevant
) -> np.ndarray:
    if relevant == "all":
        return np.ones(values.size, dtype=bool)
    if relevant == "above_mean":
        above: np.ndarray = values > _row_means(fitted)[rows]
        return above
    check_real("relevant", relevant, '"above_mean", "all" or a number', math.isfinite)
    return values >= relevant


def _row_means(fitted: Observations) -> np.ndarray:
    """The mean of the exact values of each row; that of all values for rows without any."""
    exact = slice(None) if fitted.cells is None else fitted.cells < 0
    rows, values = fitted.row_index[exact], fitted.values[exact]
    n_rows = fitted.shape[0]
    counts = np.bincount(rows, minlength=n_rows)
    sums = np.bincount(rows, weights=values, minlength=n_rows)
    means: np.ndarray = np.where(counts > 0, sums / np.maximum(counts, 1), values.mean())
    return means
