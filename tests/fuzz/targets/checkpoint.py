"""Checkpoints: small fits are resumed from damaged and forged folders."""

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fillrank as fr
from fillrank.run import checkpoint
from fillrank.storage import atomic_write
from fuzz.folders import packed, read_folder, unpacked, write_folder
from fuzz.forgeries import forge
from fuzz.mutations import mutated
from fuzz.tables import ratings

SUFFIX = ".folder"
_SWEEPS = 14
_SETTINGS: dict[str, Any] = {
    "max_rank": 2, "burn_in": 7, "n_threads": 1, "random_state": 0, "progress": False,
}  # fmt: skip
_METHODS: dict[str, Callable[..., Any]] = {
    "GASR": fr.GASR,
    "two chains": lambda **settings: fr.GASR(n_chains=2, **settings),
    "as published": fr.GASR.as_published,
    "BPMF": fr.BPMF,
}
# In the burn-in and between two estimates of it, at its end, after it, and complete.
_SAVED_AFTER = (0, 3, 7, 11, _SWEEPS)
_NAME = "method.txt"


@contextmanager
def _quickly() -> Iterator[None]:
    """Save after every sweep, without flushing to the disk."""
    flush, between = atomic_write._flush, checkpoint.SECONDS_BETWEEN
    atomic_write._flush, checkpoint.SECONDS_BETWEEN = lambda path: None, 0.0
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        atomic_write._flush, checkpoint.SECONDS_BETWEEN = flush, between


class _StoppedError(Exception):
    """Ends a fit after some sweeps."""


@cache
def _seeds() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder, _quickly():
        return tuple(_saved(Path(folder)))


def _saved(folder: Path) -> Iterator[bytes]:
    save = checkpoint.Checkpoint.save
    for name, make in _METHODS.items():
        for n_sweeps in _SAVED_AFTER:
            path = folder / f"{name} {n_sweeps}"

            def save_and_stop(
                self: Any, run: Any, force: bool = False, last: int = n_sweeps
            ) -> None:
                save(self, run, force)
                if run.n_sweeps == last < _SWEEPS:
                    raise _StoppedError

            checkpoint.Checkpoint.save = save_and_stop  # type: ignore[method-assign]
            try:
                make(n_sweeps=_SWEEPS, checkpoint=path, **_SETTINGS).fit(ratings(8))
            except _StoppedError:
                pass
            finally:
                checkpoint.Checkpoint.save = save  # type: ignore[method-assign]
            (path / _NAME).write_text(name)
            yield read_folder(path)


def seeds() -> list[bytes]:
    return list(_seeds())


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Forge one or two files, and perhaps remove the older ones."""
    files = unpacked(data)
    arrays = sorted(name for name in files if name.endswith(".fillrank"))
    if rng.random() < 0.5:  # so that a refused run is not replaced by the one before
        newest = max(name for name in arrays if name.startswith("run-"))
        arrays = [name for name in arrays if name == newest or not name.startswith("run-")]
        files = {name: part for name, part in files.items() if name in arrays or name == _NAME}
    for name in rng.sample(arrays, min(len(arrays), rng.choice((1, 1, 2)))):
        if rng.random() < 0.1:
            files[name] = mutated(rng, files[name], [files[other] for other in arrays])
        else:
            files[name] = forge(rng, files[name])
    return packed(files)


def attempt(path: Path) -> None:
    data = path.read_bytes()
    name = unpacked(data).get(_NAME, b"").decode(errors="replace")
    make = _METHODS.get(name, fr.GASR)
    with tempfile.TemporaryDirectory() as folder, _quickly():
        resumed = Path(folder) / "run"
        write_folder(resumed, data)
        model = make(n_sweeps=_SWEEPS, checkpoint=resumed, **_SETTINGS).fit(ratings(8))
        assert model.n_sweeps_ == _SWEEPS
        rows, columns = np.indices((8, 5)).reshape(2, -1)
        model.predict(rows, columns)
        model.predict_interval(rows, columns)
        model.diagnostics()
        model.save(Path(folder) / "model.fillrank")
        fr.load(Path(folder) / "model.fillrank")
        # What was saved meanwhile can be resumed.
        make(n_sweeps=_SWEEPS, checkpoint=resumed, **_SETTINGS).fit(ratings(8))
