"""An experiment as a list of independent tasks, each of which gives some numbers."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

Key = dict[str, Any]  # what JSON can hold


class Request(NamedTuple):
    """What was asked for: the small version, where the real data are, where results go, threads.

    ``output`` holds a folder for each experiment.
    """

    quick: bool
    data: Path | None
    output: Path
    n_threads: int | None


class Task(NamedTuple):
    """One run of one method on one data set; ``cost`` is about how many seconds it takes."""

    key: Key
    cost: float


class Result(NamedTuple):
    """What came of a task."""

    key: Key
    numbers: dict[str, Any]
    seconds: float


class Experiment(NamedTuple):
    """What to run and how to show it.

    ``run(key)`` gives a task's numbers. ``present(results, folder)`` writes ``files`` and gives what
    to tell the reader, line by line. ``settings`` say under what conditions results were made.
    """

    name: str
    settings: dict[str, Any]
    tasks: Sequence[Task]
    run: Callable[[Key], dict[str, Any]]
    present: Callable[[Sequence[Result], Path], list[str]]
    files: Sequence[str]


class Kept(Protocol):
    """Where results are kept."""

    def find(self, key: Key) -> Result | None: ...

    def add(self, result: Result) -> None: ...


class Step(NamedTuple):
    """How far an experiment is: the task that comes next, or None after the last."""

    done: int
    total: int
    task: Task | None
    seconds_left: float


def advance(experiment: Experiment, kept: Kept) -> Iterator[Step]:
    """Do the tasks that are not done yet; yield before each of them, and at the end."""
    total = len(experiment.tasks)
    for task in experiment.tasks:
        done, left = _split(experiment.tasks, kept)
        if kept.find(task.key) is not None:
            continue
        yield Step(len(done), total, task, seconds_left(done, left))
        started = perf_counter()
        numbers = experiment.run(task.key)
        kept.add(Result(task.key, numbers, perf_counter() - started))
    yield Step(total, total, None, 0.0)


def results_of(experiment: Experiment, kept: Kept) -> list[Result]:
    """The results of all tasks that are done, in the order of the tasks."""
    found = (kept.find(task.key) for task in experiment.tasks)
    return [result for result in found if result is not None]


def _split(tasks: Sequence[Task], kept: Kept) -> tuple[list[tuple[Task, Result]], list[Task]]:
    found = [(task, kept.find(task.key)) for task in tasks]
    done = [(task, result) for task, result in found if result is not None]
    return done, [task for task, result in found if result is None]


def seconds_left(done: Sequence[tuple[Task, Result]], left: Sequence[Task]) -> float:
    """An estimate: what is left, at the pace of what is done; before that, at the expected pace.

    Examples
    --------
    >>> short, long = Task({"q": 1}, 1.0), Task({"q": 2}, 4.0)
    >>> seconds_left([], [short, long]), seconds_left([(short, Result({"q": 1}, {}, 3.0))], [long])
    (5.0, 12.0)
    """
    expected = sum(task.cost for task, _ in done)
    measured = sum(result.seconds for _, result in done)
    pace = measured / expected if expected > 0 else 1.0
    return pace * sum(task.cost for task in left)
