"""A run that is saved in a folder while it goes: if the process dies, it is resumed to the same bits.

The folder has files `run-NUMBER.fillrank`, each with the states of the chains and what was traced up to
the sweep of that number, and files of kept draws, each written once. The two newest of the former stay:
should the newest be damaged, the run is resumed from the one before. A file of draws is complete before
a `run-...` file names it, and is removed after none does any more: whenever the process dies, the folder
holds a run as it was after some sweep.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from reprlib import repr as in_short
from typing import Any, NamedTuple, Self

from fillrank.errors import CheckpointWarning, InputError, OutputError, ReadError
from fillrank.run.chains import Sampler
from fillrank.run.checkpoint_checks import Parts, check_parts, type_of_parts
from fillrank.run.loop import Run
from fillrank.storage.array_file import Content
from fillrank.storage.codec import pack, unpack, unpack_all
from fillrank.storage.folders import open_folder

SECONDS_BETWEEN = 60.0
_RUN, _DRAWS = "run-{:09d}.fillrank", "draws-{:09d}.fillrank"
_RUNS = re.compile(r"run-([0-9]{9,15})\.fillrank", re.ASCII)
_DRAWS_FILES = re.compile(r"draws-[0-9]{9,15}\.fillrank", re.ASCII)
# What a process leaves that dies while it writes, here and on shared storage.
_LEFTOVERS = re.compile(
    r"\.(run|draws)-[0-9]{9,15}\.fillrank\.[0-9a-f]{16}|(coming|test)-[0-9a-f]{16}", re.ASCII
)
_BEFORE_GENERATIONS = "run.fillrank"
_MOST_SEEDS = 2**31
_KIND, _DRAWS_KIND = "checkpoint", "draws of a checkpoint"

Identity = dict[str, str | int]


class Found(NamedTuple):
    """A `run-...` file, with what its run depends on and the seed that it began with."""

    name: str
    identity: Identity
    seed: int
    content: Content


class _Generation(NamedTuple):
    """A `run-...` file that is sound, with the sweeps whose draws are in each file that it names."""

    name: str
    files: dict[str, list[int]]


class Checkpoint:
    """Saves a run in a folder. Close it, or use it in ``with``: meanwhile no other process can.

    Parameters
    ----------
    folder : path or address
        As `open_folder` takes it; made if it is not there.

    Attributes
    ----------
    found : Found or None
        The run that is in the folder.
    n_saved : int or None
        How many sweeps the run in the folder has behind it; None if there is none.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self._folder = open_folder(folder)
        self._identity: Identity = {}
        self._seed = 0
        self._parts: Any = None  # the type of what a `run-...` file holds
        self._to_try: list[str] = []
        self._last: _Generation | None = None
        self._next = time.monotonic() + SECONDS_BETWEEN
        self._has_complained = False
        self._unusable: list[str] = []  # newer runs that cannot be resumed, and why
        self.found: Found | None = None
        self.n_saved: int | None = None
        self._folder.claim()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._folder)

    def close(self) -> None:
        """Let other processes have the folder."""
        self._folder.release()

    def _open(self) -> None:
        names = self._folder.names()
        for name in names:
            if _LEFTOVERS.fullmatch(name):
                self._folder.remove(name)
        runs = sorted(filter(_RUNS.fullmatch, names), key=_number_of)
        if not runs and _BEFORE_GENERATIONS in names:
            raise ReadError(
                f"the checkpoint in {self} was made by an earlier fillrank and cannot be resumed. "
                "Name another folder, or delete this one to begin anew."
            )
        self._to_try = runs
        self._open_next()

    def _open_next(self) -> None:
        """Open the newest run that has not been tried; there is none left only if none was there."""
        self.found, before = None, self.found
        while self._to_try and self.found is None:
            name = self._to_try.pop()
            try:
                found = self._opened(name)
                if before is not None and before[1:3] != found[1:3]:
                    raise ReadError("it is that of another run.")
                self.found = found
            except ReadError as error:
                self._unusable.append(str(error))
        if self._unusable and self.found is None:
            raise ReadError(
                f"the checkpoint in {self} cannot be resumed: {self._unusable[0]} "
                "Delete the folder to begin anew."
            )
        self.n_saved = _number_of(self.found.name) if self.found else None

    def _opened(self, name: str) -> Found:
        content = self._folder.read(name, _KIND)
        try:
            identity = unpack(Identity, content.about.get("identity"), {})
            seed = unpack(int, content.about.get("seed"), {})
        except ReadError as error:
            raise ReadError(f"{name}: {error}") from error
        if not 0 <= seed < _MOST_SEEDS:
            raise ReadError(f"{name}: its seed must be from 0 to {_MOST_SEEDS - 1}, got {seed}.")
        return Found(name, identity, seed, content)

    def identify(self, identity: Identity, seed: int) -> None:
        """Say what the run depends on, and its seed: InputError if the run in the folder is another."""
        self._identity, self._seed = identity, seed
        found = self.found.identity if self.found else identity
        if found == identity:
            return
        differing = sorted(
            name for name in found.keys() | identity.keys() if found.get(name) != identity.get(name)
        )
        raise InputError(
            f"{self} has the checkpoint of another run: it differs in {', '.join(differing)}. "
            "Name another folder, or delete this one to begin anew."
        )

    def restore(self, run: Run, sampler: Sampler) -> Run:
        """The run that is in the folder, given one that has just begun; that one, if there is none."""
        self._parts = type_of_parts(run, sampler)
        while self.found is not None:
            try:
                return self._restored(self.found, run, sampler)
            except ValueError as error:  # a ReadError, or arrays that do not fit together
                self._unusable.append(f"{self.found.name}: {error}")
                self._open_next()
        return run

    def _restored(self, found: Found, run: Run, sampler: Sampler) -> Run:
        content = found.content
        parts: Parts = unpack_all(self._parts, content.about.get("parts"), content.arrays)
        if parts.n_sweeps != _number_of(found.name):
            raise ReadError("its name is that of another sweep.")
        draws = self._read_draws(parts.files, type(sampler.draw(run.chains[0].state)))
        check_parts(parts, draws, run, sampler)
        run.recorder.resume(parts.traces, draws)
        self._last = _Generation(found.name, parts.files)
        self.found = found._replace(content=content._replace(arrays={}))
        if self._unusable:
            self._warn(
                f"The newest checkpoint in {self} cannot be used: {self._unusable[0]} "
                f"The run is resumed from the one before, after {parts.n_sweeps} sweeps."
            )
        chains = tuple(
            chain._replace(state=state, infos=infos)
            for chain, state, infos in zip(run.chains, parts.states, parts.infos, strict=True)
        )
        return Run(chains, run.recorder, parts.n_sweeps)

    def _read_draws(self, files: dict[str, list[int]], draw: type) -> dict[int, tuple[Any, ...]]:
        hint = dict[int, tuple[draw, ...]]  # type: ignore[valid-type]
        found: dict[int, tuple[Any, ...]] = {}
        for name, numbers in files.items():
            if not _DRAWS_FILES.fullmatch(name):
                raise ReadError(f"{in_short(name)} is no file of draws.")
            content = self._folder.read(name, _DRAWS_KIND)
            draws = unpack_all(hint, content.about.get("draws"), content.arrays)
            if missing := set(numbers) - draws.keys():
                raise ReadError(f"{name} lacks the draws of {len(missing)} sweeps.")
            found |= {number: draws[number] for number in numbers}
        return dict(sorted(found.items()))

    def keep(self, run: Run, at_once: bool = False) -> None:
        """Save the run, if the last time was a while ago, or ``at_once``.

        That the disk is full, and the like, is warned of once: the run can do without.
        """
        if not at_once and time.monotonic() < self._next:
            return
        try:
            self._save(run)
            self.n_saved = run.n_sweeps
            self._has_complained = False
        except OutputError as error:
            if not self._has_complained:
                self._has_complained = True
                self._warn(f"The run goes on without a checkpoint: {error}")
        self._next = time.monotonic() + SECONDS_BETWEEN

    def _warn(self, message: str) -> None:
        warnings.warn(message, CheckpointWarning, stacklevel=3)

    def _save(self, run: Run) -> None:
        self._folder.check_claim()
        there = set(self._folder.names())
        last = self._last
        name = _RUN.format(run.n_sweeps)
        if last is not None and last.name == name and {name, *last.files} <= there:
            return
        draws = run.recorder.draws_by_sweep()
        files = {
            file: still
            for file, numbers in (last.files.items() if last else ())
            if file in there and (still := [number for number in numbers if number in draws])
        }
        written = {number for numbers in files.values() for number in numbers}
        if new := {number: each for number, each in draws.items() if number not in written}:
            file = _DRAWS.format(run.n_sweeps)
            files[file] = list(new)
            self._write_draws(file, new)
        self._write_run(name, run, files)
        self._last = _Generation(name, files)
        needed = {name, *files} | ({last.name, *last.files} if last else set())
        self._remove(there - needed)

    def _write_run(self, name: str, run: Run, files: dict[str, list[int]]) -> None:
        states = tuple(chain.state for chain in run.chains)
        infos = tuple(chain.infos for chain in run.chains)
        parts = self._parts(run.n_sweeps, states, infos, run.recorder.traces(), files)
        tree, arrays = pack(self._parts, parts)
        about = {"identity": self._identity, "seed": self._seed, "parts": tree}
        self._folder.write(name, Content(_KIND, about, arrays))

    def _write_draws(self, name: str, draws: dict[int, tuple[Any, ...]]) -> None:
        draw = type(next(iter(draws.values()))[0])
        tree, arrays = pack(dict[int, tuple[draw, ...]], draws)  # type: ignore[valid-type]
        self._folder.write(name, Content(_DRAWS_KIND, {"draws": tree}, arrays))

    def _remove(self, names: set[str]) -> None:
        """Remove those that are files of a checkpoint."""
        for name in names:
            if _RUNS.fullmatch(name) or _DRAWS_FILES.fullmatch(name):
                self._folder.remove(name)


def _number_of(name: str) -> int:
    match = _RUNS.fullmatch(name)
    assert match is not None
    return int(match[1])
