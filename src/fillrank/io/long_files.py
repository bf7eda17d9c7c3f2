"""Long tables from files that are larger than they should be in memory: column by column, in batches.

The values come first, then the names of the rows, then those of the columns: the order in which
`Observations.from_table` judges them, so that what is wrong is said in the same words.
"""

from typing import NamedTuple

import numpy as np

from fillrank.io.binary import ParquetTable
from fillrank.runtime.memory import check_room
from fillrank.table.entries import Entries
from fillrank.table.frames import Origin, check_fields, real_column
from fillrank.table.label_batches import Numbering
from fillrank.table.labels import as_names
from fillrank.table.layout import LongFields
from fillrank.table.narrow import narrowed
from fillrank.table.triplets import Triplets, gather_columns

# Of positions, a value and whether it is there; names come on top.
_BYTES_PER_LINE = 13


class LongTable(NamedTuple):
    """The entries of a long table, gathered by column; its names, and its origin."""

    by_column: Entries
    row_labels: np.ndarray
    column_labels: np.ndarray
    origin: Origin


def read_long(table: ParquetTable, fields: LongFields) -> LongTable:
    """Read a long table, whose lines are in memory at once in no other form than positions and values.

    Raises what `Observations.from_table` raises.
    """
    check_fields(table.names, fields)
    check_room(
        _BYTES_PER_LINE * table.n_lines,
        f"the entries of {table.n_lines:,} lines",
        "Read some of them, or fit the table on a cluster.",
    )
    triplets, row_labels, column_labels = _read_triplets(table, fields)
    by_column = gather_columns(triplets, row_labels, column_labels)
    return LongTable(by_column, row_labels, column_labels, Origin("long", table.backend, *fields))


def _read_triplets(
    table: ParquetTable, fields: LongFields
) -> tuple[Triplets, np.ndarray, np.ndarray]:
    values, is_observed = _read_values(table, fields.value)
    rows, row_labels = _read_names(table, fields.row, "row", is_observed)
    columns, column_labels = _read_names(table, fields.column, "column", is_observed)
    return Triplets(rows, columns, values), row_labels, column_labels


def _read_values(table: ParquetTable, field: str) -> tuple[np.ndarray, np.ndarray]:
    """The values that are there, in float32 if that is exact; and which lines have one."""
    values = np.zeros(table.n_lines, dtype=np.float32)
    is_observed = np.empty(table.n_lines, dtype=bool)
    n_lines = n_values = 0
    for column in table.batches(field):
        read = real_column(column)
        there = ~np.isnan(read)
        is_observed[n_lines : n_lines + len(read)] = there
        n_lines += len(read)
        read = narrowed(read[there])
        if read.dtype != np.float32:
            values = values.astype(read.dtype, copy=False)
        values[n_values : n_values + len(read)] = read
        n_values += len(read)
    return values[:n_values], is_observed[:n_lines]


def _read_names(
    table: ParquetTable, field: str, what: str, is_observed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The position of the name in each line that has a value, and all names."""
    numbering = Numbering(what)
    index = np.empty(np.count_nonzero(is_observed), dtype=np.int32)
    n_lines = n_entries = 0
    for column in table.batches(field):
        codes = numbering.take(as_names(column.to_numpy()))
        codes = codes[is_observed[n_lines : n_lines + len(column)]]
        index[n_entries : n_entries + len(codes)] = codes
        n_lines += len(column)
        n_entries += len(codes)
    return index[:n_entries], numbering.labels()
