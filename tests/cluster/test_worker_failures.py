"""Killed workers do not change the result; the error names what does not respond or is lost."""

import signal
from contextlib import ExitStack

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import ClusterError

pytest.importorskip("distributed")

from fillrank.cluster import monitor
from fillrank.cluster.partitions import Assignment
from helpers.clusters import Crew, assert_same, harm_in_the_middle, small_table

# They start a process for every kill, or wait for timeouts.
slow = pytest.mark.slow

SHORT = {"n_sweeps": 8, "burn_in": 4, "n_chains": 1, "random_state": 3, "progress": False}


@pytest.fixture(autouse=True)
def two_workers(crew):
    crew.with_workers(2)


@pytest.fixture
def short_timeout(monkeypatch):
    monkeypatch.setattr(monitor, "TIMEOUT", 8.0)


def fit_with_kills(monkeypatch, crew, n_kills, settings, seed):
    """Kill workers during a fit, check that its bits are those of one machine; the number of kills."""
    rng = np.random.default_rng(seed)
    # The missing values wait for tasks 22 times, the start 40 times, and the sweeps 16 times.
    moments = set((1 + rng.choice(78, size=n_kills, replace=False)).tolist())
    killed = []

    def kill():
        killed.append(rng.integers(2))
        crew.replace(killed[-1])

    harm_in_the_middle(monkeypatch, moments, kill)
    there = fr.GASR(**settings).fit(small_table(), client=crew.client)
    monkeypatch.undo()
    assert_same(fr.GASR(**settings).fit(small_table()), there)
    return len(killed)


def test_killed_workers_do_not_change_the_result(monkeypatch, crew):
    assert fit_with_kills(monkeypatch, crew, 3, SHORT, seed=1) == 3


@slow
def test_twenty_kills_do_not_change_the_result(monkeypatch, crew):
    settings = SHORT | {"n_chains": 2}
    kills = [fit_with_kills(monkeypatch, crew, 5, settings, seed) for seed in range(2, 6)]
    assert kills == [5, 5, 5, 5]


@slow
def test_lost_partitions_are_computed_again_from_the_files(monkeypatch, crew, tmp_path):
    import pandas as pd

    table = small_table()
    long = pd.DataFrame({"row": table.rows, "column": table.columns, "value": table.values})
    for number, start in enumerate(range(0, len(long), 1000)):
        long.iloc[start : start + 1000].to_parquet(tmp_path / f"{number}.parquet")
    harm_in_the_middle(monkeypatch, {10}, lambda: crew.replace(0))
    there = fr.GASR(**SHORT).fit(str(tmp_path / "*.parquet"), client=crew.client)
    assert_same(fr.GASR(**SHORT).fit(long), there)


@slow
def test_all_workers_die_and_another_connects(monkeypatch, crew):
    def kill_all():
        crew.kill_all()
        crew.add_worker()

    harm_in_the_middle(monkeypatch, {12}, kill_all)
    there = fr.GASR(**SHORT).fit(small_table(), client=crew.client)
    assert_same(fr.GASR(**SHORT).fit(small_table()), there)


@slow
def test_all_workers_die_before_partitions_are_computed(monkeypatch, crew):
    wait = Assignment.wait

    def kill_all_and_wait(self, partitions):
        crew.kill_all()
        wait(self, partitions)
        crew.add_worker()

    monkeypatch.setattr(Assignment, "wait", kill_all_and_wait)
    there = fr.GASR(**SHORT).fit(small_table(), client=crew.client)
    assert_same(fr.GASR(**SHORT).fit(small_table()), there)


@slow
def test_error_for_a_frozen_worker(monkeypatch, crew, short_timeout):
    def freeze():
        next(iter(crew.workers.values())).send_signal(signal.SIGSTOP)

    harm_in_the_middle(monkeypatch, {3}, freeze)
    with pytest.raises(ClusterError, match="has not responded"):
        fr.GASR(**SHORT).fit(small_table(), client=crew.client)
    crew.replace(0)
    monkeypatch.undo()
    here, there = fr.GASR(**SHORT), fr.GASR(**SHORT)
    assert_same(here.fit(small_table()), there.fit(small_table(), client=crew.client))


@slow
def test_error_for_a_lost_scheduler(monkeypatch, tmp_path, short_timeout):
    with ExitStack() as stack:
        own = Crew(stack, tmp_path)
        own.with_workers(2)
        harm_in_the_middle(monkeypatch, {3}, own.scheduler.kill)
        with pytest.raises(ClusterError, match="scheduler"):
            fr.GASR(**SHORT).fit(small_table(), client=own.client)


@slow
def test_error_without_workers(monkeypatch, crew, short_timeout):
    harm_in_the_middle(monkeypatch, {3}, crew.kill_all)
    with pytest.raises(ClusterError, match="no worker is left"):
        fr.GASR(**SHORT).fit(small_table(), client=crew.client)
