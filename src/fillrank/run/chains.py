"""Chains that advance in parallel, one sweep at a time, and estimate hyperparameters at first."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

# The paper's number of draws behind each estimate of the hyperparameters.
EM_WINDOW = 5


class ObservedData(Protocol):
    """What a run needs to know about the observed entries."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def n_entries(self) -> int: ...

    @property
    def is_remote(self) -> bool: ...


class StoredDraw(Protocol):
    """What is stored of a state."""

    @property
    def nbytes(self) -> int: ...

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray: ...


class Resumption(NamedTuple):
    """What a checkpoint needs to know about a method, to validate what it reads.

    ``info`` is the type of a sweep's statistics, ``traced`` the names that `Sampler.history` returns,
    and ``is_valid_state(state, infos)`` whether a chain can continue from there. ``features`` are some
    numbers by which the features of rows and columns are recognised.
    """

    info: type
    traced: tuple[str, ...]
    is_valid_state: Callable[[Any, Sequence[Any]], bool]
    features: tuple[np.ndarray, ...] = ()


class Sampler(NamedTuple):
    """The functions of a method that a run calls. Its states, infos and contexts are opaque to a run.

    ``sweep(state, data, context)`` returns (state, info); ``draw(state)`` what is stored;
    ``spectrum(draw)`` its singular values; ``history(state, info, n_entries)`` what is traced, the
    quality of the fit first. For methods that do not sample their hyperparameters,
    ``adapt(state, infos, n_entries)`` returns the state with estimates from the last sweeps. A method
    with ``uses_complete_tables`` takes `CompleteData` for tables without missing cells. Methods that
    support checkpoints have a ``resumption``.
    """

    sweep: Callable[[Any, Any, Any], tuple[Any, Any]]
    draw: Callable[[Any], Any]
    spectrum: Callable[[Any], np.ndarray]
    history: Callable[[Any, Any, int], dict[str, float]]
    adapt: Callable[[Any, Sequence[Any], int], Any] | None = None
    uses_complete_tables: bool = False
    resumption: Resumption | None = None


class Chain(NamedTuple):
    """A chain's state, and the statistics since the last estimate of the hyperparameters."""

    state: Any
    context: Any
    infos: tuple[Any, ...] = ()


class Step(NamedTuple):
    """All chains after one more sweep, and its statistics; ``number`` counts from 1."""

    number: int
    chains: tuple[Chain, ...]
    infos: tuple[Any, ...]

    @property
    def states(self) -> tuple[Any, ...]:
        """The chains' states."""
        return tuple(chain.state for chain in self.chains)


def advance(chain: Chain, data: ObservedData, sampler: Sampler, adapt: bool) -> tuple[Chain, Any]:
    """One sweep; with ``adapt``, its statistics are collected to estimate the hyperparameters."""
    state, info = sampler.sweep(chain.state, data, chain.context)
    infos = (*chain.infos, info) if adapt and sampler.adapt is not None else ()
    return Chain(state, chain.context, infos), info


def _estimate(chains: Sequence[Chain], sampler: Sampler, n_entries: int) -> tuple[Chain, ...]:
    """The chains with hyperparameters estimated from all of them together.

    Then all chains sample from the same posterior, and can be compared.
    """
    assert sampler.adapt is not None
    infos = [info for chain in chains for info in chain.infos]
    return tuple(
        Chain(sampler.adapt(chain.state, infos, n_entries), chain.context) for chain in chains
    )


def _all(
    step: Callable[[Chain], tuple[Chain, Any]], chains: Sequence[Chain], remote: bool
) -> list[tuple[Chain, Any]]:
    """One step of every chain; in parallel if the entries are remote and this machine only waits."""
    if not remote or len(chains) == 1:
        return [step(chain) for chain in chains]
    with ThreadPoolExecutor(len(chains)) as pool:
        return list(pool.map(step, chains))


def run(
    chains: Sequence[Chain], data: ObservedData, sampler: Sampler, n_adapt: int, n_done: int = 0
) -> Iterator[Step]:
    """Advance all chains without end, estimating hyperparameters in the first ``n_adapt`` sweeps.

    ``n_done`` sweeps were taken before.
    """
    for number in count(n_done + 1):
        step = partial(advance, data=data, sampler=sampler, adapt=number <= n_adapt)
        moved = _all(step, chains, data.is_remote)
        chains = tuple(chain for chain, _ in moved)
        n_infos = len(chains[0].infos)
        # An adaptation that ends before the window is full uses what there is.
        if n_infos == EM_WINDOW or (n_infos and number == n_adapt < EM_WINDOW):
            chains = _estimate(chains, sampler, data.n_entries)
        yield Step(number, chains, tuple(info for _, info in moved))
