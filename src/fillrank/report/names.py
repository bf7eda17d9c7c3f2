"""How the report shows rows and columns: by their titles with their labels, or by their labels."""

from __future__ import annotations

from typing import Any, NamedTuple

from fillrank.report.style import format_label
from fillrank.table.labels import as_text
from fillrank.table.titles import NO_TITLES, Titles

_LONGEST = 400  # characters of a tooltip


class Name(NamedTuple):
    """A row or column, not yet escaped for HTML.

    Attributes
    ----------
    text : str
        The title, or the label if there is no title.
    full : str
        More of both, for a tooltip.
    label : str
        The label to show beside a title, otherwise empty.
    """

    text: str
    full: str
    label: str = ""


class Names(NamedTuple):
    """The titles of rows and of columns, by the text of their labels."""

    row_titles: Titles = NO_TITLES
    column_titles: Titles = NO_TITLES

    def row(self, label: Any) -> Name:
        """The row with this label."""
        return _name(self.row_titles, label)

    def column(self, label: Any) -> Name:
        """The column with this label.

        Examples
        --------
        >>> Names(column_titles={"7": "Heat (1995)"}).column(7)
        Name(text='Heat (1995)', full='Heat (1995), 7', label='7')
        """
        return _name(self.column_titles, label)


def _name(titles: Titles, label: Any) -> Name:
    title = titles.get(as_text(label)) if titles else None
    if not title or title == as_text(label):
        return Name(format_label(label), format_label(label, _LONGEST))
    full = f"{format_label(title, _LONGEST)}, {format_label(label, _LONGEST)}"
    return Name(format_label(title), full, format_label(label))
