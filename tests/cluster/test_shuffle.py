"""Shuffled tables have the bits of tables on one machine."""

import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, ReadError, UnknownNameError
from fillrank.samplers.model import Data
from fillrank.table.units import shared_units, standardise

pytest.importorskip("distributed")

import dask.dataframe as dd

from fillrank.cluster.long_tables import open_long_table
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.shuffle import shuffle_table
from fillrank.cluster.value_codes import DataFormat
from helpers.clusters import LIMIT, harm_in_the_middle

DATES = pd.date_range("2020-01-30", periods=40).to_numpy()


@pytest.fixture
def client(crew):
    return crew.with_workers(3)


def shuffle(source, client, centre, dtype):
    data_format = DataFormat(centre, np.dtype(dtype), width=4)
    return shuffle_table(source, client, data_format, check_memory=lambda *_: None)


def test_memory_is_checked_before_the_shuffle(client):
    calls = []

    def refuse(*numbers):
        calls.append(numbers)
        raise InputError("no memory")

    data_format = DataFormat(True, np.dtype("float32"), width=4)
    with pytest.raises(InputError, match="no memory"):
        shuffle_table(partitions(long_table(), [300]), client, data_format, refuse)
    ((n_entries, (n_rows, n_columns)),) = calls
    table = fr.Observations.from_table(long_table())
    assert (n_entries, n_rows, n_columns) == (len(table), *table.shape)


def long_table(kind="integers", n=600, seed=0):
    """A long table of distinct cells in random order, with missing values."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(40 * 30)[:n]
    i, j = cells // 30, cells % 30
    values = rng.integers(1, 6, n).astype(float)
    if kind == "text":
        labels = np.array([f"row {k}" for k in range(40)], dtype=object)[i], 1000 * j - 7
    elif kind == "dates":
        labels = DATES[i], np.array([f"c{k}" for k in range(30)], dtype=object)[j]
    else:
        labels = 10**12 * i, j.astype(np.uint8)
    table = pd.DataFrame({"user": labels[0], "item": labels[1], "rating": values})
    table.loc[::7, "rating"] = np.nan
    return table


def partitions(table, at):
    """A Dask data frame divided at these lines; a repeated one gives an empty partition."""
    pieces = [table.iloc[start:stop] for start, stop in pairwise([0, *at, len(table)])]
    return dd.from_map(lambda piece: piece, pieces, meta=table.iloc[:0])


def collect(side, n_others):
    """Concatenate the entries of all partitions of a side."""
    found = [partition.result(LIMIT) for partition in side.partitions]
    assert [partition.first_row for partition in found] == side.bounds[:-1].tolist()
    assert [partition.entries.pointers.size - 1 for partition in found] == np.diff(
        side.bounds
    ).tolist()
    assert all(partition.entries.pointers[0] == 0 for partition in found)
    counts = np.concatenate([np.diff(partition.entries.pointers) for partition in found])
    np.testing.assert_array_equal(np.cumsum(counts), side.pointers[1:])
    assert side.pointers[0] == 0
    indices = np.concatenate([partition.entries.indices for partition in found])
    assert indices.max() < n_others
    values, weights, cells = (
        np.concatenate([getattr(partition.entries, name) for partition in found])
        for name in ("values", "weights", "cells")
    )
    return side.pointers, indices, values, weights, cells


def check_same(shuffled, table, centre=True, dtype="float32", **fields):
    """Check that a shuffled table is that of one machine for the same lines."""
    observations = fr.Observations.from_table(table, **fields)
    units = shared_units(observations, centre, value_range=None)
    standard = Data(*standardise(observations, units, np.dtype(dtype)))
    for got, expected in (
        (shuffled.observations.row_labels, observations.row_labels),
        (shuffled.observations.column_labels, observations.column_labels),
    ):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    assert shuffled.observations.origin == observations.origin
    assert (shuffled.location, shuffled.scale) == (units.location[0], units.scale[0])
    assert shuffled.value_range == observations.value_range()
    n_rows, n_columns = (side.pointers.size - 1 for side in (standard.rows, standard.columns))
    for side, n_others, expected in (
        (shuffled.rows, n_columns, standard.rows),
        (shuffled.columns, n_rows, standard.columns),
    ):
        for got, right in zip(collect(side, n_others), expected, strict=True):
            assert got.dtype == right.dtype
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("kind", ["integers", "text", "dates"])
@pytest.mark.parametrize("at", [[], [100], [0, 1, 1, 250, 251, 600]])
def test_the_same_as_on_one_machine(client, kind, at):
    table = long_table(kind)
    shuffled = shuffle(partitions(table, at), client, True, np.dtype("float32"))
    check_same(shuffled, table)
    assert shuffled.value_range == (1.0, 5.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("centre", [True, False])
def test_values_that_are_not_ratings(client, dtype, centre):
    table = long_table()
    table["rating"] = 1e9 + np.random.default_rng(1).normal(size=len(table))
    shuffled = shuffle(partitions(table, [200, 400]), client, centre, np.dtype(dtype))
    check_same(shuffled, table, centre, dtype)
    assert shuffled.value_range is None


@pytest.mark.parametrize("n_rows", [1, 2])
def test_fewer_rows_than_workers(client, n_rows):
    table = pd.DataFrame(
        {
            "row": np.arange(20) % n_rows,
            "column": np.arange(20) // n_rows,
            "value": np.arange(20.0) ** 2,
        }
    )
    check_same(shuffle(partitions(table, [5]), client, True, np.dtype("float32")), table)


def test_most_entries_in_one_row(client):
    table = long_table()
    table["user"] = np.where(np.arange(600) % 50 == 0, table["user"], -1)
    table = table.drop_duplicates(["user", "item"])
    check_same(shuffle(partitions(table, [9]), client, True, np.dtype("float32")), table)


def test_parquet_files_by_a_pattern(client, tmp_path):
    table = long_table("text").assign(note="not read")
    for p in range(12):  # part.10 comes after part.2
        table[50 * p : 50 * (p + 1)].to_parquet(tmp_path / f"part.{p}.parquet", index=False)
    shuffled = shuffle(str(tmp_path / "*.parquet"), client, True, np.dtype("float32"))
    check_same(shuffled, table)
    shuffled = shuffle(tmp_path, client, True, np.dtype("float32"))
    check_same(shuffled, table)


def test_columns_by_name(client):
    table = long_table().rename(columns={"user": "a", "item": "b", "rating": "c"})
    fields = {"row": "b", "column": "a", "value": "c"}
    opened = open_long_table(partitions(table, [300]), **fields)
    check_same(shuffle(opened, client, True, np.dtype("float32")), table, **fields)
    opened = open_long_table(partitions(table, [300]), layout="long")
    check_same(shuffle(opened, client, True, np.dtype("float32")), table, layout="long")


def test_lost_partitions_are_computed_again(crew, client, tmp_path):
    table = long_table("text")
    table.to_parquet(tmp_path / "all.parquet", index=False)
    shuffled = shuffle(tmp_path / "all.parquet", client, True, np.dtype("float32"))
    check_same(shuffled, table)
    (address,) = client.who_has(shuffled.rows.partitions)[shuffled.rows.partitions[0].key]
    (name,) = (name for name, its in crew.addresses().items() if its == address)
    crew.kill(name)
    check_same(shuffled, table)


# While labels are encoded, while values are summarized, and during the shuffle.
@pytest.mark.parametrize("moment", [1, 2, 5])
def test_a_worker_dies_during_the_shuffle(crew, client, monkeypatch, moment):
    table, killed = long_table("text"), []

    def kill():
        killed.append(moment)
        crew.replace(0)

    harm_in_the_middle(monkeypatch, {moment}, kill, of=(Monitor, "wait_for"))
    shuffled = shuffle(
        partitions(table, list(range(30, 600, 30))), client, True, np.dtype("float32")
    )
    assert killed == [moment]
    check_same(shuffled, table)


def test_a_table_that_is_not_long(client):
    wide = partitions(long_table().rename(columns={"user": "tea"}), [])
    with pytest.raises(InputError, match=r"must be long.*'tea', 'item', 'rating'"):
        shuffle(wide, client, True, np.dtype("float32"))
    with pytest.raises(UnknownNameError, match="no column 'who'"):
        open_long_table(wide, row="who", column="item", value="rating")


def test_no_files(client, tmp_path):
    with pytest.raises(ReadError, match="there is no file"):
        shuffle(tmp_path / "*.parquet", client, True, np.dtype("float32"))
    (tmp_path / "text.parquet").write_text("user,item,rating\n")
    with pytest.raises(ReadError, match="cannot be read as Parquet"):
        shuffle(tmp_path / "text.parquet", client, True, np.dtype("float32"))


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[dask\]"'):
        open_long_table("ratings.parquet")


def error_messages(client, table, error=InputError):
    """The messages of the errors for a table: on one machine, and on a cluster."""
    with pytest.raises(error) as here:
        fr.Observations.from_table(table)
    with pytest.raises(error) as there:
        shuffle(partitions(table, [100, 300]), client, True, np.dtype("float32"))
    return str(here.value), str(there.value)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_several_values_for_a_cell(client, n):
    table = long_table("text", seed=n)
    again = table.iloc[1 : 2 * n + 1 : 2].assign(rating=7.5)
    more = table.iloc[[1] * 4].assign(rating=[6.0, 8.0, 6.5, 5.5])
    table = pd.concat([more[:2], table, again, more[2:]])
    here, there = error_messages(client, table)
    assert there.splitlines()[:-1] == here.splitlines()[:-1]
    assert "groupby" in there.splitlines()[-1]


def test_no_observed_values(client):
    here, there = error_messages(client, long_table().assign(rating=np.nan))
    assert here == there


def test_values_that_are_text(client):
    here, there = error_messages(client, long_table().assign(rating="good"))
    assert here == there
    numbers = long_table()
    as_text = partitions(numbers.astype({"rating": str}), [300])
    check_same(shuffle(as_text, client, True, np.dtype("float32")), numbers)


@pytest.mark.parametrize(("field", "value"), [("rating", np.inf), ("user", None), ("item", None)])
def test_infinite_values_and_missing_labels(client, field, value):
    table = long_table("dates") if field == "rating" else long_table("text").astype({field: object})
    table.iloc[150, table.columns.get_loc(field)] = value
    here, there = error_messages(client, table)
    assert here == there
