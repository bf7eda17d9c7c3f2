"""``fillrank fit --dask``: the same model as on this machine, without its entries."""

import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fillrank as fr
from fillrank.cli.main import app

pytest.importorskip("distributed")

QUICK = ("--sweeps", "12", "--max-rank", "2")
FIELDS = ("--row", "who", "--column", "what", "--value", "how")


@pytest.fixture
def address(client):
    return client.scheduler.address


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with three files of a long table."""
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((30, 20)) < 0.5)
    table = pd.DataFrame({"who": i, "what": [f"c{k}" for k in j], "how": rng.normal(size=i.size)})
    (tmp_path / "notes").mkdir()
    for p in range(3):
        table[100 * p : 100 * (p + 1)].to_parquet(tmp_path / "notes" / f"{p}.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fillrank(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_the_same_model_as_on_this_machine(address, folder):
    there = fillrank("fit", "notes/*.parquet", "--dask", address, *FIELDS, *QUICK)
    assert there.exit_code == 0, there.output
    assert "2 workers with 2 threads" in there.output
    here = fillrank("fit", "notes/*.parquet", "-o", "here.fillrank", *FIELDS, *QUICK)
    assert here.exit_code == 0, here.output
    on_cluster, on_this = fr.load("notes.fillrank"), fr.load("here.fillrank")
    rows, columns = np.arange(30), "c5"
    np.testing.assert_array_equal(on_cluster.predict(rows, columns), on_this.predict(rows, columns))
    assert on_cluster.observations_.origin.row_field == "who"
    assert len(on_cluster.observations_) == 0


def test_ordered_levels_with_bpmf(address, folder):
    for file in (folder / "notes").iterdir():
        table = pd.read_parquet(file)
        table.assign(how=np.clip(np.rint(table["how"]), -2, 2)).to_parquet(file)
    options = (
        "--method",
        "BPMF",
        "--likelihood",
        "ordered",
        "--thresholds",
        "table",
        *FIELDS,
        *QUICK,
    )
    there = fillrank("fit", "notes/*.parquet", "--dask", address, *options)
    assert there.exit_code == 0, there.output
    here = fillrank("fit", "notes/*.parquet", "-o", "here.fillrank", *options)
    assert here.exit_code == 0, here.output
    on_cluster, on_this = fr.load("notes.fillrank"), fr.load("here.fillrank")
    rows = np.arange(30)
    levels = on_cluster.predict(rows, "c5")
    assert set(levels) <= {-2.0, -1.0, 0.0, 1.0, 2.0}
    np.testing.assert_array_equal(levels, on_this.predict(rows, "c5"))
    means = [model.predict(rows, "c5", statistic="mean") for model in (on_cluster, on_this)]
    np.testing.assert_array_equal(*means)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kind", "c1=count"), "Leave out --dask, or --kind and --bounds"),
        (("--bounds", "c1=0:9"), "Leave out --dask, or --kind and --bounds"),
        (("--likelihood", "ordered", *FIELDS), "ratings have 2 to 50 levels"),
        (("--duplicates", "mean"), "reads Parquet files as they are"),
        (("--format", "csv"), "reads Parquet files as they are"),
        ((), "must be long"),
    ],
)
def test_options_that_a_cluster_does_not_support(address, folder, options, words):
    ran = fillrank("fit", "notes/*.parquet", "--dask", address, *options, *QUICK)
    assert ran.exit_code != 0
    assert words in " ".join(ran.output.split())
    assert not (folder / "notes.fillrank").exists()


def test_other_methods(folder):
    ran = fillrank("fit", "notes/*.parquet", "--dask", "tcp://127.0.0.1:1", "--method", "M3F")
    assert ran.exit_code != 0
    assert "--dask is an option of GASR and BPMF; got it with --method M3F" in " ".join(
        ran.output.split()
    )


@pytest.mark.parametrize("wrong", ["nowhere", "tcp://127.0.0.1:1"])
def test_no_scheduler_at_the_address(folder, wrong):
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        ran = fillrank("fit", "notes/*.parquet", "--dask", wrong, *QUICK)
    assert ran.exit_code != 0
    assert "no Dask scheduler at" in " ".join(ran.output.split())


def test_without_dask(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = fillrank("fit", "notes/*.parquet", "--dask", "tcp://127.0.0.1:1", *QUICK)
    assert ran.exit_code != 0
    assert 'pip install "fillrank[dask]"' in " ".join(ran.output.split())
