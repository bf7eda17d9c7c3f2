"""Labels of a long table, encoded as positions by workers, one partition at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.cluster.long_tables import LongTable
from fillrank.cluster.monitor import Monitor
from fillrank.errors import NotSupportedError
from fillrank.table.entries import compact_floats
from fillrank.table.frames import as_frame, long_columns
from fillrank.table.labels import factorize
from fillrank.table.latent import MOST_LEVELS
from fillrank.table.layout import LongFields
from fillrank.table.triplets import Triplets, group_by_column
from fillrank.table.units import Measure, Span, exact_sum

if TYPE_CHECKING:
    from distributed import Future


class LabelCounts(NamedTuple):
    """Distinct labels in order of first appearance, and the number of entries of each."""

    labels: np.ndarray
    counts: np.ndarray


class EncodedPartition(NamedTuple):
    """The entries of a partition, by positions in its own labels."""

    triplets: Triplets
    rows: LabelCounts
    columns: LabelCounts


class MergedLabels(NamedTuple):
    """The labels of all partitions; and, for each partition, the positions of its own labels."""

    labels: LabelCounts
    positions: list[np.ndarray]


class EncodedTable(NamedTuple):
    """A long table with encoded labels: futures for each partition, and the labels of the table."""

    partitions: list[Future]
    row_positions: list[Future]
    column_positions: list[Future]
    rows: LabelCounts
    columns: LabelCounts


class ValueSummary(NamedTuple):
    """The span of the values of a partition; their levels, up to a maximum, and the counts of these."""

    span: Span | None
    levels: np.ndarray
    counts: np.ndarray


def encode_table(table: LongTable, monitor: Monitor) -> EncodedTable:
    """Encode all labels on the workers; the client gets labels and counts."""
    import dask

    client, encode = monitor.client, dask.delayed(encode_partition)
    lines = table.frame.to_delayed()
    encoded = client.compute([encode(partition, table.fields) for partition in lines])
    merged = [
        client.submit(merge_labels, client.map(get_labels, encoded, axis=axis), axis)
        for axis in ("row", "column")
    ]
    row_positions, column_positions = (
        [client.submit(get_positions, side, p) for p in range(len(lines))] for side in merged
    )
    rows, columns = monitor.gather(client.map(get_all_labels, merged))
    return EncodedTable(encoded, row_positions, column_positions, rows, columns)


# Tasks.


def encode_partition(lines: Any, fields: LongFields) -> EncodedPartition:
    """Encode the labels of a partition. Missing values are dropped, their labels are not."""
    rows, columns, (values, upper), _ = long_columns(as_frame(lines), fields)
    if upper is not None:
        raise NotSupportedError("a cluster cannot use limits such as <0.5; fit on one machine.")
    row_codes, row_labels = factorize(rows, "row")
    column_codes, column_labels = factorize(columns, "column")
    if np.isinf(values).any():  # raises the error of one machine
        group_by_column(Triplets(row_codes, column_codes, values), row_labels, column_labels)
    observed = ~np.isnan(values)
    row_codes, column_codes = row_codes[observed], column_codes[observed]
    return EncodedPartition(
        Triplets(row_codes, column_codes, compact_floats(values[observed])),
        LabelCounts(row_labels, np.bincount(row_codes, minlength=len(row_labels))),
        LabelCounts(column_labels, np.bincount(column_codes, minlength=len(column_labels))),
    )


def merge_labels(partitions: list[LabelCounts], axis: str) -> MergedLabels:
    """Encode the labels of all partitions as if they were one table."""
    not_empty = [labels for labels, _ in partitions if labels.size] or [partitions[0].labels]
    codes, labels = factorize(np.concatenate(not_empty), axis)
    counts = np.zeros(len(labels), dtype=np.int64)
    positions = np.split(codes, np.cumsum([each.labels.size for each in partitions])[:-1])
    for each, own in zip(partitions, positions, strict=True):
        counts[own] += each.counts
    return MergedLabels(LabelCounts(labels, counts), positions)


def get_labels(partition: EncodedPartition, axis: str) -> LabelCounts:
    """The row labels or the column labels of a partition."""
    return partition.rows if axis == "row" else partition.columns


def get_all_labels(merged: MergedLabels) -> LabelCounts:
    """The labels of all partitions."""
    return merged.labels


def get_positions(merged: MergedLabels, partition: int) -> np.ndarray:
    """The positions of the labels of a partition in the table."""
    return merged.positions[partition]


def summarize_values(partition: EncodedPartition) -> ValueSummary:
    """Summarize the values of a partition."""
    values = partition.triplets.values
    if values.size == 0:
        return ValueSummary(None, np.empty(0), np.empty(0, dtype=np.int64))
    span = Span(float(values.min()), float(values.max()), values.size)
    levels, counts = np.unique(values, return_counts=True)
    shown = slice(MOST_LEVELS + 1)  # one more, which says that there are too many
    return ValueSummary(span, levels[shown].astype(np.float64), counts[shown])


def sum_values(partition: EncodedPartition, measure: Measure) -> int:
    """`exact_sum` over the values of a partition."""
    return exact_sum(partition.triplets.values, measure)
