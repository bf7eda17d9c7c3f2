"""Chains that advance side by side: a sweep each, adapting their hyperparameters at first."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

# The paper's number of draws behind each estimate of the hyperparameters.
EM_WINDOW = 5


class Entered(Protocol):
    """The observed entries, as far as a run looks at them."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def n_entries(self) -> int: ...

    @property
    def is_remote(self) -> bool: ...


class Kept(Protocol):
    """What is kept of a state."""

    @property
    def nbytes(self) -> int: ...

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray: ...


class Resuming(NamedTuple):
    """What a checkpoint has to know of a method, to believe what it reads.

    ``info`` is the type of what a sweep tells, ``traced`` the names that `Sampler.history` gives, and
    ``is_sound(state, infos)`` says whether a chain can go on from there.
    """

    info: type
    traced: tuple[str, ...]
    is_sound: Callable[[Any, Sequence[Any]], bool]


class Sampler(NamedTuple):
    """How a run sees a method, whose states, infos and frames it knows nothing of.

    ``sweep(state, data, context)`` gives (state, info); ``draw(state)`` what is kept; ``spectrum(draw)``
    its singular values; ``history(state, info, n_entries)`` what is traced, the quality of the fit
    first; ``adapt(state, infos, n_entries)`` the state with hyperparameters estimated from the last
    sweeps, for methods that do not sample them; ``resuming`` is for those that checkpoints are made of.
    """

    sweep: Callable[[Any, Any, Any], tuple[Any, Any]]
    draw: Callable[[Any], Any]
    spectrum: Callable[[Any], np.ndarray]
    history: Callable[[Any, Any, int], dict[str, float]]
    adapt: Callable[[Any, Sequence[Any], int], Any] | None = None
    uses_complete_tables: bool = False
    resuming: Resuming | None = None


class Chain(NamedTuple):
    """A chain's state, and what was seen since the hyperparameters were last estimated."""

    state: Any
    context: Any
    infos: tuple[Any, ...] = ()


class Step(NamedTuple):
    """All chains after one more sweep, and what was seen in it; ``number`` counts from 1."""

    number: int
    chains: tuple[Chain, ...]
    infos: tuple[Any, ...]

    @property
    def states(self) -> tuple[Any, ...]:
        """The chains' states."""
        return tuple(chain.state for chain in self.chains)


def advance(chain: Chain, data: Entered, sampler: Sampler, adapt: bool) -> tuple[Chain, Any]:
    """One sweep; with ``adapt``, what was seen in it is collected for the hyperparameters."""
    state, info = sampler.sweep(chain.state, data, chain.context)
    infos = (*chain.infos, info) if adapt and sampler.adapt is not None else ()
    return Chain(state, chain.context, infos), info


def _estimate(chains: Sequence[Chain], sampler: Sampler, n_entries: int) -> tuple[Chain, ...]:
    """The chains with hyperparameters estimated from all of them together.

    So all chains sample from the same posterior, and can be compared.
    """
    assert sampler.adapt is not None
    infos = [info for chain in chains for info in chain.infos]
    return tuple(
        Chain(sampler.adapt(chain.state, infos, n_entries), chain.context) for chain in chains
    )


def _all(
    step: Callable[[Chain], tuple[Chain, Any]], chains: Sequence[Chain], remote: bool
) -> list[tuple[Chain, Any]]:
    """A step of every chain: side by side if the entries are elsewhere and this machine mostly waits."""
    if not remote or len(chains) == 1:
        return [step(chain) for chain in chains]
    with ThreadPoolExecutor(len(chains)) as pool:
        return list(pool.map(step, chains))


def run(
    chains: Sequence[Chain], data: Entered, sampler: Sampler, n_adapt: int, n_done: int = 0
) -> Iterator[Step]:
    """Advance all chains for ever, estimating hyperparameters in the first ``n_adapt`` sweeps.

    ``n_done`` sweeps have been taken before.
    """
    for number in count(n_done + 1):
        step = partial(advance, data=data, sampler=sampler, adapt=number <= n_adapt)
        moved = _all(step, chains, data.is_remote)
        chains = tuple(chain for chain, _ in moved)
        n_seen = len(chains[0].infos)
        # An adaptation that ends before the window is full takes what there is.
        if n_seen == EM_WINDOW or (n_seen and number == n_adapt < EM_WINDOW):
            chains = _estimate(chains, sampler, data.n_entries)
        yield Step(number, chains, tuple(info for _, info in moved))
