"""The results in a CSV file: one line per table, mask, method and column."""

import numpy as np
import pandas as pd

KEY = ["table", "kind", "share", "mask", "method"]
# In standard deviations: an interval may be a single value, which rounding must not move away.
TOLERANCE = 1e-6
COLUMNS = [*KEY, "column", "n_hidden", "squared_error", "coverage", "seconds"]


def key(table, mask, method):
    """What a result is found by."""
    return table.name, mask.kind, mask.share, mask.number, method


def score(table, mask, method, filled, seconds):
    """Mean squared errors, in standard deviations of the column, and coverage of its intervals."""
    lines = []
    for j in np.flatnonzero(mask.hidden.any(axis=0)):
        cells = mask.hidden[:, j]
        truth = table.values[cells, j]
        error = (filled.mean[cells, j] - truth) / table.scales[j]
        coverage = np.nan
        if filled.low is not None:
            slack = TOLERANCE * table.scales[j]
            low, high = filled.low[cells, j] - slack, filled.high[cells, j] + slack
            coverage = ((low <= truth) & (truth <= high)).mean()
        result = table.columns[j], cells.sum(), np.mean(error**2), coverage, seconds
        lines.append((*key(table, mask, method), *result))
    return pd.DataFrame(lines, columns=COLUMNS)


def append_results(path, frame):
    """Append results to the file."""
    frame.to_csv(path, mode="a", header=not path.exists(), index=False)


def read_results(path):
    """All results so far."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(path, dtype={"column": str})


def finished(path):
    """The keys of all results so far."""
    return set(read_results(path)[KEY].itertuples(index=False, name=None))
