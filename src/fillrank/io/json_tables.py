"""Tables in JSON as text tables, so that text becomes values in one place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fillrank.errors import FileLocation, ReadError
from fillrank.io.dialect import Dialect
from fillrank.io.typed_cells import JsonLayout, cell_text
from fillrank.runtime.memory import check_memory

_DIALECT = Dialect(line_end="\n")
_BYTES_PER_CHARACTER = 30  # objects of Python for short numbers
_SHAPES = (
    "a list of objects, an object of columns, an object with columns and data, a list of lists, or one "
    "object or list per line"
)


class JsonText(NamedTuple):
    """A table as text with commas, and whether its first line has the names of the columns.

    ``rows`` are the cells of its lines, those of the header included.
    """

    text: str
    has_header: bool | None
    rows: list[list[Any]]
    layout: JsonLayout = JsonLayout()


class _Lines(NamedTuple):
    """The names of columns, None if the first line may have them, and lines of cells."""

    names: list[str] | None
    lines: list[list[Any]]
    layout: JsonLayout = JsonLayout()


def read_json(text: str, name: str) -> JsonText:
    """Read a table from JSON, or from JSON lines.

    Examples
    --------
    >>> read_json('[{"id": "a", "x": 1.5}, {"id": "b", "y": true}]', "t.json").text
    'id,x,y\\na,1.5,\\nb,,true\\n'
    >>> read_json('{"x": [1, null], "y": ["p", "q"]}', "t.json").text
    'x,y\\n1,p\\n,q\\n'
    """
    check_memory(_BYTES_PER_CHARACTER * len(text), "a JSON file of this size", "Save it as CSV.")
    names, lines, layout = _find_lines(_load(text, name), name)
    if not lines or not max(map(len, lines)):
        raise ReadError("the file has no cells", place=name)
    written = [] if names is None else [_DIALECT.line(names)]
    width = max(map(len, lines))
    for record, line in enumerate(lines, start=1):
        cells = [_cell_text(cell, name, record) for cell in line]
        written.append(_DIALECT.line(cells + [""] * (width - len(cells))))
    rows = lines if names is None else [names, *lines]
    return JsonText("".join(written), None if names is None else True, rows, layout)


def write_json(
    file: Any,
    names: Sequence[str] | None,
    lines: Iterable[Sequence[Any]],
    layout: JsonLayout = JsonLayout(),  # noqa: B008
) -> None:
    """Write a table as JSON, in the layout of the file that it was read from.

    Examples
    --------
    >>> import sys
    >>> write_json(sys.stdout, ["", "x"], [["a", 1.5], ["b", 2.0]], JsonLayout("cells"))
    {"x": {"a": 1.5, "b": 2.0}}
    """
    if names is None or layout.kind == "records":
        _write_lines(file, names, lines, ("[", ",\n ", "]\n"))
        return
    rows, labels = list(lines), layout.numbers
    if names[0] == "":  # labels that are no column of the file
        labels, names = [row[0] for row in rows], names[1:]
        rows = [row[1:] for row in rows]
    if layout.kind == "split":
        content: Any = {"columns": layout.names, "index": labels, "data": rows}
        content = {key: value for key, value in content.items() if value is not None}
    elif labels is None:
        content = {name: [row[j] for row in rows] for j, name in enumerate(names)}
    else:
        keys = list(map(cell_text, labels))
        content = {
            name: dict(zip(keys, (row[j] for row in rows), strict=True))
            for j, name in enumerate(names)
        }
    file.write(_dump(content) + "\n")


def write_json_lines(
    file: Any, names: Sequence[str] | None, lines: Iterable[Sequence[Any]]
) -> None:
    """Write an object on each line, or a list if columns have no names."""
    _write_lines(file, names, lines, ("", "\n", "\n"))


def _write_lines(
    file: Any,
    names: Sequence[str] | None,
    lines: Iterable[Sequence[Any]],
    marks: tuple[str, str, str],
) -> None:
    before, between, after = marks
    file.write(before)
    for i, line in enumerate(lines):
        record = line if names is None else dict(zip(names, line, strict=True))
        file.write((between if i else "") + _dump(record))
    file.write(after)


def _dump(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, default=cell_text)


def at_record(place: FileLocation, has_header: bool | None) -> str:
    """A place in the text of the table as one in the JSON file."""
    assert place.line is not None
    text = f"{place.file}, record {place.line - bool(has_header)}"
    return text if place.column is None else f"{text}, field {place.column!r}"


def _load(text: str, name: str) -> Any:
    """The content of a file of JSON or of JSON lines."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise _not_a_table(name) from error
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith(("{", "[")):
            raise ReadError(f"not JSON ({error})", place=name) from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                place = FileLocation(name, number)
                raise ReadError(f"not JSON ({error})", place=place) from error
    return found


def _not_a_table(name: str) -> ReadError:
    return ReadError("the file must be a table", place=name, allowed=_SHAPES)


def _find_lines(content: Any, name: str) -> _Lines:
    if isinstance(content, dict):
        if isinstance(content.get("data"), list):
            return _split(content, name)
        return _columns(content, name)
    if not isinstance(content, list) or not content:
        raise _not_a_table(name)
    if all(isinstance(record, dict) for record in content):
        return _records(content)
    if all(isinstance(line, list) for line in content):
        return _Lines(None, content)
    raise _not_a_table(name)


def _records(records: Sequence[dict[str, Any]]) -> _Lines:
    names = list(dict.fromkeys(key for record in records for key in record))
    return _Lines(names, [[record.get(key) for key in names] for record in records])


def _split(content: dict[str, Any], name: str) -> _Lines:
    """An object with columns, index and data, as pandas writes it."""
    data, columns, index = content["data"], content.get("columns"), content.get("index")
    if all(isinstance(record, dict) for record in data):
        return _records(data)
    if not all(isinstance(line, list) for line in data):
        raise _not_a_table(name)
    names = None if columns is None else _texts(columns, name)
    if names is not None and any(len(line) != len(names) for line in data):
        raise ReadError(
            f"each line of data must have {len(names)} cells, as columns has", place=name
        )
    if index is None or _is_count(index):
        layout = JsonLayout() if names is None else JsonLayout("split", columns, index)
        return _Lines(names, data, layout)
    if not isinstance(index, list) or len(index) != len(data) or names is None:
        raise ReadError(
            "index must have an element for each line of data, beside columns", place=name
        )
    lines = [[label, *line] for label, line in zip(index, data, strict=True)]
    return _Lines(["", *names], lines, JsonLayout("split", columns))


def _columns(content: dict[str, Any], name: str) -> _Lines:
    """An object with a list, or an object of cells by row label, for each column."""
    columns = list(content.values())
    if columns and all(isinstance(column, list) for column in columns):
        if len({len(column) for column in columns}) > 1:
            raise ReadError("all columns must have the same number of cells", place=name)
        lines = [list(line) for line in zip(*columns, strict=True)]
        return _Lines(list(content), lines, JsonLayout("columns"))
    if not columns or not all(isinstance(column, dict) for column in columns):
        raise _not_a_table(name)
    labels = list(dict.fromkeys(label for column in columns for label in column))
    lines = [[column.get(label) for column in columns] for label in labels]
    if _is_count(labels):
        return _Lines(list(content), lines, JsonLayout("cells", numbers=labels))
    both = [[label, *line] for label, line in zip(labels, lines, strict=True)]
    return _Lines(["", *content], both, JsonLayout("cells"))


def _texts(names: Any, name: str) -> list[str]:
    if not isinstance(names, list) or any(isinstance(each, (list, dict)) for each in names):
        raise ReadError("columns must be a list of names", place=name)
    return [_cell_text(each, name, 0) for each in names]


def _is_count(labels: Any) -> bool:
    """Whether labels are 0, 1, 2, ..., which pandas writes for rows without labels."""
    if not isinstance(labels, list):
        return False
    return all(str(label) == str(i) for i, label in enumerate(labels))


def _cell_text(cell: Any, name: str, record: int) -> str:
    if cell is None or isinstance(cell, (str, bool, int, float)):
        return cell_text(cell)
    raise ReadError(
        "a cell must be a number, text, true, false or null",
        place=f"{name}, record {record}",
        value="a list" if isinstance(cell, list) else "an object",
    )
