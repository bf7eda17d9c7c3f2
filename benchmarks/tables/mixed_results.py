"""Scores of answers to hidden cells, one line for each column, and the file that they are kept in."""

import numpy as np
import pandas as pd
from mixed_tables import NUMBER, ORDERED
from predictives import likely_levels

LEVEL = 0.9
# A level that is impossible by a model counts as that improbable.
_LEAST_PROBABILITY = 1e-6
KEY = ["table", "mask", "method"]


def score_answer(table, hidden, answer):
    """The scores of every column with hidden cells: see `score_column`."""
    return [
        score_column(table, j, np.flatnonzero(hidden[:, j]), answer)
        for j in np.flatnonzero(hidden.any(axis=0))
    ]


def score_column(table, j, rows, answer):
    """Scores of the hidden cells of a column.

    Numbers have ``rmse``, in standard deviations of the column. Levels have ``accuracy``, ordered ones
    also ``mae``, in levels. With a predictive distribution there are ``coverage``, the share of cells in
    their 90% intervals or sets; ``expected``, what the distribution says about that share;
    ``log_score``, the mean logarithm of the density, per standard deviation, or of the probability.
    """
    column, truth, filled = table.columns[j], table.values[rows, j], answer.values[rows, j]
    scores = {"column": column.name, "kind": column.kind, "n_hidden": len(rows)}
    if column.kind == NUMBER:
        scale = np.nanstd(table.values[:, j])
        scores["rmse"] = np.sqrt(np.mean((filled - truth) ** 2)) / scale
        if answer.predictive is not None:
            scores |= _score_intervals(answer.predictive, j, rows, truth, scale)
        return scores
    scores["accuracy"] = np.mean(filled == truth)
    if column.kind == ORDERED:
        medians = filled if answer.medians is None else answer.medians[rows, j]
        scores["mae"] = np.mean(np.abs(medians - truth))
    if answer.predictive is not None:
        scores |= _score_sets(answer.predictive.probabilities(j, rows), truth.astype(int))
    return scores


def _score_intervals(predictive, j, rows, truth, scale):
    low, high = predictive.interval(j, rows, LEVEL)
    return {
        "coverage": np.mean((low <= truth) & (truth <= high)),
        "expected": LEVEL,
        "log_score": np.mean(predictive.log_density(j, rows, truth)) + np.log(scale),
    }


def _score_sets(probabilities, truth):
    sets, cells = likely_levels(probabilities, LEVEL), np.arange(len(truth))
    at_truth = np.maximum(probabilities[cells, truth], _LEAST_PROBABILITY)
    return {
        "coverage": np.mean(sets[cells, truth]),
        "expected": np.mean((sets * probabilities).sum(axis=1)),
        "log_score": np.mean(np.log(at_truth)),
    }


def append_results(path, table, mask, method, answers, seconds):
    """Append the scores of all answers of a method, a line of JSON for each column."""
    lines = [
        {"table": table.name, "mask": mask.number, "method": method, "answer": name}
        | scores
        | {"seconds": seconds}
        for name, answer in answers.items()
        for scores in score_answer(table, mask.hidden, answer)
    ]
    frame = pd.DataFrame(lines)
    with path.open("a", encoding="utf-8") as file:
        frame.to_json(file, orient="records", lines=True, double_precision=6)


def read_results(path):
    """All results so far."""
    if not path.exists():
        return pd.DataFrame(columns=KEY)
    return pd.read_json(path, orient="records", lines=True)


def finished(path):
    """The tables, masks and methods of all results so far."""
    return set(read_results(path)[KEY].itertuples(index=False, name=None))
