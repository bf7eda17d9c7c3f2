"""Whether what a checkpoint holds can be the run that is to be resumed.

A checkpoint is a file from outside: nothing in it reaches a sampler before it has been looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fillrank.errors import ReadError
from fillrank.run.chains import EM_WINDOW, Sampler
from fillrank.run.loop import Run
from fillrank.run.recorder import Traces

Draws = Mapping[int, Sequence[Any]]


class Parts(Protocol):
    """What a file of a run holds; ``files`` has the sweeps whose draws are in each file of draws."""

    n_sweeps: int
    states: tuple[Any, ...]
    infos: tuple[tuple[Any, ...], ...]
    traces: Traces
    files: dict[str, list[int]]


def type_of_parts(run: Run, sampler: Sampler) -> Any:
    """The type of what a file holds, for the states of this run."""
    assert sampler.resuming is not None
    state, info = type(run.chains[0].state), sampler.resuming.info
    return NamedTuple(
        "Parts",
        [
            ("n_sweeps", int),
            ("states", tuple[state, ...]),  # type: ignore[valid-type]
            ("infos", tuple[tuple[info, ...], ...]),  # type: ignore[valid-type]
            ("traces", Traces),
            ("files", dict[str, list[int]]),
        ],
    )


def check_parts(parts: Parts, draws: Draws, run: Run, sampler: Sampler) -> None:
    """ReadError if these are not the parts of this run, which has just begun, after some sweeps."""
    _check_chains(parts, run, sampler)
    _check_traces(parts.traces, parts.n_sweeps, run, sampler)
    _check_draws(draws, parts, run, sampler)


def _check_chains(parts: Parts, run: Run, sampler: Sampler) -> None:
    assert sampler.resuming is not None
    n_chains, n_infos = len(run.chains), {len(infos) for infos in parts.infos}
    same = len(parts.states) == len(parts.infos) == n_chains and len(n_infos) == 1
    _demand(same, "the number of its chains is not that of this run")
    _demand(
        max(n_infos) < EM_WINDOW, "it has more sweeps since the last estimate than there can be"
    )
    for chain, state, infos in zip(run.chains, parts.states, parts.infos, strict=True):
        alike = _are_alike(state, chain.state)
        _demand(alike, "its chains are of another size than those of this run")
        _demand(
            state.sweep == parts.n_sweeps >= 0, "its chains have taken another number of sweeps"
        )
        sound = _is_finite(state) and _is_finite(infos) and sampler.resuming.is_sound(state, infos)
        _demand(sound, "its chains are in a state that no chain can be in")


def _check_traces(traces: Traces, n_sweeps: int, run: Run, sampler: Sampler) -> None:
    assert sampler.resuming is not None
    fresh = run.recorder.traces()
    same = (
        (traces.burn_in, traces.n_entries) == (fresh.burn_in, fresh.n_entries)
        and _are_same(traces.probe_rows, fresh.probe_rows)
        and _are_same(traces.probe_columns, fresh.probe_columns)
        and tuple(traces.history) == (sampler.resuming.traced if n_sweeps else ())
    )
    _demand(same, "its traces are those of another run")
    n_chains = len(run.chains) if n_sweeps else 0
    sound = all(
        _are_numbers(trace, (n_chains, n_sweeps)) and bool((trace >= 0).all())
        for trace in traces.history.values()
    )
    _demand(sound, "its history is not that of its sweeps")
    shape = n_chains, max(n_sweeps - fresh.burn_in, 0), fresh.probe_rows.size
    _demand(_are_numbers(traces.probes, shape), "its traced cells are not those of its sweeps")


def _check_draws(draws: Draws, parts: Parts, run: Run, sampler: Sampler) -> None:
    burn_in, thinning = run.recorder.burn_in, parts.traces.thinning
    is_power_of_2 = thinning >= 1 and thinning & (thinning - 1) == 0
    _demand(is_power_of_2, "its thinning is not a power of 2")
    kept = range(burn_in + thinning, parts.n_sweeps + 1, thinning)
    same = len(draws) == len(kept) and list(draws) == list(kept)
    begins = parts.n_sweeps <= burn_in and thinning == 1
    _demand(same and (len(kept) > 0 or begins), "it lacks draws of its sweeps")
    template = sampler.draw(run.chains[0].state)
    for each in draws.values():
        alike = len(each) == len(run.chains) and all(_are_alike(draw, template) for draw in each)
        _demand(alike, "its draws are of another size than those of this run")
        sound = all(_is_finite(draw) and draw.noise_variance > 0 for draw in each)
        _demand(sound, "its draws are no numbers")
    spectra = parts.traces.spectra
    n_chains = len(run.chains) if parts.n_sweeps else 0
    n_values = sampler.spectrum(draws[kept[0]][0]).size if draws else 0
    sound = _are_numbers(spectra, (n_chains, len(draws), n_values)) and bool((spectra >= 0).all())
    _demand(sound, "its singular values are not those of its draws")


def _are_alike(one: Any, other: Any) -> bool:
    """Whether all arrays of two states, or of two draws, are of the same types and shapes."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape
    if isinstance(one, tuple):
        return all(map(_are_alike, one, other))
    return True


def _is_finite(value: Any) -> bool:
    """Whether all numbers of a state or a draw are finite."""
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    return bool(np.isfinite(value).all())


def _are_numbers(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    return array.dtype == np.float64 and array.shape == shape and _is_finite(array)


def _are_same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other)


def _demand(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ReadError(f"{otherwise}.")
