"""Triplets put in order by one sort of all cells, in double precision."""

from typing import NamedTuple

import numpy as np


class Ordered(NamedTuple):
    """Entries sorted by row and column, each pair once."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray


def in_order(rows, columns, values, duplicates):
    """The entries as Observations must hold them; None if pairs come twice and may not."""
    there = ~np.isnan(values)
    rows, columns, values = rows[there], columns[there], values[there]
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    is_first = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))
    starts = np.flatnonzero(is_first)
    stops = np.append(starts[1:], rows.size)
    if starts.size < rows.size and duplicates == "error":
        return None
    if duplicates == "mean":
        values = np.add.reduceat(values, starts) / (stops - starts)
    else:
        values = values[stops - 1 if duplicates == "last" else starts]
    return Ordered(rows[starts], columns[starts], values)
