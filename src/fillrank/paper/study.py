"""An experiment as a list of independent tasks, and the file that stores their results.

The file makes it possible to stop an experiment and resume it. Its first line of JSON has the name and
the settings of the experiment. Each further line has the result of one task, and is on disk before the
next task starts.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from fillrank import __version__
from fillrank.errors import OutputError

RESULTS_FILE = "results.jsonl"
_OTHER_FOLDER = "Choose another folder with --output"

Key = dict[str, Any]  # values that JSON can represent


class Request(NamedTuple):
    """The options of a run: small version or not, folder of the real data, output folder, threads.

    ``output`` contains one folder for each experiment.
    """

    quick: bool
    data: Path | None
    output: Path
    n_threads: int | None


class Task(NamedTuple):
    """One run of one method on one data set; ``cost`` is its approximate time in seconds."""

    key: Key
    cost: float


class Result(NamedTuple):
    """The numbers that a task returned, and the time it took."""

    key: Key
    numbers: dict[str, Any]
    seconds: float


class Experiment(NamedTuple):
    """What to run and how to present the results.

    ``run(key)`` returns the numbers of a task. ``present(results, folder)`` writes ``files`` and
    returns the lines to print. ``settings`` are the conditions under which results were computed.
    """

    name: str
    settings: dict[str, Any]
    tasks: Sequence[Task]
    run: Callable[[Key], dict[str, Any]]
    present: Callable[[Sequence[Result], Path], list[str]]
    files: Sequence[str]


class Record:
    """The results of one experiment, in memory and in its file."""

    def __init__(self, path: Path, results: dict[str, Result]):
        self.path = path
        self._results = results

    def find(self, key: Key) -> Result | None:
        """Return the result of a task, or None if the task is not done."""
        return self._results.get(_name(key))

    def add(self, result: Result) -> None:
        """Store a result. It is on disk when this returns."""
        line = _line({"task": result.key, "seconds": result.seconds, "numbers": result.numbers})
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._results[_name(result.key)] = result


class Step(NamedTuple):
    """The progress of an experiment; ``task`` is the next one, or None after the last."""

    done: int
    total: int
    task: Task | None
    seconds_left: float


def advance(experiment: Experiment, record: Record) -> Iterator[Step]:
    """Run the tasks that are not done yet; yield before each of them, and at the end."""
    total = len(experiment.tasks)
    for task in experiment.tasks:
        done, left = _split(experiment.tasks, record)
        if record.find(task.key) is not None:
            continue
        yield Step(len(done), total, task, seconds_left(done, left))
        started = perf_counter()
        numbers = experiment.run(task.key)
        record.add(Result(task.key, numbers, perf_counter() - started))
    yield Step(total, total, None, 0.0)


def results_of(experiment: Experiment, record: Record) -> list[Result]:
    """Return the results of all completed tasks, in the order of the tasks."""
    found = (record.find(task.key) for task in experiment.tasks)
    return [result for result in found if result is not None]


def _split(tasks: Sequence[Task], record: Record) -> tuple[list[tuple[Task, Result]], list[Task]]:
    found = [(task, record.find(task.key)) for task in tasks]
    done = [(task, result) for task, result in found if result is not None]
    return done, [task for task, result in found if result is None]


def seconds_left(done: Sequence[tuple[Task, Result]], left: Sequence[Task]) -> float:
    """Estimate the remaining time from the pace of completed tasks, or from the expected pace.

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


class _Contents(NamedTuple):
    """The parsed contents of a results file, and the number of bytes in its complete lines."""

    header: dict[str, Any]
    results: dict[str, Result]
    n_bytes: int


def open_record(folder: Path, experiment: Experiment, fresh: bool) -> Record:
    """Open the results in a folder to resume an experiment, or start a new file.

    Parameters
    ----------
    folder : Path
        An existing folder.
    experiment : Experiment
    fresh : bool
        Discard earlier results of the experiment, whatever their settings.

    Raises
    ------
    OutputError
        The folder has results of another experiment or of other settings, or a file that is not a
        results file.
    """
    path = folder / RESULTS_FILE
    header = header_of(experiment)
    contents = _read(path) if path.exists() and path.stat().st_size > 0 else None
    if contents is None or fresh:
        path.write_bytes(_line(header))
        return Record(path, {})
    if contents.header != header:
        raise OutputError(
            f"{path} has results of other settings: {_differences(contents.header, header)}. "
            f"{_OTHER_FOLDER}, or start over with --fresh."
        )
    # An incomplete last line is from a run that was stopped while writing; its task runs again.
    os.truncate(path, contents.n_bytes)
    return Record(path, contents.results)


def read_results(folder: Path, experiment: Experiment) -> list[Result]:
    """Return the results of an experiment in a folder; none if their settings differ."""
    path = folder / RESULTS_FILE
    if not path.is_file():
        return []
    try:
        contents = _read(path)
    except OutputError:
        return []
    matches = contents.header == header_of(experiment)
    return list(contents.results.values()) if matches else []


def header_of(experiment: Experiment) -> dict[str, Any]:
    """Return what results depend on in addition to their task."""
    header = {
        "experiment": experiment.name,
        "version": __version__,
        "settings": experiment.settings,
    }
    as_read: dict[str, Any] = json.loads(json.dumps(header))  # tuples become lists
    return as_read


def _name(key: Key) -> str:
    return json.dumps(key, sort_keys=True)


def _line(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _read(path: Path) -> _Contents:
    text = path.read_bytes()
    n_bytes = text.rfind(b"\n") + 1
    try:
        first, *rest = (json.loads(line) for line in text[:n_bytes].splitlines())
        header = {name: first[name] for name in ("experiment", "version", "settings")}
        results = [Result(line["task"], line["numbers"], line["seconds"]) for line in rest]
    except (ValueError, TypeError, KeyError) as error:
        raise OutputError(
            f"{path} is not a results file of `fillrank reproduce`. {_OTHER_FOLDER}, or move it away."
        ) from error
    return _Contents(header, {_name(result.key): result for result in results}, n_bytes)


def _differences(was: dict[str, Any], now: dict[str, Any]) -> str:
    """Describe how two headers differ."""
    old, new = ({**h["settings"], **h, "settings": None} for h in (was, now))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return "; ".join(f"{name} was {old.get(name)}, is now {new.get(name)}" for name in names)
