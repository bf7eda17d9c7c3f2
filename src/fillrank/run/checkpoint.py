"""A run kept in a folder while it goes, to be taken up after the process has died, to the same bits.

The folder has `run.fillrank`, with the states of the chains and what was traced, and files of kept
draws, each written once. Such a file is whole before `run.fillrank` speaks of it, and goes after that
has ceased to: whenever the process dies, the folder holds a run as it was after some sweep.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as in_short
from typing import Any, NamedTuple

import numpy as np

from fillrank.data.array_file import Content
from fillrank.data.codec import pack, unpack_all
from fillrank.data.folders import open_folder
from fillrank.errors import InputError, OutputError, ReadError
from fillrank.run.chains import Sampler
from fillrank.run.loop import Run
from fillrank.run.recorder import Traces

SECONDS_BETWEEN = 60.0
_RUN, _DRAWS = "run.fillrank", "draws-{:09d}.fillrank"
_KIND, _DRAWS_KIND = "checkpoint", "draws of a checkpoint"


class Checkpoint:
    """Keeps a run in a folder.

    Parameters
    ----------
    folder : path or address
        As `open_folder` takes it; made if it is not there.
    identity : mapping of str to JSON
        What the run depends on. A run that is there already must have had the same.

    Attributes
    ----------
    about : dict or None
        What `save` was told about the run in the folder; None if there is none.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: Mapping[str, Any]):
        self._folder = open_folder(folder)
        self._identity = dict(identity)
        self._files: dict[str, list[int]] = {}  # the sweeps whose draws are in each file
        self._next = time.monotonic() + SECONDS_BETWEEN
        self._has_complained = False
        self._content: Content | None = None
        if self._folder.has(_RUN):
            self._content = self._folder.read(_RUN, _KIND)
            self._check_identity(self._content.about.get("identity"))
        self.about = None if self._content is None else self._content.about.get("about")

    def _check_identity(self, found: Any) -> None:
        if found == self._identity:
            return
        found = found if isinstance(found, dict) else {}
        differing = sorted(
            name
            for name in found.keys() | self._identity.keys()
            if found.get(name) != self._identity.get(name)
        )
        raise InputError(
            f"{self._folder} has the checkpoint of another run: it differs in {', '.join(differing)}. "
            "Name another folder, or delete this one to begin anew."
        )

    def restore(self, run: Run, sampler: Sampler) -> Run:
        """The run that is in the folder, given one that has just begun; that one, if there is none."""
        if self._content is None:
            return run
        state = run.chains[0].state
        draw = sampler.draw(state)
        parts = _parts(type(state))
        try:
            kept = unpack_all(parts, self._content.about.get("parts"), self._content.arrays)
            draws = self._read_draws(kept.files, type(draw))
            alike = len(kept.states) == len(run.chains)
            alike &= all(_are_alike(each, state) for each in kept.states)
            alike &= all(_are_alike(each, draw) for chains in draws.values() for each in chains)
            if not alike:
                raise ReadError("its chains are of another size than those of this run.")
            run.recorder.take_up(kept.traces, draws)
        except ValueError as error:  # a ReadError, or arrays that do not fit together
            raise ReadError(
                f"the checkpoint in {self._folder} cannot be taken up: {error} "
                "Delete the folder to begin anew."
            ) from error
        self._files, self._content = kept.files, None
        chains = tuple(
            chain._replace(state=state)
            for chain, state in zip(run.chains, kept.states, strict=True)
        )
        return Run(chains, run.recorder, kept.n_sweeps)

    def _read_draws(self, files: dict[str, list[int]], draw: type) -> dict[int, tuple[Any, ...]]:
        hint = dict[int, tuple[draw, ...]]  # type: ignore[valid-type]
        found: dict[int, tuple[Any, ...]] = {}
        for name, numbers in files.items():
            if name != Path(name).name:
                raise ReadError(f"{in_short(name)} is no file of the folder.")
            content = self._folder.read(name, _DRAWS_KIND)
            draws = unpack_all(hint, content.about.get("draws"), content.arrays)
            if missing := set(numbers) - draws.keys():
                raise ReadError(f"{name} lacks the draws of {len(missing)} sweeps.")
            found |= {number: draws[number] for number in numbers}
        return dict(sorted(found.items()))

    def keep(self, run: Run, about: Mapping[str, Any], at_once: bool = False) -> None:
        """Save the run, if the last time was a while ago, or ``at_once``.

        Not between two estimates of hyperparameters, for what was seen since the last one is not
        kept: the next comes within five sweeps. That the disk is full is warned of, once: the run
        can do without.
        """
        is_due = at_once or time.monotonic() >= self._next
        if not is_due or any(chain.infos for chain in run.chains):
            return
        try:
            self._save(run, about)
            self._has_complained = False
        except OutputError as error:
            if not self._has_complained:
                self._has_complained = True
                warnings.warn(f"The run goes on without a checkpoint: {error}", stacklevel=2)
        self._next = time.monotonic() + SECONDS_BETWEEN

    def _save(self, run: Run, about: Mapping[str, Any]) -> None:
        draws = run.recorder.draws_by_sweep()
        written = {number for numbers in self._files.values() for number in numbers}
        new = {number: each for number, each in draws.items() if number not in written}
        files = {
            name: still
            for name, numbers in self._files.items()
            if (still := [number for number in numbers if number in draws])
        }
        if new:
            name = _DRAWS.format(run.n_sweeps)
            files[name] = list(new)
            self._write_draws(name, new)
        parts = _parts(type(run.chains[0].state))
        states = tuple(chain.state for chain in run.chains)
        tree, arrays = pack(parts, parts(run.n_sweeps, states, run.recorder.traces(), files))
        content = {"identity": self._identity, "about": dict(about), "parts": tree}
        self._folder.write(_RUN, Content(_KIND, content, arrays))
        self._files = files
        self._delete_others()

    def _write_draws(self, name: str, draws: dict[int, tuple[Any, ...]]) -> None:
        draw = type(next(iter(draws.values()))[0])
        tree, arrays = pack(dict[int, tuple[draw, ...]], draws)  # type: ignore[valid-type]
        self._folder.write(name, Content(_DRAWS_KIND, {"draws": tree}, arrays))

    def _delete_others(self) -> None:
        for name in self._folder.names():
            if name.startswith("draws-") and name not in self._files:
                self._folder.remove(name)


def _are_alike(one: Any, other: Any) -> bool:
    """Whether all arrays of two states, or of two draws, are of the same types and shapes."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape
    if isinstance(one, tuple):
        return all(map(_are_alike, one, other))
    return True


def _parts(state: type) -> Any:
    """The type of what `run.fillrank` holds."""
    return NamedTuple(
        "Parts",
        [
            ("n_sweeps", int),
            ("states", tuple[state, ...]),  # type: ignore[valid-type]
            ("traces", Traces),
            ("files", dict[str, list[int]]),
        ],
    )
