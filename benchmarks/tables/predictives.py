"""Predictive distributions of hidden cells: of columns by themselves, and of a fitted model.

A predictive has ``interval(j, rows, level)`` and ``log_density(j, rows, values)`` for numbers, and
``probabilities(j, rows)`` (rows, levels) for the other kinds.
"""

import numpy as np
from mixed_tables import NUMBER
from scipy import stats


class Marginals:
    """The baseline: each cell has the distribution of the observed values of its column."""

    def __init__(self, values, columns):
        self._numbers, self._shares = {}, {}
        for j, column in enumerate(columns):
            observed = values[~np.isnan(values[:, j]), j]
            if column.kind == NUMBER:
                self._numbers[j] = stats.norm(observed.mean(), observed.std())
            else:
                counts = np.bincount(observed.astype(int), minlength=len(column.levels))
                self._shares[j] = (counts + 0.5) / (counts + 0.5).sum()

    def guess(self, j):
        """The mean of the column, or its most frequent level."""
        return self._numbers[j].mean() if j in self._numbers else np.argmax(self._shares[j])

    def median(self, j):
        """The median of the column, or its median level."""
        if j in self._numbers:
            return self._numbers[j].median()
        return median_levels(self._shares[j][np.newaxis])[0]

    def interval(self, j, rows, level):
        """Equal-tailed intervals of a normal distribution."""
        return tuple(np.full(len(rows), limit) for limit in self._numbers[j].interval(level))

    def log_density(self, j, rows, values):
        """That of a normal distribution."""
        return self._numbers[j].logpdf(values)

    def probabilities(self, j, rows):
        """The shares of the levels; those that were never observed count half."""
        return np.tile(self._shares[j], (len(rows), 1))


class FittedModel:
    """The predictive of a fitted model of fillrank; rows are labelled by their numbers."""

    def __init__(self, model, columns):
        self._model, self._columns = model, columns

    def interval(self, j, rows, level):
        """For a new observation."""
        return self._model.predict_interval(rows, self._labels(j, rows), level)

    def log_density(self, j, rows, values):
        """Of a new observation."""
        return self._model.log_density(rows, self._labels(j, rows), values)

    def probabilities(self, j, rows):
        """Of all levels of the column, in their order."""
        found = np.asarray(self._model.predict_proba(rows, self._columns[j].name))
        expected = len(rows), len(self._columns[j].levels)
        if found.shape != expected:
            raise ValueError(f"probabilities must have the shape {expected}, got {found.shape}.")
        return found

    def _labels(self, j, rows):
        return np.full(len(rows), self._columns[j].name, object)


def median_levels(probabilities):
    """The median level of each row of probabilities."""
    return (np.cumsum(probabilities, axis=1) < 0.5).sum(axis=1)


def likely_levels(probabilities, level):
    """The smallest sets of levels that have at least this probability (rows, levels), as booleans."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    chosen = np.empty(probabilities.shape, bool)
    np.put_along_axis(chosen, order, before < level - 1e-12, axis=1)
    return chosen
