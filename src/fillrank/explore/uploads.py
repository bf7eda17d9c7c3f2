"""Files that are uploaded on the page: read, their missing values filled as those of new rows."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import (
    FillrankError,
    InputError,
    NotSupportedError,
    UnknownNameError,
    describe,
)
from fillrank.explore.views import LEVEL, ModelView, axis_limits, number
from fillrank.io.csv_writer import csv_text, format_number, format_numbers, significant_digits
from fillrank.io.read import TEXT_ENDINGS, read
from fillrank.table.frames import unused_name
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

MOST_BYTES = 50 * 2**20
MOST_CELLS = 5_000_000
# More intervals would take too long for a page.
MOST_INTERVALS = 500_000
# The memory for the draws of new rows.
_MOST_DRAWS_BYTES = 2**30
_PREVIEW = 12
# Advice for the page in place of advice about settings of the library.
_ADVICE = {"duplicates": "Delete all but one of them."}


class FilledFile(NamedTuple):
    """The resulting files by name, and their description for the page."""

    files: dict[str, bytes]
    about: dict[str, Any]


class _Cells(NamedTuple):
    """The missing cells of a table, in order, and their predictions."""

    rows: np.ndarray  # positions in the table
    columns: np.ndarray  # positions among the columns of the model
    values: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None


def fill(view: ModelView, name: str, content: bytes) -> FilledFile:
    """Fill in the missing values of an uploaded table.

    Each row is treated as a new row and filled from its own values. A wide table stays wide, with its
    columns; for a long one, the result has the cells that it does not have, in all columns of the model.

    Parameters
    ----------
    view : ModelView
    name : str
        The name of the file: its ending is the kind of file, and messages and results have its name.
    content : bytes

    Raises
    ------
    FillrankError
        The file is not a table, has columns that the model does not know, or is too large.
    """
    if view.mixed is not None:
        raise NotSupportedError(
            "the columns of this model have values of different kinds, which cannot be filled here: use "
            "fillrank fold-in, or fold_in in Python."
        )
    name = PurePosixPath(name.replace("\\", "/")).name or "table"
    data = _with_known_labels(_read(name, content), view)
    columns = _columns(view, data)
    _check_size(view, name, data, columns)
    folded = view.model.fold_in(data)
    cells = _fill(view, folded, columns)
    if cells.rows.size == 0:
        raise InputError(
            "no value is missing",
            place=name,
            advice=[
                "Leave a cell empty where a value is missing.",
                "For values in further columns, add these columns with empty cells.",
            ],
        )
    stem = name[: len(name) - len(PurePosixPath(name).suffix)] or "table"
    digits = significant_digits(data.values)
    long_table = _long(data, folded.observations_.column_labels, cells, digits)
    files = {f"{stem}-filled.csv": long_table}
    if data.origin.layout != "long":
        files = {f"{stem}-filled.csv": _wide(data, columns, cells, digits)}
        if cells.low is not None:
            files[f"{stem}-intervals.csv"] = long_table
    return FilledFile(files, _describe(view, name, data, cells))


def _read(name: str, content: bytes) -> Observations:
    if PurePosixPath(name).suffix.lower() not in TEXT_ENDINGS:
        raise InputError(
            f"not a text table by its name: files that end in {' '.join(TEXT_ENDINGS)} can be filled "
            "here",
            place=name,
            advice="Save it as CSV; or use fr.read and transform in Python, which read more formats.",
        )
    return read(io.BytesIO(content), name=name)


def describe_for_page(error: FillrankError) -> str:
    """The message of an error, without advice about settings, which the page does not have."""
    advice = [_ADVICE[setting] for setting in sorted(error.settings & _ADVICE.keys())]
    return describe(error.with_advice(*advice), lambda setting: None)


def _with_known_labels(data: Observations, view: ModelView) -> Observations:
    """The same with the model's labels where they have the same text, as 5 and "5"."""
    search, labels = view.labels["columns"], view.model.observations_.column_labels
    found = [search.position(as_text(label)) for label in data.column_labels]
    if any(position is None for position in found) or len(set(found)) < len(found):
        return data  # fold_in reports unknown labels
    return replace(data, column_labels=labels[np.array(found)])


def _columns(view: ModelView, data: Observations) -> np.ndarray:
    """The columns to fill: those of a wide table; for a long one, all of the model."""
    known = view.model.observations_
    if data.origin.layout == "long":
        return np.arange(known.shape[1])
    try:
        return known.column_positions(data.column_labels)
    except UnknownNameError:  # columns without labels are matched by position, or fold_in refuses
        return np.arange(data.shape[1])


def _check_size(view: ModelView, name: str, data: Observations, columns: np.ndarray) -> None:
    n_rows = data.shape[0]
    most_rows = MOST_CELLS // columns.size
    posterior = view.model.posterior_
    if row_bytes := posterior.new_row_nbytes:
        most_rows = min(most_rows, _MOST_DRAWS_BYTES // row_bytes)
    if n_rows > most_rows:
        raise InputError(
            f"{n_rows:,} rows; up to {most_rows:,} rows of {columns.size:,} columns can be filled here",
            place=name,
            advice="Split it; or use transform in Python, which has no such limit.",
        )


def _fill(view: ModelView, folded: Any, columns: np.ndarray) -> _Cells:
    """Find the missing cells, and predict them."""
    data = folded.observations_
    table_column = np.full(data.shape[1], -1)
    table_column[columns] = np.arange(columns.size)
    missing = np.ones((data.shape[0], columns.size), dtype=bool)
    missing[data.row_index, table_column[data.column_index]] = False
    rows, table_columns = np.nonzero(missing)
    found = columns[table_columns]
    with folded.workers() as workers:
        values = folded.posterior_.predict(rows, found, workers)
        if not view.has_intervals or rows.size > MOST_INTERVALS:
            return _Cells(rows, found, values, None, None)
        limits = folded.posterior_.signal.interval(rows, found, LEVEL, "observation", workers)
    return _Cells(rows, found, values, *limits)


def _describe(view: ModelView, name: str, data: Observations, cells: _Cells) -> dict[str, Any]:
    """The description of the result, with some of the cells."""
    rows, columns = data.row_labels, view.labels["columns"]
    some = slice(0, _PREVIEW)
    none = np.full(_PREVIEW, np.nan)
    low, high = (none if limit is None else limit[some] for limit in (cells.low, cells.high))
    value_range = view.model.posterior_.units.value_range
    axis = axis_limits(cells.values[some], low, high) if value_range is None else list(value_range)
    return {
        "name": name,
        "rows": data.shape[0],
        "columns": data.shape[1],
        "given": len(data),
        "filled": cells.rows.size,
        "long": data.origin.layout == "long",
        "intervals": cells.low is not None,
        "axis": axis,
        "cells": [
            {
                "row": as_text(rows[i]),
                "value": number(value),
                "low": number(a),
                "high": number(b),
            }
            | columns.describe(j)
            for i, j, value, a, b in zip(
                cells.rows[some], cells.columns[some], cells.values[some], low, high, strict=False
            )
        ],
    }


def _wide(data: Observations, columns: np.ndarray, cells: _Cells, digits: int) -> bytes:
    """The completed table."""
    labels = [as_text(label) for label in data.column_labels]
    table_column = np.empty(int(columns.max()) + 1, dtype=np.int64)
    table_column[columns] = np.arange(columns.size)
    texts = np.empty(data.shape, dtype=object)
    texts[data.row_index, data.column_index] = [format_number(v) for v in data.values.tolist()]
    texts[cells.rows, table_column[cells.columns]] = format_numbers(cells.values.tolist(), digits)
    corner = "row" if data.origin.row_field is None else str(data.origin.row_field)
    lines = ([as_text(label), *row] for label, row in zip(data.row_labels, texts, strict=True))
    return _encode(csv_text([unused_name(corner, labels), *labels], lines))


def _long(data: Observations, columns: np.ndarray, cells: _Cells, digits: int) -> bytes:
    """A line for each missing cell: row, column, value and, if there is an interval, its limits."""
    origin = data.origin
    fields = [
        str(given) if origin.layout == "long" and given is not None else usual
        for given, usual in zip(origin[2:5], ("row", "column", "value"), strict=True)
    ]
    limits = [] if cells.low is None or cells.high is None else [cells.low, cells.high]
    for name in ("lower", "upper")[: len(limits)]:
        fields.append(unused_name(name, fields))
    rows = [as_text(label) for label in data.row_labels]
    labels = [as_text(label) for label in columns]
    numbers = [format_numbers(part.tolist(), digits) for part in (cells.values, *limits)]
    lines = zip(cells.rows, cells.columns, zip(*numbers, strict=True), strict=True)
    text = csv_text(fields, ([rows[i], labels[j], *texts] for i, j, texts in lines))
    return _encode(text)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
