"""Slice sampling: one step leaves the density invariant, and many lead to it from anywhere.

Every check is a Kolmogorov-Smirnov test at the rate of false alarms of ``draw_many.ALARM``.
"""

import math

import numpy as np
import pytest
from scipy import stats

from fillrank.draws import slice as module
from fillrank.draws.streams import Address, chain_key
from helpers.draw_many import ALARM, ks
from reference.planted import plant

_N = 3000
# Distributions, with their log densities up to a constant and their supports.
LAWS = {
    "normal": stats.norm(1.0, 2.0),
    "skewed": stats.gamma(0.7),
    "heavy tails": stats.t(3.0),
    "truncated": stats.truncnorm(-0.5, 1.0),
    "on an interval": stats.beta(0.9, 2.0),
}
_FORMULAS = {
    "normal": lambda x: -0.125 * (x - 1.0) ** 2,
    "skewed": lambda x: -0.3 * math.log(x) - x,
    "heavy tails": lambda x: -2.0 * math.log1p(x * x / 3.0),
    "truncated": lambda x: -0.5 * x * x,
    "on an interval": lambda x: -0.1 * math.log(x) + math.log1p(-x),
}
# Much narrower than the density, about as wide, and much wider.
WIDTHS = [0.2, 2.0, 20.0]


def _log_density(name):
    low, high = map(float, LAWS[name].support())

    def log_density(x):
        return _FORMULAS[name](x) if low < x < high else -math.inf

    return log_density


def _after_one_step(name, width, seed=1):
    """Steps from independent draws of the density."""
    start, log_density = LAWS[name].rvs(_N, random_state=seed), _log_density(name)
    key = chain_key(seed, 0)
    step = module.slice_step
    after = [step(x, log_density, width, Address(key, t, 3), 2) for t, x in enumerate(start)]
    assert np.mean(np.array(after) != start) > 0.99
    return np.array(after)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", LAWS)
def test_a_step_leaves_the_density_invariant(name, width):
    assert ks(_after_one_step(name, width), LAWS[name].cdf) > ALARM


def test_steps_lead_to_the_density():
    """Every chain starts far off, and makes eight steps."""
    law, key = LAWS["normal"], chain_key(4, 0)
    log_density, drawn = _log_density("normal"), []
    for c in range(1000):
        x = 9.0
        for t in range(8):
            x = module.slice_step(x, log_density, 3.0, Address(key, 8 * c + t, 3), 0)
        drawn.append(x)
    assert ks(np.array(drawn), law.cdf) > ALARM


def test_rows_of_an_address_have_their_own_numbers():
    log_density = _log_density("normal")
    address = Address(chain_key(0, 0), 0, 3)
    one, same, other = (module.slice_step(0.0, log_density, 1.0, address, row) for row in (1, 1, 2))
    assert one == same
    assert one != other


BUGS = {
    "level at a fixed depth": ("+ math.log(_next_uniform(stream))", "- 0.7"),
    "uniform level of the log density": (
        "log_density(x) + math.log(_next_uniform(stream))", "log_density(x) - _next_uniform(stream)"
    ),
    "interval shortened on the wrong side": ("if new < x:", "if new > x:"),
    "no extension of the interval": ("int(_MOST_STEPS * _next_uniform(stream))", "0"),
    "points outside accepted": ("if log_density(new) > level or", "if True or"),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(monkeypatch, name):
    plant(monkeypatch, module, "slice_step", *BUGS[name])
    worst = min(ks(_after_one_step("skewed", width), LAWS["skewed"].cdf) for width in WIDTHS)
    assert worst < 1e-9
