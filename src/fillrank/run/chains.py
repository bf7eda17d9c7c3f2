"""Chains that advance side by side: a sweep each, with Monte Carlo EM while they burn in."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fillrank.samplers.hyperparameters import estimate_noise, estimate_rates
from fillrank.samplers.state import Data, Frame, Info, State

Sweep = Callable[[State, Data, Frame], tuple[State, Info]]

# The paper's number of draws behind each estimate of the hyperparameters.
EM_WINDOW = 5


class Chain(NamedTuple):
    """A chain's state, and the draws since the hyperparameters were last estimated."""

    state: State
    frame: Frame
    d_draws: tuple[np.ndarray, ...] = ()
    residual_squares: tuple[float, ...] = ()


class Step(NamedTuple):
    """All chains after one more sweep; ``number`` counts from 1."""

    number: int
    states: tuple[State, ...]
    infos: tuple[Info, ...]


def advance(
    chain: Chain, data: Data, sweep: Sweep, adapt: bool, last: bool = False
) -> tuple[Chain, Info]:
    """One sweep; with ``adapt``, a, b and sigma^2 are estimated after every fifth.

    ``last`` estimates them at once: for an adaptation that ends before the fifth.
    """
    state, info = sweep(chain.state, data, chain.frame)
    if not adapt:
        return Chain(state, chain.frame), info
    d_draws = (*chain.d_draws, state.d)
    squares = (*chain.residual_squares, info.residual_square)
    if len(d_draws) < EM_WINDOW and not last:
        return Chain(state, chain.frame, d_draws, squares), info
    a, b = estimate_rates(state.a, state.b, np.array(d_draws))
    noise_variance = estimate_noise(np.array(squares), data.n_entries)
    return Chain(state._replace(a=a, b=b, noise_variance=noise_variance), chain.frame), info


def run(chains: list[Chain], data: Data, sweep: Sweep, n_adapt: int) -> Iterator[Step]:
    """Advance all chains for ever, estimating hyperparameters in the first ``n_adapt`` sweeps."""
    number = 0
    while True:
        number += 1
        adapt, last = number <= n_adapt, number == n_adapt < EM_WINDOW
        moved = [advance(chain, data, sweep, adapt, last) for chain in chains]
        chains = [chain for chain, _ in moved]
        yield Step(number, tuple(c.state for c in chains), tuple(info for _, info in moved))
