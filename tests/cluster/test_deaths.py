"""Workers that are killed change nothing; what hangs or is gone is named."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import ClusterError

pytest.importorskip("distributed")

from clusters import assert_same, harm_in_the_middle, signal_a_worker, small_cluster, small_table
from distributed import Client

from fillrank.cluster import watch

# New processes for every death: a minute or two, and deadlines that a busy machine may miss.
pytestmark = pytest.mark.slow

SHORT = {"n_sweeps": 8, "burn_in": 4, "random_state": 3, "progress": False}


@pytest.fixture(scope="module")
def client():
    with small_cluster(2) as client:
        yield client


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 3.0)


def killed(monkeypatch, client, n_kills, settings, seed):
    """How many kills there were in a fit, after which its bits were those of one machine."""
    rng = np.random.default_rng(seed)
    # The start takes more than 20 pieces of work, and so do the sweeps.
    moments = set((1 + rng.choice(40, size=n_kills, replace=False)).tolist())
    pids = []
    harm_in_the_middle(monkeypatch, moments, lambda: pids.append(signal_a_worker(client)))
    there = fr.GASR(**settings).fit(small_table(), client=client)
    monkeypatch.undo()
    assert_same(fr.GASR(**settings).fit(small_table()), there)
    return len(pids)


def test_workers_that_are_killed_change_nothing(monkeypatch, client):
    assert killed(monkeypatch, client, 3, SHORT, seed=1) == 3


def test_twenty_kills_change_nothing(monkeypatch, client):
    settings = SHORT | {"n_chains": 2}
    kills = [killed(monkeypatch, client, 5, settings, seed) for seed in range(2, 6)]
    assert kills == [5, 5, 5, 5]


def test_parts_of_files_are_made_again_from_the_files(monkeypatch, client, tmp_path):
    import pandas as pd

    table = small_table()
    long = pd.DataFrame({"row": table.rows, "column": table.columns, "value": table.values})
    for number, start in enumerate(range(0, len(long), 1000)):
        long.iloc[start : start + 1000].to_parquet(tmp_path / f"{number}.parquet")
    harm_in_the_middle(monkeypatch, {10}, lambda: signal_a_worker(client))
    there = fr.GASR(**SHORT).fit(str(tmp_path / "*.parquet"), client=client)
    assert_same(fr.GASR(**SHORT).fit(long), there)


def test_a_frozen_worker_is_named(monkeypatch, client, impatient):
    frozen = []

    def freeze():
        frozen.append(signal_a_worker(client, signal.SIGSTOP))

    harm_in_the_middle(monkeypatch, {3}, freeze)
    with pytest.raises(ClusterError, match="no sign of life"):
        fr.GASR(**SHORT).fit(small_table(), client=client)
    os.kill(frozen[0], signal.SIGKILL)
    monkeypatch.undo()
    here, there = fr.GASR(**SHORT), fr.GASR(**SHORT)
    assert_same(here.fit(small_table()), there.fit(small_table(), client=client))


def process(stack, *arguments, **options):
    """A process of Dask, which does not outlive the test."""
    spec = json.dumps(options)
    command = [sys.executable, "-m", "dask", "spec", *arguments, "--spec", spec]
    running = stack.enter_context(
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    )
    stack.callback(running.kill)
    return running


def test_a_lost_scheduler_is_named(monkeypatch, impatient, tmp_path):
    file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        options = {"host": "127.0.0.1", "dashboard": False, "scheduler_file": str(file)}
        scheduler = process(stack, cls="distributed.Scheduler", opts=options)
        client = stack.enter_context(Client(scheduler_file=str(file), timeout=30))
        address = client.scheduler.address
        process(stack, address, cls="distributed.Worker", opts={"nthreads": 1})
        client.wait_for_workers(1)
        harm_in_the_middle(monkeypatch, {3}, scheduler.kill)
        with pytest.raises(ClusterError, match="scheduler"):
            fr.GASR(**SHORT).fit(small_table(), client=client)


def test_without_workers_there_is_an_error_and_no_waiting_for_ever(
    monkeypatch, impatient, tmp_path
):
    file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        options = {"host": "127.0.0.1", "dashboard": False, "scheduler_file": str(file)}
        process(stack, cls="distributed.Scheduler", opts=options)
        client = stack.enter_context(Client(scheduler_file=str(file), timeout=30))
        worker = process(
            stack, client.scheduler.address, cls="distributed.Worker", opts={"nthreads": 1}
        )
        client.wait_for_workers(1)
        harm_in_the_middle(monkeypatch, {3}, worker.kill)
        with pytest.raises(ClusterError, match="no worker is left"):
            fr.GASR(**SHORT).fit(small_table(), client=client)
