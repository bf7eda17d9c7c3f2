"""Summaries of fitted models, and how notebooks show models and diagnostics."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import NotFittedError

import fillrank as fr
from helpers.fitted_models import DRAWN, METHODS, fitted, new_rows
from helpers.quick_fits import quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")

HOSTILE = "<script>alert('x')</script> & $a$"


def line(model, title):
    return dict(model.summary().lines)[title]


@pytest.fixture(scope="module")
def run():
    data, truth = fr.synthetic(80, 50, rank=2, noise=0.3, missing=0.5, random_state=0)
    return fr.GASR(n_sweeps=300, random_state=0, progress=False).fit(data), data, truth


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_summary(name):
    model = fitted(name)
    titles = [title for title, _ in model.summary().lines]
    assert titles[:4] == ["Method", "Table", "Columns", "Rank"]
    assert titles[-1] == "Next"
    assert ("Noise level" in titles) == (name in DRAWN)
    assert "Converged" in titles
    assert line(model, "Method") == model.completion_.method
    assert line(model, "Table").startswith("20 rows x 12 columns, ")
    assert str(model.rank_) in line(model, "Rank")
    assert model.summary().lines == model.completion_.summary().lines


def test_the_numbers_of_a_run(run):
    model, data, _ = run
    assert f"{len(data):,} entries" in line(model, "Table")
    assert line(model, "Columns") == "50 of numbers"
    noise = float(line(model, "Noise level").split(",")[0])
    assert noise == pytest.approx(model.noise_variance_**0.5, rel=0.01)
    assert line(model, "Converged").startswith("yes: all 300 sweeps")


def test_the_expected_error_is_near_the_true_one(run):
    """Over 16 tables the ratio was 1.00 with a standard deviation of 0.05; false alarms below 1e-5."""
    model, _, truth = run
    total, signal = map(float, re.findall(r"\d\S*", line(model, "Expected error")))
    errors = model.predict_block(range(80), range(50)) - truth
    true = np.sqrt(np.mean(errors**2))
    assert signal == pytest.approx(true, rel=0.25)
    assert total == pytest.approx(np.hypot(signal, model.noise_variance_**0.5), rel=0.01)


def test_the_expected_error_has_the_units_of_the_table(run):
    model, data, _ = run
    large = fr.Observations.from_triplets(data.rows, data.columns, 1000.0 * data.values)
    other = fr.GASR(n_sweeps=300, random_state=0, progress=False).fit(large)
    expected, found = (float(line(each, "Expected error").split()[0]) for each in (model, other))
    assert found == pytest.approx(1000.0 * expected, rel=0.01)


def test_a_run_that_has_not_converged_says_what_to_do():
    model = quick(n_sweeps=10).fit(table())
    assert line(model, "Converged").startswith("no: ")
    assert "n_sweeps" in line(model, "Converged")


def test_a_solver_has_the_error_of_entries_it_held_out():
    model = fitted("SoftImpute")
    best = min(point.validation_error for point in model.path_)
    assert float(line(model, "Expected error").split(",")[0]) == pytest.approx(best, rel=0.01)


def test_models_from_files_and_of_new_rows(tmp_path):
    model = fitted("GASR")
    model.save(tmp_path / "model")
    loaded = fr.load(tmp_path / "model")
    assert "without the entries" in line(loaded, "Table")
    assert line(loaded, "Converged") == line(model, "Converged")
    new = model.fold_in(new_rows("GASR"))
    assert "folded in" in line(new, "Converged")
    assert "Expected error" not in dict(new.summary().lines)


def test_a_table_of_mixed_kinds_and_hostile_labels():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame(
        {"x": x, "y": x + rng.normal(size=60), HOSTILE: np.where(x > 0, "yes", "no")}
    )
    frame.loc[3, HOSTILE] = None
    model = quick(n_sweeps=40).fit(frame)
    assert line(model, "Columns") == "2 of numbers, 1 of two values"
    assert "Noise level" not in dict(model.summary().lines)
    assert any("<script>" in text for _, text in model.summary().lines)
    for html in (
        model.summary()._repr_html_(),
        model.completion_._repr_html_(),
        model._repr_html_(),
        model._repr_mimebundle_()["text/html"],
    ):
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert" in html


def test_many_notes_are_cut():
    model = fitted("GASR").completion_
    notes = [f"note {k}" for k in range(9)]
    many = replace(model, record=replace(model.record, notes=notes))
    shown = [text for title, text in many.summary().lines if title == "Note"]
    assert shown == [*notes[:5], "4 more are in notes_."]


def test_text_is_aligned_and_wrapped(run):
    text = str(run[0].summary())
    assert text == repr(run[0].summary())
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) > len(run[0].summary().lines)  # something was wrapped
    width = lines[0].index("GASR")
    assert all(each[width - 1] == " " and each[width] != " " for each in lines)


def test_html_before_and_after_a_fit(run):
    unfitted = fr.GASR()
    before = sklearn.base.BaseEstimator._repr_mimebundle_(unfitted)["text/html"]
    assert unfitted._repr_mimebundle_()["text/html"][:500] == before[:500]
    assert "Expected error" not in before
    after = run[0]._repr_mimebundle_()
    assert after["text/plain"] == repr(run[0])
    assert after["text/html"].startswith("<table>")
    assert "Expected error" in after["text/html"]
    assert "sk-" in after["text/html"]
    with sklearn.config_context(display="text"):
        assert "text/html" not in run[0]._repr_mimebundle_()


def test_no_summary_before_a_fit():
    with pytest.raises(NotFittedError):
        fr.GASR().summary()


def test_html_of_diagnostics(run):
    found = run[0].diagnostics()
    html = found._repr_html_()
    for name, judged in found.quantities.items():
        assert name in html
        assert f"{judged.rhat:.3f}" in html
    assert "converged" in html
    assert html.count("<tr>") == 1 + len(found.quantities)
