import math
import re
import tracemalloc
from dataclasses import replace

import jinja2
import matplotlib.text
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure

import fillrank as fr
from fillrank.errors import InputError, OutputError
from fillrank.posterior import diagnostics
from fillrank.report import held_out, html, style
from fillrank.report.html import write_report
from fillrank.report.summary import describe_convergence, format_number, list_diagnostics
from helpers.read_page import DOT, Page, read
from helpers.small_models import DRAWN, METHODS, SAMPLED, fit, fitted, parts_of

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</svg></title></style><b>",
    "--><!--",
    "&lt;b&gt; &amp;",
    "{{ 7 * 7 }}{% raw %}",
    r"$\frac{1}{0}$ $x",
    "שלום עולם",
    "\u202eexe.gpj",
    "👨‍👩‍👧 family",
    "日本語",
    "x" * 300,
    "two\nlines\r\n",
    "a tab\tand \x00\x1b[31m",
    "lone \ud800",
    "",
    "javascript:alert(1)",
    "%s {0} %(x)s",
    "plain",
]


@pytest.fixture
def no_plots(monkeypatch):
    """Replace plots by an image of one dot: drawing takes most of the time."""
    monkeypatch.setattr(html, "render", lambda *_, **__: DOT)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_held_out_entries(name, tmp_path):
    model, test = fitted(name)
    write_report(model, tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    drawn = name in DRAWN
    assert len(page.images["table"]) == 2
    assert len(page.images["held-out"]) == (4 if drawn else 2)
    assert "Columns, worst first" in page.text["held-out"]
    assert ("in 90% intervals" in page.text["held-out"]) == drawn
    assert f"Predictions of {len(test)} held-out entries" in page.text["summary"]
    assert ("certainty" in page.images) == drawn
    assert ("has no posterior draws" in page.text["factors"]) == (not drawn)
    assert ("without intervals" in page.text["certainty"]) == (not drawn)
    assert len(page.images.get("factors", [])) == (2 if drawn else 0 if "IPM3F" in name else 1)
    assert ("R-hat" in page.text["convergence"]) == (drawn or name == "IPM3F gibbs")
    assert "near each other" in page.text["maps"]
    assert f"fr.{type(model).__name__}(" in page.text["reproduce"]


@pytest.mark.parametrize("name", ["GASR", "M3F"])
def test_without_held_out_entries_it_shows_how_to_hold_some_out(name, tmp_path, no_plots):
    write_report(fitted(name)[0], tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "held-out" not in page.images
    assert "data.split(0.1, random_state=0)" in page.text["held-out"]
    assert "size of errors is unknown" in page.text["summary"]
    assert "typical error" not in page.text["summary"]


def test_the_summary_has_the_numbers_of_the_model(tmp_path, no_plots):
    model, test = fitted("GASR")
    write_report(model, tmp_path / "report.html", test=test, title="Foods")
    page = read(tmp_path / "report.html")
    summary = page.text["summary"]
    n = len(model.observations_)
    assert f"{n} of its 600 cells are observed" in summary
    assert f"the other {600 - n} are filled in" in summary
    error = fr.score(test, model)["rmse"]
    assert f"error of {format_number(error)};" in summary
    share = model.rank_probabilities_[model.rank_]
    assert (
        f"{model.rank_} factors are stronger than the noise in {style.format_percent(share)} of the "
        "draws" in summary
    )
    assert [attrs for tag, attrs in page.tags if tag == "h1"]


def test_columns_are_listed_worst_first(tmp_path, no_plots):
    model, test = fitted("GASR")
    write_report(model, tmp_path / "report.html", test=test)
    assert "not shown" not in read(tmp_path / "report.html").text["held-out"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    body = page.partition("Columns, worst first")[2].partition("</table>")[0]
    lines = [re.findall(r"<td.*?>(?:<bdi>)?([^<]*)", line) for line in body.split("</tr>")[1:-1]]
    lines = [[line[0], *line[2:]] for line in lines]  # without the plot of the distribution
    table = fr.score_by_column(test, model)
    assert [line[0] for line in lines] == table["column"].tolist()
    for line, own in zip(lines, table.itertuples(), strict=True):
        assert line[1:3] == [str(own.entries), f"{own.missing:.0%}"]
        assert float(line[3]) == pytest.approx(own.rmse, rel=0.05)
        assert line[4] == f"{own.rmse_in_sd:.2f}"
        assert float(line[5]) == pytest.approx(own.mean_error, abs=0.05 * own.rmse)
        assert line[6] == f"{own.coverage:.0%}"


def test_only_the_worst_of_many_columns_are_listed(tmp_path, no_plots):
    data, _ = fr.synthetic(40, 30, rank=1, noise=0.2, missing=0.1, random_state=0)
    train, test = data.split(0.2, random_state=0)
    write_report(fit(fr.GASR(**SAMPLED), train), tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    assert "10 more columns are not shown." in page.text["held-out"]


@pytest.mark.parametrize("n_bad", [0, 1, 7])
def test_columns_that_are_predicted_badly_are_named_at_the_top(n_bad, tmp_path, no_plots):
    data, _ = fr.synthetic(80, 12, rank=1, noise=0.2, missing=0.0, random_state=0)
    names = np.array([f"<b>bad</b> {j}" if j < n_bad else f"good {j}" for j in range(12)])
    data = fr.Observations.from_triplets(data.rows, names[data.columns], data.values)
    train, test = data.split(0.5, random_state=0)
    is_bad = np.char.startswith(test.columns.astype(str), "<b>")
    values = np.where(is_bad, -10 * test.values, test.values)  # as if in another unit
    wrong = fr.Observations.from_triplets(test.rows, test.columns, values)
    write_report(fit(fr.GASR(**SAMPLED), train), tmp_path / "report.html", test=wrong)
    summary = " ".join(read(tmp_path / "report.html").text["summary"].split())
    worse = (
        r"Column <b>bad</b> \d: predictions are worse than the column mean \(error [0-9.]+ stand"
    )
    assert len(re.findall(worse, summary)) == min(n_bad, 5)
    assert "Column good" not in summary
    assert ("2 more columns are predicted as badly" in summary) == (n_bad == 7)


def hostile_model():
    rng = np.random.default_rng(0)
    n = len(HOSTILE)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, n)) + 0.1 * rng.normal(size=(n, n))
    i, j = np.nonzero(rng.random((n, n)) < 0.6)
    names = np.array(HOSTILE, dtype=object)
    data = fr.Observations.from_triplets(names[i], names[j], X[i, j])
    return fit(fr.GASR(**SAMPLED), data), data


def test_labels_and_titles_are_escaped(tmp_path, monkeypatch):
    model, data = hostile_model()
    drawn = []
    set_text = matplotlib.text.Text.set_text
    monkeypatch.setattr(
        matplotlib.text.Text, "set_text", lambda self, s: (drawn.append(s), set_text(self, s))[1]
    )
    title = HOSTILE[3] + HOSTILE[0]
    path = tmp_path / "report.html"
    write_report(model, path, test=data, title=title)
    page = read(path)

    raw = path.read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", raw)
    # On the map every row has its label as a tooltip, unchanged.
    names = [text.strip() for text in page.text["maps"].splitlines()]
    for name in (*HOSTILE[:7], "שלום עולם", "👨‍👩‍👧 family", "日本語", "two lines", "(blank)"):
        assert any(name in line for line in names), name
    assert "49" not in [line for line in names if "raw" in line]
    assert "x" * 79 + "…" in page.text["maps"]
    assert not [s for s in drawn if any(len(name) > 5 and name in str(s) for name in HOSTILE)]


def test_a_page_without_escaping_is_detected(tmp_path, monkeypatch, no_plots):
    model, _ = hostile_model()
    environment = jinja2.Environment
    monkeypatch.setattr(
        jinja2, "Environment", lambda **options: environment(**options | {"autoescape": False})
    )
    write_report(model, tmp_path / "report.html")
    faults = Page((tmp_path / "report.html").read_text(encoding="utf-8")).faults
    assert {"tag b", "attribute onerror"} & set(faults)


@pytest.mark.parametrize("name", ["GASR", "SoftImpute", "IPM3F"])
def test_a_model_saved_without_entries_has_a_report(name, tmp_path):
    model, test = fitted(name)
    model.save(tmp_path / "model")
    loaded = fr.load(tmp_path / "model")
    write_report(loaded, tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    assert "without its entries" in page.text["table"]
    assert len(page.images["table"]) == 1
    assert "held-out" in page.images
    if name == "GASR":  # its traces have the number of entries
        assert f"{len(model.observations_)} of its 600 cells" in page.text["summary"]
        assert "these are from all cells" in page.text["certainty"]
    else:
        assert "without the entries that it was fitted to" in page.text["summary"]


@pytest.mark.parametrize("name", ["GASR", "SoftImputeALS", "M3F"])
def test_a_model_of_folded_in_rows_has_a_report(name, tmp_path, no_plots):
    model, _ = fitted(name)
    new = model.fold_in(parts_of(name, n_rows=5)[0])
    write_report(new, tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "folded in after the fit" in page.text["convergence"]
    assert "by fold_in" in page.text["reproduce"]


def test_a_run_that_is_too_short_is_not_converged(tmp_path, no_plots):
    train, _ = parts_of("GASR")
    write_report(fit(fr.GASR(**SAMPLED | {"n_sweeps": 4}), train), tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "not converged" in page.text["summary"]
    assert "The run has not converged: 2 draws in a chain are too few" in page.text["summary"]
    assert "No. What to do is at the top." in page.text["convergence"]


def test_held_out_entries_that_were_fitted_are_reported(tmp_path, no_plots):
    model, test = fitted("GASR")
    both = fit(METHODS["GASR"](), fr.Observations.from_triplets(
        np.concatenate([model.observations_.rows, test.rows]),
        np.concatenate([model.observations_.columns, test.columns]),
        np.concatenate([model.observations_.values, test.values]),
    ))  # fmt: skip
    write_report(both, tmp_path / "bad.html", test=test)
    assert (
        f"{len(test)} of the held-out entries were also fitted"
        in read(tmp_path / "bad.html").text["summary"]
    )
    # The error of a model of all entries is from one that was fitted without the test entries.
    write_report(both, tmp_path / "good.html", test=test, tested=model)
    summary = read(tmp_path / "good.html").text["summary"]
    assert "also fitted" not in summary
    assert f"error of {format_number(fr.score(test, model)['rmse'])};" in summary
    assert f"{len(both.observations_)} of its 600 cells" in summary
    assert "from a fit without those entries" in summary


@pytest.mark.parametrize(
    "cells",
    [[[1.0, 2.0], [3.0, 4.0]], [[2.0, 2.0, np.nan], [2.0, np.nan, 2.0]], [[1.0, 3.0, np.nan]]],
    ids=["complete", "constant", "one row"],
)
@pytest.mark.filterwarnings("error::UserWarning:matplotlib")
def test_degenerate_tables_have_a_report(cells, tmp_path):
    write_report(fit(fr.GASR(**SAMPLED), cells), tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    complete = not np.isnan(cells).any()
    assert ("no missing values" in page.text["summary"]) == complete
    assert ("no missing cell" in page.text["certainty"]) == complete


def test_a_failed_report_leaves_the_old_file(tmp_path, monkeypatch):
    model, test = fitted("SoftImpute")
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(fr.FillrankError):
        write_report(
            model, path, test=fr.Observations.from_triplets(["nobody"], ["column 1"], [1.0])
        )
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]

    monkeypatch.setattr(html, "_page", lambda *_: pytest.fail("made before the file was opened"))
    with pytest.raises(OutputError, match="folder does not exist"):
        write_report(model, tmp_path / "none" / "report.html", test=test)


def test_an_empty_test_is_refused(tmp_path):
    model, test = fitted("SoftImpute")
    empty = test._select(np.zeros(0, dtype=int))
    with pytest.raises(InputError, match="at least one held-out entry"):
        write_report(model, tmp_path / "report.html", test=empty)


def test_write_report_is_available_from_the_package(tmp_path, no_plots):
    model, _ = fitted("SoftImpute")
    assert fr.plot.matrix is not None
    fr.write_report(model, tmp_path / "report.html", title="From the package")
    assert read(tmp_path / "report.html").sections


@pytest.mark.parametrize(
    ("attribute", "ended", "advice"),
    [
        ("interrupted", "interrupted after 30 of at most 40 sweeps", "Call run_longer"),
        ("reached_limit", "the limit of 30 sweeps was reached; it is long", "Set n_sweeps=60"),
    ],
)
def test_runs_that_ended_early_have_not_converged(
    attribute, ended, advice, tmp_path, no_plots, monkeypatch
):
    completion = fitted("GASR")[0].completion_
    changes = {attribute: True, "stop_reason": ended, "n_sweeps": 30}
    model = replace(completion, record=replace(completion.record, **changes))
    monkeypatch.setattr(diagnostics, "LARGEST_RHAT", math.inf)
    monkeypatch.setattr(diagnostics, "SMALLEST_ESS", 0)
    verdict = describe_convergence(model)
    assert (verdict.short, verdict.tone) == ("not converged", "bad")
    assert f"The run has not converged: {ended}. {advice}" in verdict.long
    # The other quantities have converged, so the reason has its own row.
    rows = {row.quantity: row.state for row in list_diagnostics(model.diagnostics())}
    assert rows["typical prediction"] == rows["worst 5% of predictions"] == "converged"
    assert rows["length of the run"] == "not converged"
    write_report(model, tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "not converged" in page.text["summary"]
    assert f"Why it ended: {ended}." in page.text["convergence"]


def test_a_monte_carlo_error_that_is_too_large_has_a_line():
    model, _ = fitted("GASR")
    found = replace(model.diagnostics(), added_error=0.036)
    row = list_diagnostics(found)[-1]
    assert (row.quantity, row.error) == ("mean of all draws", "3.6%")
    assert row.state == "not converged"


@pytest.mark.parametrize("name", ["SoftImpute", "SoftImputeALS", "HASI", "RelaxedSpectral", "M3F"])
def test_optimisers_that_have_not_converged_are_reported(name, tmp_path, no_plots):
    train, _ = parts_of(name)
    penalty = {} if name in ("HASI", "RelaxedSpectral") else {"penalty": 0.5}
    model = getattr(fr, name)(max_iterations=3, random_state=0, progress=False, **penalty)
    with pytest.warns(fr.ConvergenceWarning, match=f"{name} has not converged: ") as caught:
        model.fit(train)
    assert not model.converged_
    model.save(tmp_path / "model.fillrank")
    for each in (model, fr.load(tmp_path / "model.fillrank")):
        verdict = describe_convergence(each)
        assert (verdict.short, verdict.tone) == ("not converged", "bad")
        warned = str(caught[-1].message).removeprefix(name)
        assert verdict.long.startswith(f"The fit{warned}")
        assert "Raise max_iterations" in verdict.long


def test_a_small_table_is_reported(tmp_path, no_plots):
    X = np.full((4, 3), np.nan)
    X[0, 0] = 1.0
    with pytest.warns(fr.SmallTableWarning, match="the table has 1 entry;"):
        model = fit(fr.GASR(**SAMPLED), X)
    write_report(model, tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "The table has 1 entry; credible intervals need 3" in page.text["summary"]


def test_a_big_sparse_table_takes_little_memory(tmp_path, monkeypatch):
    # All plots are made; only their rendering, which takes most of the time, is skipped.
    monkeypatch.setattr(Figure, "savefig", lambda self, out, **_: out.write(b"<svg/>"))
    m, n, n_entries = 50_000, 20_000, 100_000
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, m * n, n_entries))
    i, j = np.divmod(cells, n)
    data = fr.Observations.from_matrix(sp.coo_array((rng.normal(size=i.size), (i, j)), (m, n)))
    # The features of missing values take most of the fit, and are no part of the report.
    model = fit(fr.GASR(**SAMPLED | {"n_sweeps": 6, "missingness": False}), data)
    tracemalloc.start()
    write_report(model, tmp_path / "report.html", test=data[np.arange(500)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A byte for each cell would be 1,000 MB.
    assert peak < 400e6
    page = read(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3e6
    assert "a random sample of 200,000 is shown" in page.text["certainty"]
    assert "1,000 are shown" in page.text["maps"]
    assert "each dot is a block of cells" in page.text["table"]


def test_missing_shares_are_those_of_the_table(tmp_path, no_plots):
    """Held-out entries are missing for the model that predicts them, but not in the table."""
    data, _ = fr.synthetic(40, 8, rank=1, noise=0.2, missing=0.0, random_state=0)
    train, test = data.split(0.2, random_state=0)
    model, tested = fit(fr.GASR(**SAMPLED), data), fit(fr.GASR(**SAMPLED), train)
    write_report(model, tmp_path / "report.html", test=test, tested=tested)
    page = read(tmp_path / "report.html")
    table = page.text["held-out"].partition("Columns, worst first")[2]
    assert table.count("0%") >= 8
    assert len(page.images["table"]) == 1  # the completed table is the same
    assert "missing values are white" not in page.text["table"]


@pytest.mark.parametrize("tested_units", ["table", "columns"])
def test_errors_are_in_the_units_of_the_model_that_predicts(tested_units, tmp_path, no_plots):
    data, _ = fr.synthetic(40, 8, rank=1, noise=0.2, missing=0.1, random_state=0)
    train, test = data.split(0.2, random_state=0)
    other = {"table": "columns", "columns": "table"}[tested_units]
    model = fit(fr.GASR(**SAMPLED, units=other), data)
    tested = fit(fr.GASR(**SAMPLED, units=tested_units), train)
    write_report(model, tmp_path / "report.html", test=test, tested=tested)
    summary = read(tmp_path / "report.html").text["summary"]
    error = held_out.predict_held_out(tested, test).rmse
    standard = tested_units == "columns"
    assert (f"{format_number(error)} SD" in summary) == standard
    assert ("standard deviations of the column; half" in summary) == standard


@pytest.mark.parametrize(("n_missing", "n_tables"), [(3, 1), (20, 1), (21, 2)])
def test_few_missing_cells_are_one_table(n_missing, n_tables, tmp_path, no_plots):
    data, _ = fr.synthetic(12, 10, rank=1, noise=0.2, missing=0.0, random_state=0)
    some = np.random.default_rng(0).permutation(len(data))[n_missing:]
    write_report(fit(fr.GASR(**SAMPLED), data[np.sort(some)]), tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert ("The least certain cells" in page.text["certainty"]) == (n_tables == 2)
    assert ("certainty" in page.images) == (n_tables == 2)


def test_columns_with_few_held_out_entries_come_last(tmp_path, no_plots):
    data, _ = fr.synthetic(100, 6, rank=1, noise=0.2, missing=0.0, random_state=0)
    train, test = data.split(0.3, random_state=0)
    own = test.columns == test.columns[0]
    test = test[np.flatnonzero(~own | (np.cumsum(own) <= 3))]
    model = fit(fr.GASR(**SAMPLED), train)
    write_report(model, tmp_path / "report.html", test=test)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    body = page.partition("Columns, worst first")[2].partition("</table>")[0]
    names = re.findall(r"<tr.*?><td.*?><bdi>(.*?)</bdi>", body)
    assert names[-1] == str(test.columns[0])
    assert "Columns with fewer than 20 held-out entries" in page
    table = fr.score_by_column(test, model)
    expected = [str(name) for name in table["column"] if str(name) != names[-1]]
    assert names[:-1] == expected
