"""Titles of rows and columns that a command reads from files and shows beside the labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.cli.messages import escape, report
from fillrank.table.frames import unused_name
from fillrank.table.observations import Observations
from fillrank.table.titles import Titles, count_titles, titles_of


class TitleFiles(NamedTuple):
    """The files with titles of rows and of columns; None without a file."""

    rows: Path | None = None
    columns: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """The files that are given."""
        return [path for path in self if path is not None]

    def read(self, data: Observations, quiet: bool) -> TableTitles:
        """Read the titles of a table, and report how many of its labels have one."""
        return TableTitles(
            _read(self.rows, data.row_labels, "rows", quiet),
            _read(self.columns, data.column_labels, "columns", quiet),
        )


class TableTitles(NamedTuple):
    """The titles of rows and of columns; None if no file is given."""

    rows: Titles | None = None
    columns: Titles | None = None

    def arguments(self) -> dict[str, Titles | None]:
        """The arguments of reports."""
        return {"row_titles": self.rows, "column_titles": self.columns}

    @property
    def n_given(self) -> int:
        """For how many sides titles are given."""
        return sum(titles is not None for titles in self)

    def add_to(self, table: Any) -> Any:
        """Add titles to a table of results, behind each of its two columns of labels.

        Examples
        --------
        >>> table = {"user": np.array([1]), "film": np.array([7]), "stars": np.array([4.5])}
        >>> list(TableTitles(columns={"7": "Heat"}).add_to(table))
        ['user', 'film', 'film_title', 'stars']
        """
        if isinstance(table, dict):  # without a library of data frames
            return self._insert([*table], table, lambda name, titles: np.array(titles, object))
        frame = nw.from_native(table, eager_only=True)
        columns = {name: frame[name] for name in frame.columns}
        backend = frame.implementation

        def as_series(name: str, titles: list[str]) -> nw.Series[Any]:
            return nw.new_series(name, titles, nw.String(), backend=backend)

        found = self._insert(frame.columns, columns, as_series)
        return frame.with_columns(*found.values()).select(*found).to_native()

    def _insert(
        self, names: list[str], columns: Mapping[str, Any], make: Callable[[str, list[str]], Any]
    ) -> dict[str, Any]:
        """All columns by their names, with those of titles, which ``make`` makes."""
        found: dict[str, Any] = {}
        for name, titles in zip_longest(names, self):
            found[name] = columns[name]
            if titles is not None:
                title = unused_name(f"{name}_title", names)
                found[title] = make(title, titles_of(titles, columns[name]))
        return found


NO_TITLES = TableTitles()


def _read(path: Path | None, labels: np.ndarray, sides: str, quiet: bool) -> Titles | None:
    if path is None:
        return None
    from fillrank.io.titles import find_titles  # imported late, as most commands have no titles

    titles = find_titles(path, labels)
    if not quiet:
        n_found = count_titles(titles, labels)
        report(f"{escape(str(path))} has titles of {n_found:,} of {len(labels):,} {sides}.")
    return titles
