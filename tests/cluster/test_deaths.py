"""Workers that are killed change nothing; what hangs or is gone is named."""

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

# New processes for every death, and waiting for what does not come.
slow = pytest.mark.slow

SHORT = {"n_sweeps": 8, "burn_in": 4, "n_chains": 1, "random_state": 3, "progress": False}


@pytest.fixture(autouse=True)
def two_workers(crew):
    crew.with_workers(2)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(monitor, "TIMEOUT", 8.0)


def killed(monkeypatch, crew, n_kills, settings, seed):
    """How many kills there were in a fit, after which its bits were those of one machine."""
    rng = np.random.default_rng(seed)
    # The start takes more than 20 pieces of work, and so do the sweeps.
    moments = set((1 + rng.choice(40, size=n_kills, replace=False)).tolist())
    which = []

    def kill():
        which.append(rng.integers(2))
        crew.replace(which[-1])

    harm_in_the_middle(monkeypatch, moments, kill)
    there = fr.GASR(**settings).fit(small_table(), client=crew.client)
    monkeypatch.undo()
    assert_same(fr.GASR(**settings).fit(small_table()), there)
    return len(which)


def test_workers_that_are_killed_change_nothing(monkeypatch, crew):
    assert killed(monkeypatch, crew, 3, SHORT, seed=1) == 3


@slow
def test_twenty_kills_change_nothing(monkeypatch, crew):
    settings = SHORT | {"n_chains": 2}
    kills = [killed(monkeypatch, crew, 5, settings, seed) for seed in range(2, 6)]
    assert kills == [5, 5, 5, 5]


@slow
def test_parts_of_files_are_made_again_from_the_files(monkeypatch, crew, tmp_path):
    import pandas as pd

    table = small_table()
    long = pd.DataFrame({"row": table.rows, "column": table.columns, "value": table.values})
    for number, start in enumerate(range(0, len(long), 1000)):
        long.iloc[start : start + 1000].to_parquet(tmp_path / f"{number}.parquet")
    harm_in_the_middle(monkeypatch, {10}, lambda: crew.replace(0))
    there = fr.GASR(**SHORT).fit(str(tmp_path / "*.parquet"), client=crew.client)
    assert_same(fr.GASR(**SHORT).fit(long), there)


@slow
def test_all_workers_die_and_others_come(monkeypatch, crew):
    def kill_all():
        crew.kill_all()
        crew.add_worker()

    harm_in_the_middle(monkeypatch, {12}, kill_all)
    there = fr.GASR(**SHORT).fit(small_table(), client=crew.client)
    assert_same(fr.GASR(**SHORT).fit(small_table()), there)


@slow
def test_all_workers_die_before_they_have_their_parts(monkeypatch, crew):
    settle = Assignment.wait

    def settle_when_all_are_dead(self, parts):
        crew.kill_all()
        settle(self, parts)
        crew.add_worker()

    monkeypatch.setattr(Assignment, "wait", settle_when_all_are_dead)
    there = fr.GASR(**SHORT).fit(small_table(), client=crew.client)
    assert_same(fr.GASR(**SHORT).fit(small_table()), there)


@slow
def test_a_frozen_worker_is_named(monkeypatch, crew, impatient):
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
def test_a_lost_scheduler_is_named(monkeypatch, tmp_path, impatient):
    with ExitStack() as stack:
        own = Crew(stack, tmp_path)
        own.with_workers(2)
        harm_in_the_middle(monkeypatch, {3}, own.scheduler.kill)
        with pytest.raises(ClusterError, match="scheduler"):
            fr.GASR(**SHORT).fit(small_table(), client=own.client)


@slow
def test_without_workers_there_is_an_error_and_no_waiting_for_ever(monkeypatch, crew, impatient):
    harm_in_the_middle(monkeypatch, {3}, crew.kill_all)
    with pytest.raises(ClusterError, match="no worker is left"):
        fr.GASR(**SHORT).fit(small_table(), client=crew.client)
