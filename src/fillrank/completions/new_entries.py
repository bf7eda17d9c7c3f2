"""New entries of known rows and columns of a fitted table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fillrank.completions.alignment import align, merged
from fillrank.completions.fitted_table import FittedTable
from fillrank.completions.new_rows import Table, check_weights, source_of
from fillrank.errors import NotSupportedError, UnknownNameError
from fillrank.features.new_rows import Axis
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.entries import some_rows
from fillrank.table.observations import Observations


def update(model: Table, more_entries: Any, axis: Axis) -> Table:
    """Learn from new entries of known rows and columns; see `Completion.update`."""
    _check_update(model, axis)
    more = Observations.of(more_entries, like=model.observations)
    check_weights(model, more)
    rows, columns = _align_update(model.observations, more)
    observations = merged(model.observations, more, rows, columns)
    by_side = observations.by_row() if axis == "rows" else observations.by_column()
    index = rows[more.row_index] if axis == "rows" else columns[more.column_index]
    changed = np.unique(index)
    with one_blas_thread(), model.workers() as workers:
        entries = some_rows(by_side, changed)
        source = source_of(model, axis)
        posterior = model.posterior.signal.update(
            entries, changed, axis, workers, source.signal, observations.intervals
        )
    record = model.record
    if record.row_noise is not None:
        row_noise, column_noise = posterior.noise_scales()
        record = replace(record, row_noise=row_noise, column_noise=column_noise)
    return replace(model, posterior=posterior, observations=observations, record=record)


def _check_update(model: FittedTable, axis: Axis) -> None:
    """Raise NotSupportedError if not all entries of the rows (or columns) are known."""
    if set(model.folded_in) - {axis}:
        other = "columns" if axis == "rows" else "rows"
        raise NotSupportedError(
            f"this model has new {other} only, so it does not know all entries of its {axis}. "
            f"Update the model that it came from, or set axis={other!r}."
        )
    model.check_entries(
        "Save it with its entries, by save(path, with_data=True), or fold in the rows with all of "
        "their entries."
    )


def _align_update(known: Observations, more: Observations) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the rows and columns of new entries."""
    try:
        return align(known, more, "rows"), align(known, more, "columns")
    except UnknownNameError as error:
        raise error.with_advice(
            "update is for known rows and columns; fold_in completes new ones."
        ) from error
