"""Random matrices of known rank with noise and missing entries: the paper's synthetic data."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError
from fillrank.table.observations import Observations
from fillrank.validation import as_generator, check_integer, check_real


def synthetic(
    n_rows: int = 500,
    n_columns: int = 500,
    rank: int = 5,
    noise: float = 1.0,
    missing: float = 0.5,
    random_state: Any = None,
) -> tuple[Observations, np.ndarray]:
    """Draw a low-rank matrix and observe some of its entries with noise.

    Z = A B^T, where A (n_rows x rank) and B (n_columns x rank) are standard normal. Observed is
    Z + noise * N(0, 1) in a uniformly random set of cells.

    Parameters
    ----------
    n_rows, n_columns : int
    rank : int
        From 1 to the smaller side.
    noise : float
        Standard deviation, 0 or more.
    missing : float
        The fraction of cells that are missing, 0 or more and below 1.
    random_state : None, int or numpy Generator

    Returns
    -------
    observations : Observations
    truth : ndarray of shape (n_rows, n_columns)
        Z, without noise.

    Examples
    --------
    >>> observations, truth = synthetic(20, 10, rank=2, missing=0.3, random_state=0)
    >>> observations.shape, len(observations), truth.shape
    ((20, 10), 140, (20, 10))
    """
    check_integer("n_rows", n_rows, 1)
    check_integer("n_columns", n_columns, 1)
    check_integer("rank", rank, 1, min(n_rows, n_columns))
    check_real("noise", noise, "finite and 0 or more", lambda value: 0 <= value < np.inf)
    check_real("missing", missing, "0 or more and below 1", lambda value: 0 <= value < 1)
    n_cells = n_rows * n_columns
    n_entries = round((1 - missing) * n_cells)
    if n_entries == 0:
        raise InputError(
            f"missing={missing} leaves none of the {n_cells} cells observed; choose a smaller value."
        )

    rng = as_generator(random_state)
    A = rng.standard_normal((n_rows, rank))
    B = rng.standard_normal((n_columns, rank))
    Z = A @ B.T
    cells = np.sort(rng.choice(n_cells, n_entries, replace=False, shuffle=False))
    rows, columns = np.divmod(cells, n_columns)
    values = Z[rows, columns] + noise * rng.standard_normal(n_entries)
    return Observations.from_matrix(sp.coo_array((values, (rows, columns)), shape=Z.shape)), Z
