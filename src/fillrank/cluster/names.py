"""From names to positions, partition by partition: what workers do before entries change places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.table.entries import compact_floats
from fillrank.table.frames import as_frame, long_columns
from fillrank.table.labels import factorize
from fillrank.table.layout import LongFields
from fillrank.table.levels import MOST_LEVELS
from fillrank.table.triplets import Triplets, group_by_column
from fillrank.table.units import Measure, Span, exact_sum


class Names(NamedTuple):
    """Distinct names in order of first appearance, and how many entries each has."""

    labels: np.ndarray
    counts: np.ndarray


class Numbered(NamedTuple):
    """The entries of a partition; their names are numbered within it."""

    triplets: Triplets
    rows: Names
    columns: Names


class Brief(NamedTuple):
    """What is to know of the values of a partition: their ends, and a few levels if so few there are."""

    span: Span | None
    levels: np.ndarray


class Merged(NamedTuple):
    """The names of all partitions; and, for each of these, the positions of its own."""

    names: Names
    positions: list[np.ndarray]


def number(lines: Any, fields: LongFields) -> Numbered:
    """Number the names of a partition. Missing values go, but name their rows and columns first."""
    rows, columns, values, _ = long_columns(as_frame(lines), fields)
    row_codes, row_labels = factorize(rows, "row")
    column_codes, column_labels = factorize(columns, "column")
    if np.isinf(values).any():  # which is refused in the words of one machine
        group_by_column(Triplets(row_codes, column_codes, values), row_labels, column_labels)
    there = ~np.isnan(values)
    row_codes, column_codes = row_codes[there], column_codes[there]
    return Numbered(
        Triplets(row_codes, column_codes, compact_floats(values[there])),
        Names(row_labels, np.bincount(row_codes, minlength=len(row_labels))),
        Names(column_labels, np.bincount(column_codes, minlength=len(column_labels))),
    )


def brief_of(numbered: Numbered) -> Brief:
    """Look at the values of a partition."""
    values = numbered.triplets.values
    if values.size == 0:
        return Brief(None, np.empty(0))
    span = Span(float(values.min()), float(values.max()), values.size)
    return Brief(span, np.unique(values)[: MOST_LEVELS + 1].astype(np.float64))


def merge(names: list[Names], what: str) -> Merged:
    """Number the names of all partitions as if they had come at once."""
    some = [each.labels for each in names if each.labels.size] or [names[0].labels]
    codes, labels = factorize(np.concatenate(some), what)
    counts = np.zeros(len(labels), dtype=np.int64)
    positions = np.split(codes, np.cumsum([each.labels.size for each in names])[:-1])
    for each, places in zip(names, positions, strict=True):
        counts[places] += each.counts
    return Merged(Names(labels, counts), positions)


def names_of(numbered: Numbered, side: str) -> Names:
    """The names of a partition: those of its rows, or of its columns."""
    return numbered.rows if side == "row" else numbered.columns


def positions_of(merged: Merged, partition: int) -> np.ndarray:
    """The positions of a partition's names in the whole table."""
    return merged.positions[partition]


def total_of(numbered: Numbered, measure: Measure) -> int:
    """A partition's share of a sum over all values."""
    return exact_sum(numbered.triplets.values, measure)
