"""Text tables: whether they are long or wide, and their entries."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fillrank.errors import ReadError
from fillrank.io.dialect import Dialect, find_dialect
from fillrank.io.long_text import LabelledTriplets, parse_long
from fillrank.io.text_header import KnownText, open_table
from fillrank.io.text_lines import parse_number
from fillrank.io.text_table import TextTable
from fillrank.io.typed_cells import TypedCells
from fillrank.io.wide_text import read_wide
from fillrank.table.frames import Origin
from fillrank.table.layout import Layout, LongFields, named_fields, refuse_for_long
from fillrank.table.number_text import PLAIN_FORMAT, NumberFormat, find_format, find_style
from fillrank.table.observations import Observations
from fillrank.table.text_values import parse_dates
from fillrank.table.triplets import Duplicates, errors_to_weights
from fillrank.table.weights import WeightField, refuse_for_wide
from fillrank.table.wide_frames import WideOptions, WideTable

# A table without known column names is long if it has more lines than this per label, and more than
# this fraction of distinct pairs: a few duplicates do not make it wide.
_LINES_PER_LABEL = 1.5
_DISTINCT_PAIRS = 0.9
# If its second column is text, it is wide if this column looks like a category: in a table of at least
# so many lines, with so few pairs or labels for a line.
_FEWEST_LINES, _FEW_LABELS = 4, 0.5
_SKIP_ADVICE = "If this is part of the table, set skip=0."


class WideText(NamedTuple):
    """A wide table as it was written: its text, and the formats of its fitted columns."""

    table: TextTable
    formats: tuple[NumberFormat, ...]


class ReadTable(NamedTuple):
    """What was read from a file.

    ``dialect`` is None for files that are not text, and ``text`` if they are not wide. ``ending`` is the
    kind of the file, and ``cells`` are those of a wide table in a file whose values have types.
    ``value_format`` is how the values of a long text table are written, and ``encoding`` that of text.
    """

    data: Observations
    dialect: Dialect | None = None
    text: WideText | None = None
    ending: str = ".csv"
    cells: TypedCells | None = None
    value_format: NumberFormat = PLAIN_FORMAT
    encoding: str = "utf-8"


def read_text(
    text: str,
    source: str,
    fields: LongFields | None,
    layout: Layout,
    duplicates: Duplicates,
    weight: WeightField | None = None,
    options: WideOptions = WideOptions(),  # noqa: B008
    known: KnownText | None = None,
    skip: int | None = None,
) -> ReadTable:
    """Read a text table; `fillrank.io.read.read` documents the rules."""
    has_bom = text.startswith("\ufeff")
    table = open_table(
        text.removeprefix("\ufeff"), source, known, skip=skip, missing=options.missing
    )
    found = _read_table(table, fields, layout, duplicates, weight, options, has_bom)
    skipped = (f"{note} {_SKIP_ADVICE}" for note in table.notes)
    return found._replace(data=replace(found.data, notes=(*skipped, *found.data.notes)))


def _read_table(
    table: TextTable,
    fields: LongFields | None,
    layout: Layout,
    duplicates: Duplicates,
    weight: WeightField | None,
    options: WideOptions,
    has_bom: bool,
) -> ReadTable:
    dialect = find_dialect(table.text, table.delimiter, table.has_header, has_bom)
    dialect = dialect._replace(above=table.above, below=table.below)
    fields = fields or named_fields(table.names, layout)
    weight_at = None if weight is None else table.position(weight.name)
    is_wide = layout == "wide" or options.label is not None or bool(options.ignore or options.only)
    if fields is not None:
        refuse_for_long(options.label, options.ignore, options.only)
        row, column, value = map(table.position, fields)
        entries = parse_long(table, row, column, value, weight_at, options.missing, options.style)
        value_at = value
    elif not is_wide and (found := _long_by_content(table, weight_at, duplicates, options)):
        entries, fields, value_at = found, LongFields(*table.names[:3]), 2
    else:
        refuse_for_wide(weight)
        table, wide = _read_wide(table, options)
        data = Observations.from_wide(
            wide, duplicates=duplicates, may_be_empty=options.known is not None
        )
        formats = wide.formats or (PLAIN_FORMAT,) * data.shape[1]
        if any(each.style.decimal == "," for each in formats):
            dialect = dialect._replace(decimal=",")
        return ReadTable(data, dialect, WideText(table, formats))
    triplets, row_labels, column_labels, intervals = entries
    if weight is not None and weight.is_error:
        triplets = errors_to_weights(triplets, row_labels, column_labels)
    origin = Origin("long", None, *fields) if table.has_header else Origin("long")
    data = Observations.from_positions(
        triplets, row_labels, column_labels, origin, duplicates, intervals=intervals
    )
    texts = table.first_cells(value_at)
    value_format = find_format(texts, find_style(texts, options.style._replace(base=table.style)))
    return ReadTable(data, dialect, value_format=value_format)


def _read_wide(table: TextTable, options: WideOptions) -> tuple[TextTable, WideTable]:
    """A wide table. If it has no row labels, lines of empty cells are rows without entries."""
    wide = read_wide(table, options)
    n_columns = len(wide.column_labels) + len(wide.origin.passive)
    if n_columns < len(table.names) or not table.has_empty_lines():
        return table, wide
    table = table._replace(has_empty_rows=True)
    return table, read_wide(table, options)


def _long_by_content(
    table: TextTable, weight: int | None, duplicates: Duplicates, options: WideOptions
) -> LabelledTriplets | None:
    if len(table.names) not in (3, 4):
        return None
    if table.has_header and table.has_numbers(1):
        return None  # as `_looks_long` would find, after all lines were parsed
    try:
        entries = parse_long(table, 0, 1, 2, weight, options.missing, options.style)
    except ReadError as error:
        # A category may be missing, the label of an entry not.
        may_be_wide = error.kind == "label" and table.has_header
        is_like_long = not table.has_numbers(1) and table.has_numbers(2)
        if weight is not None or (is_like_long and not may_be_wide):
            raise  # a long table with a mistake
        return None
    is_new = options.known is None
    return entries if _looks_long(entries, table, duplicates, is_new) else None


def _looks_long(
    entries: LabelledTriplets, table: TextTable, duplicates: Duplicates, is_new: bool
) -> bool:
    """Whether entries are those of a long table; ``is_new`` if not for a model that was fitted."""
    (row_index, column_index, *_), *labels, _ = entries
    if not all(_can_be_labels(each, table.delimiter) for each in labels):
        return False
    n_lines, n_labels = len(row_index), max(map(len, labels))
    pairs = np.sort(row_index.astype(np.int64) * n_labels + column_index)
    n_pairs = 1 + int(np.count_nonzero(np.diff(pairs)))
    if not any(_mark_numbers(labels[1], table.delimiter)):
        if not table.has_header or n_lines < _FEWEST_LINES:
            return True
        has_category = len(labels[0]) == n_lines and len(labels[1]) <= _FEW_LABELS * n_lines
        # Long tables with so many duplicates would be refused.
        repeats = duplicates == "error" and n_pairs <= _FEW_LABELS * n_lines
        # A measurement with its date in each line. In a long table nothing would follow from anything.
        has_dates = len(labels[0]) == len(labels[1]) == n_lines and bool(
            parse_dates(labels[1].tolist())
        )
        return not (has_category or repeats or (is_new and has_dates))
    many = n_lines > _LINES_PER_LABEL * n_labels
    return not table.has_header and many and n_pairs >= _DISTINCT_PAIRS * n_lines


def _can_be_labels(labels: np.ndarray, delimiter: str) -> bool:
    """Whether labels are integers or text, not fractions or missing values."""
    return labels.dtype.kind == "i" or not any(_mark_numbers(labels, delimiter))


def _mark_numbers(labels: np.ndarray, delimiter: str) -> list[bool]:
    return [parse_number(str(label), delimiter) is not None for label in labels]
