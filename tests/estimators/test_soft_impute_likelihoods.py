"""SoftImpute with absolute, logistic and ordered losses as an estimator."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtr
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import ConvergenceWarning, InputError, NotSupportedError, ReadError
from fillrank.storage.array_file import read, write

KINDS = ("laplace", "logistic", "ordered")
EVERY_LOSS = pytest.mark.parametrize("kind", KINDS)
LEVELS = pytest.mark.parametrize("kind", ["logistic", "ordered"])


def quick(kind, **settings):
    default = {"random_state": 0, "progress": False, "n_threads": 1}
    return fr.SoftImpute(likelihood=kind, **(default | settings))


def make(kind, m=60, n=25, seed=0):
    """(table with missing cells, its missing values, signal): rank 2, levels 3 and 7 or 1 to 5."""
    rng = np.random.default_rng(seed)
    Z = 1.5 * rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) + rng.normal(size=n)
    if kind == "laplace":
        X = Z + 0.1 * rng.normal(size=Z.shape)
        X += np.where(rng.random(Z.shape) < 0.05, 30.0, 0.0)
        X, Z = 100 + 10 * X, 100 + 10 * Z
    elif kind == "logistic":
        X = np.where(Z + rng.logistic(size=Z.shape) > 0, 7.0, 3.0)
    else:
        X = 1.0 + np.digitize(Z + rng.normal(size=Z.shape), [-2, -0.7, 0.5, 2])
    missing = rng.random(Z.shape) < 0.3
    frame = pd.DataFrame(
        np.where(missing, np.nan, X), [f"r{i}" for i in range(m)], [f"c{j}" for j in range(n)]
    )
    return frame, np.where(missing, X, np.nan), Z


@pytest.fixture(scope="module")
def fits():
    """Models of all losses, with the penalty chosen by them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {kind: quick(kind).fit(make(kind)[0]) for kind in KINDS}


def signal(model):
    """The latent numbers of all cells."""
    left, right = model.posterior_.factors()
    return left @ right.T


@EVERY_LOSS
def test_fits_are_certified(kind, fits):
    model = fits[kind]
    assert model.converged_
    assert model.violation_ <= 1e-5
    assert model.likelihood_ == kind
    assert model.rank_ == model.singular_values_.size > 0


@EVERY_LOSS
def test_the_penalty_has_the_smallest_held_out_loss(kind, fits):
    path = fits[kind].path_
    best = min(path, key=lambda point: point.validation_error)
    assert fits[kind].penalty_ == best.penalty
    assert len(path) > 3
    penalties = [point.penalty for point in path]
    assert penalties == sorted(penalties, reverse=True)
    training = [point.training_error for point in path]
    assert training == sorted(training, reverse=True)


def test_path_errors_are_mean_losses():
    """That of the only point of a path with one penalty, from its own split."""
    frame, _, _ = make("logistic")
    data = fr.Observations.of(frame)
    model = quick("logistic").fit(data)
    point = model.path_[0]
    train, held_out = data.split(
        0.2, np.random.default_rng(np.random.RandomState(0).randint(2**31 - 1))
    )
    again = quick("logistic", penalty=point.penalty).fit(train)
    p = again.predict_proba(train.row_labels, "c0")  # fits have the labels of the table
    assert p.shape == (60, 2)
    for part, error in ((train, point.training_error), (held_out, point.validation_error)):
        z = signal(again)[part.row_index, part.column_index]
        expected = -np.log(expit(np.where(part.values == 7, z, -z))).mean()
        assert error == pytest.approx(expected, rel=1e-4)


@LEVELS
def test_held_out_levels(kind, fits):
    """More are predicted than by the most frequent level of each column: three standard errors more."""
    frame, truth, _ = make(kind)
    test = fr.Observations.of(pd.DataFrame(truth, frame.index, frame.columns))
    usual = frame.mode().iloc[0].to_numpy()[test.column_index]
    margin = 3 * np.sqrt(0.25 / len(test))
    assert fr.score(test, fits[kind])["accuracy"] > np.mean(usual == test.values) + margin


def test_absolute_errors_find_the_signal_among_outliers(fits):
    frame, _, Z = make("laplace")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        squares = quick("gaussian").fit(frame)
    errors = [
        np.abs(model.predict_block(frame.index, frame.columns) - Z)[frame.isna()].mean()
        for model in (fits["laplace"], squares)
    ]
    assert errors[0] < 0.4 * errors[1]


def test_absolute_fits_have_the_unit_of_the_table():
    frame, _, _ = make("laplace")
    models = [quick("laplace", penalty=4.0).fit(each) for each in (frame, 7 + 1000 * frame)]
    cells = [each.predict_block(frame.index, frame.columns) for each in models]
    np.testing.assert_allclose(cells[1], 7 + 1000 * cells[0], rtol=1e-4)
    assert models[1].noise_variance_ == pytest.approx(1e6 * models[0].noise_variance_, rel=1e-3)


@LEVELS
def test_probabilities_are_those_of_the_likelihood(kind, fits):
    model = fits[kind]
    z = signal(model)[:3, 4]
    found = model.predict_proba(["r0", "r1", "r2"], "c4")
    if kind == "logistic":
        np.testing.assert_allclose(found.to_numpy()[:, 1], expit(z), rtol=1e-6)
        assert [float(name) for name in found.columns] == [3, 7]
    else:
        thresholds = model.posterior_.low_rank.draws[0].limits[1, :-1]
        below = ndtr(thresholds - z[:, np.newaxis])
        np.testing.assert_allclose(np.cumsum(found, axis=1).to_numpy()[:, :-1], below, atol=1e-9)


@LEVELS
def test_statistics(kind, fits):
    model = fits[kind]
    p = model.predict_proba("r0", "c0").to_numpy()[0]
    levels = model.posterior_.level_values(0)
    assert model.predict("r0", "c0", statistic="mean") == pytest.approx(p @ levels)
    assert model.predict("r0", "c0", statistic="mode") == levels[p.argmax()]
    assert model.predict("r0", "c0") == levels[np.searchsorted(np.cumsum(p), 0.5)]
    assert model.predict_set("r0", "c0", 0.01) == [[levels[p.argmax()]]]


@EVERY_LOSS
def test_filled_tables(kind, fits):
    frame, _, _ = make(kind)
    filled = fits[kind].transform(frame)
    assert filled.notna().to_numpy().all()
    seen = frame.notna().to_numpy()
    np.testing.assert_array_equal(filled.to_numpy()[seen], frame.to_numpy()[seen])
    if kind != "laplace":
        assert np.isin(filled, np.unique(frame.to_numpy()[seen])).all()


@EVERY_LOSS
def test_no_intervals_and_no_draws(kind, fits):
    for ask in (
        lambda model: model.predict_interval("r0", "c0"),
        lambda model: model.sample_completions(2),
        lambda model: model.log_density("r0", "c0", 3.0),
    ):
        with pytest.raises(NotSupportedError, match="GASR"):
            ask(fits[kind])


@EVERY_LOSS
def test_saved_models_answer_alike(kind, fits, tmp_path):
    model, (frame, _, _) = fits[kind], make(kind)
    model.save(tmp_path / "model", with_data=True)
    loaded = fr.load(tmp_path / "model")
    for each in (model, loaded):
        assert each.likelihood_ == kind
        assert each.path_ == model.path_
    block = model.predict_block(frame.index, frame.columns)
    np.testing.assert_array_equal(loaded.predict_block(frame.index, frame.columns), block)
    new = frame.head(5).set_axis([f"n{i}" for i in range(5)])
    mine, its = (
        each.fold_in(new).predict_block(new.index, new.columns) for each in (model, loaded)
    )
    np.testing.assert_array_equal(mine, its)
    if kind != "laplace":
        pd.testing.assert_frame_equal(
            loaded.predict_proba(frame.index, "c1"), model.predict_proba(frame.index, "c1")
        )


@LEVELS
def test_a_file_whose_likelihood_is_not_that_of_its_values(kind, fits, tmp_path):
    fits[kind].save(tmp_path / "model")
    content = read(tmp_path / "model", "model")
    content.about["parts"]["likelihood_"] = "laplace"
    write(tmp_path / "forged", content)
    with pytest.raises(ReadError, match="likelihood is not that of its values"):
        fr.load(tmp_path / "forged")


@EVERY_LOSS
def test_new_rows_are_like_fitted_ones(kind, fits):
    """Rows that were fitted, folded in as if they were new, have nearly the same signals."""
    model, (frame, _, _) = fits[kind], make(kind)
    new = frame.set_axis([f"n{i}" for i in range(len(frame))])
    folded = model.fold_in(new)
    left, right = folded.posterior.factors()
    assert np.corrcoef((left @ right.T).ravel(), signal(model).ravel())[0, 1] > 0.9


@LEVELS
def test_updated_rows(kind, fits):
    frame, _, _ = make(kind)
    i, j = np.argwhere(frame.isna().to_numpy())[0]
    row, column = frame.index[i], frame.columns[j]
    highest = float(np.nanmax(frame))
    more = pd.DataFrame({"row": [row], "column": [column], "value": [highest]})
    before, after = (
        model.predict_proba(row, column).to_numpy()[0, -1]
        for model in (fits[kind], fits[kind].update(more))
    )
    assert after > before - 0.05


@EVERY_LOSS
@pytest.mark.parametrize("effects", ["both", "rows", "columns", "mean", None])
def test_effects(kind, effects):
    frame, _, _ = make(kind, 30, 12)
    model = quick(kind, effects=effects, penalty=1e9).fit(frame)
    assert model.rank_ == 0
    z = signal(model)
    differs_by_row, differs_by_column = (
        np.ptp(z, axis=0).max() > 1e-9,
        np.ptp(z, axis=1).max() > 1e-9,
    )
    assert differs_by_row == (effects in ("rows", "both"))
    assert differs_by_column == (effects in ("columns", "both"))
    if effects is None and kind != "ordered":
        assert np.abs(z).max() == 0.0


def test_the_mean_is_the_share_of_the_upper_value():
    frame, _, _ = make("logistic", 30, 12)
    model = quick("logistic", effects="mean", penalty=1e9).fit(frame)
    share = float((frame == 7).sum().sum() / frame.notna().sum().sum())
    assert model.predict_proba("r0", "c0").to_numpy()[0, 1] == pytest.approx(share, abs=0.01)


def test_ordered_thresholds_without_factors_are_those_of_the_frequencies():
    frame, _, _ = make("ordered")
    model = quick("ordered", effects="mean", penalty=1e9).fit(frame)
    shares = frame.stack().value_counts(normalize=True).sort_index()
    found = model.predict_proba("r0", "c0").to_numpy()[0]
    np.testing.assert_allclose(found, shares, atol=0.005)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("logistic", [1.0, 2.0, 3.0, 1.0], "exactly 2 different values; got 3"),
        ("logistic", [1.0, 1.0, 1.0, 1.0], "exactly 2 different values; got 1"),
        ("ordered", [1.0, 1.0, 1.0, 1.0], "2 to 50 different values; got 1"),
        ("ordered", np.arange(60.0), "2 to 50 different values; got 60"),
        ("poisson", [1.0, 2.0, 3.0, 1.0], "likelihood must be one of"),
    ],
)
def test_values_that_a_likelihood_is_not_for(kind, values, message):
    with pytest.raises(InputError, match=message):
        quick(kind).fit(np.reshape(values, (-1, 2)))


@EVERY_LOSS
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": -1.0}, "penalty must be"),
        ({"effects": "all"}, "effects must be"),
        ({"tolerance": 0.0}, "tolerance must be"),
    ],
)
def test_bad_settings(kind, settings, message):
    with pytest.raises(InputError, match=message):
        quick(kind, **settings).fit(make(kind)[0])


@EVERY_LOSS
def test_results_do_not_depend_on_threads(kind, fits):
    again = clone(fits[kind]).set_params(n_threads=2).fit(make(kind)[0])
    np.testing.assert_array_equal(signal(again), signal(fits[kind]))


def test_a_fit_again_with_another_likelihood():
    frame, _, _ = make("ordered", 30, 12)
    model = quick("ordered", penalty=3.0).fit(frame)
    model.set_params(likelihood="gaussian").fit(frame)
    assert not hasattr(model, "likelihood_")
    assert not hasattr(model, "predict_proba")


def test_on_the_command_line(tmp_path):
    from fillrank.cli.models import Settings
    from fillrank.cli.models import fit as fit_model

    frame, _, _ = make("laplace", 20, 8)
    settings = Settings(method="SoftImpute", likelihood="laplace", threads=1)
    model = fit_model(settings, fr.Observations.of(frame), progress=False)
    assert model.likelihood_ == "laplace"
    with pytest.raises(InputError, match="--likelihood is an option of"):
        fit_model(settings._replace(method="HASI"), fr.Observations.of(frame), progress=False)
