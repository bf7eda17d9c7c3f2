"""The file that keeps results as they come, so that an experiment can be stopped and taken up again.

A line of JSON says what experiment this is and under what settings; then there is one for each task
that is done, on the disk before the next task begins.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from fillrank import __version__
from fillrank.errors import OutputError
from fillrank.paper.study import Experiment, Key, Result

NAME = "results.jsonl"
_ELSEWHERE = "Name another folder by --output"


class Record:
    """The results of one experiment, in memory and in its file."""

    def __init__(self, path: Path, results: dict[str, Result]):
        self.path = path
        self._results = results

    def find(self, key: Key) -> Result | None:
        """The result of a task, if it is done."""
        return self._results.get(_name(key))

    def add(self, result: Result) -> None:
        """Keep a result: it is on the disk when this returns."""
        line = _line({"task": result.key, "seconds": result.seconds, "numbers": result.numbers})
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._results[_name(result.key)] = result


class _Contents(NamedTuple):
    """What a file of results holds, and how many of its bytes are whole lines."""

    header: dict[str, Any]
    results: dict[str, Result]
    whole: int


def open_record(folder: Path, experiment: Experiment, fresh: bool) -> Record:
    """Take up the results in a folder, or begin anew.

    Parameters
    ----------
    folder : Path
        It exists.
    experiment : Experiment
    fresh : bool
        Leave earlier results of the experiment out, whatever their settings.

    Raises
    ------
    OutputError
        The folder has results of another experiment or other settings, or a file that is none of ours.
    """
    path = folder / NAME
    header = header_of(experiment)
    contents = _read(path) if path.exists() and path.stat().st_size > 0 else None
    if contents is None or fresh:
        path.write_bytes(_line(header))
        return Record(path, {})
    if contents.header != header:
        raise OutputError(
            f"{path} was made differently: {_differences(contents.header, header)}. {_ELSEWHERE}, "
            "or begin anew by --fresh."
        )
    os.truncate(path, contents.whole)  # what was cut off when the machine stopped is done again
    return Record(path, contents.results)


def read_results(folder: Path, experiment: Experiment) -> list[Result]:
    """The results that another experiment has left in a folder: none unless made as it would be."""
    path = folder / NAME
    if not path.is_file():
        return []
    try:
        contents = _read(path)
    except OutputError:
        return []
    matches = contents.header == header_of(experiment)
    return list(contents.results.values()) if matches else []


def header_of(experiment: Experiment) -> dict[str, Any]:
    """What results depend on beside their task."""
    header = {
        "experiment": experiment.name,
        "version": __version__,
        "settings": experiment.settings,
    }
    return json.loads(json.dumps(header))  # as it will be read: lists for tuples


def _name(key: Key) -> str:
    return json.dumps(key, sort_keys=True)


def _line(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _read(path: Path) -> _Contents:
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    try:
        first, *rest = (json.loads(line) for line in text[:whole].splitlines())
        header = {name: first[name] for name in ("experiment", "version", "settings")}
        results = [Result(line["task"], line["numbers"], line["seconds"]) for line in rest]
    except (ValueError, TypeError, KeyError) as error:
        raise OutputError(
            f"{path} is not a file of results of `fillrank reproduce`. {_ELSEWHERE}, or move it away."
        ) from error
    return _Contents(header, {_name(result.key): result for result in results}, whole)


def _differences(was: dict[str, Any], now: dict[str, Any]) -> str:
    """Where two headers differ, in words."""
    old, new = ({**h["settings"], **h, "settings": None} for h in (was, now))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return "; ".join(f"{name} was {old.get(name)}, is now {new.get(name)}" for name in names)
