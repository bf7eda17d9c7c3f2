"""A file that comes over the page: read, its gaps filled as those of new rows, and written again."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import FillrankError, InputError, UnknownNameError, describe
from fillrank.explore.answers import LEVEL, Answers, axis_of, number
from fillrank.io.csv_writer import csv_text, format_number, format_numbers, significant_digits
from fillrank.io.read import TEXT_ENDINGS, read
from fillrank.posterior.posterior import Posterior
from fillrank.table.frames import unused_name
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

MOST_BYTES = 50 * 2**20
MOST_CELLS = 5_000_000
# More intervals than these would keep whoever looks at the page waiting.
MOST_INTERVALS = 500_000
# What the draws of new rows may take.
_MOST_DRAWS_BYTES = 2**30
_PREVIEW = 12


class Filled(NamedTuple):
    """The files that are made of one, by their names; and what the page says of them."""

    files: dict[str, bytes]
    about: dict[str, Any]


class _Gaps(NamedTuple):
    """The gaps of a table, in order: where they are, and what fills them."""

    rows: np.ndarray  # positions in the table
    columns: np.ndarray  # positions among the columns of the model
    values: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None


def fill(answers: Answers, name: str, content: bytes) -> Filled:
    """Fill the gaps of a table that came as a file.

    Rows are taken for new ones, each filled by what it has itself. A wide table comes back as one, with
    its own columns; of a long one, the cells that it does not have, in all columns that are known.

    Parameters
    ----------
    answers : Answers
    name : str
        The file's own: its ending says what it is, and messages and results are named after it.
    content : bytes

    Raises
    ------
    FillrankError
        The file is no table, has columns that the model does not know, or is too large.
    """
    name = PurePosixPath(name.replace("\\", "/")).name or "table"
    data = _with_known_names(_read(name, content), answers)
    columns = _columns(answers, data)
    _check_size(answers, name, data, columns)
    folded = answers.model.fold_in(data)
    gaps = _fill(answers, folded, columns)
    if gaps.rows.size == 0:
        raise InputError(
            f"{name} has no gap to fill: leave a cell empty where a value is missing. To have values "
            "in further columns, add these columns with empty cells."
        )
    stem = name[: len(name) - len(PurePosixPath(name).suffix)] or "table"
    digits = significant_digits(data.values)
    cells = _long(data, folded.observations_.column_labels, gaps, digits)
    files = {f"{stem}-filled.csv": cells}
    if data.origin.layout != "long":
        files = {f"{stem}-filled.csv": _wide(data, columns, gaps, digits)}
        if gaps.low is not None:
            files[f"{stem}-intervals.csv"] = cells
    return Filled(files, _about(name, data, folded, gaps))


def _read(name: str, content: bytes) -> Observations:
    ending = PurePosixPath(name).suffix.lower()
    if ending not in TEXT_ENDINGS:
        raise InputError(
            f"{name} is no text table by its name: files that end in {' '.join(TEXT_ENDINGS)} can be "
            "filled here. Save it as CSV; or use fr.read and transform in Python, which read more."
        )
    try:
        return read(io.BytesIO(content), name=name)
    except FillrankError as error:
        if error.kind == "duplicates":
            error = error.with_advice("Leave one of them.")
        # Without the advice to set an option, which the page does not have.
        raise InputError(describe(error, lambda setting: None)) from error


def _with_known_names(data: Observations, answers: Answers) -> Observations:
    """The same with the model's own names where they are the same as text, as 5 and "5"."""
    names, labels = answers.names["columns"], answers.model.observations_.column_labels
    found = [names.position(as_text(name)) for name in data.column_labels]
    if any(position is None for position in found) or len(set(found)) < len(found):
        return data  # which names are not known, the model will say itself
    return replace(data, column_labels=labels[np.array(found)])


def _columns(answers: Answers, data: Observations) -> np.ndarray:
    """Which columns are filled: those of a wide table, all of the model for a long one."""
    known = answers.model.observations_
    if data.origin.layout == "long":
        return np.arange(known.shape[1])
    try:
        return known.column_positions(data.column_labels)
    except UnknownNameError:  # as many as there are, taken by place; or refused by fold_in
        return np.arange(data.shape[1])


def _check_size(answers: Answers, name: str, data: Observations, columns: np.ndarray) -> None:
    n_rows = data.shape[0]
    most_rows = MOST_CELLS // columns.size
    posterior = answers.model.posterior_
    if isinstance(posterior, Posterior):
        a_row = 8 * len(posterior.draws) * max(1, posterior.draws[0].left.shape[1])
        most_rows = min(most_rows, _MOST_DRAWS_BYTES // a_row)
    if n_rows > most_rows:
        raise InputError(
            f"{name} has {n_rows:,} rows; up to {most_rows:,} of {columns.size:,} columns can be filled "
            "here at once. Part it; or use transform in Python, which has no such limit."
        )


def _fill(answers: Answers, folded: Any, columns: np.ndarray) -> _Gaps:
    """Find the gaps, and what belongs there."""
    data = folded.observations_
    place = np.full(data.shape[1], -1)
    place[columns] = np.arange(columns.size)
    missing = np.ones((data.shape[0], columns.size), dtype=bool)
    missing[data.row_index, place[data.column_index]] = False
    rows, places = np.nonzero(missing)
    found = columns[places]
    with folded._workers() as workers:
        values = folded.posterior_.predict(rows, found, workers)
        if not answers.has_intervals or rows.size > MOST_INTERVALS:
            return _Gaps(rows, found, values, None, None)
        ends = folded.posterior_.interval(rows, found, LEVEL, "observation", workers)
    return _Gaps(rows, found, values, *ends)


def _about(name: str, data: Observations, folded: Any, gaps: _Gaps) -> dict[str, Any]:
    """What the page says of the result, with some of the cells."""
    rows, columns = data.row_labels, folded.observations_.column_labels
    some = slice(0, _PREVIEW)
    none = np.full(_PREVIEW, np.nan)
    low, high = (none if ends is None else ends[some] for ends in (gaps.low, gaps.high))
    value_range = folded.posterior_.units.value_range
    return {
        "name": name,
        "rows": data.shape[0],
        "columns": data.shape[1],
        "given": len(data),
        "filled": gaps.rows.size,
        "long": data.origin.layout == "long",
        "intervals": gaps.low is not None,
        "axis": axis_of(gaps.values[some], low, high) if value_range is None else list(value_range),
        "cells": [
            {
                "row": as_text(rows[i]),
                "name": as_text(columns[j]),
                "value": number(value),
                "low": number(a),
                "high": number(b),
            }
            for i, j, value, a, b in zip(
                gaps.rows[some], gaps.columns[some], gaps.values[some], low, high, strict=False
            )
        ],
    }


def _wide(data: Observations, columns: np.ndarray, gaps: _Gaps, digits: int) -> bytes:
    """The table as it came, without gaps."""
    names = [as_text(name) for name in data.column_labels]
    place = np.empty(int(columns.max()) + 1, dtype=np.int64)
    place[columns] = np.arange(columns.size)
    cells = np.empty(data.shape, dtype=object)
    cells[data.row_index, data.column_index] = [format_number(v) for v in data.values.tolist()]
    cells[gaps.rows, place[gaps.columns]] = format_numbers(gaps.values.tolist(), digits)
    corner = "row" if data.origin.row_field is None else str(data.origin.row_field)
    lines = ([as_text(name), *row] for name, row in zip(data.row_labels, cells, strict=True))
    return _encode(csv_text([unused_name(corner, names), *names], lines))


def _long(data: Observations, columns: np.ndarray, gaps: _Gaps, digits: int) -> bytes:
    """A line for each gap: row, column, value and, if there is an interval, lower and upper."""
    origin = data.origin
    fields = [
        str(given) if origin.layout == "long" and given is not None else usual
        for given, usual in zip(origin[2:5], ("row", "column", "value"), strict=True)
    ]
    ends = [] if gaps.low is None or gaps.high is None else [gaps.low, gaps.high]
    for name in ("lower", "upper")[: len(ends)]:
        fields.append(unused_name(name, fields))
    rows = [as_text(name) for name in data.row_labels]
    names = [as_text(name) for name in columns]
    parts = [format_numbers(part.tolist(), digits) for part in (gaps.values, *ends)]
    text = csv_text(
        fields,
        (
            [rows[i], names[j], *of_cell]
            for i, j, of_cell in zip(gaps.rows, gaps.columns, zip(*parts, strict=True), strict=True)
        ),
    )
    return _encode(text)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
