"""The contract that every method fulfils, whatever its posterior supports."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import FillrankError, NotSupportedError, UnknownNameError
from helpers.fitted_models import METHODS, cells_of, fit, fitted, new_rows

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")
EVERY_METHOD = pytest.mark.parametrize("name", METHODS)


def frame_of(name):
    """The method's table with labels."""
    X = cells_of(name)
    rows, columns = (
        [f"{side}{i}" for i in range(n)] for side, n in zip("rc", X.shape, strict=True)
    )
    return pd.DataFrame(X, rows, columns)


@EVERY_METHOD
def test_the_result_is_an_immutable_completion(name):
    completion = fitted(name).completion_
    assert isinstance(completion, fr.Completion)
    with pytest.raises(FrozenInstanceError):
        completion.method = "another"


@EVERY_METHOD
def test_settings_are_scikit_learns(name):
    model = METHODS[name]()
    assert clone(model).get_params() == model.get_params()
    assert fitted(name).get_params() == model.get_params()  # fit changes no setting


@EVERY_METHOD
def test_the_same_seed_gives_the_same_bits(name):
    again = fit(name, cells_of(name), n_threads=2)
    np.testing.assert_array_equal(
        again.transform(cells_of(name)), fitted(name).transform(cells_of(name))
    )


@EVERY_METHOD
def test_observed_cells_stay_and_missing_ones_are_filled(name):
    X = cells_of(name)
    filled = fitted(name).transform(X)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    assert np.isfinite(filled).all()


@EVERY_METHOD
def test_labels_in_are_labels_out(name):
    table = frame_of(name)
    model = METHODS[name]()
    filled = model.fit_transform(table)
    assert filled.index.equals(table.index)
    assert filled.columns.equals(table.columns)
    i, j = np.argwhere(table.isna().to_numpy())[0]
    cell = model.predict(table.index[i], table.columns[j])
    np.testing.assert_allclose(filled.iloc[i, j], cell, rtol=1e-6)


@EVERY_METHOD
def test_answers_agree_with_each_other(name):
    """Cells, blocks and complete tables are the same predictions."""
    completion = fitted(name).completion_
    m, n = completion.observations.shape
    rows, columns = (index.ravel() for index in np.indices((m, n)))
    cells = completion.predict(rows, columns).reshape(m, n)
    np.testing.assert_allclose(completion.predict_block(range(m), range(n)), cells, rtol=1e-5)


@EVERY_METHOD
def test_capabilities_say_what_is_supported(name):
    """What a posterior claims to support works; the rest raises NotSupportedError."""
    completion = fitted(name).completion_
    posterior = completion.posterior
    queries = [
        lambda: completion.predict_interval([0, 1], [1, 2], kind="signal"),
        lambda: completion.sample_completions(2),
    ]
    for query in queries:
        if posterior.has_draws:
            assert query() is not None
        else:
            with pytest.raises(NotSupportedError):
                query()
    predicted = completion.predict([0, 1, 2], [1, 2, 3])
    if posterior.levels is not None:
        assert np.isin(predicted, posterior.levels).all()


@EVERY_METHOD
def test_a_saved_model_answers_alike(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    loaded = fr.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict([0, 1, 5], [1, 2, 3]), model.predict([0, 1, 5], [1, 2, 3])
    )
    assert loaded.method == model.completion_.method
    assert loaded.record.rank == model.rank_


@EVERY_METHOD
def test_new_rows_are_folded_in(name):
    folded = fitted(name).fold_in(new_rows(name))
    assert isinstance(folded, fr.Completion)
    assert folded.observations.shape == new_rows(name).shape
    assert np.isfinite(folded.predict([0, 1, 2], [0, 0, 0])).all()


@EVERY_METHOD
def test_recommendations_leave_out_what_was_observed(name):
    X = cells_of(name)
    row = int(np.isnan(X).sum(axis=1).argmax())
    top = fitted(name).recommend(row, n=3)
    seen = set(np.flatnonzero(~np.isnan(X[row])))
    assert len(top) == 3
    assert not seen & set(np.asarray(top["column"]).astype(int))


@EVERY_METHOD
def test_an_unknown_label_is_an_error_that_names_it(name):
    with pytest.raises(UnknownNameError, match="999"):
        fitted(name).predict(999, 0)


@EVERY_METHOD
@pytest.mark.parametrize("X", [np.full((3, 3), np.nan), np.zeros((0, 3)), np.full((3, 3), np.inf)])
def test_unusable_tables_are_refused(name, X):
    with pytest.raises(FillrankError):
        fit(name, X)


@EVERY_METHOD
def test_the_record_says_how_the_fit_ended(name):
    record = fitted(name).completion_.record
    assert record.stop_reason
    assert record.rank >= 0
    assert all(np.isfinite(trace).all() for trace in record.history.values())


@EVERY_METHOD
def test_estimators_can_be_pickled_for_parallel_jobs(name):
    model = pickle.loads(pickle.dumps(METHODS[name]()))
    np.testing.assert_equal(model.get_params(), METHODS[name]().get_params())  # NaN equals NaN
