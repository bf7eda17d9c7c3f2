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
# Names of values if no column has one of those above: beside a rating, a weight is something else.
OTHER_VALUE_WORDS = {
    "weight",
    "count",
    "plays",
    "playcount",
    "listens",
    "grade",
    "answer",
    "amount",
}
# The first column of a wide table may have the name of its rows. A single letter may be a quantity.
LABEL_WORDS = {"id", "name", "names", "index", "label", "labels", "key"}
LABEL_WORDS |= {word for word in ROW_WORDS | COLUMN_WORDS if len(word) > 1}
# Any column of a wide table may have the row labels if it has one of these names and its values all
# differ. pandas reads the column without a name as "Unnamed: 0".
ROW_NAME_WORDS = {"plot", "site", "sample", "station", "specimen", "patient", "participant", "case"}
ROW_NAME_WORDS |= {
    "respondent",
    "student",
    "observation",
    "obs",
    "record",
    "recordno",
    "uuid",
    "guid",
}
ROW_NAME_WORDS |= {
    "animal",
    "sensor",
    "device",
    "unit",
    "country",
    "plant",
    "gene",
    "barcode",
    "code",
}
ROW_NAME_WORDS |= {"unnamed", "no", "nr", "rownumber", "rownum", "rowno", "serialno", "subjectno"}
# What is counted from 1 in a first column, and yet says something about the other columns.
COUNTED_WORDS = {"time", "day", "week", "month", "year", "hour", "minute", "second", "date", "step"}
COUNTED_WORDS |= {"t", "age", "dose", "days", "weeks", "months", "years", "hours", "period", "rank"}
_FEWEST_NUMBERED = 10  # rows; in a smaller table 1, 2, 3 may be values


def _normalise(name: Any) -> str:
    letters = re.sub(r"[^a-z]", "", str(name).lower())
    # "user_id" and "item name" mean the same as "user" and "item", and R's "rownames" as "row".
    return re.sub(r"(?<=.)(id|names?|index)$", "", letters)


_FIELDS = Setting("row"), ", ", Setting("column"), " and ", Setting("value")


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
            ("a long table needs all of ", *_FIELDS),
            value=[field for field in (row, column, value) if field is not None],
        )
    if layout == "wide":
        raise InputError("row, column and value are for long tables; got them with layout='wide'.")
    return LongFields(row, column, value)


def given_names(names: Any) -> tuple[Any, ...]:
    """The names of columns: those of a list, or a single one."""
    if names is None:
        return ()
    return tuple(names) if isinstance(names, (list, tuple, set, frozenset)) else (names,)


def refuse_for_long(label: Any, ignore: tuple[Any, ...], only: tuple[Any, ...] = ()) -> None:
    """Raise InputError if arguments for wide tables are given, but the table is long."""
    for name, given in (("label", label), ("ignore", ignore or None), ("columns", only or None)):
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
    >>> long_fields(["userID", "artistID", "weight"])
    LongFields(row='userID', column='artistID', value='weight')
    >>> long_fields(["gene", "control", "treated"]) is None
    True
    """
    rows, columns, values, others = (
        [name for name in names if _normalise(name) in words]
        for words in (ROW_WORDS, COLUMN_WORDS, VALUE_WORDS, OTHER_VALUE_WORDS)
    )
    found = (rows, columns, values or others)
    return LongFields(*(names[0] for names in found)) if all(len(n) == 1 for n in found) else None


def is_label_column(name: Any) -> bool:
    """Whether the first column of a wide table contains the row labels, by its name."""
    return str(name).strip() == "" or _normalise(name) in LABEL_WORDS


def is_row_name(name: Any, position: int = 0) -> bool:
    """Whether a column of a wide table may have the row labels, by its name, if its values all differ.

    Examples
    --------
    >>> is_row_name("plot"), is_row_name("Sample ID", 3), is_row_name("height")
    (True, True, False)
    """
    word = _normalise(name)
    if word in ROW_NAME_WORDS or word == "id" or (len(word) > 1 and word in ROW_WORDS):
        return True
    return position == 0 and is_label_column(name)


def are_row_numbers(name: Any, texts: Sequence[str]) -> bool:
    """Whether the first column of a wide table numbers its rows, from 0 or from 1.

    Examples
    --------
    >>> are_row_numbers("X", [str(i) for i in range(1, 21)]), are_row_numbers("day", ["1", "2"])
    (True, False)
    """
    if _normalise(name) in COUNTED_WORDS or len(texts) < _FEWEST_NUMBERED:
        return False
    if texts[0] not in ("0", "1"):
        return False
    start = int(texts[0])
    return all(text == str(i) for i, text in enumerate(texts, start))
