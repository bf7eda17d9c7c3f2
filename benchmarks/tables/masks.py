"""Masks: which observed cells of a table are hidden from the methods."""

from typing import NamedTuple

import numpy as np
from wide_tables import random_generator

MIN_IN_COLUMN, MIN_IN_ROW = 5, 1
MCAR, REAL = "mcar", "real"


class Mask(NamedTuple):
    """Hidden cells (rows, columns): completely at random, or as values are missing in the table."""

    kind: str
    share: float
    number: int
    hidden: np.ndarray


def make_masks(table, share, n_masks):
    """The masks of a table; with a ``share`` of "real" none if the table has no missing values."""
    if share != REAL:
        return [_mcar(table, float(share), number) for number in range(n_masks)]
    if not np.isnan(table.values).any():
        return []
    return [_real(table, number) for number in range(n_masks)]


def _mcar(table, share, number):
    """Hide a share of the observed cells, all equally likely."""
    rng = random_generator(table.name, 1, round(1000 * share), number)
    observed = ~np.isnan(table.values)
    cells = rng.permutation(np.argwhere(observed))
    return Mask(MCAR, share, number, _hide(observed, cells, round(share * len(cells))))


def _real(table, number):
    """Give rows the missing values of other rows, so often that the real share is hidden.

    At most half of the rows get them: where most values of a column are missing, it keeps about half of
    the others, and less than the real share is hidden.
    """
    rng = random_generator(table.name, 2, number)
    observed = ~np.isnan(table.values)
    donors = np.flatnonzero(~observed.all(axis=1))
    share = 1 - observed.mean()
    hidden_by_pattern = observed.mean(axis=0) @ (~observed[donors]).mean(axis=0)
    probability = min(0.5, share * observed.sum(axis=1).mean() / hidden_by_pattern)
    donor_of = rng.choice(donors, len(observed))
    applied = rng.random(len(observed)) < probability
    wanted = observed & ~observed[donor_of] & applied[:, None]
    cells = rng.permutation(np.argwhere(wanted))
    return Mask(REAL, round(float(share), 3), number, _hide(observed, cells, len(cells)))


def _hide(observed, cells, n_hidden):
    """Hide the first cells of a list, but never the last observed ones of a column or a row."""
    left_in_row, left_in_column = observed.sum(axis=1), observed.sum(axis=0)
    hidden = np.zeros(observed.shape, bool)
    for row, column in cells:
        if n_hidden == 0:
            break
        if left_in_column[column] > MIN_IN_COLUMN and left_in_row[row] > MIN_IN_ROW:
            hidden[row, column] = True
            left_in_row[row] -= 1
            left_in_column[column] -= 1
            n_hidden -= 1
    return hidden
