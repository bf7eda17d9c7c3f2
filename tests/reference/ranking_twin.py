"""Measures of ranking by their definitions, one row after the other, from all scores of a table."""

import math

import numpy as np


def rank_candidates(scores, fitted):
    """For each row its candidates, best first: columns without a fitted value; ties by position."""
    return [
        sorted(np.flatnonzero(~fitted[i]), key=lambda j: (-scores[i, j], j))
        for i in range(len(scores))
    ]


def relevant_cells(fitted_values, test, relevant):
    """For each row the columns that are relevant: NaN is missing in both tables."""
    cells = []
    for row, held_out in zip(fitted_values, test, strict=True):
        known = row[~np.isnan(row)]
        mean = known.mean() if known.size else np.nanmean(fitted_values)
        good = {"above_mean": lambda x, m=mean: x > m, "all": lambda x: True}.get(
            relevant, lambda x: x >= relevant
        )
        cells.append(
            {
                j
                for j, x in enumerate(held_out)
                if not math.isnan(x) and math.isnan(row[j]) and good(x)
            }
        )
    return cells


def measure(lists, relevant, k, n_columns):
    """The measures, as means over the rows with a relevant column."""
    rows = [i for i, columns in enumerate(relevant) if columns]
    sums = dict.fromkeys(("precision", "recall", "ndcg", "mrr", "hit_rate"), 0.0)
    shown = set()
    for i in rows:
        top = lists[i][:k]
        shown |= set(top)
        places = [place for place, j in enumerate(top, start=1) if j in relevant[i]]
        best = range(1, min(k, len(relevant[i])) + 1)
        sums["precision"] += len(places) / len(top)
        sums["recall"] += len(places) / len(relevant[i])
        sums["ndcg"] += sum(1 / math.log2(1 + p) for p in places) / sum(
            1 / math.log2(1 + p) for p in best
        )
        sums["mrr"] += 1 / places[0] if places else 0.0
        sums["hit_rate"] += bool(places)
    found = {name: total / len(rows) for name, total in sums.items()}
    return found | {"catalogue_coverage": len(shown) / n_columns, "rows": len(rows)}
