"""Draws of a signal, for tests of what is made of them."""

import numpy as np

from fillrank.samplers.model import Draw, Noise


def some_draws(m, n, k=3, n_draws=20, spread=0.1, seed=0, dtype="float64"):
    """Draws around one signal of rank k."""
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    return [
        Draw(
            (left + spread * rng.standard_normal((m, k))).astype(dtype),
            (right + spread * rng.standard_normal((n, k))).astype(dtype),
            Noise.equal(float(noise), (m, n)),
        )
        for noise in rng.uniform(0.5, 1.5, n_draws)
    ]
