"""Several completed tables in one file, as R's package mice reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fillrank.cli.completed_table import CellFormats, OtherColumn, cell_texts, insert_cells
from fillrank.cli.results import open_text
from fillrank.io.csv_writer import write_csv
from fillrank.table.frames import put_observed
from fillrank.table.labels import as_text
from fillrank.table.mids import ROW_FIELD, TABLE_FIELD, original_matrix, passive_columns
from fillrank.table.number_text import PLAIN_FORMAT
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from fillrank.completion import Completion
    from fillrank.estimators.base import Estimator

_MISSING_IN_R = "NA"


def write_imputations(path: Path, model: Estimator | Completion, n: int, seed: int) -> None:
    """Write the table and completed ones, in the long layout of R's package mice.

    Missing values are NA: R would take an empty cell of a column of text for a value.
    """
    completion = model.completion_
    data = completion.observations
    completion.check_table_memory(math.prod(data.shape), "Use a smaller table.")
    columns = [as_text(label) for label in data.column_labels]
    others = sorted(
        OtherColumn(position, as_text(column.label), cell_texts(column.values))
        for position, column in passive_columns(data.origin)
    )
    header = insert_cells(columns, [(position, name) for position, name, _ in others])
    with open_text(path) as file:
        lines = _imputed_rows(data, completion.sample_matrices(n, seed), others)
        write_csv(file, [TABLE_FIELD, ROW_FIELD, *header], lines)


def _imputed_rows(
    data: Observations, drawn: Iterable[np.ndarray], others: Sequence[OtherColumn]
) -> Iterator[list[str]]:
    formats = CellFormats(data, [PLAIN_FORMAT] * data.shape[1])
    is_exact = ~np.isnan(original_matrix(data))
    labels = [as_text(label) for label in data.row_labels]
    for number, matrix in enumerate(chain([original_matrix(data)], drawn)):
        matrix = put_observed(data, matrix) if number else matrix
        cells = formats.predicted(matrix)
        for i, j in np.argwhere(is_exact).tolist():
            cells[i][j] = formats.observed(j, float(matrix[i, j]))
        for i, row in enumerate(cells):
            line = insert_cells(row, [(other.position, other.cells[i]) for other in others])
            yield [str(number), labels[i], *(cell or _MISSING_IN_R for cell in line)]
