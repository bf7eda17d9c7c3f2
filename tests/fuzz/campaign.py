"""Many mutated inputs for one target, read by a process that is watched and replaced when it dies."""

import importlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from fuzz.mutations import mutated

DEFECTS = ("dead", "hung", "undocumented")
RESULTS = ("accepted", "refused", *DEFECTS)
SECONDS = 5.0  # of CPU time that an input may take
PATIENCE = 24  # on a busy machine an input may wait so many times longer
START_SECONDS = 600.0  # compilation included
END_SECONDS = 60.0
INPUTS_PER_PROCESS = 1000
_SHOWN = 2000  # characters of what a process has said before it died


class Outcome(NamedTuple):
    """What came of an input: one of `RESULTS`, and the message or traceback."""

    result: str
    words: str


class Finding(NamedTuple):
    """An input with a defect, kept in a file."""

    path: Path
    outcome: Outcome


class Report(NamedTuple):
    """Counts of all results, and the inputs that have found a defect."""

    target: str
    counts: Counter[str]
    findings: list[Finding]


def load_target(name: str) -> ModuleType:
    """The module of a target: a name in `fuzz.targets`, or a module's own with points in it."""
    return importlib.import_module(name if "." in name else f"fuzz.targets.{name}")


def inputs(target: ModuleType, n_inputs: int, seed: int) -> Iterator[bytes]:
    """Mutated seeds; input i is the same whatever their number."""
    seeds = target.seeds()
    own = getattr(target, "mutate", None)
    for number in range(n_inputs):
        rng = random.Random(f"{seed} {target.__name__} {number}")
        data = rng.choice(seeds)
        if own is None or rng.random() < 0.5:
            yield mutated(rng, data, seeds)
        else:
            yield own(rng, data)


class Reader:
    """A child process that reads files, started when it is needed.

    Parameters
    ----------
    module : str
        Of the target.
    seconds : float
        The CPU time that an input may take.
    """

    def __init__(self, module: str, seconds: float = SECONDS):
        self._module = module
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._log: Any = None

    def __enter__(self) -> "Reader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        self.stop()

    def attempt(self, path: Path) -> Outcome:
        """Read a file. What takes too long is tried again alone, with much more time on the clock."""
        outcome = self._attempt(path, self._seconds)
        if outcome.result == "hung":
            outcome = self._attempt(path, PATIENCE * self._seconds)
        return outcome

    def _attempt(self, path: Path, clock_seconds: float) -> Outcome:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died since its last answer; the next one says so
            self._process.stdin.write(f"{path}\n")
            self._process.stdin.flush()
        answer = self._answer(clock_seconds)
        if answer is None:
            self.stop()
            return Outcome("hung", f"no answer in {clock_seconds:g} s")
        if answer["result"] == "dead":
            words = answer["words"]
            self.stop()
            return Outcome("dead", words)
        if answer["seconds"] > self._seconds:
            return Outcome("hung", f"{answer['seconds']:.1f} s of CPU time. {answer['words']}")
        return Outcome(answer["result"], answer["words"])

    def _start(self) -> None:
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.child", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        answer = self._answer(START_SECONDS)
        if answer is None or answer["result"] != "ready":
            words = "it took too long" if answer is None else answer["words"]
            self.stop()
            raise RuntimeError(f"{self._module} does not accept its own seeds: {words}")

    def _answer(self, clock_seconds: float) -> dict[str, Any] | None:
        """The next answer; "dead" if there will be none, None if it does not come in time."""
        assert self._process is not None
        assert self._process.stdout is not None
        # One line at a time is asked for, so nothing can be left in the buffer of the last one.
        if not select.select([self._process.stdout], [], [], clock_seconds)[0]:
            return None
        if line := self._process.stdout.readline():
            return dict(json.loads(line))
        code = self._process.wait(timeout=END_SECONDS)
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._log.seek(0)
        return {"result": "dead", "words": f"{reason}\n{self._log.read()[-_SHOWN:]}"}

    def stop(self) -> None:
        """End the process; the next input starts another."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=END_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._log.close()
        self._process = None


def run(name: str, n_inputs: int, seed: int, folder: Path, seconds: float = SECONDS) -> Report:
    """Try a target with many inputs; those that find a defect are written to ``folder``."""
    target = load_target(name)
    short = target.__name__.rpartition(".")[2]
    counts: Counter[str] = Counter()
    findings = []
    with (
        tempfile.TemporaryDirectory(prefix="fillrank-fuzz-") as place,
        Reader(target.__name__, seconds) as reader,
    ):
        for number, data in enumerate(inputs(target, n_inputs, seed)):
            path = Path(place) / f"{short}-{number:06d}{target.SUFFIX}"
            path.write_bytes(data)
            outcome = reader.attempt(path)
            path.unlink()
            counts[outcome.result] += 1
            if outcome.result in DEFECTS:
                kept = folder / path.name
                kept.write_bytes(data)
                findings.append(Finding(kept, outcome))
            if number % INPUTS_PER_PROCESS == INPUTS_PER_PROCESS - 1:
                reader.stop()
    return Report(short, counts, findings)
