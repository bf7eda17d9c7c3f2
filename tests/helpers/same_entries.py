"""Equality of observations, and of their names as an unordered set."""

import numpy as np


def assert_same(got, expected):
    """The same entries, weights, names and order of names."""
    assert got.row_labels.tolist() == expected.row_labels.tolist()
    assert got.column_labels.tolist() == expected.column_labels.tolist()
    np.testing.assert_array_equal(got.row_index, expected.row_index)
    np.testing.assert_array_equal(got.column_index, expected.column_index)
    np.testing.assert_array_equal(got.values, expected.values)
    np.testing.assert_array_equal(got.weights, expected.weights)  # or None


def as_dict(observations):
    """The entries as {(row name, column name): value}."""
    rows, columns = observations.rows.tolist(), observations.columns.tolist()
    return dict(zip(zip(rows, columns, strict=True), observations.values.tolist(), strict=True))
