"""Text tables in: is it a long one or a wide one?"""

import numpy as np

from fillrank.errors import ReadError
from fillrank.io.text import (
    NamedTriplets,
    TextTable,
    decode,
    open_table,
    parse_long,
    parse_number,
    parse_wide,
)
from fillrank.table.frames import Origin
from fillrank.table.labels import check_unique
from fillrank.table.layout import Layout, LongFields, named_fields
from fillrank.table.matrices import observed_cells
from fillrank.table.observations import Observations
from fillrank.table.triplets import Duplicates

LINES_PER_NAME = 1.5
DISTINCT_PAIRS = 0.9  # a few duplicates do not make a long table wide


def read_text(
    data: bytes, source: str, fields: LongFields | None, layout: Layout, duplicates: Duplicates
) -> Observations:
    """Read a text table; `fillrank.io.read.read` has the rules."""
    text = decode(data, source)
    del data  # large files have no place for both
    table = open_table(text, source)
    fields = fields or named_fields(table.names, layout)
    if fields is not None:
        named = parse_long(table, *map(table.position, fields))
        return _from_long(named, table, fields, duplicates)
    if layout == "auto" and (found := _long_by_content(table)) is not None:
        return _from_long(found, table, LongFields(*table.names[:3]), duplicates)
    return _from_wide(table, duplicates)


def _from_long(
    named: NamedTriplets, table: TextTable, fields: LongFields, duplicates: Duplicates
) -> Observations:
    origin = Origin("long", None, *fields) if table.has_header else Origin("long")
    return Observations.from_positions(*named, origin, duplicates)


def _from_wide(table: TextTable, duplicates: Duplicates) -> Observations:
    matrix, row_labels, column_labels, row_field = parse_wide(table)
    check_unique(row_labels, "row")
    origin = Origin("wide", row_field=row_field)
    triplets = observed_cells(matrix)
    return Observations.from_positions(triplets, row_labels, column_labels, origin, duplicates)


def _long_by_content(table: TextTable) -> NamedTriplets | None:
    if len(table.names) not in (3, 4):
        return None
    if table.has_header and table.holds_numbers(1):
        return None  # as `_looks_long` would find, after all lines were parsed
    try:
        named = parse_long(table, 0, 1, 2)
    except ReadError:
        if not table.holds_numbers(1) and table.holds_numbers(2):
            raise  # it cannot be a wide one
        return None
    return named if _looks_long(named, table) else None


def _looks_long(named: NamedTriplets, table: TextTable) -> bool:
    (row_index, column_index, _), *labels = named
    if not all(_can_be_names(names, table.delimiter) for names in labels):
        return False
    if not any(_numbers(labels[1], table.delimiter)):
        return True  # the second column is text, so the table cannot be a wide one
    n_lines, n_names = len(row_index), max(map(len, labels))
    pairs = np.sort(row_index.astype(np.int64) * n_names + column_index)
    n_pairs = 1 + int(np.count_nonzero(np.diff(pairs)))
    many = n_lines > LINES_PER_NAME * n_names
    return not table.has_header and many and n_pairs >= DISTINCT_PAIRS * n_lines


def _can_be_names(labels: np.ndarray, delimiter: str) -> bool:
    """Whole numbers or text, but neither fractions nor missing values."""
    return labels.dtype.kind == "i" or not any(_numbers(labels, delimiter))


def _numbers(labels: np.ndarray, delimiter: str) -> list[bool]:
    return [parse_number(str(label), delimiter) is not None for label in labels]
