"""Tiny chains, and sweeps that do as a test tells them."""

from functools import partial

import numpy as np

import fillrank as fr
from fillrank.draws.streams import chain_key
from fillrank.run.chains import Chain, Sampler
from fillrank.runtime.threads import Workers
from fillrank.samplers import gasr
from fillrank.samplers.gasr import Context, Options, init
from fillrank.samplers.model import Effect, Start
from fillrank.samplers.monte_carlo_em import adapt
from helpers.standard_units import standardised

OPTIONS = Options(row_effects=True, column_effects=True, centres=True)


def sampler_of(sweep=gasr.sweep, options=OPTIONS):
    """GASR as a run sees it."""
    spectrum = partial(gasr.spectrum, options=options)
    return Sampler(sweep, gasr.draw, spectrum, gasr.history, adapt)


def small_data(n_rows=12, n_columns=9, seed=0):
    """A rank-1 table with missing cells, in standard units."""
    observations, _ = fr.synthetic(n_rows, n_columns, 1, 0.3, 0.3, random_state=seed)
    return standardised(observations)


def small_chains(data, n_chains=1, seed=0, rank=2):
    """Chains that start at spare components alone."""
    m, n = data.shape
    law = Effect(0.0, 0.1)
    nothing = np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0))
    start = Start(np.zeros(m), np.zeros(n), law, law, *nothing, 0.5, np.ones(n), rank)
    return [
        Chain(
            init(start, np.dtype("float32"), np.random.default_rng([seed, c])),
            Context(OPTIONS, chain_key(seed, c), Workers(1), 5),
        )
        for c in range(n_chains)
    ]


def interrupted_after(k):
    """The sampler's sweep, with Ctrl-C in the one after the k-th."""
    count = 0

    def sweep(state, data, context):
        nonlocal count
        count += 1
        if count > k:
            raise KeyboardInterrupt
        return gasr.sweep(state, data, context)

    return sweep
