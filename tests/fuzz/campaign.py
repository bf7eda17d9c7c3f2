"""Many mutated inputs for one target, read by a child process that is replaced when it crashes."""

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
PATIENCE = 24  # factor of the second attempt's time limit, for busy machines
START_SECONDS = 600.0  # compilation included
END_SECONDS = 60.0
INPUTS_PER_PROCESS = 1000
_SHOWN = 2000  # characters of the output of a process that crashed


class Outcome(NamedTuple):
    """The outcome of an input: one of `RESULTS`, and the message or traceback."""

    result: str
    message: str


class Finding(NamedTuple):
    """An input with a defect, saved in a file."""

    path: Path
    outcome: Outcome


class Report(NamedTuple):
    """Counts of all results, and the inputs that caused a defect."""

    target: str
    counts: Counter[str]
    findings: list[Finding]


def load_target(name: str) -> ModuleType:
    """Import a target by its name in `fuzz.targets`, or by a dotted module name."""
    return importlib.import_module(name if "." in name else f"fuzz.targets.{name}")


def inputs(target: ModuleType, n_inputs: int, seed: int) -> Iterator[bytes]:
    """Yield mutated seeds; input i does not depend on ``n_inputs``."""
    seeds = target.seeds()
    mutate = getattr(target, "mutate", None)
    for number in range(n_inputs):
        rng = random.Random(f"{seed} {target.__name__} {number}")
        data = rng.choice(seeds)
        if mutate is None or rng.random() < 0.5:
            yield mutated(rng, data, seeds)
        else:
            yield mutate(rng, data)


class Reader:
    """A child process that reads files, started on first use.

    Parameters
    ----------
    module : str
        The module of the target.
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
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def attempt(self, path: Path) -> Outcome:
        """Read a file; one that takes too long is tried again with a much higher time limit."""
        outcome = self._attempt(path, self._seconds)
        if outcome.result == "hung":
            outcome = self._attempt(path, PATIENCE * self._seconds)
        return outcome

    def _attempt(self, path: Path, clock_seconds: float) -> Outcome:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has crashed; _response reports that
            self._process.stdin.write(f"{path}\n")
            self._process.stdin.flush()
        response = self._response(clock_seconds)
        if response is None:
            self.stop()
            return Outcome("hung", f"no response in {clock_seconds:g} s")
        if response["result"] == "dead":
            message = response["message"]
            self.stop()
            return Outcome("dead", message)
        if response["seconds"] > self._seconds:
            return Outcome(
                "hung", f"{response['seconds']:.1f} s of CPU time. {response['message']}"
            )
        return Outcome(response["result"], response["message"])

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
        response = self._response(START_SECONDS)
        if response is None or response["result"] != "ready":
            message = "it took too long" if response is None else response["message"]
            self.stop()
            raise RuntimeError(f"{self._module} does not accept its own seeds: {message}")

    def _response(self, clock_seconds: float) -> dict[str, Any] | None:
        """Return the next response: "dead" if the process has ended, None if it takes too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        # Each request has a response of one line, so the buffer is empty here.
        if not select.select([self._process.stdout], [], [], clock_seconds)[0]:
            return None
        if line := self._process.stdout.readline():
            return dict(json.loads(line))
        code = self._process.wait(timeout=END_SECONDS)
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._log.seek(0)
        return {"result": "dead", "message": f"{reason}\n{self._log.read()[-_SHOWN:]}"}

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
    """Run a target on many inputs; those that cause a defect are saved in ``folder``."""
    target = load_target(name)
    short = target.__name__.rpartition(".")[2]
    counts: Counter[str] = Counter()
    findings = []
    with (
        tempfile.TemporaryDirectory(prefix="fillrank-fuzz-") as temporary,
        Reader(target.__name__, seconds) as reader,
    ):
        for number, data in enumerate(inputs(target, n_inputs, seed)):
            path = Path(temporary) / f"{short}-{number:06d}{target.SUFFIX}"
            path.write_bytes(data)
            outcome = reader.attempt(path)
            path.unlink()
            counts[outcome.result] += 1
            if outcome.result in DEFECTS:
                saved = folder / path.name
                saved.write_bytes(data)
                findings.append(Finding(saved, outcome))
            if number % INPUTS_PER_PROCESS == INPUTS_PER_PROCESS - 1:
                reader.stop()
    return Report(short, counts, findings)
