"""Notes for users: how the columns of a table were understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from fillrank.table.labels import format_label

Remarkable = Literal[
    "numbers",
    "written",
    "limits",
    "category",
    "ordered",
    "yes_no",
    "dates",
    "unread_dates",
    "left_dates",
    "spellings",
    "code",
    "empty",
    "constant",
    "distinct",
    "ignored",
]
_NAMED = 2  # columns that a note names, if there are more
# Of one column, and of several.
_PHRASES: dict[Remarkable, tuple[str, str]] = {
    "numbers": ("holds numbers that were text", "hold numbers that were text"),
    "category": ("is a category", "are categories"),
    "ordered": ("has ordered groups", "have ordered groups"),
    "yes_no": ("holds yes and no", "hold yes and no"),
    "dates": ("holds dates", "hold dates"),
    "empty": ("has no values and is left as it is", "have no values and are left as they are"),
    "constant": (
        "has one value only and is left as it is",
        "have one value only and are left as they are",
    ),
    "distinct": (
        "has a different value in nearly every row, or very many, and is left as it is",
        "have different values in nearly every row, or very many, and are left as they are",
    ),
}


class Remark(NamedTuple):
    """Something that users should know about a column."""

    what: Remarkable
    example: str = ""
    n_values: int = 0
    unit: str = ""


def describe_columns(remarks: Iterable[tuple[Any, Remark | None]]) -> tuple[str, ...]:
    """Sentences about columns, from their labels and remarks; one for all that are alike.

    Examples
    --------
    >>> category, limits = Remark("category"), Remark("limits", "<0.5", 31)
    >>> notes = describe_columns([("a", category), ("lead", limits), ("b", category)])
    >>> print(*notes, sep="\\n")
    Columns 'a' and 'b' are categories.
    31 values of column 'lead' are limits such as <0.5.
    """
    groups: dict[tuple[str, str], list[tuple[Any, Remark]]] = {}
    for label, remark in remarks:
        if remark is not None and remark.what != "ignored":
            is_own = remark.what in ("code", "spellings")
            key = remark.what, remark.example if is_own else remark.unit
            groups.setdefault(key, []).append((label, remark))
    return tuple(map(_sentence, groups.values()))


def _sentence(found: Sequence[tuple[Any, Remark]]) -> str:
    names = name_columns([label for label, _ in found])
    verb = "holds" if len(found) == 1 else "hold"
    (what, example, *_), count = found[0][1], sum(remark.n_values for _, remark in found)
    if what == "limits":
        noun, verb = ("value", "is a limit") if count == 1 else ("values", "are limits")
        return f"{count:,} {noun} of {names} {verb} such as {example}."
    if what == "code":
        return (
            f"{example} occurs {count:,} times in {names}, unlike the other values: if it means a "
            f"missing value, set missing_values=[{example}]."
        )
    if what in ("unread_dates", "left_dates"):
        left = "and is left as it is" if len(found) == 1 else "and are left as they are"
        result = ", taken as text" if what == "unread_dates" else f" {left}"
        return (
            f"{names[0].upper()}{names[1:]} {verb} dates or times such as {example}{result}: only "
            "dates such as 2024-05-01 are read."
        )
    if what == "spellings":
        return (
            f"{names[0].upper()}{names[1:]} is a category in which {example} are different values: if "
            "they mean the same, write them in the same way."
        )
    if what == "written":
        return f"{names[0].upper()}{names[1:]} {verb} numbers such as {example}."
    phrase = _PHRASES[what][len(found) > 1]
    return f"{names[0].upper()}{names[1:]} {phrase}."


def name_columns(labels: Sequence[Any]) -> str:
    """Name the first columns, and count the rest.

    Examples
    --------
    >>> name_columns(["a"]), name_columns(["a", "b"]), name_columns(["a", "b", "c", "d"])
    ("column 'a'", "columns 'a' and 'b'", "columns 'a', 'b' and 2 more")
    """
    shown = [format_label(label) for label in labels[:_NAMED]]
    if len(labels) == 1:
        return f"column {shown[0]}"
    if len(labels) <= _NAMED:
        return f"columns {' and '.join(shown)}"
    return f"columns {', '.join(shown)} and {len(labels) - _NAMED} more"


def labels_note(name: Any) -> str:
    """A note about a column of numbers that is taken for the row labels.

    Examples
    --------
    >>> labels_note("plot")
    "Column 'plot' has the row labels and is not fitted."
    """
    if not str(name).strip():
        return "The column without a name has the row labels and is not fitted."
    return f"Column {format_label(name)} has the row labels and is not fitted."


def describe_size(shape: tuple[int, int]) -> str:
    """The size of a table in words.

    Examples
    --------
    >>> describe_size((1, 2)), describe_size((1200, 1))
    ('1 row x 2 columns', '1,200 rows x 1 column')
    """
    n_rows, n_columns = shape
    rows, columns = "row" if n_rows == 1 else "rows", "column" if n_columns == 1 else "columns"
    return f"{n_rows:,} {rows} x {n_columns:,} {columns}"


def describe_entries(n_entries: int) -> str:
    """The number of entries in words.

    Examples
    --------
    >>> describe_entries(1), describe_entries(1200)
    ('1 entry', '1,200 entries')
    """
    return f"{n_entries:,} {'entry' if n_entries == 1 else 'entries'}"
