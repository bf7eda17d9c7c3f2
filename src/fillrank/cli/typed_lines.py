"""Lines of a completed table for files whose values have types: spreadsheets and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

from fillrank.io.typed_cells import TypedCells, cell_text
from fillrank.table.column_types import NUMBER, ColumnType, are_numbers
from fillrank.table.observations import Observations

_TRUTH = {"true": True, "false": False}
_Convert = Callable[[str], Any]


def typed_lines(
    lines: Iterable[Sequence[str]],
    data: Observations,
    at: Sequence[int],
    cells: TypedCells | None = None,
) -> Iterator[list[Any]]:
    """Lines with values in place of text; empty cells are None.

    Parameters
    ----------
    lines : iterable of sequences of str
        The lines of the completed table, below its header.
    data : Observations
    at : sequence of int
        The position of each fitted column in a line.
    cells : TypedCells, optional
        Those of the table, if it came with types. A cell with the same text is taken from there, and a
        prediction has the type of its column there.
    """
    types = data.column_types or (NUMBER,) * data.shape[1]
    converters: dict[int, _Convert] = {}
    if cells is None:
        converters = {k: _converter(kind) for k, kind in zip(at, types, strict=True)}
        if data.row_labels.dtype.kind in "iu" and data.origin.label_position not in converters:
            converters[data.origin.label_position] = _number
        given: Iterator[Sequence[Any]] = iter(())
    else:
        converters = {
            k: _converter_like([row[k] for row in cells.rows if k < len(row)], kind)
            for k, kind in zip(at, types, strict=True)
        }
        given = iter(cells.rows)
    for line in lines:
        own = next(given, ())
        yield [
            own[k] if k < len(own) and cell_text(own[k]) == text else converters.get(k, _text)(text)
            for k, text in enumerate(line)
        ]


def _converter(kind: ColumnType) -> _Convert:
    """What makes values from text, for a type of column."""
    if are_numbers([kind]):
        return _number
    if kind.values == "datetime":
        return _date
    is_boolean = bool(kind.levels) and {str(level).lower() for level in kind.levels} <= set(_TRUTH)
    return _truth if is_boolean else _text


def _converter_like(column: Sequence[Any], kind: ColumnType) -> _Convert:
    """What makes values of the type that those of a column have: its numbers may be text with units."""
    found = {type(cell) for cell in column if cell_text(cell)}
    if not found:
        return _converter(kind)
    if kind.is_coded:
        levels = {cell_text(cell): cell for cell in column}
        return lambda text: levels.get(text, text)
    if kind.values == "datetime":
        return _date if any(issubclass(each, date) for each in found) else _text
    if float in found and int not in found:
        return _float
    return _number if found & {int, float} else _text


def _number(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:  # the cell of a limit, such as <0.5
        return text


def _float(text: str) -> Any:
    number = _number(text)
    return float(number) if isinstance(number, int) else number


def _date(text: str) -> Any:
    return datetime.fromisoformat(text) if text else None


def _truth(text: str) -> Any:
    return _TRUTH.get(text.lower(), text) if text else None


def _text(text: str) -> str | None:
    return text or None
