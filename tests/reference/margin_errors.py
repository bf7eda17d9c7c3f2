"""How far predicted levels are from those observed."""

import numpy as np


def mean_absolute_error(entries, scorer):
    """The mean distance, in levels, between predictions and entries that hold numbers of levels."""
    rows = np.repeat(np.arange(entries.pointers.size - 1), np.diff(entries.pointers))
    x = scorer.at(rows, entries.indices)
    predicted = 1 + np.sum(x[:, None] >= scorer.thresholds[rows], axis=1)
    return np.mean(np.abs(predicted - entries.values))
