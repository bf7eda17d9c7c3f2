"""Tables of any type that `fit` takes, as observed entries."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils import check_array

from fillrank.errors import InputError
from fillrank.table.frames import is_data_frame
from fillrank.table.observations import Observations
from fillrank.table.triplets import dense_matrix

_MATRIX_ALLOWED = (
    "X must be a data frame, or a matrix of real numbers: of two dimensions, with at least one row and "
    "one column."
)


def as_observations(X: Any, like: Observations | None = None) -> Observations:
    """The observed entries of a table of any type that `fit` takes; anything else is refused.

    ``like`` is the table of a fit, if X has new rows or entries for it.
    """
    if isinstance(X, Observations) or is_data_frame(X):
        return Observations.of(X, like=like)
    return Observations.of(as_matrix(X))


def as_matrix(X: Any, estimator: Any = None) -> Any:
    """An array or a sparse matrix, checked as scikit-learn does; anything else is refused."""
    if isinstance(X, str | os.PathLike):
        raise InputError(f"X must be a table, got a path, {str(X)!r}; fr.read(path) reads it.")
    if isinstance(X, np.ma.MaskedArray):  # scikit-learn would drop the mask
        X = dense_matrix(X)
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "MmSUV":  # scikit-learn would convert some
        raise InputError(f"{_MATRIX_ALLOWED} Got dtype {dtype}.")
    try:
        return check_array(
            X, accept_sparse=True, dtype=np.float64, ensure_all_finite=False, estimator=estimator
        )
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, TypeError) and dtype is not None:
            raise  # an array of objects: scikit-learn's checks require a TypeError
        first, *more = str(error).splitlines()
        # The lines between show the entire array.
        words = [first, *(line for line in more if line.startswith("Reshape"))]
        raise InputError(f"{_MATRIX_ALLOWED} {' '.join(words)}") from error
