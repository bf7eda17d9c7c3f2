"""Small clusters of real processes, tables for them, and how to do them harm."""

import json
import logging
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np

import fillrank as fr
from fillrank.cluster.sides import RemoteSide


@contextmanager
def small_cluster(n_workers):
    """A client of a scheduler and of workers with one thread each, on this machine."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            processes=True,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def with_workers(client, n):
    """The client, once its cluster has so many workers."""
    client.cluster.scale(n)
    while len(client.nthreads()) != n:
        time.sleep(0.1)
    return client


def small_table(n_rows=90, n_columns=60, random_state=0):
    """Some thousand entries; a few rows and columns are empty."""
    table, _ = fr.synthetic(
        n_rows, n_columns, rank=2, noise=0.3, missing=0.5, random_state=random_state
    )
    kept = ~np.isin(table.row_index, [0, n_rows // 2, n_rows - 1]) & (table.column_index != 3)
    return table[np.flatnonzero(kept)]


def assert_same(one, other):
    """Two models have the same bits."""
    assert one.n_sweeps_ == other.n_sweeps_
    for name, trace in one.history_.items():
        np.testing.assert_array_equal(trace, other.history_[name])
    draws, others = one.posterior_.draws, other.posterior_.draws
    assert len(draws) == len(others) > 0
    for draw, again in zip(draws, others, strict=True):
        np.testing.assert_array_equal(draw.left, again.left)
        np.testing.assert_array_equal(draw.right, again.right)
        assert draw.noise_variance == again.noise_variance
    assert one.rank_probabilities_ == other.rank_probabilities_


def harm_in_the_middle(monkeypatch, moments, harm):
    """Have ``harm()`` called whenever work has just been handed out for the so-and-so-manyth time."""
    gather, count = RemoteSide._gather, 0

    def harmed(self, futures):
        nonlocal count
        count += 1
        if count in moments:
            harm()
        return gather(self, futures)

    monkeypatch.setattr(RemoteSide, "_gather", harmed)


class Crew:
    """A scheduler and two workers with one thread each, as processes that can be harmed.

    Parameters
    ----------
    stack : ExitStack
        Whose end is that of all of them.
    folder : Path
        Where the scheduler says where it is.
    """

    def __init__(self, stack, folder):
        from distributed import Client

        self._stack = stack
        file = folder / "scheduler.json"
        options = {"host": "127.0.0.1", "dashboard": False, "scheduler_file": str(file)}
        self.scheduler = self._process("distributed.Scheduler", options)
        self.client = stack.enter_context(Client(scheduler_file=str(file), timeout=60))
        self.workers = []
        for _ in range(2):
            self.add_worker()
        self.client.wait_for_workers(2, timeout=60)

    def _process(self, kind, options, *arguments):
        spec = json.dumps({"cls": kind, "opts": options})
        command = [sys.executable, "-m", "dask", "spec", *arguments, "--spec", spec]
        running = self._stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        self._stack.callback(running.kill)
        return running

    def add_worker(self):
        """Start one more; it takes some seconds to come."""
        options, address = {"nthreads": 1}, self.client.scheduler.address
        self.workers.append(self._process("distributed.Worker", options, address))

    def replace(self, number):
        """Kill a worker at once, of two that are there, and start another."""
        self.client.wait_for_workers(2, timeout=120)
        self.workers.pop(number).kill()
        self.add_worker()
