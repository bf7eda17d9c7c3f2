import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fillrank as fr
from fillrank.errors import FillrankError
from helpers.mixed_tables import fit_mixed, mixed_frame
from helpers.quick_fits import SHORT, quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


MARGIN = {"penalty": 1.0, "max_rank": 3, "max_iterations": 5, "n_threads": 1, "progress": False}
SOLVER = MARGIN | {"max_iterations": 20}
ESTIMATORS = [
    quick(),
    fr.BPMF(**SHORT),
    fr.SoftImpute(**SOLVER),
    fr.SoftImputeALS(**SOLVER),
    fr.HASI(beta=1.0, **SOLVER),
    fr.RelaxedSpectral(beta=1.0, **SOLVER),
    fr.M3F(random_state=0, **MARGIN),
    fr.IPM3F(random_state=0, **MARGIN),
]


@parametrize_with_checks(ESTIMATORS)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_clone_and_parameters():
    model = quick(effects="rows", value_range=(1, 5), max_rank=3)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert set(model.get_params()) >= {
        "max_rank", "n_sweeps", "burn_in", "n_chains", "n_threads", "effects", "centres", "start",
        "dtype", "value_range", "random_state", "progress", "sampler",
    }  # fmt: skip
    assert again.set_params(max_rank=2).max_rank == 2


def test_as_published_is_a_set_of_parameters():
    model = fr.GASR.as_published(n_sweeps=7)
    assert (model.sampler, model.n_sweeps, model.burn_in, model.effects) == (
        "published", 7, 0, None,
    )  # fmt: skip
    assert clone(model).get_params() == model.get_params()


def test_in_a_pipeline():
    X = table()
    filled = make_pipeline(StandardScaler(), quick()).fit_transform(X)
    assert filled.shape == X.shape
    assert np.isfinite(filled).all()
    scores = make_pipeline(quick(), PCA(2)).fit_transform(X)
    assert scores.shape == (20, 2)


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(library, kind):
    X = table()
    model = quick().set_output(transform=library)
    for filled in (model.fit_transform(X), model.transform(X)):
        assert isinstance(filled, kind)
        assert filled.shape == X.shape
        assert list(filled.columns) == [f"x{j}" for j in range(15)]
        seen = ~np.isnan(X)
        np.testing.assert_array_equal(filled.to_numpy()[seen], X[seen])


def test_feature_names_out_are_the_columns():
    frame = pd.DataFrame(table(8, 3), columns=["a", "b", "c"])
    assert quick().fit(frame).get_feature_names_out().tolist() == ["a", "b", "c"]


def test_same_seed_same_result_and_generators_are_seeds():
    X = table()
    first, again = (quick().fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = quick(random_state=1).fit_transform(X)
    assert (other[np.isnan(X)] != first[np.isnan(X)]).all()
    made = [quick(random_state=np.random.default_rng(5)).fit_transform(X) for _ in range(2)]
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize("ask", ["predict", "predict_interval", "predict_block"])
def test_not_fitted(ask):
    with pytest.raises(NotFittedError):
        getattr(quick(), ask)([0], [0])


def test_predict_missing_of_an_unfitted_model_fails_at_once():
    with pytest.raises(NotFittedError):
        quick().predict_missing()


def test_fit_does_not_change_the_input():
    X = table()
    before = X.copy()
    quick().fit_transform(X)
    np.testing.assert_array_equal(X, before)
    assert np.isnan(before).any()


def test_indicators_of_missing_values_are_those_of_scikit_learn():
    X = table(20, 6)
    X[:, 2] = np.arange(20.0)  # without missing values
    names = [f"c{j}" for j in range(6)]
    model, imputer = quick(add_indicator=True), SimpleImputer(add_indicator=True)
    expected = imputer.fit_transform(X)[:, 6:]
    assert expected.shape == (20, 5)
    np.testing.assert_array_equal(model.fit_transform(X)[:, 6:], expected)
    np.testing.assert_array_equal(model.transform(X[:3])[:, 6:], expected[:3])
    frame = pd.DataFrame(X, columns=names, index=[f"r{i}" for i in range(20)])
    filled = model.fit_transform(frame)
    assert filled.columns.tolist() == model.get_feature_names_out().tolist()
    assert filled.columns.tolist() == imputer.fit(frame).get_feature_names_out().tolist()
    assert filled.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(filled.iloc[:, 6:], expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_indicators_in_the_container_that_is_set(library):
    X = table(20, 4)
    model = quick(add_indicator=True).set_output(transform=library)
    filled = model.fit_transform(X)
    assert list(filled.columns) == model.get_feature_names_out().tolist()
    assert filled.shape == (20, 4 + np.isnan(X).any(axis=0).sum())


def test_indicators_of_polars_with_row_labels():
    frame = pl.DataFrame(table(20, 4), schema=list("abcd"))
    frame.insert_column(0, pl.Series("who", [f"person {i}" for i in range(20)]))
    filled = quick(add_indicator=True).fit_transform(frame)
    assert filled.columns[:5] == ["who", "a", "b", "c", "d"]
    assert filled["missingindicator_a"].to_list() == frame["a"].is_nan().cast(float).to_list()


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
        lambda X: fr.Observations.from_matrix(X),
        sp.csr_array,
    ],
)
def test_a_code_for_missing_values(make):
    X = table()
    coded = np.where(np.isnan(X), -999.0, X)
    model = quick(missing_values=-999).fit(make(coded))
    assert len(model.observations_) == np.count_nonzero(~np.isnan(X))
    np.testing.assert_array_equal(
        np.asarray(model.transform(make(coded))),
        np.asarray(quick().fit(make(X)).transform(make(X))),
    )


def test_nan_is_missing_beside_a_code():
    X = table()
    coded = X.copy()
    coded[0] = np.where(np.isnan(X[0]), -999.0, X[0])
    np.testing.assert_array_equal(
        quick(missing_values=-999).fit_transform(coded), quick().fit_transform(X)
    )


@pytest.mark.parametrize("setting", [{"add_indicator": 3}, {"missing_values": object()}])
def test_settings_that_are_refused(setting):
    with pytest.raises(FillrankError, match=next(iter(setting))):
        quick(**setting).fit(table())


def test_predict_of_a_sparse_matrix_says_what_to_do():
    X = sp.csr_array(np.nan_to_num(table()))
    model = quick().fit(X)
    with pytest.raises(FillrankError, match=r"sparse matrix. transform\(X\).*fold_in\(X\)"):
        model.predict(X)
    filled, rows = model.transform(X), model.fold_in(X)
    i, j = np.nonzero(X.toarray() == 0)
    np.testing.assert_allclose(rows.predict(i, j), filled[i, j])


def test_score_of_an_array_is_that_of_new_rows():
    X, new = table(60, 12), table(60, 12)[40:]
    model = quick(n_sweeps=60).fit(X[:40])
    given, held_out = fr.Observations.from_matrix(new).split(0.2, random_state=0)
    holes = np.full(new.shape, np.nan)
    holes[given.row_index, given.column_index] = given.values
    predicted = model.transform(holes)[held_out.row_index, held_out.column_index]
    error = np.sqrt(np.mean((predicted - held_out.values) ** 2))
    assert model.score(new) == pytest.approx(-error)
    assert error < np.nanstd(new)
    assert (cross_val_score(quick(), X, cv=3) < 0).all()


def test_score_of_a_data_frame_whose_rows_are_not_known_is_that_of_new_rows():
    X = table(60, 12)
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(60)])
    model = quick().fit(frame[:40])
    assert model.score(frame[40:]) == model.score(X[40:])
    with pytest.raises(FillrankError, match="20 row labels are unknown"):
        model.score(frame[20:])
    scores = cross_val_score(quick(), frame, cv=KFold(3))
    np.testing.assert_array_equal(scores, cross_val_score(quick(), X, cv=KFold(3)))


def few_levels(X):
    """Values that all methods take."""
    return np.where(X > 0, 1.0, np.where(X <= 0, -1.0, np.nan))


@pytest.fixture(scope="module", params=["GASR", "BPMF", "SoftImputeALS", "M3F"])
def model(request):
    make = {
        "GASR": quick(likelihood="gaussian"),
        "BPMF": fr.BPMF(likelihood="gaussian", **SHORT),
        "SoftImputeALS": fr.SoftImputeALS(**SOLVER),
        "M3F": fr.M3F(random_state=0, **MARGIN),
    }[request.param]
    return make.fit(few_levels(table(30, 8)[:20]))


class TestHeldOutRows:
    """Rows that were not fitted are completed by the fitted model, each on its own."""

    def test_a_row_does_not_depend_on_other_rows(self, model):
        rows = few_levels(table(30, 8)[20:])
        together = model.transform(rows)
        for i in range(len(rows)):
            alone = model.transform(rows[i : i + 1])
            np.testing.assert_allclose(together[i], alone[0], rtol=1e-6, atol=1e-8)

    def test_changing_a_row_changes_no_other(self, model):
        rows = few_levels(table(30, 8)[20:])
        changed = rows.copy()
        changed[0] = np.where(rows[0] > 0, -1.0, np.where(np.arange(8) % 3, 1.0, np.nan))
        before, after = model.transform(rows), model.transform(changed)
        np.testing.assert_allclose(after[1:], before[1:], rtol=1e-6, atol=1e-8)
        assert (after[0] != before[0]).any()

    def test_transforming_changes_nothing_in_the_model(self, model):
        rows = few_levels(table(30, 8)[20:])
        first = model.transform(rows)
        model.transform(-rows)
        np.testing.assert_array_equal(model.transform(rows), first)


def test_other_rows_of_a_mixed_table_change_nothing_in_a_row():
    """Random draws of levels and limits differ by the position of a row, so that it must be the same."""
    frame = mixed_frame()
    model = fit_mixed(frame.iloc[:60])
    rows, others = frame.iloc[60:70], frame.iloc[70:80].set_axis(frame.index[60:70])
    changed = pd.concat([rows.iloc[:1], others.iloc[1:]])
    before, after = model.transform(rows), model.transform(changed)
    pd.testing.assert_frame_equal(before.iloc[:1], after.iloc[:1])
    assert not before.iloc[1:].equals(after.iloc[1:])


def test_cross_validation_of_a_pipeline_sees_only_the_training_fold():
    """The predictions of a fold are those of a pipeline that was fitted without it."""
    X, y = table(60, 8), np.random.default_rng(0).normal(size=60)
    pipeline = make_pipeline(quick(), LinearRegression())
    folds = KFold(3)
    predicted = cross_val_predict(pipeline, X, y, cv=folds)
    for train, test in folds.split(X):
        own = clone(pipeline).fit(X[train], y[train])
        np.testing.assert_allclose(predicted[test], own.predict(X[test]))
        # Other values in the rest of the fold change nothing.
        filled = int(np.flatnonzero(np.isnan(X[test]).any(axis=1))[0])
        changed = 100 * X[test]
        changed[filled] = X[test][filled]
        np.testing.assert_allclose(own.predict(changed)[filled], predicted[test][filled], rtol=1e-6)


def outcome_of(X):
    """A number for each row, to be predicted from the completed table."""
    return np.nanmean(X, axis=1) + 0.1 * np.random.default_rng(0).normal(size=len(X))


@pytest.mark.parametrize("settings", [{}, {"add_indicator": True}, {"keep_empty_features": True}])
def test_folds_of_a_data_frame_are_completed_without_each_other(settings):
    """Also with pandas output, indicators, and a column that is empty in the training folds."""
    X = table(45, 6)
    X[: 30 if settings.get("keep_empty_features") else 0, 5] = np.nan
    frame = pd.DataFrame(X, columns=list("abcdef"))
    y = outcome_of(X)
    pipeline = make_pipeline(quick(units="columns", **settings), Ridge())
    pipeline.set_output(transform="pandas")
    predicted = cross_val_predict(pipeline, frame, y, cv=KFold(3))
    train, test = slice(0, 30), slice(30, 45)
    own = clone(pipeline).fit(frame[train], y[train])
    names = own[:-1].get_feature_names_out().tolist()
    assert own[-1].feature_names_in_.tolist() == names
    assert len(names) == (
        11 + bool(np.isnan(X[train, 5]).any()) if "add_indicator" in settings else 6
    )
    np.testing.assert_allclose(predicted[test], own.predict(frame[test]))
    filled = int(np.flatnonzero(np.isnan(X[test]).any(axis=1))[0])
    changed = 100 * frame[test]
    changed.iloc[filled] = frame[test].iloc[filled]
    np.testing.assert_allclose(own.predict(changed)[filled], predicted[test][filled], rtol=1e-6)


def test_grid_search_over_settings_of_a_step():
    X = table(60, 8)
    frame, y = pd.DataFrame(X, columns=list("abcdefgh")), outcome_of(X)
    pipeline = make_pipeline(quick(), Ridge())
    grid = {"gasr__missingness": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3), error_score="raise").fit(frame, y)
    for choice, score in zip((True, False), search.cv_results_["mean_test_score"], strict=True):
        alone = clone(pipeline).set_params(gasr__missingness=choice)
        assert score == pytest.approx(cross_val_score(alone, frame, y, cv=KFold(3)).mean())
    with_pattern, without = search.cv_results_["mean_test_score"]
    assert with_pattern != without
    assert search.best_estimator_[0].missingness == (with_pattern > without)
