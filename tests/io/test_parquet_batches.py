"""Long Parquet tables, read in batches: the same as the whole data frame at once."""

import datetime
import itertools

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillrank import Observations, read
from fillrank.errors import FillrankError, InputError, ReadError
from fillrank.io import parquet
from fillrank.runtime import memory
from helpers.same_entries import assert_same

FIELDS = {"row": "r", "column": "c", "value": "v"}
LIBRARIES = {"both": (), "pyarrow": ("polars",), "polars": ("pyarrow",)}


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request, monkeypatch):
    """Each library in turn, three lines at a time."""
    missing = LIBRARIES[request.param]
    monkeypatch.setattr(parquet, "find_spec", lambda name: name not in missing)
    monkeypatch.setattr(parquet, "BATCH_LINES", 3)
    return request.param


def outcome(work):
    """What came of it: observations, or the words of a refusal."""
    try:
        return work()
    except FillrankError as error:
        return type(error), str(error)


def check_alike(path, **options):
    """Reading in batches gives what the whole frame gives; or is refused in the same words."""
    at_once = outcome(lambda: Observations.from_table(parquet.read_parquet(path), **options))
    got = outcome(lambda: read(path, **options))
    if isinstance(at_once, tuple):
        kind, words = at_once
        where = f"{path}: " if kind is InputError else ""
        assert got == (kind, where + words)
        return at_once
    assert_same(got, at_once)
    assert got.origin == at_once.origin
    assert got.row_labels.dtype == at_once.row_labels.dtype
    assert got.column_labels.dtype == at_once.column_labels.dtype
    assert got.stored_values.dtype == at_once.stored_values.dtype
    return got


def random_names(rng, size):
    """Names of each kind, several lines of each."""
    few = rng.integers(-3, 5, size)
    days = np.datetime64("2020-01-01") + few
    return {
        "small integers": few.astype(np.int8),
        "integers": few + 1_000_000,
        "integers far apart": few * 2**59,
        "unsigned": few.astype(np.uint64),
        "floats": few / 4,
        "text": [f"name {i}" for i in few],
        "categories": pl.Series([f"name {i}" for i in few], dtype=pl.Categorical),
        "days": days,
        "moments": days.astype("M8[us]"),
        "flags": few > 0,
        "bytes": [b"%d" % i for i in few],
    }


@pytest.mark.parametrize("kind", random_names(np.random.default_rng(0), 1))
@pytest.mark.parametrize("size", [1, 2, 3, 4, 20])
def test_names_of_each_kind(tmp_path, kind, size):
    rng = np.random.default_rng(size)
    table = {
        "r": random_names(rng, size)[kind],
        "c": random_names(rng, size)[kind],
        "v": rng.integers(1, 6, size) / 2,
        "left alone": np.arange(size),
    }
    pl.DataFrame(table).write_parquet(tmp_path / "t.parquet")
    got = check_alike(tmp_path / "t.parquet", **FIELDS, duplicates="last")
    assert isinstance(got, Observations)
    assert got.origin.layout == "long"


@pytest.mark.parametrize("duplicates", ["error", "mean", "last", "first"])
@pytest.mark.parametrize("seed", range(8))
def test_random_tables(tmp_path, seed, duplicates):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 25))
    values = rng.choice([rng.integers(1, 6, size), rng.standard_normal(size)]).tolist()
    for place in rng.integers(size, size=size // 4):
        values[place] = rng.choice([None, float("nan")])
    columns = {"user": rng.integers(0, 9, size), "item": rng.integers(0, 9, size)}
    path = tmp_path / "t.parquet"
    pl.DataFrame(columns | {"rating": values}, strict=False).write_parquet(path)
    check_alike(path, duplicates=duplicates)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 4, 5],
        [1.5, 2.0, 3.0, 0.1, 5.0],
        [0.1, 2.0, 3.0, 4.0, 5.0],
        [True, False, None, True, True],
        [1, 2, 3, 2**53 - 1, 5],
        [None] * 5,
        [None, None, None, None, 4.5],
        [1.0, 2.0, 3.0, float("inf"), float("-inf")],
    ],
)
def test_values_of_each_kind(tmp_path, values):
    pl.DataFrame({"r": [4, 3, 2, 1, 0], "c": [0, 1, 2, 3, 4], "v": values}).write_parquet(
        tmp_path / "t.parquet"
    )
    check_alike(tmp_path / "t.parquet", **FIELDS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"r": [1, 2, 3, 4, None], "c": [1] * 5, "v": [1] * 5}, "needs a row label"),
        ({"r": ["a"] * 4 + [None], "c": [1] * 5, "v": [1] * 5}, "needs a row label"),
        ({"r": [1, 2, 3, 4, 5], "c": [1.0, 2, 3, 4, float("nan")], "v": [1] * 5}, "a column label"),
        # The row that has no name comes after the column that has none, but is told first.
        ({"r": [1, 2, 3, 4, None], "c": [None, 2, 3, 4, 5], "v": [1] * 5}, "needs a row label"),
        (
            {"r": [None] * 5, "c": [1] * 5, "v": ["a"] * 5},
            "'v' must contain real numbers; got String",
        ),
        ({"r": [1] * 5, "c": [1] * 5, "v": [None] * 4 + ["x"]}, "'v' must contain real numbers"),
        ({"r": [[1], [2]], "c": [1, 2], "v": [1, 2]}, "row labels must be numbers, text or dates"),
        ({"r": [1] * 5, "c": [1, 2, 3, 4, 1], "v": [1] * 5}, "column 1: 1, 1"),
        ({"r": [], "c": [], "v": []}, "at least one value must be observed"),
        ({"r": [1], "c": [2], "w": [3]}, "no column 'v'; the columns are 'r', 'c', 'w'"),
    ],
)
def test_errors_are_the_same_as_for_data_frames(tmp_path, table, message):
    pl.DataFrame(table).write_parquet(tmp_path / "t.parquet")
    _, words = check_alike(tmp_path / "t.parquet", **FIELDS)
    assert message in words


def test_a_column_can_be_used_twice(tmp_path):
    pl.DataFrame({"r": [1, 2, 3, 4], "v": [1, 2, 3, 4]}).write_parquet(tmp_path / "t.parquet")
    got = check_alike(tmp_path / "t.parquet", row="r", column="r", value="v")
    assert got.shape == (4, 4)


def test_batches_can_cross_row_groups(tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.permutation(40)
    table = pa.table({"user": cells // 5, "item": cells % 5, "rating": rng.standard_normal(40)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=7)
    got = check_alike(tmp_path / "t.parquet")
    assert len(got) == 40


def test_names_with_points_and_brackets(tmp_path):
    path = tmp_path / "t[1].parquet"
    table = {"user.id": [1, 2, 3, 4], "item[a]": [1, 2, 3, 4], "^rating.*$": [1, 2, 3, 4]}
    pl.DataFrame({**table, "rating 2": [5, 6, 7, 8]}).write_parquet(path)
    got = check_alike(path, layout="long")
    assert got.origin[2:5] == tuple(table)
    assert got.values.tolist() == [1, 2, 3, 4]


def test_dates_keep_their_unit(tmp_path):
    days = [datetime.date(2020, 1, day) for day in (4, 2, 4, 1)]
    pl.DataFrame({"user": days, "item": [1, 2, 3, 4], "rating": [1, 2, 3, 4]}).write_parquet(
        tmp_path / "t.parquet"
    )
    assert check_alike(tmp_path / "t.parquet").row_labels.dtype == "M8[D]"


def test_columns_of_one_name_are_refused(tmp_path, library):
    arrays = [pa.array([1, 2])] * 5
    names = ["user", "item", "rating", "rest", "rest"]
    pq.write_table(pa.Table.from_arrays(arrays, names), tmp_path / "t.parquet")
    if library == "polars" and tuple(map(int, pl.__version__.split(".")[:2])) < (1, 42):
        pytest.skip(
            "without pyarrow: this polars takes the first column of a name, and says nothing"
        )
    with pytest.raises((InputError, ReadError), match=r"(?s)t\.parquet.*rest"):
        read(tmp_path / "t.parquet")


def test_a_file_damaged_within_is_a_read_error(tmp_path, library):
    path = tmp_path / "t.parquet"
    rng = np.random.default_rng(0)
    cells = rng.permutation(4000)
    table = pa.table({"user": cells // 50, "item": cells % 50, "rating": rng.standard_normal(4000)})
    pq.write_table(table, path, compression="gzip")
    whole = bytearray(path.read_bytes())
    whole[200:4000] = bytes(3800)
    path.write_bytes(whole)
    with pytest.raises(ReadError, match=r"t.parquet: not a complete Parquet file"):
        read(path)


def write_parts(folder, table, ends):
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        table[start:end].write_parquet(folder / f"part-{number}.parquet")


@pytest.mark.parametrize("ends", [[0, 20], [0, 7, 20], [0, 3, 3, 19, 20]])
def test_several_files_are_one_table(tmp_path, ends):
    rng = np.random.default_rng(0)
    cells = rng.permutation(20)
    table = pl.DataFrame({"user": cells // 4, "item": cells % 4, "rating": rng.normal(size=20)})
    write_parts(tmp_path, table, ends)
    table.write_parquet(tmp_path / "whole.parquet")
    whole, parts = read(tmp_path / "whole.parquet"), read(tmp_path / "part-*.parquet")
    assert_same(parts, whole)
    assert parts.origin == whole.origin


def test_several_files_that_are_not_one_table(tmp_path):
    with pytest.raises(ReadError, match=r"\*.parquet: no file matches the pattern"):
        read(tmp_path / "*.parquet")
    pl.DataFrame({"user": [1], "item": [1], "rating": [1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"user": [1], "item": [1], "score": [1]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ReadError, match=r"same columns; .*a.parquet has user, .* score\.$"):
        read(tmp_path / "*.parquet")
    pl.DataFrame({"user": [1], "item": [1], "rating": [2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="can have one value"):
        read(tmp_path / "*.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(ReadError, match=r"c.parquet: not a complete Parquet file"):
        read(tmp_path / "*.parquet")


def test_several_wide_files_are_refused(tmp_path):
    for name in "ab":
        pl.DataFrame({"who": [name], "x": [1], "y": [2]}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    with pytest.raises(InputError, match=r"2 files together .*'who', 'x', 'y'. Set row"):
        read(tmp_path / "*.parquet")


def test_a_name_with_a_star_is_a_file_if_there_is_one(tmp_path):
    table = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [1, 2]})
    table[:1].write_parquet(tmp_path / "*.parquet")
    table[1:].write_parquet(tmp_path / "b.parquet")
    assert read(tmp_path / "*.parquet").values.tolist() == [1.0]


def test_a_file_with_any_byte_damaged_is_read_or_refused(tmp_path, library):
    """In its pages, where polars panics, and in its description at the end."""
    table = pa.table({"r": ["Ana", "Ben", "Ana"], "c": ["x", "x", "y"], "v": [1.0, 2.0, None]})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="none")
    data = path.read_bytes()
    refused = 0
    for place in range(0, len(data), 4):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x81]) + data[place + 1 :])
        refused += isinstance(outcome(lambda: read(path, **FIELDS)), tuple)
    assert refused > 50


@pytest.mark.parametrize(("n_lines", "words"), [(2, "more"), (4, "fewer"), (2**62, "fewer")])
def test_a_file_that_declares_a_wrong_number_of_lines(
    n_lines, words, tmp_path, library, monkeypatch
):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"r": [1, 2, 3], "c": [1, 2, 3], "v": [1.0, 2.0, 3.0]}), path)
    name = opener(library)
    truly = getattr(parquet, name)
    monkeypatch.setattr(parquet, name, lambda path: _of_lines(truly(path), n_lines))
    error = InputError if n_lines > 10 else ReadError
    wanted = "TB of memory" if n_lines > 10 else f"column 'v' has {words}"
    with pytest.raises(error, match=wanted):
        read(path, **FIELDS)


def opener(library):
    return "_open_by_polars" if library == "polars" else "_open_by_pyarrow"


def _of_lines(table, n_lines):
    def batches(name):
        yield from table.batches(name)

    return table._replace(n_lines=n_lines, batches=batches)


def test_a_file_that_declares_a_negative_number_of_lines(tmp_path, library, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"r": [1], "c": [1], "v": [1.0]}), path)
    truly = getattr(parquet, opener(library))
    monkeypatch.setattr(parquet, opener(library), lambda path: _of_lines(truly(path), -5))
    with pytest.raises(ReadError, match="it declares -5 lines"):
        read(path, **FIELDS)


def test_a_table_that_is_larger_than_memory(tmp_path, library, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"r": [1] * 100, "c": range(100), "v": [1.0] * 100}), path)
    monkeypatch.setattr(memory, "_of_machine", lambda: 1000)
    with pytest.raises(InputError, match=r"the entries of 100 lines would take about 1.3 kB"):
        read(path, **FIELDS)
    with pytest.raises(InputError, match="a wide table of 100 rows and 3 columns would take"):
        read(path, layout="wide")


def test_polars_opens_no_file_if_pyarrow_can(tmp_path, library, monkeypatch):
    """It believes sizes in a forged page, and aborts the process when memory runs out."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"r": ["a", "b"], "x": [1.0, 2.0], "y": [3.0, None]}), path)

    def forbidden(*arguments, **options):
        raise AssertionError("polars has opened the file")

    if library != "polars":
        monkeypatch.setattr(pl, "read_parquet", forbidden)
        monkeypatch.setattr(pl, "scan_parquet", forbidden)
    for options in ({}, {"row": "r", "column": "x", "value": "y"}):
        data = read(path, **options)
        assert data.origin.backend.is_pyarrow() == (library == "pyarrow")
        assert data.origin.backend.is_polars() == (library != "pyarrow")
