"""Beside scikit-learn's other parts: containers of output, unions, pipelines over rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import fillrank as fr
from helpers.quick_fits import NAN, quick, table

pytestmark = [
    pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning"),
]

X = table(12, 5)
NAMES, ROWS = list("abcde"), [f"r{i}" for i in range(12)]
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


def polars_table(cells):
    return pl.DataFrame(cells).fill_nan(None)


def long_table():
    rows, columns = np.nonzero(~np.isnan(X))
    order = np.lexsort((rows, columns))  # the names appear in their order
    return {
        "user": [ROWS[i] for i in rows[order]],
        "item": [NAMES[j] for j in columns[order]],
        "rating": X[rows, columns][order],
    }


COLUMNS = dict(zip(NAMES, X.T, strict=True))
PLAIN = {
    "pandas": pd.DataFrame(X, columns=NAMES),
    "pandas with an index": pd.DataFrame(X, columns=NAMES, index=pd.Index(ROWS, name="who")),
    "polars": polars_table(COLUMNS),
}
LABELLED = {
    "pandas with a column of names": pd.DataFrame({"who": ROWS} | COLUMNS),
    "polars with a column of names": polars_table({"who": ROWS} | COLUMNS),
    "long pandas": pd.DataFrame(long_table()),
    "long polars": pl.DataFrame(long_table()),
    "observations of polars": fr.Observations.of(polars_table({"who": ROWS} | COLUMNS)),
    "observations of pandas": fr.Observations.of(PLAIN["pandas with an index"]),
}
WITH_NAMES = PLAIN | LABELLED


def both_ways(model, data):
    """What `fit_transform` and then `transform` give."""
    return model.fit_transform(data), model.transform(data)


@pytest.mark.parametrize("library", KINDS)
@pytest.mark.parametrize("kind", WITH_NAMES)
def test_containers_have_the_values_and_column_names(kind, library):
    data, model = WITH_NAMES[kind], quick().set_output(transform=library)
    usual = both_ways(quick(), data)  # of the kind that came in
    for filled, expected in zip(both_ways(model, data), usual, strict=True):
        assert isinstance(filled, KINDS[library])
        assert list(filled.columns) == NAMES
        np.testing.assert_array_equal(filled.to_numpy(), expected[NAMES].to_numpy())
    assert model.get_feature_names_out().tolist() == NAMES


@pytest.mark.parametrize("library", KINDS)
def test_an_array_has_numbered_columns(library):
    model = quick().set_output(transform=library)
    for filled, expected in zip(both_ways(model, X), both_ways(quick(), X), strict=True):
        assert isinstance(filled, KINDS[library])
        assert list(filled.columns) == ["x0", "x1", "x2", "x3", "x4"]
        np.testing.assert_array_equal(filled.to_numpy(), expected)


def test_a_pandas_index_stays():
    frame = PLAIN["pandas with an index"]
    for filled in both_ways(quick().set_output(transform="pandas"), frame):
        pd.testing.assert_index_equal(filled.index, frame.index)


def test_default_output_has_the_type_of_the_input():
    model = quick().set_output(transform="pandas").set_output(transform="default")
    assert isinstance(model.fit_transform(X), np.ndarray)
    assert model.fit_transform(LABELLED["polars with a column of names"]).columns == ["who", *NAMES]


def test_a_clone_keeps_its_container():
    model = clone(quick().set_output(transform="polars"))
    assert isinstance(model.fit_transform(X), pl.DataFrame)


def test_the_container_of_all_estimators():
    with config_context(transform_output="pandas"):
        filled = quick().fit_transform(LABELLED["polars with a column of names"])
    assert isinstance(filled, pd.DataFrame)
    assert list(filled.columns) == NAMES


def test_names_of_numbers_are_written_out_where_they_are_names():
    long = pd.DataFrame(long_table()).replace({"item": {n: 10 * j for j, n in enumerate(NAMES)}})
    model = quick().set_output(transform="pandas").fit(long)
    assert model.get_feature_names_out().tolist() == ["0", "10", "20", "30", "40"]
    # scikit-learn does not take the numbers of columns of a wide table for names.
    assert quick().fit(pd.DataFrame(X)).get_feature_names_out().tolist() == [
        f"x{j}" for j in range(5)
    ]


def test_a_union_of_methods():
    union = FeatureUnion(
        [("gasr", quick()), ("soft", fr.SoftImpute(penalty=1.0, progress=False, n_threads=1))]
    )
    both = union.fit_transform(X)
    assert both.shape == (12, 10)
    np.testing.assert_array_equal(both[:, :5], quick().fit_transform(X))
    named = clone(union).set_output(transform="pandas").fit_transform(PLAIN["pandas"])
    assert named.columns.tolist() == [f"{m}__{c}" for m in ("gasr", "soft") for c in NAMES]
    np.testing.assert_array_equal(named.to_numpy()[:, :5], both[:, :5])


@pytest.mark.parametrize("kind", PLAIN)
def test_some_columns_of_a_table(kind):
    frame = PLAIN[kind]
    parts = ColumnTransformer([("fill", quick(), ["b", "d", "e"])], remainder="passthrough")
    library = "polars" if isinstance(frame, pl.DataFrame) else "pandas"
    filled = parts.set_output(transform=library).fit_transform(frame)
    assert list(filled.columns) == ["fill__b", "fill__d", "fill__e", "remainder__a", "remainder__c"]
    expected = quick().fit_transform(X[:, [1, 3, 4]])
    np.testing.assert_array_equal(filled.to_numpy()[:, :3], expected)


def rows_and_answer():
    """A table with holes whose rows have an answer that is linear in the signal."""
    data, truth = fr.synthetic(60, 8, rank=1, noise=0.1, missing=0.3, random_state=0)
    cells = np.full(truth.shape, NAN)
    cells[data.row_index, data.column_index] = data.values
    return cells, truth[:, 0] - 2 * truth[:, 1]


def test_pipelines_are_validated_over_rows():
    cells, y = rows_and_answer()
    pipeline = make_pipeline(StandardScaler(), quick(), Ridge())
    assert (cross_val_score(pipeline, cells, y, cv=3) > 0.9).all()
    frame = pd.DataFrame(cells, columns=list("abcdefgh"), index=[f"r{i}" for i in range(60)])
    np.testing.assert_allclose(
        cross_val_score(pipeline, frame, y, cv=3), cross_val_score(pipeline, cells, y, cv=3)
    )
    search = GridSearchCV(pipeline, {"gasr__effects": [None, "both"]}, cv=2).fit(cells, y)
    assert search.best_score_ > 0.9
    assert np.corrcoef(cross_val_predict(pipeline, cells, y, cv=2), y)[0, 1] > 0.95


def hidden_cells(model, X, y=None):
    """Minus the RMSE in cells of new rows that are hidden from the model."""
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[np.arange(len(X)), np.nanargmax(~np.isnan(X), axis=1)] = (
        True  # the first that is observed
    )
    filled = model.transform(np.where(hidden, NAN, X))
    if hasattr(model, "named_steps"):
        filled = model[0].inverse_transform(filled)
    return -np.sqrt(np.mean((filled - X)[hidden] ** 2))


@pytest.mark.parametrize("scaled", [False, True])
def test_completion_is_validated_over_rows(scaled):
    cells, _ = rows_and_answer()
    model = make_pipeline(StandardScaler(), quick()) if scaled else quick()
    cv = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(model, cells, cv=cv, scoring=hidden_cells)
    assert (scores > -0.5 * np.nanstd(cells)).all()
