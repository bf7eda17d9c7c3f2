"""Files that workers write have the predictions and recommendations of the model."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, OutputError, UnknownNameError

pytest.importorskip("distributed")

import dask.dataframe as dd

from fillrank.cluster import jobs
from fillrank.cluster.jobs import write_predictions, write_recommendations
from helpers.clusters import LIMIT, wait_until


@pytest.fixture(scope="module")
def table():
    """Ratings of 20 books by 30 readers, with missing values."""
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((30, 20)) < 0.5)
    return pd.DataFrame(
        {"reader": [f"r{k}" for k in i], "book": 100 + j, "score": rng.normal(size=i.size)}
    )


@pytest.fixture(scope="module")
def model(table):
    with pytest.warns(fr.ConvergenceWarning):
        return fr.GASR(n_sweeps=12, max_rank=2, random_state=0, progress=False).fit(table)


def read_all(paths):
    """All files as one table."""
    return pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)


def make_pairs(n=100):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {"book": 100 + rng.integers(0, 20, n), "reader": [f"r{k}" for k in rng.integers(0, 30, n)]}
    )


def check_predictions(found, model, pairs, level=None):
    rows, columns = pairs["reader"].to_numpy(), pairs["book"].to_numpy()
    assert found["reader"].tolist() == rows.tolist()
    assert found["book"].tolist() == columns.tolist()
    np.testing.assert_array_equal(found["score"], model.predict(rows, columns))
    assert list(found.columns[3:]) == ([] if level is None else ["lower", "upper"])
    if level is not None:
        low, high = model.predict_interval(rows, columns, level, kind="observation")
        np.testing.assert_array_equal(found["lower"], low)
        np.testing.assert_array_equal(found["upper"], high)


@pytest.mark.parametrize("level", [None, 0.8])
def test_predictions_of_a_data_frame(client, model, tmp_path, level):
    pairs = make_pairs()
    paths = write_predictions(
        model, dd.from_pandas(pairs, npartitions=3), tmp_path / "new", client, level=level
    )
    assert [path.name for path in paths] == [f"part-0000{p}.parquet" for p in range(3)]
    check_predictions(read_all(paths), model, pairs, level)
    assert sorted((tmp_path / "new").iterdir()) == paths  # and nothing else


def test_predictions_of_files_and_in_blocks(client, model, tmp_path):
    pairs = make_pairs()
    for p in range(2):
        pairs[50 * p : 50 * (p + 1)].to_parquet(tmp_path / f"{p}.parquet", index=False)
    client.run(_set_block, 7)
    try:
        paths = write_predictions(model, str(tmp_path / "*.parquet"), tmp_path / "out", client)
    finally:
        client.run(_set_block, jobs._BLOCK_LINES)
    check_predictions(read_all(paths), model, pairs)


def _set_block(size):
    jobs._BLOCK_LINES = size


def test_a_partition_without_pairs(client, model, tmp_path):
    pairs = make_pairs()
    pieces = dd.from_map(lambda piece: piece, [pairs[:0], pairs], meta=pairs[:0])
    (path,) = write_predictions(model, pieces, tmp_path, client)
    assert path.name == "part-00001.parquet"
    check_predictions(pd.read_parquet(path), model, pairs)


def test_columns_of_pairs(client, model, tmp_path):
    pairs = dd.from_pandas(make_pairs(), npartitions=1)
    renamed = pairs.rename(columns={"reader": "a", "book": "b"})
    paths = write_predictions(model, renamed, tmp_path / "1", client, row="a", column="b")
    check_predictions(read_all(paths), model, make_pairs())
    renamed = pairs.rename(columns={"reader": "user", "book": "item"})
    check_predictions(
        read_all(write_predictions(model, renamed, tmp_path / "2", client)), model, make_pairs()
    )
    with pytest.raises(InputError, match="Specify which have the labels"):
        write_predictions(model, pairs[["book"]], tmp_path / "3", client)
    with pytest.raises(InputError, match="name both columns"):
        write_predictions(model, pairs, tmp_path / "3", client, row="reader")
    with pytest.raises(UnknownNameError, match="no column 'who'"):
        write_predictions(model, pairs, tmp_path / "3", client, row="who", column="book")
    assert not (tmp_path / "3").exists()


def test_an_unknown_label(client, model, tmp_path):
    pairs = make_pairs()
    pairs.loc[70, "reader"] = "nobody"
    with pytest.raises(UnknownNameError, match="'nobody'"):
        write_predictions(model, dd.from_pandas(pairs, npartitions=2), tmp_path, client)


@pytest.mark.parametrize("by", ["mean", "cautious"])
def test_recommendations_without_observed_cells(client, model, tmp_path, by):
    paths = write_recommendations(model, tmp_path, client, n=3, by=by)
    assert len(paths) == 2  # one for each worker
    pd.testing.assert_frame_equal(read_all(paths), model.recommend(n=3, by=by), check_dtype=False)


def test_recommendations_in_many_blocks(client, model, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_BLOCK_LINES", 20)
    paths = write_recommendations(model, tmp_path, client, n=4, leave_out=None)
    assert len(paths) == 6
    expected = model.recommend(n=4, leave_out=None)
    pd.testing.assert_frame_equal(read_all(paths), expected, check_dtype=False)


@pytest.mark.parametrize("as_files", [False, True])
def test_recommendations_of_a_model_without_its_entries(client, table, model, tmp_path, as_files):
    model.save(tmp_path / "bare.fillrank")
    bare = fr.load(tmp_path / "bare.fillrank")
    with pytest.raises(NotSupportedError, match="leave_out=ratings"):
        write_recommendations(bare, tmp_path / "out", client)
    missing = pd.DataFrame({"reader": ["r0"], "book": [119], "score": [np.nan]})
    named = pd.concat([table, missing]).rename(
        columns={"reader": "user", "book": "item", "score": "rating"}
    )
    seen = dd.from_pandas(named, npartitions=3, sort=False)
    if as_files:
        seen.to_parquet(tmp_path / "seen", write_index=False)
        seen = tmp_path / "seen"
    paths = write_recommendations(bare, tmp_path / "out", client, n=5, leave_out=seen)
    pd.testing.assert_frame_equal(read_all(paths), model.recommend(n=5), check_dtype=False)


def test_rows_without_observed_cells(client, table, model, tmp_path):
    first = table[table["reader"] == "r0"].rename(columns={"reader": "user", "book": "item"})
    seen = dd.from_pandas(first, npartitions=1)
    paths = write_recommendations(model, tmp_path, client, n=20, leave_out=seen)
    counts = read_all(paths).groupby("reader").size()
    assert counts["r0"] == 20 - len(first)
    assert (counts.drop("r0") == 20).all()


def test_earlier_files_are_not_replaced(client, model, tmp_path):
    write_recommendations(model, tmp_path, client)
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    for write in (
        lambda: write_recommendations(model, tmp_path, client, n=2),
        lambda: write_predictions(
            model, dd.from_pandas(make_pairs(), npartitions=1), tmp_path, client
        ),
    ):
        with pytest.raises(OutputError, match="already has 2 files"):
            write()
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before
    with pytest.raises(OutputError, match="is not a folder"):
        write_recommendations(model, tmp_path / "part-00000.parquet", client)


def test_pairs_that_are_not_in_partitions(client, model, tmp_path):
    with pytest.raises(InputError, match="from_pandas"):
        write_predictions(model, make_pairs(), tmp_path, client)


@pytest.mark.parametrize("n_files", [0, 1])
def test_a_worker_dies_during_the_job(crew, client, model, tmp_path, n_files):
    def kill():
        wait_until(lambda: len(list(tmp_path.glob("part-*"))) >= n_files, f"{n_files} files")
        crew.replace(0)

    pairs = dd.from_pandas(make_pairs(400), npartitions=20)
    with ThreadPoolExecutor(1) as aside:
        killing = aside.submit(kill)
        paths = write_predictions(model, pairs, tmp_path, client, level=0.5)
        killing.result(LIMIT)
    check_predictions(read_all(paths), model, make_pairs(400), 0.5)
