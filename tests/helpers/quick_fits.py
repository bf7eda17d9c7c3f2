"""Small tables and short runs, for tests that look at behaviour rather than accuracy."""

import numpy as np

import fillrank as fr

NAN = np.nan
SHORT = {"n_sweeps": 20, "n_chains": 1, "progress": False, "n_threads": 1, "random_state": 0}


def quick(**changes):
    """An unfitted GASR with a short run."""
    return fr.GASR(**(SHORT | changes))


def table(n_rows=20, n_columns=15, rank=1, noise=0.1, missing=0.3, seed=0):
    """A synthetic matrix as an array with NaN."""
    observations, _ = fr.synthetic(n_rows, n_columns, rank, noise, missing, random_state=seed)
    X = np.full(observations.shape, NAN)
    X[observations.row_index, observations.column_index] = observations.values
    return X


def all_cells(shape):
    """Positions (rows, columns) of all cells, row by row."""
    rows, columns = np.indices(shape)
    return rows.ravel(), columns.ravel()
