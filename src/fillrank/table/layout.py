"""Long or wide tables: detection of the layout from column names."""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from fillrank.errors import InputError, Setting, Text

Layout = Literal["auto", "long", "wide"]
LAYOUTS = ("auto", "long", "wide")


LONG_HINT: Text = (
    "If the table is long, with a line for each entry, pass ",
    Setting("layout", "long"),
    "; or set ",
    Setting("row", ...),
    ", ",
    Setting("column", ...),
    " and ",
    Setting("value", ...),
    " to the names of its columns.",
)


class LongFields(NamedTuple):
    """The columns of a long table that contain the row label, the column label and the value."""

    row: Any
    column: Any
    value: Any


# Compared by their letters alone, ignoring case: userId, user_id and "User ID" are the same.
ROW_WORDS = {"user", "row", "customer", "subject", "reader", "viewer", "person", "rater", "u", "i"}
COLUMN_WORDS = {"item", "column", "col", "movie", "product", "book", "track", "song", "artist"}
COLUMN_WORDS |= {"film", "business", "question", "isbn", "j"}
VALUE_WORDS = {"rating", "value", "score", "stars", "star", "rate", "response", "x"}
# The first column of a wide table may have the name of its rows. A single letter may be a quantity.
LABEL_WORDS = {"id", "name", "names", "index", "label", "labels", "key"}
LABEL_WORDS |= {word for word in ROW_WORDS | COLUMN_WORDS if len(word) > 1}


def _normalise(name: Any) -> str:
    letters = re.sub(r"[^a-z]", "", str(name).lower())
    # "user_id" and "item name" mean the same as "user" and "item".
    return re.sub(r"(?<=.)(id|name|index)$", "", letters)


def given_fields(row: Any, column: Any, value: Any, layout: Layout) -> LongFields | None:
    """Check the names of a long table's columns, all or none of them, against the layout."""
    if layout not in LAYOUTS:
        allowed = f"one of {', '.join(map(repr, LAYOUTS))}"
        raise InputError(place=Setting("layout"), allowed=allowed, value=layout)
    given = [field is not None for field in (row, column, value)]
    if not any(given):
        return None
    if not all(given):
        raise InputError(
            "a long table needs all of row, column and value; got "
            f"row={row!r}, column={column!r}, value={value!r}."
        )
    if layout == "wide":
        raise InputError("row, column and value are for long tables; got them with layout='wide'.")
    return LongFields(row, column, value)


def given_ignore(ignore: Any) -> tuple[Any, ...]:
    """The names of the columns to leave out: those of a list, or a single one."""
    if ignore is None:
        return ()
    return tuple(ignore) if isinstance(ignore, (list, tuple, set, frozenset)) else (ignore,)


def refuse_for_long(label: Any, ignore: tuple[Any, ...]) -> None:
    """Raise InputError if arguments for wide tables are given, but the table is long."""
    for name, given in (("label", label), ("ignore", ignore or None)):
        if given is not None:
            raise InputError(
                "this table is long, and only a wide one has columns to choose from",
                place=Setting(name),
                value=given,
                advice=("If it is wide, set ", Setting("layout", "wide"), "."),
            )


def named_fields(names: Sequence[Any], layout: Layout) -> LongFields | None:
    """Find the columns of a long table, or None if the table is to be read as a wide one."""
    if layout == "wide":
        return None
    fields = long_fields(names)
    if fields is None and layout == "long":
        if len(names) < 3:
            raise InputError(
                f"a long table must have at least 3 columns; got {len(names)}: "
                f"{', '.join(map(repr, names))}."
            )
        return LongFields(*names[:3])
    return fields


def long_fields(names: Sequence[Any]) -> LongFields | None:
    """Find the three columns of a long table by their names, or None if not all are recognised.

    Examples
    --------
    >>> long_fields(["userId", "movieId", "rating", "timestamp"])
    LongFields(row='userId', column='movieId', value='rating')
    >>> long_fields(["gene", "control", "treated"]) is None
    True
    """
    found = []
    for words in (ROW_WORDS, COLUMN_WORDS, VALUE_WORDS):
        matches = [name for name in names if _normalise(name) in words]
        if len(matches) != 1:
            return None
        found.append(matches[0])
    return LongFields(*found)


def is_label_column(name: Any) -> bool:
    """Whether the first column of a wide table contains the row labels, by its name."""
    return str(name).strip() == "" or _normalise(name) in LABEL_WORDS
