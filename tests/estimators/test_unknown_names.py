"""Rows and columns that a model does not know: an error, or what is known of any of them."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, UnknownNameError

SHORT = {"n_sweeps": 150, "random_state": 0, "progress": False}


def _table(n_rows=120, n_columns=40, seed=0):
    """Rows that differ by an effect of sd 2 about 10, columns by one of sd 1, and noise of sd 0.5."""
    rng = np.random.default_rng(seed)
    rows, columns = 2.0 * rng.standard_normal((n_rows, 1)), rng.standard_normal((1, n_columns))
    return 10.0 + rows + columns + 0.5 * rng.standard_normal((n_rows, n_columns))


@pytest.fixture(scope="module", params=["GASR", "BPMF"])
def model(request):
    X = _table()
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    return getattr(fr, request.param)(**SHORT).fit(X)


def test_an_error_names_them_and_the_option(model):
    with pytest.raises(UnknownNameError, match=r"1 row label is unknown: 'Zoe'.*unknown=\"prior\""):
        model.predict([0, "Zoe"], 3)
    with pytest.raises(UnknownNameError, match="column label is unknown: 'x'"):
        model.predict_interval(0, "x")
    with pytest.raises(UnknownNameError, match="unknown"):
        fr.score(fr.Observations.from_triplets(["Zoe"], [3], [1.0]), model)
    both = r"row label is unknown: 'Zoe'.*column label is unknown: 'x'.*unknown=\"prior\""
    with pytest.raises(UnknownNameError, match=both):
        model.predict([0, "Zoe"], [3, "x"])
    with pytest.raises(InputError, match="unknown must be one of"):
        model.predict(0, 3, unknown="ignore")


def test_known_cells_have_the_same_bits(model):
    rows, columns = [0, "Zoe", 1, 2], [3, 4, "x", 5]
    known = [0, 3]
    some = model.predict(np.array(rows, object)[known], np.array(columns, object)[known])
    np.testing.assert_array_equal(model.predict(rows, columns, unknown="prior")[known], some)
    got = model.predict_interval(rows, columns, unknown="prior")
    expected = model.predict_interval([0, 2], [3, 5])
    np.testing.assert_array_equal(np.array(got)[:, known], expected)


def test_a_new_row_is_predicted_as_one_without_entries(model):
    folded = model.fold_in(np.vstack([np.full((1, 40), np.nan), _table(1, 40)]))
    columns = np.arange(40)
    np.testing.assert_array_equal(
        model.predict("Zoe", columns, unknown="prior"), folded.predict(0, columns)
    )


def test_intervals_are_as_wide_as_rows_and_columns_differ(model):
    """Cells of new rows, of new columns and of both, against a table of fresh ones.

    A share of 400 cells of 20 rows has a standard error of about 4%, for cells of a row share its
    effect; 0.8 is 2.5 of them below 0.9.
    """
    rng = np.random.default_rng(5)
    fresh = 10.0 + 2.0 * rng.standard_normal((400, 1)) + rng.standard_normal((1, 400))
    fresh = np.diag(fresh) + 0.5 * rng.standard_normal(400)
    low, high = model.predict_interval("Zoe", "x", unknown="prior")
    assert np.mean((low < fresh) & (fresh < high)) > 0.85
    low, high = model.predict_interval("Zoe", np.arange(40), unknown="prior")
    known = model.predict(np.arange(120), 0)
    width = np.mean(high - low)
    assert width > 3.0 * np.mean(np.subtract(*model.predict_interval(np.arange(120), 0)[::-1]))
    assert np.mean((low[0] < known) & (known < high[0])) > 0.8


def test_scores_of_tables_with_new_rows(model):
    X = _table(seed=2)
    test = fr.Observations.from_triplets(["Zoe"] * 40 + [0] * 40, [*range(40)] * 2, X[:2].ravel())
    scores = fr.score(test, model, unknown="prior")
    assert np.isfinite(scores["rmse"])
    assert 0 <= scores["coverage"] <= 1


def test_methods_without_draws():
    X = _table(40, 20)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    solver = fr.SoftImpute(progress=False).fit(X)
    means = solver.predict("Zoe", np.arange(20), unknown="prior")
    np.testing.assert_allclose(
        means, solver.predict_block(range(40), range(20)).mean(axis=0), atol=0.1
    )
    ratings = np.rint(X / 4).clip(1, 5)
    margins = fr.M3F(penalty=3.0, progress=False).fit(ratings)
    assert set(margins.predict("Zoe", np.arange(20), unknown="prior")) <= {1, 2, 3, 4, 5}
    with pytest.raises(NotSupportedError, match="new columns need a new fit"):
        margins.predict(0, "x", unknown="prior")
    with pytest.raises(UnknownNameError, match="unknown="):
        margins.predict("Zoe", 0)
    with pytest.raises(UnknownNameError) as raised:
        margins.predict("Zoe", "x")
    assert "'Zoe'" in str(raised.value)
    assert "'x'" in str(raised.value)
    assert "unknown=" not in str(raised.value)  # there is no such prediction
