"""A digest of the entries of a table, by which the same data are known again."""

import hashlib

import numpy as np

from fillrank.data.observations import Observations


def fingerprint(data: Observations) -> str:
    """A digest of the entries and their places; the same entries under other names have the same."""
    digest = hashlib.sha256(repr(data.shape).encode())
    for array in (data.row_index, data.column_index, data.values):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
