"""Titles of rows and columns: what their labels stand for, such as the film with the number 1193."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fillrank.errors import InputError, Setting
from fillrank.table.labels import as_text, is_missing

Titles = Mapping[str, str]
"""Titles by the text of their labels; one that is missing is not there, or empty."""

NO_TITLES: Titles = {}


def given_titles(titles: Any, name: str) -> Titles:
    """Check the titles that a user gives as the argument ``name``; None means none.

    Examples
    --------
    >>> given_titles({1: "Tea", 2: None}, "row_titles")
    {'1': 'Tea', '2': ''}
    """
    if titles is None:
        return NO_TITLES
    try:
        found = dict(titles)  # a mapping, or a series of pandas
    except (TypeError, ValueError) as error:
        raise InputError(
            place=Setting(name),
            allowed="titles by their labels, such as {1193: 'Tea'}",
            value=titles,
            advice="fr.read_titles reads them from a file.",
        ) from error
    return {
        as_text(label): "" if is_missing(title) else one_line(str(title))
        for label, title in found.items()
    }


def one_line(title: str) -> str:
    """A title without line breaks, and without white space around it.

    Examples
    --------
    >>> one_line(" Toy \\n Story")
    'Toy Story'
    """
    return " ".join(title.split())


def titles_of(titles: Titles, labels: Iterable[Any]) -> list[str]:
    """The title of each label; the label itself if it has none.

    Examples
    --------
    >>> titles_of({"1": "Tea"}, [1, 2])
    ['Tea', '2']
    """
    return [titles.get(text) or text for text in map(as_text, labels)]


def count_titles(titles: Titles, labels: Iterable[Any]) -> int:
    """How many of the labels have a title."""
    return sum(bool(titles.get(as_text(label))) for label in labels)
