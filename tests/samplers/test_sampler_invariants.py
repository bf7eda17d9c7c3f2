"""What holds for every sweep, whatever is drawn."""

import numpy as np
import pytest
from scipy import stats

from fillrank.draws.streams import chain_key
from fillrank.runtime import threads as workers_module
from fillrank.runtime.threads import Workers
from fillrank.samplers import gasr, gasr_published
from fillrank.samplers.gasr import Context, Options
from fillrank.samplers.model import Data, Effect
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.table.entries import compress
from reference.p_values import batch_means, limit_of
from reference.small_tables import (
    CENTRES,
    EFFECTS,
    PLAIN,
    Table,
    context_of,
    dense_signal,
    parts_of,
    random_state,
    table_and_values,
    variance_of,
    with_variance,
)

ALL = Options(row_effects=True, column_effects=True, centres=True)
UNEQUAL = ALL._replace(noise=NoiseModel(rows=True, columns=True, robust=True, resolution=0.03))
SAMPLERS = [
    pytest.param(gasr.sweep, PLAIN, id="mixture"),
    pytest.param(gasr.sweep, EFFECTS, id="mixture, effects"),
    pytest.param(gasr.sweep, CENTRES, id="mixture, centres"),
    pytest.param(gasr.sweep, ALL, id="mixture, all"),
    pytest.param(gasr_published.sweep, PLAIN, id="published"),
]
ROUNDING = {np.float64: 1e-12, np.float32: 2e-6}


def _problem(shape=(7, 6), r=3, share=0.6, dtype=np.float64, seed=0):
    """(data, mask, X, state), with effects and noise in the state as in the data."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < share
    mask[1], mask[:, 2] = False, False
    X = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    X = (X + 0.3 * rng.standard_normal(shape)).astype(dtype)
    _, data = table_and_values(mask, X, dtype)
    effect = Effect(0.1, 0.2)
    state = random_state(rng, shape, r, dtype, row_effect=effect, column_effect=effect)
    return data, mask, X, state


def _chain(sweep, state, data, context, n):
    for _ in range(n):
        state, info = sweep(state, data, context)
        yield state, info


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("sweep", "options"), SAMPLERS)
def test_factors_stay_in_their_balls(sweep, options, dtype):
    """||u_k|| <= 1 and ||v_k|| <= 1, where left holds u_k + mu_k and right v_k + nu_k."""
    data, _, _, state = _problem(dtype=dtype)
    r = state.d.size
    for after, _ in _chain(sweep, state, data, context_of(options), 200):
        for factors, centre in ((after.left, after.mu), (after.right, after.nu)):
            norms = np.linalg.norm(factors[:, :r].astype(float) - centre, axis=0)
            # A centre far away costs the digits that the sum u + mu has lost.
            assert np.all(norms <= 1.0 + ROUNDING[dtype] * (1.0 + 4.0 * np.abs(centre)))
        assert np.all(after.d > 0.0)
        assert np.all(after.gamma > 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("sweep", "options"), SAMPLERS)
def test_reported_square_is_that_of_the_state(sweep, options, dtype):
    """Info holds the sum of squared residuals of the state that comes with it."""
    data, mask, X, state = _problem(dtype=dtype)
    for after, info in _chain(sweep, state, data, context_of(options), 50):
        square = np.sum((X - dense_signal(after))[mask] ** 2)
        assert info.residual_square == pytest.approx(square, rel=1e3 * ROUNDING[dtype])


@pytest.mark.parametrize(("sweep", "options"), SAMPLERS)
def test_sweeps_change_everything_and_not_their_input(sweep, options):
    """Each free number is drawn in every sweep; constants and the given arrays are left alone."""
    data, _, _, state = _problem()
    r = state.d.size
    before = [np.copy(part) for part in parts_of(state)]
    after, _ = sweep(state, data, context_of(options))
    for old, part in zip(before, parts_of(state), strict=True):
        np.testing.assert_array_equal(old, part)
    moved = {"left": after.left[:, :r] != state.left[:, :r], "gamma": after.gamma != state.gamma}
    moved |= {"right": after.right[:, :r] != state.right[:, :r], "d": after.d != state.d}
    if options.centres:
        moved |= {"mu": after.mu != state.mu, "nu": after.nu != state.nu}
    if options.row_effects:
        moved |= {"alpha": after.left[:, r] != state.left[:, r]}
        moved |= {"beta": after.right[:, r + 1] != state.right[:, r + 1]}
        moved |= {"row distribution": np.not_equal(after.row_effect, state.row_effect)}
        moved |= {"column distribution": np.not_equal(after.column_effect, state.column_effect)}
    else:
        np.testing.assert_array_equal(after.left[:, r], state.left[:, r])
        np.testing.assert_array_equal(after.right[:, r + 1], state.right[:, r + 1])
    assert all(np.all(part) for part in moved.values()), moved
    np.testing.assert_array_equal(after.left[:, r + 1], 1.0)
    np.testing.assert_array_equal(after.right[:, r], 1.0)
    assert after.sweep == state.sweep + 1
    assert (after.a, after.b, variance_of(after)) == (state.a, state.b, variance_of(state))


@pytest.mark.parametrize(("sweep", "options"), [p for p in SAMPLERS if not p.values[1].row_effects])
def test_units_do_not_matter(sweep, options):
    """X in other units, with b, sigma and d to match, gives the same chain, bit for bit.

    The factor is a power of two, so that no rounding differs. The effects' prior has units of its
    own (N(0, 1) for the mean): only without effects.
    """
    c = 8.0
    data, mask, X, state = _problem()
    _, scaled_data = table_and_values(mask, c * X)
    scaled = state._replace(d=c * state.d, b=c * state.b)
    scaled = with_variance(scaled, c**2 * variance_of(state))
    context = context_of(options)
    one, other = (
        _chain(sweep, state, data, context, 20),
        _chain(sweep, scaled, scaled_data, context, 20),
    )
    for (plain, _), (scaled, _) in zip(one, other, strict=True):
        np.testing.assert_array_equal(plain.left, scaled.left)
        np.testing.assert_array_equal(plain.right, scaled.right)
        np.testing.assert_array_equal(c * plain.d, scaled.d)
        np.testing.assert_array_equal(plain.gamma, c * scaled.gamma)


@pytest.mark.parametrize("sweep", [gasr.sweep, gasr_published.sweep], ids=["mixture", "published"])
def test_without_entries_the_chain_has_the_prior(sweep):
    """N = 0, from a fixed start: ||u||^m and the place of d in Lomax(a, b) are uniform.

    The scores come from 40 batches.
    """
    m, n, r, a, b = 4, 3, 2, 3.0, 2.0
    table = Table(np.zeros((m, n), dtype=bool))
    state = random_state(np.random.default_rng(2), (m, n), r, a=a, b=b)
    data, context = table.data(np.zeros(0)), context_of(PLAIN, 21)
    rows = []
    for after, info in _chain(sweep, state, data, context, 10_000):
        assert info.residual_square == 0.0
        left, right = after.left[:, :r], after.right[:, :r]
        rows.append((np.sum(left**2, axis=0), np.sum(right**2, axis=0), after.d, after.gamma))
    left, right, d, gamma = (np.stack(part)[200:] for part in zip(*rows, strict=True))
    places = [
        left ** (m / 2), right ** (n / 2), stats.lomax.cdf(d, a, scale=b),
        stats.gamma.cdf(gamma, a, scale=1.0 / b),
    ]  # fmt: skip
    uniform = np.hstack(places)
    mean, error = batch_means(np.hstack([uniform, uniform**2]))
    z = (mean - np.repeat([1 / 2, 1 / 3], 4 * r)) / error
    assert np.abs(z).max() < limit_of(z.size, degrees=39), z


@pytest.mark.parametrize("sweep", [gasr.sweep, gasr_published.sweep], ids=["mixture", "published"])
def test_huge_rates_shrink_the_signal_to_zero(sweep):
    """At a/b = 10^6 the prior leaves nothing of Z."""
    data, _, _, state = _problem()
    state = state._replace(a=1e3, b=1e-3)
    *_, (after, _) = _chain(sweep, state, data, context_of(PLAIN), 200)
    assert np.abs(dense_signal(after)).max() < 1e-3


def _large_problem(dtype):
    """7,000 entries, so that several threads are used."""
    rng = np.random.default_rng(8)
    shape = (130, 90)
    mask = rng.random(shape) < 0.6
    mask[17] = False
    i, j = np.nonzero(mask)
    x = rng.standard_normal(i.size).astype(dtype)
    assert x.size > workers_module._SMALLEST_SHARE
    data = Data(compress(shape[0], i, j, x), compress(shape[1], j, i, x))
    return data, random_state(rng, shape, 5, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("sweep", "options"),
    [(gasr.sweep, ALL), (gasr.sweep, UNEQUAL), (gasr_published.sweep, PLAIN)],
    ids=["mixture", "mixture, unequal noise", "published"],
)
def test_threads_and_ranges_do_not_change_a_bit(monkeypatch, sweep, options, dtype):
    data, state = _large_problem(dtype)
    if options.noise.robust:
        cells = state.noise.cells._replace(degrees=5.0)
        state = state._replace(noise=state.noise._replace(cells=cells))
    outcomes = []
    for n_threads, shortest in [(1, 0.2), (2, 0.2), (4, 0.2), (2, 1.0), (4, 0.01)]:
        monkeypatch.setattr(workers_module, "_SHORTEST", shortest)
        with Workers(n_threads) as workers:
            context = Context(options, chain_key(4, 0), workers, 2, 1, 1)
            *_, last = _chain(sweep, state, data, context, 5)
        outcomes.append(last)
    first, *others = outcomes
    for other in others:
        for part, part_of_other in zip(parts_of(first), parts_of(other), strict=True):
            np.testing.assert_array_equal(part, part_of_other)


def test_chains_differ():
    """Another seed or another chain gives other draws."""
    data, _, _, state = _problem()
    keys = [chain_key(0, 0), chain_key(0, 1), chain_key(1, 0)]
    drawn = [gasr.sweep(state, data, Context(PLAIN, key, Workers(1), 0))[0].left for key in keys]
    assert not np.any(drawn[0] == drawn[1], where=[True] * 3 + [False] * 2)
    assert not np.any(drawn[0] == drawn[2], where=[True] * 3 + [False] * 2)
