"""Tables of every kind written, read again and compared."""

import csv
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fillrank import Observations, read
from fillrank.io.csv_writer import csv_text, format_number
from fillrank.table.frames import to_wide
from helpers.same_entries import as_dict, assert_same
from helpers.strategies import few, label_arrays, matrices

VALUES = st.one_of(
    st.integers(-4, 4).map(float),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100),
)
# Without delimiters other than commas, from which that of a file would be ambiguous.
LABELS = st.text("abcxyzäß茶 ,'\"", max_size=5).map(lambda text: f"label {text}".strip())
# Data frames change the units of dates.
KINDS = st.sampled_from(["close integers", "bytes", "integers", "unsigned integers", "text"])


def as_pairs(observations):
    """The entries with labels as Python objects."""
    return {
        (row, column): value
        for row, column, value in zip(
            observations.rows.tolist(),
            observations.columns.tolist(),
            observations.values.tolist(),
            strict=True,
        )
    }


@few
@given(matrices(VALUES), st.sampled_from(["coo", "csr", "csc", "dok", "lil", "masked", "list"]))
def test_matrices_of_every_kind_are_the_same(matrix, kind):
    rows, columns = np.nonzero(~np.isnan(matrix))
    if kind == "list":
        other = matrix.tolist()
    elif kind == "masked":
        other = np.ma.masked_invalid(matrix)
    else:
        if kind in ("dok", "lil"):
            matrix = np.where(matrix == 0, 7.0, matrix)  # these do not store zeros
        values = matrix[rows, columns]
        other = sp.coo_array((values, (rows, columns)), shape=matrix.shape).asformat(kind)
    assert_same(Observations.of(other), Observations.from_matrix(matrix))


@few
@given(label_arrays(unique=True, max_size=8, kinds=KINDS), st.data())
def test_long_tables_are_their_triplets(labels, data):
    positions = data.draw(st.lists(st.sampled_from(range(len(labels))), min_size=1, max_size=20))
    rows, columns = labels[positions], np.arange(len(positions))
    values = np.array(data.draw(st.lists(VALUES, min_size=len(rows), max_size=len(rows))))
    expected = Observations.from_triplets(rows, columns, values)
    assert list(expected.row_labels) == list(dict.fromkeys(list(rows)))
    assert as_pairs(expected) == dict(
        zip(zip(rows.tolist(), columns.tolist(), strict=True), values.tolist(), strict=True)
    )
    if labels.dtype.kind == "O":
        rows = rows.tolist()
    table = {"row": rows, "column": columns, "value": values}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert as_dict(Observations.of(make(table))).keys() == as_dict(expected).keys()
        np.testing.assert_array_equal(Observations.of(make(table)).values, expected.values)


@few
@given(matrices(VALUES), st.data())
def test_wide_tables_are_returned_as_they_came(matrix, data):
    n_rows, n_columns = matrix.shape
    columns = data.draw(st.lists(LABELS, min_size=n_columns, max_size=n_columns, unique=True))
    rows = data.draw(st.lists(LABELS, min_size=n_rows, max_size=n_rows, unique=True))
    frame = pd.DataFrame(matrix, index=rows, columns=columns)
    observations = Observations.of(frame)
    completed = np.where(np.isnan(matrix), 0.5, matrix)
    pd.testing.assert_frame_equal(to_wide(observations, completed), frame.fillna(0.5))
    cells = {name: matrix[:, j] for j, name in enumerate(columns)}
    table = pl.DataFrame({"who": rows, **cells}, nan_to_null=True)
    assert_same(Observations.of(table), observations)


@few
@given(matrices(VALUES), st.data())
def test_wide_text_files(matrix, data):
    n_rows, n_columns = matrix.shape
    columns = data.draw(st.lists(LABELS, min_size=n_columns, max_size=n_columns, unique=True))
    rows = data.draw(st.lists(LABELS, min_size=n_rows, max_size=n_rows, unique=True))
    missing = data.draw(st.sampled_from(["", "NA", "nan", "null", "?"]))
    lines = [
        [label, *(missing if np.isnan(v) else format_number(v) for v in cells)]
        for label, cells in zip(rows, matrix.tolist(), strict=True)
    ]
    text = csv_text(["id", *columns], lines)
    got = read(io.StringIO(text), format="csv", layout="wide")
    assert got.row_labels.tolist() == rows
    assert got.column_labels.tolist() == columns
    expected = Observations.from_matrix(matrix)
    np.testing.assert_array_equal(got.row_index, expected.row_index)
    np.testing.assert_array_equal(got.column_index, expected.column_index)
    np.testing.assert_array_equal(got.values, expected.values)


@few
@given(
    st.lists(st.tuples(LABELS, st.integers(-50, 50), VALUES), min_size=1, max_size=20),
    st.sampled_from([",", "\t", ";", "|"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_long_text_files(entries, delimiter, end):
    entries = [(row, column, format_number(value)) for row, column, value in entries]
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
    writer.writerows([("user", "item", "rating"), *entries])
    expected = {(row, column): float(value) for row, column, value in entries}
    content = file.getvalue().encode()
    for source in (io.BytesIO(content), io.StringIO(content.decode(), newline="")):
        assert as_dict(read(source, format="csv", duplicates="last")) == expected


@few
@given(matrices(VALUES))
def test_binary_files(matrix):
    expected = Observations.from_matrix(matrix)
    rows, columns = np.nonzero(~np.isnan(matrix))
    stored = sp.coo_array((matrix[rows, columns], (rows, columns)), shape=matrix.shape)
    writers = {
        "npy": lambda file: np.save(file, matrix),
        "npz": lambda file: np.savez(file, matrix),
        "mtx": lambda file: scipy.io.mmwrite(file, stored, precision=17),
    }
    for format, write in writers.items():
        file = io.BytesIO()
        write(file)
        assert_same(read(io.BytesIO(file.getvalue()), format=format), expected)
    file = io.BytesIO()
    sp.save_npz(file, stored)
    assert_same(read(io.BytesIO(file.getvalue()), format="npz"), expected)
