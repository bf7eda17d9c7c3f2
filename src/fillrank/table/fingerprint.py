"""A digest of the entries of a table, by which the same data are known again."""

import hashlib

import numpy as np

from fillrank.table.blocks import blocks
from fillrank.table.observations import Observations

_ROWS = 4096  # at a time


def fingerprint(data: Observations) -> str:
    """A digest of the entries and their places; the same entries under other names have the same."""
    digest = hashlib.sha256(repr(data.shape).encode())
    for rows in blocks(data.shape[0], size=_ROWS):
        digest.update(data.row_index_of(rows.start, rows.stop).data)
    digest.update(data.column_index.data)
    for part in blocks(len(data)):
        digest.update(data.stored_values[part].astype(np.float64).data)
    return digest.hexdigest()
