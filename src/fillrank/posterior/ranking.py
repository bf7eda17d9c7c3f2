"""How good lists of recommended columns are: measures of ranking, by position.

A column is a hit if it is relevant for the row. All measures are means over rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fillrank.kernels.ordinal import Scorer
from fillrank.posterior.recommend import LeftOut, Top, TopQuery, best_by_score
from fillrank.runtime.threads import Workers


class RankingSums(NamedTuple):
    """Sums of the measures over rows, and which columns were recommended to any of them."""

    n_rows: int
    precision: float
    recall: float
    ndcg: float
    reciprocal_rank: float
    has_hit: float
    is_recommended: np.ndarray

    def measures(self) -> dict[str, float]:
        """The measures by name, as `score_ranking` explains them."""
        return {
            "precision": self.precision / self.n_rows,
            "recall": self.recall / self.n_rows,
            "ndcg": self.ndcg / self.n_rows,
            "mrr": self.reciprocal_rank / self.n_rows,
            "hit_rate": self.has_hit / self.n_rows,
            "catalogue_coverage": float(self.is_recommended.mean()),
        }


def add_sums(parts: Iterable[RankingSums]) -> RankingSums:
    """The sums over the rows of all parts."""
    *sums, is_recommended = zip(*parts, strict=True)
    return RankingSums._make([*map(sum, sums), np.logical_or.reduce(is_recommended)])


def sum_measures(columns: np.ndarray, relevant: LeftOut, n_columns: int) -> RankingSums:
    """The measures of some lists, summed.

    Parameters
    ----------
    columns : array (rows, k)
        The recommended columns of each row, best first; -1 where a row has fewer.
    relevant : LeftOut
        The relevant columns of each of these rows, one or more.
    n_columns : int

    Examples
    --------
    >>> relevant = LeftOut(np.array([0, 2]), np.array([4, 1]))
    >>> sum_measures(np.array([[3, 1, 0]]), relevant, 5).measures()["mrr"]
    0.5
    """
    n_rows, k = columns.shape
    n_relevant = np.diff(relevant.pointers)
    hits = _are_relevant(columns, relevant, n_columns)
    n_hits = hits.sum(axis=1)
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(n_relevant, k)]
    first = np.where(n_hits > 0, hits.argmax(axis=1) + 1, np.inf)
    is_recommended = np.zeros(n_columns, dtype=bool)
    is_recommended[columns[columns >= 0]] = True
    return RankingSums(
        n_rows,
        float((n_hits / (columns >= 0).sum(axis=1)).sum()),
        float((n_hits / n_relevant).sum()),
        float((hits @ discounts / ideal).sum()),
        float((1.0 / first).sum()),
        float((n_hits > 0).sum()),
        is_recommended,
    )


def _are_relevant(columns: np.ndarray, relevant: LeftOut, n_columns: int) -> np.ndarray:
    """Which of the recommended columns are relevant for their row."""
    rows = np.arange(len(columns))
    wanted = n_columns * np.repeat(rows, np.diff(relevant.pointers)) + relevant.indices
    cells = n_columns * rows[:, np.newaxis] + columns
    hits: np.ndarray = np.isin(cells, wanted) & (columns >= 0)
    return hits


def most_popular(popularity: np.ndarray, query: TopQuery, workers: Workers) -> Top:
    """The columns with the most entries; of equal ones the first."""
    n_rows = int(query.rows.max(initial=-1)) + 1
    scorer = Scorer(
        np.ones((n_rows, 1)), popularity.astype(np.float64)[:, np.newaxis], np.zeros((n_rows, 0))
    )
    return best_by_score([scorer], query, workers)
