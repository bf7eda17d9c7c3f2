"""The Gibbs sampler of iPM3F: Geweke's joint test, V and new rows by brute force, and invariants.

Each statistical test raises a false alarm at the rate ``p_values.ALARM``.
"""

import numpy as np
import pytest

from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers
from fillrank.samplers import ipm3f
from reference import ipm3f_gibbs_geweke as cases
from reference.geweke import worst
from reference.ipm3f_gibbs_regression import new_rows_p, weights_of_columns_p
from reference.ipm3f_prior import hinges
from reference.p_values import ALARM, limit_of
from reference.small_tables import Table

HYPER = ipm3f.Hyper(
    C=0.3, ell=3.0, alpha=2.0, sigma=1.0, threshold_sd=4.0, n_levels=5, max_features=8
)


def _assert_no_alarm(scores):
    name, size = worst(scores)
    assert size < limit_of(len(scores)), f"{name}: z = {size:.1f}"


def test_joint_distribution_with_a_full_buffet():
    _assert_no_alarm(cases.gibbs_scores(cases.HYPER, n_chains=400, length=15))


def test_joint_distribution_with_spare_capacity():
    _assert_no_alarm(cases.gibbs_scores(cases.ROOMY, n_chains=400, length=15))


@pytest.mark.slow
@pytest.mark.parametrize("hyper", [cases.HYPER, cases.ROOMY], ids=["full", "roomy"])
def test_joint_distribution_long_chains(hyper):
    _assert_no_alarm(cases.gibbs_scores(hyper, n_chains=2000, length=60, seed=1))


def test_weights_of_columns():
    assert weights_of_columns_p() > ALARM


def test_new_rows_reach_their_posterior():
    assert new_rows_p() > ALARM


def _problem(seed=0, shape=(60, 40), density=0.5):
    """Levels that come from three features and thresholds, with an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < density
    mask[3], mask[:, 5] = False, False
    x = 6.0 * rng.integers(0, 2, (shape[0], 3)) @ rng.normal(size=(3, shape[1]))
    table = Table(mask, np.int8)
    y = 1 + np.sum(x[..., None] >= HYPER.threshold_mean, axis=-1)
    return ipm3f.ordinal_data(table.data(y[table.i, table.j]))


def _run(data, n_sweeps, n_threads=1, n_features=6):
    infos = []
    with Workers(n_threads) as workers:
        context = ipm3f.Context(HYPER, chain_key(2, 0), workers)
        state = ipm3f.init(data, HYPER, n_features, np.random.default_rng(0))
        for _ in range(n_sweeps):
            state, info = ipm3f.sweep(state, data, context)
            infos.append(info)
    return state, infos


def test_entries_go_from_rows_to_columns():
    data = _problem()
    values = np.empty_like(data.columns.values)
    values[data.to_columns] = data.rows.indices
    ends = np.diff(data.columns.pointers)
    np.testing.assert_array_equal(values, np.repeat(np.arange(40), ends))
    values[data.to_columns] = data.rows.values
    np.testing.assert_array_equal(values, data.columns.values)
    assert data.shape == (60, 40)
    assert data.n_entries == data.rows.values.size


def test_same_bits_for_any_number_of_threads():
    """With enough entries that the rows are really shared out."""
    data = _problem(shape=(150, 90), density=0.6)
    assert data.n_entries > 5000
    one, _ = _run(data, 4)
    for n_threads in (2, 4):
        several, _ = _run(data, 4, n_threads)
        for a, b in zip(one, several, strict=True):
            np.testing.assert_array_equal(a, b)


def test_sweep_does_not_change_its_input():
    data = _problem()
    state, _ = _run(data, 2)
    before = [np.copy(part) for part in state]
    context = ipm3f.Context(HYPER, chain_key(2, 0), Workers(1))
    after, info = ipm3f.sweep(state, data, context)
    for part, copy in zip(state, before, strict=True):
        np.testing.assert_array_equal(part, copy)
    again, same_info = ipm3f.sweep(state, data, context)
    for a, b in zip(after, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert info == same_info
    assert after.sweep == state.sweep + 1


def test_loss_decreases_and_features_are_added():
    """From no features at all. The tables of seeds 0 to 9 give ratios of 0.32 to 0.44."""
    data = _problem()
    state, infos = _run(data, 60, n_features=0)
    assert infos[0].loss > 0.0
    assert infos[-1].loss < 0.5 * infos[0].loss
    assert 3 <= infos[-1].n_features == state.Z.shape[1] <= HYPER.max_features


def test_start():
    data = _problem()
    state = ipm3f.init(data, HYPER, 100, np.random.default_rng(0))
    assert state.Z.shape == (60, HYPER.max_features)
    assert state.Z.any(axis=0).all()
    np.testing.assert_array_equal(HYPER.threshold_mean, [-13.5, -4.5, 4.5, 13.5])
    np.testing.assert_array_equal(state.thresholds, np.tile(HYPER.threshold_mean, (60, 1)))


def test_what_a_run_sees():
    data = _problem()
    state, infos = _run(data, 3)
    drawn = ipm3f.draw(state)
    np.testing.assert_allclose(drawn.at(np.array([7]), np.array([2])), state.Z[7] @ state.V[2])
    expected = np.linalg.svd(state.Z @ state.V.T, compute_uv=False)[: state.Z.shape[1]]
    np.testing.assert_allclose(ipm3f.spectrum(drawn), expected, atol=1e-10)
    traced = ipm3f.history(state, infos[-1], data.n_entries)
    i = np.repeat(np.arange(60), np.diff(data.rows.pointers))
    x = drawn.at(i, data.rows.indices)
    loss = hinges(x, state.thresholds[i], HYPER.ell)[np.arange(x.size), data.rows.values - 1]
    assert traced == {"hinge_loss": pytest.approx(loss.mean()), "n_features": state.Z.shape[1]}


def test_no_features_at_all():
    """A state without features can be seen and swept."""
    data = _problem()
    state = ipm3f.init(data, HYPER, 0, np.random.default_rng(0))
    assert ipm3f.spectrum(ipm3f.draw(state)).shape == (0,)
    hyper = HYPER._replace(max_features=0)
    state, info = ipm3f.sweep(state, data, ipm3f.Context(hyper, chain_key(2, 0), Workers(1)))
    assert info.n_features == 0
    assert state.V.shape == (40, 0)
