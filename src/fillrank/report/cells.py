"""Missing cells and blocks of cells, without a table of all of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fillrank.posterior.ordinal import OrdinalPosterior
from fillrank.table.observations import Observations

# Intervals of so many cells take some seconds.
MOST_CELLS = 200_000
# A picture has so many rows and columns at most: about one for each dot of a screen.
MOST_BLOCKS = 300


class Sure(NamedTuple):
    """Missing cells, by position, from the most certain to the least, with their intervals."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float
    n_missing: int


class Blocks(NamedTuple):
    """A picture of a table: ``cells`` (at most 300 x 300); ``exact`` if each is a cell of it."""

    cells: np.ndarray
    exact: bool


def missing_cells(data: Observations, most: int = MOST_CELLS) -> tuple[np.ndarray, np.ndarray]:
    """Positions of missing cells, in order: all, or ``most`` of them chosen at random.

    Before the t-th entry, at place o_t among all cells, there are o_t - t missing ones; so the k-th
    missing cell is at place k + t if t entries have at most k missing cells before them.

    Examples
    --------
    >>> data = Observations.from_matrix([[1.0, np.nan], [np.nan, 4.0]])
    >>> missing_cells(data)
    (array([0, 1]), array([1, 0]))
    """
    n_columns = data.shape[1]
    observed = data.row_index.astype(np.int64) * n_columns + data.column_index
    n_missing = math.prod(data.shape) - observed.size
    if n_missing <= most:
        k = np.arange(n_missing)
    else:
        rng = np.random.default_rng(0)
        k = np.sort(rng.choice(n_missing, most, replace=False, shuffle=False))
    before = observed - np.arange(observed.size)
    return np.divmod(k + np.searchsorted(before, k, side="right"), n_columns)


def sure_of(model: Any, level: float = 0.9) -> Sure:
    """How sure the model is of missing cells: at most 200,000 of them, chosen at random.

    The intervals are those of the noise-free value. A model without its entries is asked about all
    cells, since it cannot tell which are missing.
    """
    data = model.observations_
    i, j = missing_cells(data)
    rows, columns = data.row_labels[i], data.column_labels[j]
    low, high = model.predict_interval(rows, columns, level, kind="signal")
    values = model.predict(rows, columns)
    order = np.argsort(high - low, kind="stable")
    i, j, values, low, high = (part[order] for part in (i, j, values, low, high))
    return Sure(i, j, values, low, high, level, math.prod(data.shape) - len(data))


def observed_blocks(data: Observations) -> Blocks:
    """The entries with NaN where there are none; of a large table, the share of cells observed."""
    shape = _size(data.shape)
    if shape == data.shape:
        cells = np.full(shape, np.nan)
        cells[data.row_index, data.column_index] = data.values
        return Blocks(cells, exact=True)
    rows, columns = (_blocks(n, size) for n, size in zip(data.shape, shape, strict=True))
    place = rows[data.row_index] * shape[1] + columns[data.column_index]
    counts = np.bincount(place, minlength=math.prod(shape)).reshape(shape)
    return Blocks(counts / np.outer(np.bincount(rows), np.bincount(columns)), exact=False)


def filled_blocks(model: Any) -> Blocks:
    """The table without holes; of a large table, the average prediction in each block of cells.

    The average of a block of L R^T is the product of averages of rows of L and R. Methods that predict
    levels are asked about a cell in each block instead.
    """
    data, posterior = model.observations_, model.posterior_
    shape = _size(data.shape)
    if shape == data.shape:
        cells = posterior.block(np.arange(shape[0]), np.arange(shape[1]))
        cells[data.row_index, data.column_index] = data.values
        return Blocks(cells, exact=True)
    rows, columns = (_blocks(n, size) for n, size in zip(data.shape, shape, strict=True))
    if isinstance(posterior, OrdinalPosterior):
        firsts = (np.unique(blocks, return_index=True)[1] for blocks in (rows, columns))
        return Blocks(posterior.block(*firsts), exact=False)
    left, right = _averages(posterior.mean.left, rows), _averages(posterior.mean.right, columns)
    return Blocks(posterior.units.restore(left @ right.T), exact=False)


def _size(shape: tuple[int, int]) -> tuple[int, int]:
    return min(shape[0], MOST_BLOCKS), min(shape[1], MOST_BLOCKS)


def _blocks(n: int, n_blocks: int) -> np.ndarray:
    """The block of each of n positions: equal ones, as far as that goes."""
    return np.arange(n) * n_blocks // n


def _averages(factors: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    counts = np.bincount(blocks)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.add.reduceat(factors.astype(np.float64), starts, axis=0) / counts[:, None]
