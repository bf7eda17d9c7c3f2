"""Multiple imputation: completions have the law of what would be observed, and nothing else changes.

Seeds are fixed. A check whose outcome is left to chance has the false-alarm rate of
`reference.p_values.ALARM`.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError
from fillrank.posterior.imputation import Imputations
from helpers.fitted_models import DRAWN, METHODS, fitted, ratings
from helpers.quick_fits import NAN, quick, table
from reference.p_values import ALARM, ks_uniform, limit_of

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

N = 100  # completions: all draws that are kept


@pytest.fixture(scope="module", name="X")
def table_with_holes():
    return 5 + 3 * table(30, 8, rank=2, noise=0.5)


@pytest.fixture(scope="module")
def model(X):
    """A model that keeps all of its draws, whose average is what it predicts."""
    model = quick(n_sweeps=50 + N, burn_in=50).fit(X)
    assert len(model.posterior_.draws) == N
    return model


def in_holes(model, X, n=N, random_state=0):
    """Imputations' values where X is missing (n, cells)."""
    tables = model.sample_completions(n, random_state=random_state)
    return np.array([completed[np.isnan(X)] for completed in tables])


def signals(model, X):
    """What the draws have there, in the units of X (N, cells); and their noise variances (N, cells)."""
    rows, columns = np.nonzero(np.isnan(X))
    location, scale = (each[columns] for each in model.posterior_.units[:2])
    values = [
        np.einsum("pk,pk->p", draw.left[rows].astype(float), draw.right[columns])
        for draw in model.posterior_.draws
    ]
    noise = np.array([draw.noise.at(rows, columns) for draw in model.posterior_.draws])
    return location + scale * np.array(values), scale**2 * noise


def test_observed_values_are_unchanged_and_missing_ones_vary(model, X):
    tables = np.array(model.sample_completions(4))
    seen = ~np.isnan(X)
    assert np.isfinite(tables).all()
    assert (tables[:, seen] == X[seen]).all()
    for first in range(4):
        for second in range(first):
            assert (tables[first] != tables[second])[~seen].all()


# The law


def check_noise(model, X):
    """Less its draw's signal, a completion is standard normal noise, independent in all cells."""
    values, noise = signals(model, X)
    z = (in_holes(model, X) - values) / np.sqrt(noise)
    assert ks_uniform(stats.norm.cdf(z)) > ALARM
    tables, cells = z.shape
    for pairs in (np.corrcoef(z), np.corrcoef(z.T)):
        n, length = len(pairs), tables if len(pairs) == cells else cells
        scores = pairs[np.triu_indices(n, 1)] * np.sqrt(length - 3)
        assert np.abs(scores).max() < 1.1 * limit_of(scores.size)  # a correlation is nearly normal


def check_moments(model, X):
    """Means are predictions; variances are those of the posterior and of the noise together."""
    got = in_holes(model, X)
    values, noise = signals(model, X)
    rows, columns = np.nonzero(np.isnan(X))
    z = (got.mean(axis=0) - model.predict(rows, columns)) / np.sqrt(noise.mean() / N)
    assert np.abs(z).max() < limit_of(z.size)
    # Given the draws, the mean variance is off by 2 cov(signal, noise) + var(noise): both by chance.
    expected = values.var(axis=0).mean() + noise.mean()
    n_cells = z.size
    spread = np.sqrt(
        (4 * values.var(axis=0).mean() * noise.mean() + 2 * noise.mean() ** 2) / (N * n_cells)
    )
    assert abs(got.var(axis=0).mean() - expected) < limit_of(1) * spread + noise.mean() / N


def test_noise_is_standard_normal(model, X):
    check_noise(model, X)


def test_moments_are_those_of_new_observations(model, X):
    check_moments(model, X)


def restored(completions, number, i, noise, draw=None):
    """A row of a completion with the noise given."""
    draw = draw or completions._draws[number]
    signal = draw.right @ draw.left[i].astype(float)
    return completions._units.restore(signal + np.sqrt(draw.noise.variance) * noise, slice(None))


def noise_of(completions, *address):
    shape = len(completions._draws[0].right)
    return np.random.default_rng([completions._seed, *address]).standard_normal(shape)


BUGS = {
    "no noise": lambda c, number, i: restored(c, number, i, 0.0),
    "noise for all tables": lambda c, number, i: restored(c, number, i, noise_of(c, i)),
    "noise for all rows": lambda c, number, i: restored(c, number, i, noise_of(c, number)),
    "one draw": lambda c, number, i: restored(
        c, number, i, noise_of(c, number, i), c._draws[number // 2]
    ),
    "too little noise": lambda c, number, i: restored(c, number, i, 0.9 * noise_of(c, number, i)),
    "variance for sd": lambda c, number, i: restored(
        c, number, i, np.sqrt(c._draws[number].noise.variance) * noise_of(c, number, i)
    ),
}
SEEN_IN_MOMENTS = ("no noise", "noise for all tables", "too little noise", "variance for sd")


def test_checks_pass_without_a_planted_bug(model, X, monkeypatch):
    right = lambda c, number, i: restored(c, number, i, noise_of(c, number, i))  # noqa: E731
    monkeypatch.setattr(Imputations, "row", right)
    check_noise(model, X)
    check_moments(model, X)


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_change_the_noise(bug, model, X, monkeypatch):
    monkeypatch.setattr(Imputations, "row", BUGS[bug])
    with pytest.raises(AssertionError):
        check_noise(model, X)


@pytest.mark.parametrize("bug", SEEN_IN_MOMENTS)
def test_planted_bugs_change_the_moments(bug, model, X, monkeypatch):
    monkeypatch.setattr(Imputations, "row", BUGS[bug])
    with pytest.raises(AssertionError):
        check_moments(model, X)


def test_few_completions_use_draws_that_are_far_apart(model):
    """Neighbours in a chain are alike: the first and the last draw are among any few."""
    draws = model.posterior_.draws
    chosen = Imputations(model.posterior_, 4, 0)._draws
    places = [next(t for t, draw in enumerate(draws) if draw is one) for one in chosen]
    assert places == [0, 33, 66, 99]


# Seeds, and other ways to the same values


def test_seeds(model, X):
    np.testing.assert_array_equal(in_holes(model, X, 3), in_holes(model, X, 3))
    other = in_holes(model, X, 3, random_state=1)
    assert (other != in_holes(model, X, 3)).all()


@pytest.mark.parametrize("cells_at_once", [1, 20, 10**6])
def test_a_stream_has_the_same_values(model, X, cells_at_once, monkeypatch):
    monkeypatch.setattr("fillrank.completions.missing_cells._CELLS_AT_ONCE", cells_at_once)
    blocks = list(model.predict_missing(level=0.5, n_draws=3, random_state=7))
    stream = pd.concat(blocks, ignore_index=True)
    draws = ["draw_1", "draw_2", "draw_3"]
    assert list(stream.columns) == ["row", "column", "value", "lower", "upper", *draws]
    np.testing.assert_array_equal(stream[draws].T, in_holes(model, X, 3, random_state=7))


def test_threads_do_not_change_a_bit(X):
    first, *others = (in_holes(quick(n_threads=n).fit(X), X, 5).tobytes() for n in (1, 2, 4))
    assert all(other == first for other in others)


def test_linear_algebra_is_on_one_thread(model, X, monkeypatch):
    """On more, the last bits of a product can depend on their number."""
    from threadpoolctl import threadpool_info

    used = set()
    right = Imputations.row

    def spy(*given):
        used.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return right(*given)

    monkeypatch.setattr(Imputations, "row", spy)
    model.sample_completions(1)
    next(model.predict_missing(n_draws=1))
    assert used == {1}


# Kinds of tables


def test_kinds_of_tables(X):
    names = [f"c{j}" for j in range(8)]
    frame = pd.DataFrame(X, index=pd.Index([f"r{i}" for i in range(30)], name="who"), columns=names)
    expected = quick().fit(X).sample_completions(2)
    for got, values in zip(quick().fit(frame).sample_completions(2), expected, strict=True):
        pd.testing.assert_frame_equal(
            got, pd.DataFrame(values, index=frame.index, columns=frame.columns)
        )
    polar = pl.from_pandas(frame.reset_index())
    for got, values in zip(quick().fit(polar).sample_completions(2), expected, strict=True):
        assert got.columns == ["who", *names]
        np.testing.assert_array_equal(got[names].to_numpy(), values)
    long = frame.stack().rename("value").rename_axis(["row", "column"]).reset_index()
    (got,) = quick().fit(long).sample_completions(1)
    assert sorted(got.columns) == names
    assert got.loc["r3", "c2"] == X[3, 2] or np.isnan(X[3, 2])
    assert not got.isna().any(axis=None)


def test_a_complete_table_is_unchanged():
    X = table(missing=0.0)
    for completed in quick().fit(X).sample_completions(2):
        np.testing.assert_array_equal(completed, X)


def test_completions_are_clipped_to_the_rating_scale():
    X = ratings(40, 12)
    model = quick().fit(X)
    values = in_holes(model, X, 10)
    assert values.min() == 1.0
    assert values.max() == 5.0
    free = quick(value_range=None).fit(X)
    np.testing.assert_array_equal(np.clip(in_holes(free, X, 10), 1, 5), values)


# What is refused


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", True, N + 1])
def test_wrong_numbers(model, wrong):
    with pytest.raises(InputError, match="must be a whole number"):
        model.sample_completions(wrong)
    if wrong != 0:
        with pytest.raises(InputError, match=f"must be a whole number from 1 to {N}"):
            model.predict_missing(n_draws=wrong)


@pytest.mark.parametrize("wrong", [-1, None, 1.5, "0"])
def test_wrong_seeds(model, wrong):
    for ask in (
        model.sample_completions,
        lambda **given: model.predict_missing(n_draws=1, **given),
    ):
        with pytest.raises(InputError, match="random_state must be a whole number"):
            ask(random_state=wrong)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - DRAWN))
def test_methods_without_draws(name):
    for ask in (fitted(name).sample_completions, lambda: fitted(name).predict_missing(n_draws=2)):
        with pytest.raises(NotSupportedError, match=r"no draws\. GASR and BPMF have"):
            ask()


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_methods_with_draws(name):
    for completed in fitted(name).sample_completions(3):
        assert np.isfinite(completed).all()


def test_without_a_fit_and_without_the_entries(model, tmp_path):
    with pytest.raises(NotFittedError):
        fr.GASR().sample_completions()
    model.save(tmp_path / "model")
    with pytest.raises(NotSupportedError, match="with_data=True"):
        fr.load(tmp_path / "model").sample_completions()
    model.save(tmp_path / "model", with_data=True)
    again = fr.load(tmp_path / "model")
    for got, expected in zip(again.sample_completions(2), model.sample_completions(2), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_new_rows_are_completed_too(model):
    new = np.full((2, 8), NAN)
    new[0, :4] = 5.0
    tables = model.fold_in(new).sample_completions(N)
    spread = np.std(tables, axis=0)
    assert (spread[0, :4] == 0).all()
    assert (spread[1, 4:] > spread[0, 4:]).all()
