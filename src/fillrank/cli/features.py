"""The features of rows and columns that a command reads from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fillrank.cli.messages import report_note
from fillrank.cli.source import Source
from fillrank.errors import FillrankError, InputError
from fillrank.table.labels import as_labels, as_text, format_labels
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    import numpy as np

    from fillrank.features.matching import Side
    from fillrank.table.feature_table import FeatureTable


class Features(NamedTuple):
    """Tables of features of the rows and of the columns; None without a file."""

    rows: FeatureTable | None = None
    columns: FeatureTable | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``fit`` and ``predict``: only those that are given."""
        given = {"row_features": self.rows, "column_features": self.columns}
        return {name: table for name, table in given.items() if table is not None}


NO_FEATURES = Features()


def read(source: Source, data: Observations) -> Features:
    """Read the features of a table, and check them before the work starts.

    The column of a file that has the most labels of the table has the labels of the features. They are
    compared as text.
    """
    return Features(
        _read_checked(source.row_features, data.row_labels, "row"),
        _read_checked(source.column_features, data.column_labels, "column"),
    )


def _read_checked(path: Path | None, labels: np.ndarray, side: Side) -> FeatureTable | None:
    table = _read(path, labels)
    if path is not None and len(labels) > 1:  # features of a single row are not used
        from fillrank.features.table import feature_block

        try:
            feature_block(table, labels, side)
        except FillrankError as error:
            raise error.at(path) from error
    return table


def read_unchecked(source: Source) -> Features:
    """Read the features of a table that this machine does not read; labels are in the first column."""
    return Features(_read(source.row_features, None), _read(source.column_features, None))


def read_new(
    path: Path | None, labels: Sequence[Any], side: Side, quiet: bool
) -> FeatureTable | None:
    """Read the features of rows (or columns) that a model does not know, by their labels."""
    texts = list(dict.fromkeys(map(as_text, labels)))
    if path is None or not texts:
        return None
    table = _read(path, as_labels(texts))
    assert table is not None
    found = set(map(as_text, table.labels))
    without = [text for text in texts if text not in found]
    if len(without) == len(texts):
        raise InputError(
            f"the file has none of the {side} labels that the model does not know, "
            f"{format_labels(texts)}; its own labels are {format_labels(table.labels)}",
            place=path,
        )
    if without and not quiet:
        report_note(
            f"{path} has no features of {len(without):,} of {len(texts):,} {side}s that the model does "
            f"not know: {format_labels(without)}."
        )
    return table


def labels_of(path: Path) -> list[str]:
    """The labels in the first column of a file of features, as text."""
    table = _read(path, None)
    assert table is not None
    return [as_text(label) for label in table.labels]


def _read(path: Path | None, labels: np.ndarray | None) -> FeatureTable | None:
    if path is None:
        return None
    from fillrank.io.features import (
        read_features,
    )  # imported late, as most commands have no features

    return read_features(path, labels)
