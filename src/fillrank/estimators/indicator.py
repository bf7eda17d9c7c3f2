"""Columns that say which values of a table were missing, beside the completed ones."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from fillrank.table.frames import is_data_frame, unused_name
from fillrank.table.observations import Observations

# As scikit-learn's imputers name them.
_PREFIX = "missingindicator"


def indicator_columns(fitted: Observations) -> np.ndarray:
    """The positions of the columns that had missing values at fit."""
    counts = np.bincount(fitted.column_index, minlength=fitted.shape[1])
    return np.flatnonzero(counts < fitted.shape[0])


def indicator_names(names: np.ndarray) -> np.ndarray:
    """The names of the indicators of columns.

    Examples
    --------
    >>> indicator_names(np.array(["x0", "x2"], dtype=object)).tolist()
    ['missingindicator_x0', 'missingindicator_x2']
    """
    return np.array([f"{_PREFIX}_{name}" for name in names], dtype=object)


def missing_indicators(observations: Observations, columns: np.ndarray) -> np.ndarray:
    """For each row and each of these columns, 1 if the value is missing and 0 if not."""
    is_missing = np.ones(observations.shape)
    is_missing[observations.row_index, observations.column_index] = 0.0
    return is_missing[:, columns]


def append_indicators(filled: Any, indicators: np.ndarray, names: np.ndarray) -> Any:
    """An array or a data frame with the indicators as its last columns."""
    if not is_data_frame(filled):
        return np.hstack([filled, indicators])
    frame: Any = nw.from_native(filled)
    index, taken = nw.maybe_get_index(frame), list(frame.columns)
    for name, values in zip(names, indicators.T, strict=True):
        taken.append(unused_name(name, taken))
        new = nw.new_series(taken[-1], values, backend=frame.implementation)
        frame = frame.with_columns(new if index is None else nw.maybe_set_index(new, index=index))
    return frame.to_native()
