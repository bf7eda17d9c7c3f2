"""The lines at the top of a text table: a hint of the delimiter, a title, a header and its units."""

import re
from collections.abc import Sequence
from itertools import islice, pairwise

from fillrank.errors import FileLocation, ReadError
from fillrank.io.text_lines import (
    BLANK,
    DELIMITERS,
    are_numbers,
    iter_lines,
    parse_number,
    plain_style,
)
from fillrank.table.layout import is_label_column
from fillrank.table.missing_values import MISSING_WORDS
from fillrank.table.number_text import KNOWN_UNITS, looks_like_number
from fillrank.table.text_values import shorten

# A spreadsheet program takes this first line as the delimiter, and may repeat it.
_HINT = re.compile(r'("?sep=([^\r\n"])\2*"?)[ \t]*(?:\r|\n|$)', re.IGNORECASE)
# The second line of a Markdown table. Single dashes may be missing values.
_DASHES = r"\s*(?:-{3,}|:-+:?|-+:)\s*"
_MARKDOWN = re.compile(rf"\|?{_DASHES}(?:\|{_DASHES})*\|?")
# Names of columns that are numbers: years, or at least so many whole numbers at equal distances.
_COUNTED = re.compile(r"0|[1-9][0-9]{0,8}")
_YEARS, _FEWEST_COUNTED = (1500, 2150), 5
_NOT_IN_TITLES = ("\n", "\r", "\t", ";", "|", "::")  # line breaks and delimiters
_VALUE = re.compile(r"\s*[<>=+-]*\s*[0-9]")  # the start of a number, a limit or a date
_FEWEST_UNITS = 2  # different ones in a line, if they may be other words


def find_hint(text: str, source: str) -> str | None:
    """The delimiter that a first line such as ``sep=;`` names, or None without such a line."""
    found = _HINT.match(text)
    if found is None:
        return None
    hint, delimiter = found.groups()[:2]
    if delimiter not in DELIMITERS:
        raise ReadError(
            "the line names a delimiter that is not read",
            place=FileLocation(source, 1),
            value=hint,
            allowed=f"one of {', '.join(DELIMITERS.values())}",
            advice="Save the table with one of these.",
        )
    return delimiter


def refuse_markdown(text: str, source: str) -> None:
    """Raise ReadError if the second line is one of dashes, as in a Markdown table."""
    filled = ((i, line) for i, line in enumerate(iter_lines(text), 1) if line.strip(BLANK))
    (_, first), (number, second) = (*islice(filled, 2), (0, ""), (0, ""))[:2]
    if "|" in first and "|" in second and _MARKDOWN.fullmatch(second.strip()):
        raise ReadError(
            "this is a Markdown table, which is not read",
            place=FileLocation(source, number),
            value=shorten(second.strip()),
            advice="Save the table as CSV. Or delete this line, and the bars at both ends of each line.",
            kind="markdown",
        )


def count_titles(head: list[list[str]], width: int, delimiter: str) -> int:
    """How many of the first lines are a title above the table, as far as this is certain.

    Parameters
    ----------
    head : list of list of str
        The fields of the first lines that are not blank.
    width : int
        The number of fields of most lines.
    delimiter : str

    Examples
    --------
    >>> count_titles([["Results", "", ""], ["who", "x", "y"], ["Ana", "1", "2"]], 3, ",")
    1
    >>> count_titles([["Ana", "", ""], ["Ben", "5", "1"], ["Cid", "1", "2"]], 3, ",")  # a row
    0
    """
    n_titles = 0
    while n_titles < len(head) and _may_be_title(head[n_titles], width, delimiter):
        n_titles += 1
    rest = head[n_titles:]
    if not n_titles or len(rest) < 2:  # a header and a row
        return 0
    if width > 2:  # a line without a header below it may be a row without values
        return n_titles if starts_with_header(rest, width, delimiter) else 0
    # One name above two columns may be a header without a name for the row labels, as R writes it.
    names, *lines = rest
    is_header = len(names) == width and all(
        parse_number(name, delimiter) is None and _are_all_numbers(cells, delimiter)
        for name, cells in list(zip(names, _columns(lines, width), strict=False))[1:]
    )
    return n_titles if is_header else 0


def _may_be_title(fields: list[str], width: int, delimiter: str) -> bool:
    """Whether a line has text in its first cell only, or text in fewer or more cells than the table.

    Delimiters at its end do not count: a header may have them where the rows have none.
    """
    filled = [j for j, cell in enumerate(fields) if cell.strip()]
    if not _has_words([fields[j] for j in filled], width, delimiter):
        return False
    of_header = (width - 1, width)
    return filled == [0] or not (len(fields) in of_header or filled[-1] + 1 in of_header)


def _has_words(cells: list[str], width: int, delimiter: str) -> bool:
    """Whether cells are text, and not values, also not those of a table with another delimiter.

    Commas in a title may be followed by a number (Lake Zug, 2023), but there are fewer of them than in
    a row, and fewer numbers than other words.
    """
    if any(mark in cell for cell in cells for mark in _NOT_IN_TITLES):
        return False
    parts = [part for cell in cells for part in cell.split(",")]
    words = [word for part in parts for word in part.split()]
    n_numbers = sum(parse_number(word, delimiter) is not None for word in words)
    if len(parts) > 1 and any(map(_VALUE.match, parts)):
        return len(parts) < width - 1 and 3 * n_numbers <= len(words)
    return 2 * n_numbers <= len(words)


def is_line_of_units(fields: list[str], below: list[list[str]], delimiter: str) -> bool:
    """Whether a line below the header has units: text above numbers, and no other value.

    There must be no label and no category in it, so that no observed value is lost.

    Examples
    --------
    >>> rows = [["Ana", "60.5", "170"], ["Ben", "", "181"]]
    >>> is_line_of_units(["", "kg", "cm"], rows, ","), is_line_of_units(["Cid", "kg", "cm"], rows, ",")
    (True, False)
    """
    style = plain_style(delimiter)
    columns = _columns(below, len(fields))
    # A dash is the unit of a column without one.
    cells = (cell.strip() for cell in fields)
    units = {j: cell for j, cell in enumerate(cells) if cell.lower() not in MISSING_WORDS}
    # The same word in several columns may be a reason why values are missing.
    is_known = all(unit.strip("()[]") in KNOWN_UNITS for unit in units.values())
    if len(set(units.values())) < _FEWEST_UNITS and not (is_known and len(units) > 1):
        return False
    if len(columns) != len(fields):
        return False
    return all(
        not looks_like_number(unit, style) and _are_all_numbers(columns[j], delimiter)
        for j, unit in units.items()
    )


def _are_all_numbers(cells: Sequence[str], delimiter: str) -> bool:
    """Whether all cells that are not missing are numbers or limits, and there is one."""
    style = plain_style(delimiter)
    known = [cell for cell in cells if cell.strip().lower() not in MISSING_WORDS]
    return bool(known) and all(looks_like_number(cell, style) for cell in known)


def starts_with_header(head: list[list[str]], width: int, delimiter: str) -> bool:
    """Whether the first line is text above numbers, or starts with a name for row labels."""
    first, *rest = head
    is_text = [parse_number(name, delimiter) is None for name in first]
    if not rest:
        return is_text[-1]
    if len(first) == width - 1 and any(is_text):
        return True
    columns = _columns(rest, width)[: len(first)]
    if any(is_text[j] and first[j] in cells for j, cells in enumerate(columns)):
        return False  # a name that is repeated below is not a header
    named = [j for j, name in enumerate(first[: len(columns)]) if name.strip()]
    numeric = [j for j in named if are_numbers(columns[j], delimiter)]
    if 2 * sum(is_text[j] for j in numeric) > len(numeric):
        return True
    are_names = len(set(first)) == len(first) and all(name.strip() for name in first[1:])
    if not numeric and all(is_text) and _are_categories(columns):
        return are_names
    if are_names and _counts_up(first) and not any(map(_counts_up, rest)):
        return True
    return is_label_column(first[0]) and are_names


def _columns(lines: list[list[str]], width: int) -> list[tuple[str, ...]]:
    """The cells of each column; a line of another width may be a note, and does not count."""
    regular = [fields for fields in lines if len(fields) == width] or lines
    return list(zip(*regular, strict=False))


def _counts_up(names: Sequence[str]) -> bool:
    """Whether names are years in their order, or at least five whole numbers at equal distances.

    The first may be a name for row labels; some that are not numbers may be among years.
    """
    texts = [name.strip() for name in names]
    numbers = [int(text) for text in texts if _COUNTED.fullmatch(text)]
    others = [text for text in texts[1:] if not _COUNTED.fullmatch(text)]
    steps = {after - before for before, after in pairwise(numbers)}
    if not steps or min(steps) <= 0 or any(map(looks_like_number, others)):
        return False
    if _YEARS[0] <= numbers[0] and numbers[-1] <= _YEARS[1]:
        return True
    return len(steps) == 1 and len(numbers) >= _FEWEST_COUNTED and not others


def _are_categories(columns: Sequence[Sequence[str]]) -> bool:
    """Whether at least half of the columns have values that are repeated."""
    n_repeated = sum(len(set(cells)) < len(cells) for cells in columns)
    return 2 * n_repeated >= len(columns)
