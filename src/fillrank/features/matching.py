"""Which line of a table of features belongs to which row or column."""

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError
from fillrank.features.coding import feature_name
from fillrank.table.feature_table import (
    FeatureTable,
    KnownLabels,
    frame_features,
    labels_as_text,
)
from fillrank.table.frames import as_frame, is_data_frame
from fillrank.table.labels import LabelIndex, factorize, format_labels, is_missing
from fillrank.table.triplets import check_shape, dense_matrix, stored_triplets

Side = Literal["row", "column"]


class Matched(NamedTuple):
    """The features of those labels that have any.

    Attributes
    ----------
    features : FeatureTable or sparse array
        One line for each label that has features, in the order of the labels.
    has_features : ndarray of bool (m,)
        Which labels have features.
    notes : tuple of str
        Sentences for the user.
    """

    features: FeatureTable | sp.csc_array
    has_features: np.ndarray
    notes: tuple[str, ...]


def match(
    table: Any,
    labels: np.ndarray,
    side: Side,
    fitted: frozenset[str] | None = None,
) -> Matched:
    """Find the features of each label in a table of any type; a sparse matrix stays sparse.

    Parameters
    ----------
    table : data frame, array, sparse matrix or FeatureTable
    labels : ndarray
    side : {"row", "column"}
    fitted : frozenset of str or None
        The names of the fields of the fit, if these labels are new. Then columns with these names are
        not labels, and no label needs to have features.
    """
    if sp.issparse(table):
        matrix = _sparse_features(table)
        _check_length(matrix.shape[0], len(labels), side)
        return Matched(matrix, np.ones(len(labels), dtype=bool), ())
    if not isinstance(table, FeatureTable):
        table = _as_table(table, labels, side, fitted or frozenset())
    matched = _match_table(table, labels, side)
    if fitted is None and not matched.has_features.any():
        raise InputError(
            f"the table of features has none of the {side} labels, {format_labels(labels)}; its own "
            f"labels are {format_labels(table.labels) or 'not there'}",
            advice="Labels are in the first column, or in the index of a pandas table.",
        )
    return matched


def _sparse_features(table: Any) -> sp.csc_array:
    stored = stored_triplets(table)  # which checks it
    # Elements that are stored more than once are added up, as scipy does.
    return sp.csc_array((stored.values, (stored.row_index, stored.column_index)), table.shape)


def _as_table(
    table: Any, labels: np.ndarray, side: Side, not_labels: frozenset[str]
) -> FeatureTable:
    if is_data_frame(table):
        known = KnownLabels(labels, by_text=False)
        return frame_features(as_frame(table), known, not_labels=not_labels)
    if np.ndim(table) == 1:
        raise InputError(
            "a table of features must have two dimensions, lines and fields; got 1",
            advice="For a single feature pass a data frame with one column, or array[:, np.newaxis].",
        )
    return matrix_table(dense_matrix(table, "features"), labels, side)


def matrix_table(matrix: np.ndarray, labels: np.ndarray, side: Side) -> FeatureTable:
    """An array as a table, with a line for each label."""
    check_shape(matrix.shape)
    _check_length(matrix.shape[0], len(labels), side)
    return FeatureTable(labels, {feature_name(j): cells for j, cells in enumerate(matrix.T)})


def _check_length(n_lines: int, n_labels: int, side: Side) -> None:
    if n_lines != n_labels:
        raise InputError(
            f"an array of features must have a line for each {side}, {n_labels:,}; got {n_lines:,}",
            advice="Or pass a data frame with labels.",
        )


def _match_table(table: FeatureTable, labels: np.ndarray, side: Side) -> Matched:
    _check_labels(table.labels, side)
    positions = _positions(table, labels, side)
    has_features = positions >= 0
    used = positions[has_features]
    fields = {name: values[used] for name, values in table.fields.items()}
    notes = (*table.notes, *_notes(table.labels, labels, positions, side))
    return Matched(FeatureTable(labels[has_features], fields), has_features, notes)


def _check_labels(labels: np.ndarray, side: Side) -> None:
    """Raise InputError if a label of the features is missing or repeated."""
    n_missing = 0 if labels.dtype.kind in "iu" else sum(map(is_missing, labels))
    if n_missing:
        raise InputError(
            f"every line of a table of features needs a {side} label; {n_missing:,} have none",
            advice="Remove these lines or label them.",
        )
    codes, distinct = factorize(labels, side)
    if len(distinct) < len(labels):
        repeated = distinct[np.bincount(codes) > 1]
        raise InputError(
            f"a table of features must have a single line for each {side}; {len(repeated):,} labels "
            f"have several: {format_labels(repeated)}",
            advice="Merge their lines, or remove all but one.",
        )


def _positions(table: FeatureTable, labels: np.ndarray, side: Side) -> np.ndarray:
    """The line of each label, -1 where there is none."""
    if table.by_text:
        return _text_positions(table.labels, labels, side)
    found = LabelIndex(table.labels, side).positions(labels, allow_unknown=True)
    if not np.any(found >= 0) and np.any(_text_positions(table.labels, labels, side) >= 0):
        raise InputError(
            f"the labels of the features must be of the same type as the {side} labels, "
            f"{format_labels(labels)}; got {format_labels(table.labels)}",
            advice="1 and '1' are different labels: convert one of them, such as with .astype(str).",
        )
    return found


def _text_positions(own: np.ndarray, labels: np.ndarray, side: Side) -> np.ndarray:
    index = LabelIndex(labels_as_text(own), side)
    return index.positions(labels_as_text(labels), allow_unknown=True)


def _notes(own: np.ndarray, labels: np.ndarray, positions: np.ndarray, side: Side) -> list[str]:
    """Notes on labels that are only in the table of features, or only in the other."""
    notes = []
    unused = np.ones(len(own), dtype=bool)
    unused[positions[positions >= 0]] = False
    if (n_unused := int(np.count_nonzero(unused))) > 0:
        left_out = "label of the features is" if n_unused == 1 else "labels of the features are"
        notes.append(
            f"{n_unused:,} {left_out} left out, because no {side} has "
            f"{'it' if n_unused == 1 else 'them'}: {format_labels(own[unused])}."
        )
    without = labels[positions < 0]
    if len(without):
        notes.append(
            f"Without features, and treated as the mean of the others: {len(without):,} of "
            f"{len(labels):,} {side}s, {format_labels(without)}."
        )
    return notes
