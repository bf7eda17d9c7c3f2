"""The missing cells of a fitted table: predictions in a stream, and draws of complete tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from fillrank.completions.fitted_table import FittedTable
from fillrank.completions.user_values import decode, objects_as_text
from fillrank.posterior.imputation import Imputations
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.column_types import NUMBER
from fillrank.table.frames import fill_in, to_long
from fillrank.table.mids import to_mids
from fillrank.table.observations import Observations
from fillrank.validation import check_choice, check_integer

CompletionLayout = Literal["list", "mids"]

# Cells in a block of predictions.
_CELLS_AT_ONCE = 2**18
# An interval of whole days has all days of which it has a part.
_ROUND_DAYS = {"lower": np.floor, "upper": np.ceil}


def predict_missing(
    model: FittedTable, level: float | None, imputations: Imputations | None
) -> Iterator[Any]:
    """Long tables of all missing cells; see `Completion.predict_missing`."""
    data, posterior = model.observations, model.posterior
    whole_days = _whole_days(model)
    with model.workers() as workers:
        for i, j in data.missing_blocks(_CELLS_AT_ONCE):
            fields = {"value": posterior.predict(i, j, workers)}
            if level is not None:
                low, high = posterior.signal.interval(i, j, level, "observation", workers)
                fields |= {"lower": low, "upper": high}
            if imputations is not None:
                with one_blas_thread():
                    for number in range(imputations.n):
                        fields[f"draw_{number + 1}"] = imputations.at(number, i, j)
            is_day = whole_days[j]
            if is_day.any():
                for name, each in fields.items():
                    each[is_day] = _ROUND_DAYS.get(name, np.rint)(each[is_day])
            fields = {name: objects_as_text(decode(data, j, each)) for name, each in fields.items()}
            yield to_long(data, data.row_labels[i], data.column_labels[j], fields)


def _whole_days(model: FittedTable) -> np.ndarray:
    """Whether each column has dates without times, which are rounded to whole days."""
    data = model.observations
    types = data.column_types or (NUMBER,) * data.shape[1]
    return model.rounded_columns() & [each.values == "datetime" for each in types]


def sample_completions(
    model: FittedTable, n: int, random_state: int, layout: CompletionLayout
) -> Any:
    """Draws of complete tables; see `Completion.sample_completions`."""
    check_integer("n", n, 1)
    check_choice("layout", layout, ("list", "mids"))
    data, is_stacked = model.observations, layout == "mids"
    drawn = sample_matrices(model, n, random_state)
    n_cells = (n + is_stacked) * math.prod(data.shape)
    model.check_table_memory(n_cells, "Use predict_missing(n_draws=...), in parts.")
    if is_stacked:
        return to_mids(data, list(drawn))
    return [fill_in(data, matrix) for matrix in drawn]


def sample_matrices(model: FittedTable, n: int, random_state: int) -> Iterator[np.ndarray]:
    """The same as matrices of numbers and codes, one by one, without the observed values."""
    imputations = imputations_of(model, n, random_state)
    columns = np.arange(model.observations.shape[1])

    def draw(number: int) -> np.ndarray:
        with one_blas_thread():
            return model.round_whole(_imputed(model.observations, imputations, number), columns)

    return map(draw, range(n))


def _imputed(data: Observations, imputations: Imputations, number: int) -> np.ndarray:
    """An imputation of all cells; values that are known to be in an interval are in it."""
    matrix = np.array([imputations.row(number, i) for i in range(data.shape[0])])
    if data.cells is not None and data.intervals is not None:
        at = np.flatnonzero(data.cells >= 0)
        i, j = data.row_index[at], data.column_index[at]
        matrix[i, j] = imputations.within(number, i, j, data.intervals[data.cells[at]])
    return matrix


def imputations_of(model: FittedTable, n: int, random_state: int) -> Imputations:
    """Draws of what would be observed; an error if there are not as many."""
    model.check_draws("draws")
    n = check_integer("the number of draws", n, 1, model.posterior.n_draws)
    return model.posterior.signal.imputations(n, check_integer("random_state", random_state, 0))
