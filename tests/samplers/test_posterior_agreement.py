"""One posterior, however it is computed: by either sampler, transposed, or with the sign turned.

(a, b, sigma^2) are fixed, effects and centres off. Each answer is compared with that of the mixture
sampler on the table as it stands, in 17 statistics. Standard errors come from 40 batches a chain,
so the scores are judged by Student's distribution with 39 degrees of freedom (the smaller number,
to be safe).
"""

from functools import cache

import numpy as np
import pytest

from fillrank.samplers import gasr, gasr_published
from reference.geweke import worst
from reference.p_values import limit_of
from reference.planted import plant
from reference.posterior_chains import difference_scores, posterior_statistics
from reference.small_tables import MASK, Table

_MODEL = {"a": 3.0, "b": 2.0, "noise_variance": 0.1}
_N = 12_000


def _table_and_values():
    rng = np.random.default_rng(5)
    table = Table(MASK)
    Z = np.outer(rng.standard_normal(5), rng.standard_normal(4))
    return table, Z[table.i, table.j] + 0.3 * rng.standard_normal(table.n_entries)


def _answer(sweep, n, seed, **turned):
    table, x = _table_and_values()
    return posterior_statistics(sweep, table, x, r=2, n=n, seed=seed, model=_MODEL, **turned)


@cache
def _reference(n):
    return _answer(gasr.sweep, n, seed=1)


def _scores(sweep, n, seed, **turned):
    return difference_scores(_answer(sweep, n, seed, **turned), _reference(n))


def _assert_agreement(scores):
    assert len(scores) >= 10
    name, size = worst(scores)
    assert size < limit_of(len(scores), degrees=39), f"{name}: z = {size:.1f}"


def test_published_sampler_has_the_same_posterior():
    _assert_agreement(_scores(gasr_published.sweep, _N, seed=2))


def test_sign_of_the_data():
    _assert_agreement(_scores(gasr.sweep, _N, seed=3, sign=-1.0))


def test_transposed_table():
    _assert_agreement(_scores(gasr.sweep, _N, seed=4, transposed=True))


def test_published_sampler_on_the_transposed_table():
    _assert_agreement(_scores(gasr_published.sweep, _N, seed=5, transposed=True))


@pytest.mark.slow
def test_published_sampler_has_the_same_posterior_long_chains():
    _assert_agreement(_scores(gasr_published.sweep, 150_000, seed=6))


def test_a_wrong_rate_is_caught(monkeypatch):
    _reference(_N)
    plant(monkeypatch, gasr, "draw_rates", "b + d[k]", "b", into=(gasr_published,))
    _, size = worst(_scores(gasr_published.sweep, _N, seed=2))
    assert size > 6.0
