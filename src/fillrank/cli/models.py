"""Models that were kept in files, asked by names as they are written on a command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import fillrank as fr
from fillrank.cli.messages import escape, say
from fillrank.cli.source import is_table
from fillrank.errors import InputError
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations


def load(path: Path, threads: int | None, quiet: bool) -> Any:
    """The model in a file; with the processors that are to be used here."""
    if is_table(path):
        raise InputError(
            f"{path} looks like a table, but a model is needed. Make one first: "
            f"fillrank fit {shlex.quote(str(path))}"
        )
    model = fr.load(path)
    model.set_params(n_threads=threads, progress=not quiet)
    if not quiet:
        say(f"Loaded {escape(str(path))}: {escape(_of_model(model))}")
    return model


def _of_model(model: Any) -> str:
    data = model.observations_
    n_rows, n_columns = data.shape
    entries = f"with its {len(data):,} entries" if len(data) else "without its entries"
    return f"{type(model).__name__}, {n_rows:,} rows x {n_columns:,} columns, {entries}."


def check_entries(model: Any, path: Path, what: str, instead: str = "") -> None:
    """Refuse what needs the entries of the fit, if the file does not have them."""
    if len(model.observations_) == 0:
        raise InputError(
            f"{what} takes the entries that the model was fitted on, and {path} was kept without them. "
            f"Fit it again, by fillrank fit with --with-data{instead}."
        )


class Names:
    """The names of rows or of columns, found by how they are written.

    A number, or a date, stands for the name that is written so in all that fillrank writes.
    """

    def __init__(self, labels: np.ndarray):
        self._labels = {as_text(label): label for label in labels.tolist()}
        if labels.dtype.kind == "M":  # lists have them as numbers, or as dates without a unit
            self._labels = {as_text(label): label for label in labels}

    def __contains__(self, text: str) -> bool:
        return text in self._labels

    def of(self, texts: Iterable[str]) -> list[Any]:
        """The names that are written so; what is not known stays as it is, to be complained about."""
        return [self._labels.get(text, text) for text in texts]


def row_names(data: Observations) -> Names:
    """Those of the rows."""
    return Names(data.row_labels)


def column_names(data: Observations) -> Names:
    """Those of the columns."""
    return Names(data.column_labels)
