"""What the columns of a table contained before they became numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

ValueType = Literal["number", "integer", "boolean", "text", "category", "datetime"]
CODED: tuple[ValueType, ...] = ("boolean", "text", "category")


class ColumnType(NamedTuple):
    """What a column of a table contained.

    Attributes
    ----------
    values : {"number", "integer", "boolean", "text", "category", "datetime"}
        Entries of boolean, text and category columns have codes as their values. Those of datetime
        columns are days since 1970-01-01.
    levels : tuple
        The values of a column with codes: that of code 0, of code 1, ...
    is_ordered : bool
        Whether the order of the levels has a meaning.
    dtype : object
        What is needed to restore the column in its data frame.
    """

    values: ValueType = "number"
    levels: tuple[Any, ...] = ()
    is_ordered: bool = False
    dtype: Any = None

    @property
    def is_coded(self) -> bool:
        """Whether the values of entries are codes of levels."""
        return self.values in CODED


NUMBER = ColumnType()


def coded_columns(types: Sequence[ColumnType] | None) -> np.ndarray | None:
    """Mark the columns whose values are codes; None if there are none.

    Examples
    --------
    >>> coded_columns([ColumnType(), ColumnType("boolean", (False, True))])
    array([False,  True])
    """
    if types is None or not any(each.is_coded for each in types):
        return None
    return np.array([each.is_coded for each in types])


def are_numbers(types: Sequence[ColumnType] | None) -> bool:
    """Whether all columns contained numbers."""
    return types is None or all(each.values in ("number", "integer") for each in types)


def unless_plain(types: Iterable[ColumnType]) -> tuple[ColumnType, ...] | None:
    """The types as `Observations` have them: None if all are plain numbers."""
    types = tuple(types)
    return None if all(each == NUMBER for each in types) else types


def describe_types(types: Sequence[ColumnType]) -> bytes:
    """The types for a digest, without what only concerns the library of a data frame."""
    return repr([each[:3] for each in types]).encode()
