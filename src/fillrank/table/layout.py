"""Long or wide? What the names of a table's columns say about it."""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from fillrank.errors import InputError

Layout = Literal["auto", "long", "wide"]
LAYOUTS = ("auto", "long", "wide")


LONG_HINT = (
    "If the table is long, with a line for each entry, say layout='long'; or name its columns (row=..., "
    "column=..., value=...)."
)


class LongFields(NamedTuple):
    """Which columns of a long table hold the row name, the column name and the value."""

    row: Any
    column: Any
    value: Any


# Compared without case and without anything but letters: userId, user_id and "User ID" are alike.
ROW_WORDS = {"user", "row", "customer", "subject", "reader", "viewer", "person", "rater", "u", "i"}
COLUMN_WORDS = {"item", "column", "col", "movie", "product", "book", "track", "song", "artist"}
COLUMN_WORDS |= {"film", "business", "question", "isbn", "j"}
VALUE_WORDS = {"rating", "value", "score", "stars", "star", "rate", "response", "x"}
# A wide table's first column may be named after its rows, whichever these are; but a single
# letter may as well be a quantity.
LABEL_WORDS = {"id", "name", "names", "index", "label", "labels", "key"}
LABEL_WORDS |= {word for word in ROW_WORDS | COLUMN_WORDS if len(word) > 1}


def _words(name: Any) -> str:
    letters = re.sub(r"[^a-z]", "", str(name).lower())
    # "user_id" and "item name" say no more than "user" and "item".
    return re.sub(r"(?<=.)(id|name|index)$", "", letters)


def given_fields(row: Any, column: Any, value: Any, layout: Layout) -> LongFields | None:
    """Take the three names of a long table's columns, all or none, if they fit the layout."""
    if layout not in LAYOUTS:
        raise InputError(
            f"layout must be one of {', '.join(map(repr, LAYOUTS))}, got {layout!r} instead."
        )
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


def named_fields(names: Sequence[Any], layout: Layout) -> LongFields | None:
    """Find the columns of a long table, or None if it is to be taken as a wide one."""
    if layout == "wide":
        return None
    fields = long_fields(names)
    if fields is None and layout == "long":
        if len(names) < 3:
            raise InputError(
                f"a long table must have 3 columns at least; got {len(names)}: "
                f"{', '.join(map(repr, names))}."
            )
        return LongFields(*names[:3])
    return fields


def long_fields(names: Sequence[Any]) -> LongFields | None:
    """Find the three columns of a long table by their names, or None if the names do not say so.

    Examples
    --------
    >>> long_fields(["userId", "movieId", "rating", "timestamp"])
    LongFields(row='userId', column='movieId', value='rating')
    >>> long_fields(["gene", "control", "treated"]) is None
    True
    """
    found = []
    for words in (ROW_WORDS, COLUMN_WORDS, VALUE_WORDS):
        matches = [name for name in names if _words(name) in words]
        if len(matches) != 1:
            return None
        found.append(matches[0])
    return LongFields(*found)


def names_rows(name: Any) -> bool:
    """Say whether a wide table's first column, of this name, holds the row names."""
    return str(name).strip() == "" or _words(name) in LABEL_WORDS
