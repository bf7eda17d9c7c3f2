"""Tables in partitions lie on workers as they would on one machine, to the bit."""

import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, ReadError, UnknownNameError
from fillrank.table.units import standardise

pytest.importorskip("distributed")

import dask.dataframe as dd

from fillrank.cluster.long_tables import open_long_table
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.shuffle import shuffle_table
from helpers.clusters import LIMIT, harm_in_the_middle

DATES = pd.date_range("2020-01-30", periods=40).to_numpy()


@pytest.fixture
def client(crew):
    return crew.with_workers(3)


def laid_out(source, client, centre, dtype):
    return shuffle_table(source, client, centre, dtype, check_memory=lambda *_: None)


def test_room_is_asked_for_before_entries_change_places(client):
    asked = []

    def refuse(*numbers):
        asked.append(numbers)
        raise InputError("no room")

    with pytest.raises(InputError, match="no room"):
        shuffle_table(partitions(lines(), [300]), client, True, np.dtype("float32"), refuse)
    ((n_entries, (n_rows, n_columns)),) = asked
    table = fr.Observations.from_table(lines())
    assert (n_entries, n_rows, n_columns) == (len(table), *table.shape)


def lines(kind="whole", n=600, seed=0):
    """A long table of distinct cells, in no order; the last names come with missing values alone."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(40 * 30)[:n]
    i, j = cells // 30, cells % 30
    values = rng.integers(1, 6, n).astype(float)
    if kind == "text":
        names = np.array([f"row {k}" for k in range(40)], dtype=object)[i], 1000 * j - 7
    elif kind == "dates":
        names = DATES[i], np.array([f"c{k}" for k in range(30)], dtype=object)[j]
    else:
        names = 10**12 * i, j.astype(np.uint8)
    table = pd.DataFrame({"user": names[0], "item": names[1], "rating": values})
    table.loc[::7, "rating"] = np.nan
    return table


def partitions(table, at):
    """A Dask data frame of these partitions: at a repeated place there is an empty one."""
    pieces = [table.iloc[start:stop] for start, stop in pairwise([0, *at, len(table)])]
    return dd.from_map(lambda piece: piece, pieces, meta=table.iloc[:0])


def whole(side, n_others):
    """The entries of all parts of a side, one after the other."""
    parts = [part.result(LIMIT) for part in side.partitions]
    assert [part.first_row for part in parts] == side.bounds[:-1].tolist()
    assert [part.entries.pointers.size - 1 for part in parts] == np.diff(side.bounds).tolist()
    assert all(part.entries.pointers[0] == 0 for part in parts)
    counts = np.concatenate([np.diff(part.entries.pointers) for part in parts])
    np.testing.assert_array_equal(np.cumsum(counts), side.pointers[1:])
    assert side.pointers[0] == 0
    indices = np.concatenate([part.entries.indices for part in parts])
    assert indices.max() < n_others
    return side.pointers, indices, np.concatenate([part.entries.values for part in parts])


def check_same(laid, table, centre=True, dtype="float32", **fields):
    """What was laid out is what one machine makes of the same lines."""
    observations = fr.Observations.from_table(table, **fields)
    standard = standardise(observations, centre, np.dtype(dtype))
    for got, expected in (
        (laid.observations.row_labels, observations.row_labels),
        (laid.observations.column_labels, observations.column_labels),
    ):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    assert laid.observations.origin == observations.origin
    assert (laid.location, laid.scale) == (standard.location, standard.scale)
    assert laid.value_range == observations.value_range()
    n_rows, n_columns = (side.pointers.size - 1 for side in (standard.rows, standard.columns))
    for side, n_others, expected in (
        (laid.rows, n_columns, standard.rows),
        (laid.columns, n_rows, standard.columns),
    ):
        for got, right in zip(whole(side, n_others), expected, strict=True):
            assert got.dtype == right.dtype
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("kind", ["whole", "text", "dates"])
@pytest.mark.parametrize("at", [[], [100], [0, 1, 1, 250, 251, 600]])
def test_the_same_as_on_one_machine(client, kind, at):
    table = lines(kind)
    laid = laid_out(partitions(table, at), client, True, np.dtype("float32"))
    check_same(laid, table)
    assert laid.value_range == (1.0, 5.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("centre", [True, False])
def test_values_that_are_no_ratings(client, dtype, centre):
    table = lines()
    table["rating"] = 1e9 + np.random.default_rng(1).normal(size=len(table))
    laid = laid_out(partitions(table, [200, 400]), client, centre, np.dtype(dtype))
    check_same(laid, table, centre, dtype)
    assert laid.value_range is None


@pytest.mark.parametrize("n_rows", [1, 2])
def test_fewer_rows_than_workers(client, n_rows):
    table = pd.DataFrame(
        {
            "row": np.arange(20) % n_rows,
            "column": np.arange(20) // n_rows,
            "value": np.arange(20.0) ** 2,
        }
    )
    check_same(laid_out(partitions(table, [5]), client, True, np.dtype("float32")), table)


def test_most_entries_in_one_row(client):
    table = lines()
    table["user"] = np.where(np.arange(600) % 50 == 0, table["user"], -1)
    table = table.drop_duplicates(["user", "item"])
    check_same(laid_out(partitions(table, [9]), client, True, np.dtype("float32")), table)


def test_parquet_files_by_a_pattern(client, tmp_path):
    table = lines("text").assign(note="not read")
    for p in range(12):  # part.10 comes after part.2
        table[50 * p : 50 * (p + 1)].to_parquet(tmp_path / f"part.{p}.parquet", index=False)
    laid = laid_out(str(tmp_path / "*.parquet"), client, True, np.dtype("float32"))
    check_same(laid, table)
    laid = laid_out(tmp_path, client, True, np.dtype("float32"))
    check_same(laid, table)


def test_fields_by_name(client):
    table = lines().rename(columns={"user": "a", "item": "b", "rating": "c"})
    fields = {"row": "b", "column": "a", "value": "c"}
    opened = open_long_table(partitions(table, [300]), **fields)
    check_same(laid_out(opened, client, True, np.dtype("float32")), table, **fields)
    opened = open_long_table(partitions(table, [300]), layout="long")
    check_same(laid_out(opened, client, True, np.dtype("float32")), table, layout="long")


def test_what_is_lost_with_a_worker_is_made_again(crew, client, tmp_path):
    table = lines("text")
    table.to_parquet(tmp_path / "all.parquet", index=False)
    laid = laid_out(tmp_path / "all.parquet", client, True, np.dtype("float32"))
    check_same(laid, table)
    (address,) = client.who_has(laid.rows.partitions)[laid.rows.partitions[0].key]
    (name,) = (name for name, its in crew.addresses().items() if its == address)
    crew.kill(name)
    check_same(laid, table)


# While names are numbered, while values are looked at, and while entries change places.
@pytest.mark.parametrize("moment", [1, 2, 5])
def test_a_worker_dies_over_it(crew, client, monkeypatch, moment):
    table, killed = lines("text"), []

    def kill():
        killed.append(moment)
        crew.replace(0)

    harm_in_the_middle(monkeypatch, {moment}, kill, of=(Monitor, "wait_for"))
    laid = laid_out(partitions(table, list(range(30, 600, 30))), client, True, np.dtype("float32"))
    assert killed == [moment]
    check_same(laid, table)


def test_no_table_that_is_long(client):
    wide = partitions(lines().rename(columns={"user": "tea"}), [])
    with pytest.raises(InputError, match=r"must be long.*'tea', 'item', 'rating'"):
        laid_out(wide, client, True, np.dtype("float32"))
    with pytest.raises(UnknownNameError, match="no column 'who'"):
        open_long_table(wide, row="who", column="item", value="rating")


def test_no_files(client, tmp_path):
    with pytest.raises(ReadError, match="there is no file"):
        laid_out(tmp_path / "*.parquet", client, True, np.dtype("float32"))
    (tmp_path / "text.parquet").write_text("user,item,rating\n")
    with pytest.raises(ReadError, match="cannot be read as Parquet"):
        laid_out(tmp_path / "text.parquet", client, True, np.dtype("float32"))


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[dask\]"'):
        open_long_table("ratings.parquet")


def refused(client, table, error=InputError):
    """What both say of a table: here, and on the workers."""
    with pytest.raises(error) as here:
        fr.Observations.from_table(table)
    with pytest.raises(error) as there:
        laid_out(partitions(table, [100, 300]), client, True, np.dtype("float32"))
    return str(here.value), str(there.value)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_several_values_for_a_cell(client, n):
    table = lines("text", seed=n)
    again = table.iloc[1 : 2 * n + 1 : 2].assign(rating=7.5)
    more = table.iloc[[1] * 4].assign(rating=[6.0, 8.0, 6.5, 5.5])
    table = pd.concat([more[:2], table, again, more[2:]])
    here, there = refused(client, table)
    assert there.splitlines()[:-1] == here.splitlines()[:-1]
    assert "groupby" in there.splitlines()[-1]


def test_nothing_observed(client):
    here, there = refused(client, lines().assign(rating=np.nan))
    assert here == there


def test_values_that_are_text(client):
    here, there = refused(client, lines().astype({"rating": str}))
    assert here == there


@pytest.mark.parametrize(("field", "value"), [("rating", np.inf), ("user", None), ("item", None)])
def test_what_is_no_value_or_no_name(client, field, value):
    table = lines("dates") if field == "rating" else lines("text").astype({field: object})
    table.iloc[150, table.columns.get_loc(field)] = value
    here, there = refused(client, table)
    assert here == there
