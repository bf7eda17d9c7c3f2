"""Several completed tables in one: the long layout of R's package mice.

``as.mids(long)`` reads it: the original table with its missing values, and below it the completed
tables, all with the same rows in the same order. It is what ``complete(mids, "long", include = TRUE)``
returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fillrank.errors import InputError, NotSupportedError
from fillrank.table.frames import (
    Origin,
    PassiveColumn,
    insert_column,
    installed_backend,
    name_cells,
    put_observed,
    restore_columns,
    typed_labels,
)

if TYPE_CHECKING:
    from fillrank.table.observations import Observations

# The number of the table, and the labels of its rows.
TABLE_FIELD, ROW_FIELD = ".imp", ".id"


def check_mids_names(names: Sequence[Any]) -> None:
    """Raise InputError if columns of the table have the names of those that are added."""
    for name in (TABLE_FIELD, ROW_FIELD):
        if name in names:
            raise InputError(
                f"the layout of R's mice adds a column {name!r}, which the table has already. Rename "
                "it before the fit."
            )


def passive_columns(origin: Origin) -> list[tuple[int, PassiveColumn]]:
    """The columns that were not fitted, and their positions if the row labels are no column."""
    has_labels = origin.row_field is not None and not origin.rows_in_index
    return [
        (column.position - (has_labels and column.position > origin.label_position), column)
        for column in sorted(origin.passive, key=lambda column: column.position)
    ]


def original_matrix(observations: Observations) -> np.ndarray:
    """The table as it was; a value of which only limits are known is missing, as it is drawn."""
    matrix = np.full(observations.shape, np.nan)
    is_exact = np.ones(len(observations), dtype=bool)
    if observations.cells is not None:
        is_exact = observations.cells < 0
    rows, columns = observations.row_index[is_exact], observations.column_index[is_exact]
    matrix[rows, columns] = observations.values[is_exact]
    return matrix


def to_mids(observations: Observations, drawn: Sequence[np.ndarray]) -> Any:
    """One data frame of the original table and completed ones.

    Parameters
    ----------
    observations : Observations
    drawn : sequence of ndarray of shape ``observations.shape``
        Draws of all cells.

    Returns
    -------
    data frame
        Of the library that the entries came from, or of one that is installed, with the columns
        ``.imp`` and ``.id``, and those of the table.

    Examples
    --------
    >>> from fillrank import Observations
    >>> data = Observations.from_matrix([[1.0, np.nan], [3.0, 4.0]])
    >>> to_mids(data, [np.full((2, 2), 2.5)]).to_dict("list")
    {'.imp': [0, 0, 1, 1], '.id': [0, 1, 0, 1], 0: [1.0, 3.0, 1.0, 3.0], 1: [nan, 4.0, 2.5, 4.0]}
    """
    origin, n_tables = observations.origin, 1 + len(drawn)
    backend = _backend(origin.backend)
    tables = [original_matrix(observations), *(put_observed(observations, each) for each in drawn)]
    columns = restore_columns(observations, np.vstack(tables), backend)
    cells = name_cells(observations, columns, backend)
    at = np.tile(np.arange(observations.shape[0]), n_tables)
    for position, column in passive_columns(origin):
        cells = insert_column(cells, position, column.label, _repeated(column.values, at))
    check_mids_names(list(cells))
    fields = {
        TABLE_FIELD: np.repeat(np.arange(n_tables), observations.shape[0]),
        ROW_FIELD: typed_labels(observations.row_labels)[at],
    }
    return nw.from_dict(fields | cells, backend=backend).to_native()


def _backend(backend: Any) -> Any:
    if backend is not None:
        return backend
    name = installed_backend()
    if name is None:
        raise NotSupportedError(
            "tables in one data frame need pandas, polars or pyarrow, and none is installed."
        )
    return nw.Implementation.from_backend(name)


def _repeated(values: Any, at: np.ndarray) -> Any:
    """The lines ``at`` of a column of a library, or of a list of text."""
    series: Any = nw.from_native(values, pass_through=True, allow_series=True)
    if not isinstance(series, nw.Series):
        return [values[i] for i in at]
    return nw.maybe_reset_index(series[at.tolist()]).to_native()
