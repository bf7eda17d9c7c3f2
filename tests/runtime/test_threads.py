"""Threads that share out rows: every row once, whoever takes it, and no waiting for one's own thread."""

import threading

import numpy as np
import pytest

from fillrank.runtime.threads import _SMALLEST_SHARE, Workers

THREADS = pytest.mark.parametrize("n_threads", [1, 2, 3, 7])


@THREADS
@pytest.mark.parametrize(
    "counts",
    [
        np.full(300, 100),
        np.r_[0, 10 * _SMALLEST_SHARE, np.zeros(50, dtype=int)],  # one row has all entries
        np.ones(_SMALLEST_SHARE - 1, dtype=int),
        np.arange(2000),
    ],
    ids=["even", "one long row", "few", "ever longer"],
)
def test_ranges_cover_all_rows_once(n_threads, counts):
    pointers = np.r_[0, np.cumsum(counts)]
    taken = np.zeros(counts.size, dtype=int)
    ranges = []

    def work(start, stop):
        assert start < stop
        taken[start:stop] += 1
        ranges.append((start, stop))

    with Workers(n_threads) as workers:
        workers.for_rows(work, pointers)
    np.testing.assert_array_equal(taken, 1)
    if n_threads == 1 or pointers[-1] < _SMALLEST_SHARE:
        assert len(ranges) == 1


def test_the_calling_thread_works_too():
    """Each of two threads waits in its first range until the other is in one."""
    meeting = threading.Barrier(2)
    names = set()

    def work(start, stop):
        name = threading.current_thread().name
        if name not in names:
            names.add(name)
            meeting.wait(60)

    with Workers(2) as workers:
        workers.for_rows(work, np.arange(0, 100_000, 100))
    assert len(names) == 2
    assert threading.current_thread().name in names


@THREADS
def test_an_error_in_any_range_is_raised(n_threads):
    def work(start, stop):
        if stop == 1000:
            raise ValueError("the last range")

    with Workers(n_threads) as workers, pytest.raises(ValueError, match="the last range"):
        workers.for_rows(work, 100 * np.arange(1001))


@THREADS
def test_nested_work_does_not_deadlock(n_threads):
    with Workers(n_threads) as workers:

        def all_rows():
            taken = np.zeros(1000, dtype=int)

            def work(start, stop):
                taken[start:stop] += 1

            workers.for_rows(work, 100 * np.arange(1001))
            return set(taken)

        def twice():
            return workers.both(all_rows, all_rows, _SMALLEST_SHARE)

        assert workers.both(twice, all_rows, _SMALLEST_SHARE) == (({1}, {1}), {1})
