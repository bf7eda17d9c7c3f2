"""Checkpoints: a run is saved in a folder at intervals, and resumed with exactly the same result.

The folder has files `run-NUMBER.fillrank`, each with the states of the chains and all traces up to the
sweep of that number, and files of stored draws, each written once. The two newest `run-...` files are
retained: if the newest is damaged, the run is resumed from the one before. A file of draws is complete
before a `run-...` file refers to it, and is removed when none does any more: whenever the process is
killed, the folder has a run as it was after some sweep.

The files may come from anyone, so nothing reaches a sampler before it has been checked.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from reprlib import repr as short_repr
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from fillrank.errors import CheckpointWarning, InputError, OutputError, ReadError, Setting
from fillrank.run.chains import EM_WINDOW, Sampler
from fillrank.run.loop import Run
from fillrank.run.recorder import Traces
from fillrank.storage.array_file import Content
from fillrank.storage.folders import open_folder
from fillrank.storage.serialization import pack, unpack, unpack_all

SECONDS_BETWEEN = 60.0
_RUN, _DRAWS = "run-{:09d}.fillrank", "draws-{:09d}.fillrank"
_RUN_FILE = re.compile(r"run-([0-9]{9,15})\.fillrank", re.ASCII)
_DRAWS_FILE = re.compile(r"draws-[0-9]{9,15}\.fillrank", re.ASCII)
# Temporary files of a process that was killed, in local folders and on shared storage.
_TEMPORARY_FILE = re.compile(
    r"\.(run|draws)-[0-9]{9,15}\.fillrank\.[0-9a-f]{16}|(coming|test)-[0-9a-f]{16}", re.ASCII
)
_OLD_LAYOUT = "run.fillrank"
# In earlier layouts of files, states were others.
_FIRST_LAYOUT = 3
# How much features may differ from those of the saved run, relative to the largest of each: rounding
# depends on the processor.
_ROUNDING = 0.01
_MAX_SEED = 2**31 - 1
_OTHER_FOLDER = "Use another folder, or delete this one to start again."
_RUN_KIND, _DRAWS_KIND = "checkpoint", "draws of a checkpoint"

Identity = dict[str, str | int]
Draws = Mapping[int, Sequence[Any]]


class Saved(NamedTuple):
    """A `run-...` file, with the identity of its run and the seed that the run started from."""

    name: str
    identity: Identity
    seed: int
    content: Content


class _Files(NamedTuple):
    """A valid `run-...` file, and the sweeps whose draws are in each file that it refers to."""

    run: str
    draws: dict[str, list[int]]


class _Snapshot(Protocol):
    """The content of a `run-...` file; ``files`` has the sweeps of each file of draws."""

    n_sweeps: int
    states: tuple[Any, ...]
    infos: tuple[tuple[Any, ...], ...]
    traces: Traces
    features: tuple[np.ndarray, ...]
    files: dict[str, list[int]]


class Checkpoint:
    """Saves a run in a folder and restores it; other processes cannot use the folder until `close`.

    Parameters
    ----------
    folder : path or URL
        See `open_folder`; it is created if it does not exist.

    Attributes
    ----------
    found : Saved or None
        The run in the folder when it was opened.
    n_saved : int or None
        The number of sweeps of the run in the folder; None if there is no run.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self._folder = open_folder(folder)
        self._identity: Identity = {}
        self._seed = 0
        self._snapshot_type: Any = None
        self._features: tuple[np.ndarray, ...] = ()
        self._candidates: list[str] = []  # `run-...` files that have not been tried, newest last
        self._errors: list[str] = []  # why newer ones cannot be resumed
        self._last: _Files | None = None
        self._next_time = time.monotonic() + SECONDS_BETWEEN
        self._has_warned = False
        self.found: Saved | None = None
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
        """Let other processes use the folder."""
        self._folder.release()

    def _open(self) -> None:
        names = self._folder.names()
        for name in names:
            if _TEMPORARY_FILE.fullmatch(name):
                self._folder.remove(name)
        self._candidates = sorted(filter(_RUN_FILE.fullmatch, names), key=_sweep_of)
        if not self._candidates and _OLD_LAYOUT in names:
            raise ReadError(
                f"the checkpoint in {self} was written by an earlier fillrank and cannot be resumed",
                advice=_OTHER_FOLDER,
            )
        self._find_newest()

    def _find_newest(self) -> None:
        """Set `found` to the newest candidate that can be read; ReadError if none of them can."""
        self.found, before = None, self.found
        while self._candidates and self.found is None:
            name = self._candidates.pop()
            try:
                found = self._read_run(name)
                if before is not None and before[1:3] != found[1:3]:
                    raise ReadError("it belongs to another run.")
                self.found = found
            except ReadError as error:
                self._errors.append(str(error))
        if self._errors and self.found is None:
            raise ReadError(
                f"the checkpoint in {self} cannot be resumed: {self._errors[0]}",
                advice="Delete the folder to start again.",
            )
        self.n_saved = _sweep_of(self.found.name) if self.found else None

    def _read_run(self, name: str) -> Saved:
        content = self._folder.read(name, _RUN_KIND)
        if content.version < _FIRST_LAYOUT:
            raise ReadError(f"{name} was written by an earlier fillrank.")
        try:
            identity = unpack(Identity, content.about.get("identity"), {})
            seed = unpack(int, content.about.get("seed"), {})
        except ReadError as error:
            raise error.at(name) from error
        if not 0 <= seed <= _MAX_SEED:
            raise ReadError(place=f"{name}: the seed", allowed=f"from 0 to {_MAX_SEED}", value=seed)
        return Saved(name, identity, seed, content)

    def identify(self, identity: Identity, seed: int) -> None:
        """Set what the run depends on, and its seed; InputError if the folder has another run."""
        self._identity, self._seed = identity, seed
        found = self.found.identity if self.found else identity
        if found == identity:
            return
        names = found.keys() | identity.keys()
        different = sorted(name for name in names if found.get(name) != identity.get(name))
        settings = [piece for name in different for piece in (Setting(name), ", ")]
        raise InputError(
            (f"{self} has the checkpoint of another run: it differs in ", *settings[:-1]),
            advice=_OTHER_FOLDER,
        )

    def restore(self, run: Run, sampler: Sampler) -> Run:
        """Return the run in the folder, or ``run``, which has not started, if there is none."""
        assert sampler.resumption is not None
        self._snapshot_type = _snapshot_type(run, sampler)
        self._features = sampler.resumption.features
        while self.found is not None:
            try:
                return self._restore(self.found, run, sampler)
            except ValueError as error:  # a ReadError, or arrays that do not match
                self._errors.append(f"{self.found.name}: {error}")
                self._find_newest()
        return run

    def _restore(self, found: Saved, run: Run, sampler: Sampler) -> Run:
        content = found.content
        snapshot: _Snapshot = unpack_all(
            self._snapshot_type, content.about.get("parts"), content.arrays
        )
        if snapshot.n_sweeps != _sweep_of(found.name):
            raise ReadError("its name is that of another sweep.")
        _check_features(snapshot.features, sampler)
        draws = self._read_draws(snapshot.files, type(sampler.draw(run.chains[0].state)))
        _check_chains(snapshot, run, sampler)
        _check_traces(snapshot.traces, snapshot.n_sweeps, run, sampler)
        _check_draws(draws, snapshot, run, sampler)
        run.recorder.resume(snapshot.traces, draws)
        self._last = _Files(found.name, snapshot.files)
        self.found = found._replace(content=content._replace(arrays={}))  # frees their memory
        if self._errors:
            self._warn(
                f"The newest checkpoint in {self} cannot be used: {self._errors[0]} "
                f"The run is resumed from the one before, after {snapshot.n_sweeps} sweeps."
            )
        chains = tuple(
            chain._replace(state=state, infos=infos)
            for chain, state, infos in zip(run.chains, snapshot.states, snapshot.infos, strict=True)
        )
        return Run(chains, run.recorder, snapshot.n_sweeps)

    def _read_draws(self, files: dict[str, list[int]], draw: type) -> dict[int, tuple[Any, ...]]:
        found: dict[int, tuple[Any, ...]] = {}
        for name, numbers in files.items():
            if not _DRAWS_FILE.fullmatch(name):
                raise ReadError(f"{short_repr(name)} is not the name of a file of draws.")
            content = self._folder.read(name, _DRAWS_KIND)
            draws = unpack_all(_draws_type(draw), content.about.get("draws"), content.arrays)
            if missing := set(numbers) - draws.keys():
                raise ReadError(f"{name} lacks the draws of {len(missing)} sweeps.")
            found |= {number: draws[number] for number in numbers}
        return dict(sorted(found.items()))

    def save(self, run: Run, force: bool = False) -> None:
        """Save the run if the last save was long enough ago, or with ``force``.

        If that fails, for example because the disk is full, the run continues after one warning.
        """
        if not force and time.monotonic() < self._next_time:
            return
        try:
            self._save(run)
            self.n_saved = run.n_sweeps
            self._has_warned = False
        except OutputError as error:
            if not self._has_warned:
                self._has_warned = True
                self._warn(f"The run continues without a checkpoint: {error}")
        self._next_time = time.monotonic() + SECONDS_BETWEEN

    def _warn(self, message: str) -> None:
        warnings.warn(CheckpointWarning(message), stacklevel=3)

    def _save(self, run: Run) -> None:
        self._folder.check_claim()
        existing = set(self._folder.names())
        last = self._last
        name = _RUN.format(run.n_sweeps)
        if last is not None and last.run == name and {name, *last.draws} <= existing:
            return
        draws = run.recorder.draws_by_sweep()
        files = {
            file: retained
            for file, numbers in (last.draws.items() if last else ())
            if file in existing and (retained := [number for number in numbers if number in draws])
        }
        written = {number for numbers in files.values() for number in numbers}
        if new := {number: each for number, each in draws.items() if number not in written}:
            file = _DRAWS.format(run.n_sweeps)
            files[file] = list(new)
            self._write_draws(file, new)
        self._write_run(name, run, files)
        self._last = _Files(name, files)
        needed = {name, *files} | ({last.run, *last.draws} if last else set())
        self._remove(existing - needed)

    def _write_run(self, name: str, run: Run, files: dict[str, list[int]]) -> None:
        states = tuple(chain.state for chain in run.chains)
        infos = tuple(chain.infos for chain in run.chains)
        snapshot = self._snapshot_type(
            run.n_sweeps, states, infos, run.recorder.traces(), self._features, files
        )
        tree, arrays = pack(self._snapshot_type, snapshot)
        about = {"identity": self._identity, "seed": self._seed, "parts": tree}
        self._folder.write(name, Content(_RUN_KIND, about, arrays))

    def _write_draws(self, name: str, draws: dict[int, tuple[Any, ...]]) -> None:
        draw = type(next(iter(draws.values()))[0])
        tree, arrays = pack(_draws_type(draw), draws)
        self._folder.write(name, Content(_DRAWS_KIND, {"draws": tree}, arrays))

    def _remove(self, names: set[str]) -> None:
        """Remove those that are files of a checkpoint."""
        for name in names:
            if _RUN_FILE.fullmatch(name) or _DRAWS_FILE.fullmatch(name):
                self._folder.remove(name)


def _sweep_of(name: str) -> int:
    match = _RUN_FILE.fullmatch(name)
    assert match is not None
    return int(match[1])


def _snapshot_type(run: Run, sampler: Sampler) -> Any:
    """Return the type of `_Snapshot` for the states of this run."""
    assert sampler.resumption is not None
    state, info = type(run.chains[0].state), sampler.resumption.info
    return NamedTuple(
        "Snapshot",
        [
            ("n_sweeps", int),
            ("states", tuple[state, ...]),  # type: ignore[valid-type]
            ("infos", tuple[tuple[info, ...], ...]),  # type: ignore[valid-type]
            ("traces", Traces),
            ("features", tuple[np.ndarray, ...]),
            ("files", dict[str, list[int]]),
        ],
    )


def _draws_type(draw: type) -> Any:
    return dict[int, tuple[draw, ...]]  # type: ignore[valid-type]


def _check_chains(snapshot: _Snapshot, run: Run, sampler: Sampler) -> None:
    """Raise ReadError if this run, which has not started, cannot have chains like these later."""
    assert sampler.resumption is not None
    n_chains, n_infos = len(run.chains), {len(infos) for infos in snapshot.infos}
    same = len(snapshot.states) == len(snapshot.infos) == n_chains and len(n_infos) == 1
    _require(same, "its number of chains is not that of this run")
    _require(max(n_infos) < EM_WINDOW, "it has too many sweeps since the last estimate")
    for chain, state, infos in zip(run.chains, snapshot.states, snapshot.infos, strict=True):
        _require(
            _same_layout(state, chain.state), "its chains differ in size from those of this run"
        )
        _require(state.sweep == snapshot.n_sweeps >= 0, "its chains have another number of sweeps")
        valid = (
            _is_finite_state(state)
            and _is_finite(infos)
            and sampler.resumption.is_valid_state(state, infos)
        )
        _require(valid, "its chains are in a state that no chain can reach")


def _check_features(features: tuple[np.ndarray, ...], sampler: Sampler) -> None:
    """Raise ReadError for other features: the weights in states and draws are not those of this run."""
    assert sampler.resumption is not None
    expected = sampler.resumption.features
    same = (
        len(features) == len(expected)
        and _same_layout(features, expected)
        and all(map(_are_close, features, expected))
    )
    _require(
        same,
        "its features are not those of this run. If they come from the pattern of missing values, "
        "another kind of processor may have computed them",
    )


def _check_traces(traces: Traces, n_sweeps: int, run: Run, sampler: Sampler) -> None:
    assert sampler.resumption is not None
    fresh = run.recorder.traces()
    same = (
        (traces.burn_in, traces.n_entries) == (fresh.burn_in, fresh.n_entries)
        and _are_equal(traces.probe_rows, fresh.probe_rows)
        and _are_equal(traces.probe_columns, fresh.probe_columns)
        and tuple(traces.history) == (sampler.resumption.traced if n_sweeps else ())
    )
    _require(same, "its traces are those of another run")
    n_chains = len(run.chains) if n_sweeps else 0
    valid = all(
        _is_finite_array(trace, (n_chains, n_sweeps)) and bool((trace >= 0).all())
        for trace in traces.history.values()
    )
    _require(valid, "its history does not match its sweeps")
    shape = n_chains, max(n_sweeps - fresh.burn_in, 0), fresh.probe_rows.size
    _require(_is_finite_array(traces.probes, shape), "its traced cells do not match its sweeps")


def _check_draws(draws: Draws, snapshot: _Snapshot, run: Run, sampler: Sampler) -> None:
    burn_in, thinning = run.recorder.burn_in, snapshot.traces.thinning
    is_power_of_2 = thinning >= 1 and thinning & (thinning - 1) == 0
    _require(is_power_of_2, "its thinning is not a power of 2")
    stored = range(burn_in + thinning, snapshot.n_sweeps + 1, thinning)
    same = len(draws) == len(stored) and list(draws) == list(stored)
    is_burning_in = snapshot.n_sweeps <= burn_in and thinning == 1
    _require(same and (len(stored) > 0 or is_burning_in), "it lacks draws of its sweeps")
    template = sampler.draw(run.chains[0].state)
    for each in draws.values():
        same = len(each) == len(run.chains) and all(_same_layout(draw, template) for draw in each)
        _require(same, "its draws differ in size from those of this run")
        valid = all(_is_valid_draw(draw) for draw in each)
        _require(valid, "its draws are not finite numbers")
    spectra = snapshot.traces.spectra
    n_chains = len(run.chains) if snapshot.n_sweeps else 0
    n_values = sampler.spectrum(draws[stored[0]][0]).size if draws else 0
    shape = n_chains, len(draws), n_values
    valid = _is_finite_array(spectra, shape) and bool((spectra >= 0).all())
    _require(valid, "its singular values do not match its draws")


def _is_valid_draw(draw: Any) -> bool:
    noise = draw.noise
    arrays = draw.left, draw.right, draw.row_weights, draw.column_weights
    return _is_finite(arrays) and noise.is_valid and noise.variance > 0


def _same_layout(one: Any, other: Any) -> bool:
    """Return whether all arrays of two states, or of two draws, have the same types and shapes."""
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape)
    if isinstance(one, tuple):
        return all(map(_same_layout, one, other))
    return True


def _is_finite(value: Any) -> bool:
    """Return whether all numbers of a state or a draw are finite."""
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    return bool(np.isfinite(value).all())


def _is_finite_state(state: Any) -> bool:
    """Return whether all numbers of a state are finite, except those of its noise.

    Gaussian noise has infinite degrees of freedom: the sampler checks its noise itself.
    """
    return all(_is_finite(part) for name, part in state._asdict().items() if name != "noise")


def _is_finite_array(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    return array.dtype == np.float64 and array.shape == shape and _is_finite(array)


def _are_close(one: np.ndarray, other: np.ndarray) -> bool:
    sizes = np.abs(other).max(axis=0, initial=0.0)
    return bool((np.abs(one - other) <= _ROUNDING * sizes).all())


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ReadError(f"{otherwise}.")
