"""Large tables: results that do not fit in memory are rejected first, and streams use little memory."""

import tracemalloc
from itertools import islice

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import InputError
from fillrank.runtime import memory
from helpers.fitted_models import DRAWN, METHODS, ORDINAL, cells_of, fitted
from helpers.quick_fits import quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

EACH = pytest.mark.parametrize("name", METHODS)
DRAWING = pytest.mark.parametrize("name", sorted(DRAWN))
MB = 10**6


@pytest.fixture
def room(monkeypatch):
    """Say how much memory there is."""

    def set_room(n_bytes):
        monkeypatch.setattr("fillrank.runtime.memory.available_memory", lambda: n_bytes)

    return set_room


def peak(work):
    """The most bytes that Python and numpy held at once, beyond those before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def few_entries(n_rows, n_columns):
    """One entry in every row and column of a large table, or more."""
    places = np.arange(max(n_rows, n_columns))
    values = np.random.default_rng(0).standard_normal(places.size)
    return fr.Observations.from_triplets(places % n_rows, places % n_columns, values)


@pytest.fixture(scope="module")
def large():
    """20,000 x 10,000: 1.6 GB of cells, if anybody made them."""
    return quick(n_sweeps=4, max_rank=2).fit(few_entries(20_000, 10_000))


# Refused beforehand


@EACH
def test_fit_transform_checks_memory_before_the_fit(name, room, monkeypatch):
    X = fr.Observations.of(cells_of(name))
    model = METHODS[name]()
    monkeypatch.setattr(model, "_fit", None)  # would fail
    room(5000)
    with pytest.raises(
        InputError, match=r"240 cells .* and 5 kB are available\. Use fit\(\), and pred"
    ):
        model.fit_transform(X)
    assert not hasattr(model, "posterior_")


@EACH
def test_tables_that_cannot_fit_are_refused(name, room):
    model, cells = fitted(name), cells_of(name)
    X = fr.Observations.of(cells)
    room(5000)
    with pytest.raises(InputError, match=r"240 cells .* Give fewer rows at a time"):
        model.transform(X)
    with pytest.raises(InputError, match="Give fewer rows at a time"):
        model.predict(X)
    with pytest.raises(InputError, match=r"240 cells .* Request fewer rows at a time"):
        model.predict_block(np.arange(20), np.arange(12))
    with pytest.raises(InputError, match=r"240 lines .* or a smaller n"):
        model.recommend(n=12)
    assert model.predict_block([3], np.arange(12)).shape == (1, 12)
    assert model.transform(cells[:3]).shape == (3, 12)
    assert len(model.recommend(n=1)) <= 20


@DRAWING
def test_completions_that_cannot_fit_are_refused(name, room):
    room(20 * 12 * 24 * 3)
    assert len(fitted(name).sample_completions(3)) == 3
    with pytest.raises(
        InputError, match=r"960 cells .* Use predict_missing\(n_draws=\.\.\.\), in par"
    ):
        fitted(name).sample_completions(4)
    room(0)
    assert sum(map(len, fitted(name).predict_missing(n_draws=4))) > 0


@EACH
def test_unknown_available_memory_is_no_limit(name, room):
    room(None)
    X = cells_of(name)
    assert np.isfinite(fitted(name).transform(X)).all()
    assert fitted(name).predict_block(np.arange(20), np.arange(12)).shape == (20, 12)


def test_refusals_come_before_anything_large(large, room):
    rows, columns = np.arange(20_000), np.arange(10_000)
    large.predict_block(0, 0)  # names are numbered at the first question
    room(10**9)

    def ask(question, match):
        with pytest.raises(InputError, match=match):
            question()

    for question, match in (
        (lambda: large.predict_block(rows, columns), r"200,000,000 cells .* 4\.8 GB"),
        (lambda: large.sample_completions(1), r"4\.8 GB .* predict_missing"),
        (lambda: large.transform(large.observations_), r"4\.8 GB .* fewer rows"),
        (lambda: large.recommend(n=10_000), "200,000,000 lines .* 20 GB"),
    ):
        assert peak(lambda question=question, match=match: ask(question, match)) < 50 * MB


def test_large_memory_is_reported(room, monkeypatch, capsys):
    X = table()
    model = quick(progress=True).fit(X)
    capsys.readouterr()
    model.transform(X)
    assert "cells takes" not in capsys.readouterr().err
    monkeypatch.setattr("fillrank.runtime.memory._MUCH_MEMORY", 7000)
    model.transform(X)
    assert "a table of 300 cells takes 7.2 kB while it is made." in capsys.readouterr().err
    quick(progress=False).fit(X).transform(X)
    assert capsys.readouterr().err == ""


# What is said is enough


@pytest.mark.parametrize(
    ("name", "kind"),
    [("GASR", np.asarray), ("GASR", pd.DataFrame), ("HASI", np.asarray), ("M3F", np.asarray)],
)
def test_a_table_takes_no_more_memory_than_estimated(name, kind):
    n_rows, n_columns = (1500, 200) if kind is pd.DataFrame else (200, 1500)
    X = np.full((n_rows, n_columns), np.nan)
    data = few_entries(n_rows, n_columns)
    values = np.clip(np.rint(3 + data.values), 1, 5) if name in ORDINAL else data.values
    X[data.row_index, data.column_index] = values
    X = kind(X)
    model = METHODS[name]().set_params(max_rank=1).fit(X)
    bytes_per_cell = memory._BYTES_PER_LEVEL_CELL if name in ORDINAL else memory._BYTES_PER_CELL
    said = bytes_per_cell * n_rows * n_columns
    rows, columns = np.arange(n_rows), np.arange(n_columns)
    model.predict_block(rows, columns)  # compiles
    model.transform(X)
    besides = 2 * MB  # for what does not grow with the cells
    assert 8 * X.size < peak(lambda: model.predict_block(rows, columns)) < said + besides
    assert peak(lambda: model.transform(X)) < said + besides
    if name in DRAWN:
        assert peak(lambda: model.sample_completions(3)) < 3 * said + besides


# What streams


def test_missing_cells_stream_in_little_memory():
    model = quick(n_sweeps=5, max_rank=3).fit(few_entries(500, 20_000))
    asked = {"level": 0.9, "n_draws": 2}
    next(model.predict_missing(**asked))  # compiles

    def first_blocks():
        for block in islice(model.predict_missing(**asked), 2):
            assert 200_000 < len(block) <= 2**18

    assert peak(first_blocks) < 100 * MB


def test_a_row_of_any_width_streams():
    width = 600_000
    entries = np.arange(0, width, 1000)
    values = np.random.default_rng(0).standard_normal(entries.size)
    X = sp.coo_array((values, (np.zeros(entries.size, dtype=int), entries)), shape=(1, width))
    model = fr.SoftImputeALS(
        penalty=1.0, max_rank=1, max_iterations=1, n_threads=1, progress=False
    ).fit(X)
    blocks = model.predict_missing()

    def first_block():
        block = next(blocks)
        assert len(block) == width - entries.size
        assert np.isfinite(block["value"]).all()

    assert peak(first_block) < 100 * width
    assert next(blocks, None) is None


def test_a_few_rows_of_a_large_table(large):
    """Predictions, recommendations and new rows of a table whose cells nobody could hold."""
    rows = np.array([0, 1, 17, 10_000, 19_999])
    large.recommend(rows)  # compiles, and numbers the names

    def ask():
        for by in ("mean", "cautious", "curious"):
            assert len(large.recommend(rows, by=by, random_state=0)) == 50
        assert len(large.recommend(rows, leave_out=large.observations_)) == 50
        assert large.predict_block(rows, np.arange(10_000)).shape == (5, 10_000)
        new = fr.Observations.from_triplets(["Zoe", "Zoe"], [3, 4], [0.1, 0.2])
        zoe = large.fold_in(new)
        assert len(zoe.recommend("Zoe", n=3)) == 3
        assert len(next(zoe.predict_missing(level=0.9))) == 9_998
        assert len(next(large.predict_missing())) > 200_000

    assert peak(ask) < 100 * MB
