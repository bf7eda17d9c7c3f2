"""M3F and IPM3F as estimators."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import ConvergenceWarning, FillrankWarning, InputError, NotSupportedError
from fillrank.samplers import ipm3f as gibbs

METHODS = {
    "M3F": lambda **changes: fr.M3F(**changes),
    "variational": lambda **changes: fr.IPM3F(**changes),
    "gibbs": lambda **changes: fr.IPM3F(inference="gibbs", n_sweeps=30, burn_in=10, **changes),
}
EACH = pytest.mark.parametrize("method", METHODS)


def quick(method, **changes):
    settings = {"max_rank": 6, "penalty": 2.0, "random_state": 0, "progress": False, "n_threads": 1}
    return METHODS[method](**(settings | changes))


def stars(n_rows=60, n_columns=40, seed=0):
    """Ratings of 1 to 5 from low-rank scores, as Observations."""
    scores, _ = fr.synthetic(n_rows, n_columns, rank=2, noise=0.1, missing=0.5, random_state=seed)
    values = np.clip(np.rint(scores.values + 3), 1, 5)
    return fr.Observations.from_triplets(scores.rows, scores.columns, values)


@pytest.fixture(autouse=True)
def _may_stop_early():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@EACH
def test_predicts_levels_well(method):
    """Far better than each row's best constant, on ratings that it has not seen."""
    train, test = stars().split(0.2, random_state=0)
    model = quick(method, penalty="auto").fit(train)
    scores = fr.score(test, model)
    assert scores["mae"] < 0.6  # the rows' best constants: 0.8
    assert scores["rmse"] == scores["rmse_rounded"]
    assert np.isnan(scores["coverage"])
    assert set(model.predict(test.rows, test.columns)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    best = min(model.path_, key=lambda point: point.validation_error)
    assert best.penalty == model.penalty_
    assert len({point.penalty for point in model.path_}) >= 4


@EACH
def test_same_seed_same_answers(method):
    ratings = stars()
    models = [quick(method, n_threads=n).fit(ratings) for n in (1, 2)]
    cells = np.repeat(np.arange(60), 40), np.tile(np.arange(40), 60)
    np.testing.assert_array_equal(models[0].predict(*cells), models[1].predict(*cells))
    np.testing.assert_array_equal(
        models[0].predict_block(np.arange(60), np.arange(40)).ravel(), models[0].predict(*cells)
    )


@EACH
def test_levels_are_the_given_values(method):
    """Half stars, or names of steps that are not even: predictions are among them."""
    ratings = stars()
    halves = fr.Observations.from_triplets(ratings.rows, ratings.columns, ratings.values / 2)
    model = quick(method).fit(halves)
    assert model.levels_.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert set(model.predict(ratings.rows, ratings.columns)) <= set(model.levels_)
    uneven = np.array([1.0, 2.0, 3.0, 7.0, 20.0])[ratings.values.astype(int) - 1]
    odd = fr.Observations.from_triplets(ratings.rows, ratings.columns, uneven)
    with pytest.raises(InputError, match="pass levels="):
        quick(method).fit(odd)
    model = quick(method, levels=[1, 2, 3, 7, 20]).fit(odd)
    assert set(model.predict(ratings.rows, ratings.columns)) <= {1.0, 2.0, 3.0, 7.0, 20.0}


@EACH
def test_bad_ratings_are_refused(method):
    with pytest.raises(InputError, match="ordered scale"):
        quick(method).fit(fr.synthetic(20, 20, 1, 0.1, 0.2, random_state=0)[0])
    with pytest.raises(InputError, match="never does"):
        quick(method, levels=[1, 2, 3, 4, 5, 6]).fit(stars())


@EACH
@pytest.mark.parametrize("penalty", ["auto", 2.0])
def test_a_single_level_is_predicted_everywhere(method, penalty, tmp_path):
    X = np.full((8, 5), 3.0)
    X[1, 2] = X[4] = X[:, 3] = np.nan
    model = quick(method, penalty=penalty)
    with pytest.warns(FillrankWarning, match="all values are 3, and so are all predictions"):
        model.fit(X)
    assert (model.transform(X) == 3.0).all()
    assert (model.fold_in(X[:2]).predict_block([0, 1], np.arange(5)) == 3.0).all()
    model.save(tmp_path / "model.fillrank", with_data=True)
    loaded = fr.load(tmp_path / "model.fillrank")
    assert loaded.levels_.tolist() == [3.0]
    assert (loaded.predict_block(np.arange(8), np.arange(5)) == 3.0).all()
    if method == "M3F":
        assert model.rank_ == 0
        assert model.converged_


@EACH
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": 0.0}, 'penalty must be "auto" or at least 0.0001'),
        ({"penalty": "much"}, "penalty must be"),
        ({"max_rank": 0}, "max_rank must be"),
        ({"max_iterations": 0}, "max_iterations must be"),
        ({"tolerance": -1.0}, "tolerance must be"),
        ({"n_threads": 0}, "n_threads must be"),
    ],
)
def test_wrong_settings(method, settings, message):
    with pytest.raises(InputError, match=message):
        quick(method, **settings).fit(stars())


def test_wrong_inference():
    with pytest.raises(InputError, match="inference must be one of"):
        fr.IPM3F(inference="exact").fit(stars())
    with pytest.raises(InputError, match="burn_in must be a whole number from 0 to 9"):
        fr.IPM3F(inference="gibbs", n_sweeps=10, burn_in=10).fit(stars())


@EACH
def test_two_entries_are_enough_to_choose_a_penalty(method):
    two = fr.Observations.from_triplets([0, 1], [0, 1], [1, 2])
    assert quick(method, penalty="auto").fit(two).penalty_ > 0


@EACH
def test_no_intervals(method):
    model = quick(method).fit(stars())
    with pytest.raises(NotSupportedError, match="GASR and BPMF"):
        model.predict_interval(0, 0)
    with pytest.raises(NotSupportedError, match="GASR and BPMF"):
        model.predict_missing(level=0.9)
    if method != "gibbs":
        with pytest.raises(NotSupportedError, match="sweeps of a sampler"):
            fr.plot.trace(model)


def test_a_short_run_is_warned_of_and_its_burn_in_fits():
    with pytest.warns(ConvergenceWarning, match="has not converged.*n_sweeps above the 10"):
        model = fr.IPM3F(
            inference="gibbs", n_sweeps=10, penalty=2.0, random_state=0, progress=False
        ).fit(stars())
    assert len(model.posterior_.scorers) == 5
    assert (model.n_sweeps_, model.interrupted_) == (10, False)


def test_without_signal_the_rank_is_zero():
    assert quick("M3F", penalty=1000.0).fit(stars()).rank_ == 0


def test_a_refused_refit_leaves_the_path():
    model = quick("M3F", penalty="auto").fit(stars())
    with pytest.raises(InputError):
        model.set_params(penalty=-1.0).fit(stars())
    assert len(model.path_) > 3


def test_means_and_diagnostics_need_sampling():
    ratings = stars()
    model = quick("gibbs").fit(ratings)
    means = model.predict_mean(ratings.rows, ratings.columns)
    levels = model.predict(ratings.rows, ratings.columns)
    assert np.mean(np.abs(means - levels)) < 0.5
    assert len(np.unique(means)) > 5
    assert list(model.history_) == ["hinge_loss", "n_features"]
    assert next(iter(model.diagnostics().rhat)) == "hinge_loss"
    variational = quick("variational").fit(ratings)
    for ask in (lambda: variational.predict_mean(0, 0), variational.diagnostics):
        with pytest.raises(NotSupportedError, match=r'inference="gibbs"\) have'):
            ask()


@EACH
def test_new_rows_get_levels(method):
    ratings = stars(80, 40)
    whole = np.full((80, 40), np.nan)
    whole[ratings.row_index, ratings.column_index] = ratings.values
    model = quick(method).fit(whole[:60])
    hidden = whole[60:].copy()
    hidden[:, 30:] = np.nan
    filled = model.transform(hidden)
    known = ~np.isnan(hidden)
    np.testing.assert_array_equal(filled[known], hidden[known])
    test = np.isnan(hidden) & ~np.isnan(whole[60:])
    assert np.mean(np.abs(filled - whole[60:])[test]) < 0.75  # the rows' best constants: 0.8
    with pytest.raises(InputError, match="among the levels"):
        model.transform(np.full((1, 40), 1.3))


@EACH
def test_wide_table_in_wide_table_out(method):
    ratings = stars(12, 8)
    frame = pd.DataFrame(np.nan, index=[f"u{i}" for i in range(12)], columns=list("abcdefgh"))
    for i, j, value in zip(ratings.row_index, ratings.column_index, ratings.values, strict=True):
        frame.iloc[i, j] = value
    filled = quick(method).fit_transform(frame)
    assert list(filled.columns) == list("abcdefgh")
    assert list(filled.index) == list(frame.index)
    assert filled.notna().all(axis=None)
    missing = next(iter(quick(method).fit(frame).predict_missing()))
    assert set(missing["value"]) <= set(frame.stack())


@EACH
def test_clone(method):
    model = quick(method, levels=[1, 2])
    assert clone(model).get_params() == model.get_params()


@EACH
def test_an_empty_row_and_an_empty_column(method):
    X = np.array([[1.0, 2, np.nan, 1], [np.nan] * 4, [2, 1, np.nan, 2], [1, 1, np.nan, np.nan]])
    assert set(quick(method).fit_transform(X).ravel()) <= {1.0, 2.0}


def test_ctrl_c_while_choosing_a_penalty_ends_the_fit(monkeypatch):
    count, sweep = 0, gibbs.sweep

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count > 30 + 10:  # in the second of the trial chains
            raise KeyboardInterrupt
        return sweep(*arguments)

    monkeypatch.setattr(gibbs, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick("gibbs", penalty="auto").fit(stars())
    assert count == 41


def test_ctrl_c_while_sampling_returns_what_was_sampled(monkeypatch):
    count, sweep = 0, gibbs.sweep

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count > 15:
            raise KeyboardInterrupt
        return sweep(*arguments)

    monkeypatch.setattr(gibbs, "sweep", interrupted)
    with pytest.warns(
        ConvergenceWarning, match="not converged: interrupted after 15.*Stored draws: 5"
    ):
        model = quick("gibbs").fit(stars())
    assert len(model.posterior_.scorers) == 5


def test_the_path_is_drawn():
    model = quick("M3F", penalty="auto").fit(stars())
    ax = fr.plot.path(model)
    assert ax.get_xlabel() == "penalty"
