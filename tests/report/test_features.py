"""What plots and reports show of features."""

import warnings
from functools import cache
from types import SimpleNamespace

import matplotlib.text
import numpy as np
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError
from fillrank.report import features, html, plot
from fillrank.report.html import write_report
from fillrank.report.summary import reproduction_code
from helpers.read_page import read
from helpers.small_models import SAMPLED, fitted

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")
HOSTILE = ["<script>alert(1)</script>", r"$\frac{1}{0}$ $x", "日本語", "{{ 7 * 7 }}", "x" * 300]


@cache
def table(dates=False):
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=30), rng.normal(size=24)) + 0.2 * rng.normal(size=(30, 24))
    X[rng.random(X.shape) < 0.3] = np.nan
    names = [f"2024-05-{j + 1:02d}" if dates else f"day {j}" for j in range(24)]
    return pl.DataFrame({"id": [f"s{i}" for i in range(30)]} | dict(zip(names, X.T, strict=True)))


@cache
def people(*names):
    rng = np.random.default_rng(1)
    numbers = {name: rng.normal(size=30) for name in names or ("age", "height")}
    return pl.DataFrame(
        {"id": [f"s{i}" for i in range(30)], **numbers, "sex": ["F", "M", "X"] * 10}
    )


@cache
def model(rows=True, missingness=True, dates=False):
    settings = SAMPLED | {"missingness": missingness}
    return fr.GASR(**settings).fit(table(dates), row_features=people() if rows else None)


def texts(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_effects_are_shown_strongest_first():
    ax = plot.feature_effects(model())
    found = features.effects_of(model(), "rows")
    assert texts(ax) == found.names
    assert sorted(found.names) == ["age", "height", "sex = F", "sex = M", "sex = X"]
    assert list(found.strength) == sorted(found.strength, reverse=True)
    (dots,) = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(dots.get_xdata(), found.effect)
    (lines,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    ends = np.array(lines.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, np.column_stack([found.lower, found.upper]))
    widths = [patch.get_width() for patch in ax.patches]
    np.testing.assert_allclose(widths, 2 * found.strength)
    assert ax.get_title(loc="left") == "Features of rows: change of predictions"
    assert ax.get_xlabel() == "change of predictions, in the table's units"


@pytest.mark.parametrize("container", [dict, pl.DataFrame])
def test_effects_are_read_from_any_container(container):
    """At most twelve, the strongest first, whatever the order of the table."""
    n = 20
    table = container(
        {
            "name": [f"term {k}" for k in range(n)],
            **{name: np.arange(n) / 10 for name in ("effect", "lower", "upper", "strength")},
        }
    )
    found = features.effects_of(
        SimpleNamespace(feature_effects=lambda side, level: table), "columns", 0.8
    )
    assert found.names == [f"term {k}" for k in range(n - 1, n - 13, -1)]
    assert found.n_all == n
    assert found.reach == pytest.approx(1.9)


def test_shares_are_stacked():
    shares = features.shares_of(model())
    assert list(shares["rows"]) == ["features", "missingness", "rest"]
    assert list(shares["columns"]) == ["missingness", "rest"]
    ax = plot.variance_shares(model())
    assert texts(ax) == ["between rows", "between columns"]
    widths = [patch.get_width() for patch in ax.patches]
    expected = [100 * share for side in shares.values() for share in side.values()]
    np.testing.assert_allclose(widths, expected)
    assert sum(widths) == pytest.approx(200, abs=1e-3)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["given features", "pattern of missing values", "the rest"]


def test_times_have_a_share():
    shares = features.shares_of(model(rows=False, dates=True))
    assert list(shares["columns"]) == ["times", "missingness", "rest"]


def test_plots_take_axes():
    axes = Figure().subplots(1, 2)
    assert plot.feature_effects(model(), ax=axes[0]) is axes[0]
    assert plot.variance_shares(model(), ax=axes[1]) is axes[1]


def test_what_has_no_features_has_no_plot():
    with pytest.raises(NotSupportedError, match="Fit GASR or BPMF with row_features="):
        plot.feature_effects(model(rows=False))
    with pytest.raises(
        NotSupportedError, match='features of rows, and none of columns: set side="rows"'
    ):
        plot.feature_effects(model(), "columns")
    with pytest.raises(InputError, match="side must be"):
        plot.feature_effects(model(), "both")
    for without in (
        model(rows=False, missingness=False),
        fitted("SoftImpute")[0],
        fitted("M3F")[0],
    ):
        with pytest.raises(NotSupportedError, match="this model has none"):
            plot.variance_shares(without)


# The report.


def page_of(found, tmp_path):
    write_report(found, tmp_path / "report.html")
    return read(tmp_path / "report.html")


def test_the_report_has_effects_and_shares(tmp_path):
    page = page_of(model(), tmp_path)
    text = " ".join(page.text["features"].split())
    assert len(page.images["features"]) == 1
    for words in (
        "from the features that were given with the table",
        "from which values are missing",
        "Between rows: given features",
        "These are associations",
        "Features of rows",
        "sex = M",
        "90% interval",
    ):
        assert words in text
    assert "Features of columns" not in text
    assert "from the times" not in text
    found = features.effects_of(model(), "rows")
    drawn = [attrs for tag, attrs in page.tags if tag == "line" and attrs["class"] == "range"]
    starts = np.array([float(attrs["x1"]) for attrs in drawn])
    slope, offset = np.polyfit(found.lower, starts, 1)
    np.testing.assert_allclose(slope * found.lower + offset, starts, atol=0.06)
    assert offset == pytest.approx(160, abs=0.1)
    assert "row_features=row_features" in page.text["reproduce"]


def test_only_the_bars_where_there_is_only_the_pattern(tmp_path):
    page = page_of(model(rows=False), tmp_path)
    assert len(page.images["features"]) == 1
    assert "from which values are missing" in page.text["features"]
    assert "that were given" not in page.text["features"]
    assert "associations" not in page.text["features"]
    assert "row_features" not in page.text["reproduce"]


def test_no_section_where_there_are_no_features(tmp_path, monkeypatch):
    dot = html.render(features.variance_shares, model())
    monkeypatch.setattr(html, "render", lambda *_, **__: dot)
    for number, found in enumerate([model(rows=False, missingness=False), fitted("HASI")[0]]):
        (tmp_path / str(number)).mkdir()
        page = page_of(found, tmp_path / str(number))
        assert "features" not in page.sections
        assert "#features" not in [attrs.get("href") for _, attrs in page.tags]


def test_names_of_features_are_text_of_the_page(tmp_path, monkeypatch):
    """They are escaped, and never drawn; `plot` draws them as plain text."""
    hostile = fr.GASR(**SAMPLED).fit(table(), row_features=people(*HOSTILE))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        plot.feature_effects(hostile).figure.savefig(tmp_path / "effects.svg")
    drawn, set_text = [], matplotlib.text.Text.set_text
    monkeypatch.setattr(
        matplotlib.text.Text, "set_text", lambda self, s: (drawn.append(s), set_text(self, s))[1]
    )
    page = page_of(hostile, tmp_path)
    for name in HOSTILE[:4]:
        assert name in page.text["features"]
    assert "x" * 39 + "…" in page.text["features"]
    assert not [s for s in drawn if any(name in str(s) for name in HOSTILE)]


def test_the_code_reads_the_features():
    code = reproduction_code(model())
    compile(code, "code", "exec")
    assert 'row_features = pd.read_csv("row_features.csv", index_col=0)' in code
    assert code.endswith("model.fit(data, row_features=row_features)")
