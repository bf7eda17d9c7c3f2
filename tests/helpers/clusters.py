"""A small cluster of real processes, tables for it, and how to do it harm."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np

import fillrank as fr
from fillrank.cluster.remote_side import RemoteSide
from helpers.processes import end_when_late

# Seconds that any wait may take: a process comes in 2, but in 30 on a very busy machine.
LIMIT = 120.0
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # as Dask's own nannies have it
    # How long one tries to reach another that has just been killed.
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    # They are idle while other tests run, and would still use 10% of a processor.
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}


def wait_until(is_so, what):
    """Wait for a condition, but not for ever: then an error says what was waited for."""
    end = time.monotonic() + LIMIT
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {LIMIT:.0f} seconds for {what}")
        time.sleep(0.02)


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
        np.testing.assert_array_equal(draw.row_weights, again.row_weights)
        np.testing.assert_array_equal(draw.column_weights, again.column_weights)
        for part, same in zip(draw.noise, again.noise, strict=True):
            np.testing.assert_array_equal(part, same)
    sides = zip(one.posterior_.blocks, other.posterior_.blocks, strict=True)
    for block, again in (pair for side in sides for pair in zip(*side, strict=True)):
        assert block.name == again.name
        np.testing.assert_array_equal(block.values, again.values)
        np.testing.assert_array_equal(block.code.directions, again.code.directions)
    assert one.rank_probabilities_ == other.rank_probabilities_


def harm_in_the_middle(monkeypatch, moments, harm, of=(RemoteSide, "_gather")):
    """Have ``harm()`` called whenever work has just been handed out for the so-and-so-manyth time.

    Parameters
    ----------
    of : tuple
        The class and the name of its method that is called when work has been handed out.
    """
    wait, counting = getattr(*of), count(1)

    def harmed(self, *arguments):
        if next(counting) in moments:
            harm()
        return wait(self, *arguments)

    monkeypatch.setattr(*of, harmed)


class Process:
    """A process that another one has started, which waits for its end.

    Parameters
    ----------
    number : int
        Its process id.
    """

    def __init__(self, number):
        self._number = number

    def send_signal(self, number):
        """Send a signal, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self._number, number)

    def kill(self):
        """Kill it at once."""
        self.send_signal(signal.SIGKILL)

    def poll(self):
        """None while it runs, as ``subprocess.Popen`` has it."""
        try:
            os.kill(self._number, 0)
        except ProcessLookupError:
            return "ended"
        return None


class Crew:
    """A scheduler, and workers with one thread each, as processes that can be harmed.

    Parameters
    ----------
    stack : ExitStack
        Whose end is that of all of them.
    folder : Path
        Where the scheduler says where it is, and where all have their logs.

    Attributes
    ----------
    client : distributed.Client
    scheduler : Process
    workers : dict
        The processes of the workers by their names.
    """

    def __init__(self, stack, folder):
        from distributed import Client

        self._stack, self._folder, self._numbers = stack, folder, count(1)
        file = folder / "scheduler.json"
        options = {"host": "127.0.0.1", "dashboard": False, "scheduler_file": str(file)}
        self.workers = {}
        self._starter = self._start_starter()
        self.scheduler = self._process("scheduler", "distributed.Scheduler", options)
        # The client would wait for the file for ever.
        wait_until(lambda: self._runs("scheduler", self.scheduler) and file.exists(), "a scheduler")
        self.client = stack.enter_context(Client(scheduler_file=str(file), timeout=LIMIT))

    def _process(self, name, kind, options, *arguments):
        spec = json.dumps({"cls": kind, "opts": options})
        request = {"arguments": [*arguments, "--spec", spec], "log": str(self._log(name))}
        self._starter.stdin.write(json.dumps(request) + "\n")
        self._starter.stdin.flush()
        answer = self._starter.stdout.readline()
        self._runs("starter", self._starter)
        process = Process(int(answer))
        self._stack.callback(process.kill)
        return process

    def _start_starter(self):
        program = Path(__file__).with_name("dask_process.py")
        starter = self._stack.enter_context(
            subprocess.Popen(
                [sys.executable, program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stack.enter_context(self._log("starter").open("w")),
                text=True,
                env=os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        )
        self._stack.callback(end_when_late, starter, 10.0)
        return starter

    def _log(self, name):
        return self._folder / f"{name}.log"

    def _runs(self, name, process):
        """Whether a process runs: True, or an error with its last words."""
        if process.poll() is not None:
            said = self._log(name).read_text()[-2000:]
            raise RuntimeError(f"the {name} has ended:\n{said}")
        return True

    def with_workers(self, n):
        """The client, once there are so many workers, all of them alive."""
        self._runs("scheduler", self.scheduler)
        self.workers = {
            name: process for name, process in self.workers.items() if process.poll() is None
        }
        for name in list(self.workers)[n:]:
            self.kill(name)
        while len(self.workers) < n:
            self.add_worker()
        self.wait_for_all()
        return self.client

    def add_worker(self):
        """Start one more; it takes some seconds to come."""
        name = f"worker-{next(self._numbers)}"
        options, address = {"nthreads": 1, "name": name}, self.client.scheduler.address
        self.workers[name] = self._process(name, "distributed.Worker", options, address)

    def wait_for_all(self):
        """Wait until the scheduler knows those that were started and not killed, and no others."""

        def are_there():
            assert all(self._runs(*worker) for worker in self.workers.items())
            return set(self.addresses()) == set(self.workers)

        wait_until(are_there, f"{', '.join(self.workers)} to be the workers of the scheduler")

    def addresses(self):
        """The addresses of the workers that the scheduler knows, by their names."""
        return self.client.run_on_scheduler(_addresses_by_name)

    def kill(self, name):
        """Kill a worker at once."""
        self.workers.pop(name).kill()

    def kill_all(self):
        """Kill all workers at once."""
        for name in list(self.workers):
            self.kill(name)

    def replace(self, number):
        """Kill a worker at once, of those that are there, and start another."""
        self.wait_for_all()
        self.kill(list(self.workers)[number])
        self.add_worker()


def _addresses_by_name(dask_scheduler):
    return {worker.name: worker.address for worker in dask_scheduler.workers.values()}
