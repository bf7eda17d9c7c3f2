"""Warnings and notes at the top of the report, in the words of the interface that made it."""

import numpy as np
import pytest

import fillrank as fr
from fillrank.completions import convergence
from fillrank.errors import describe
from fillrank.report import charts, html, style
from fillrank.report.distributions import HEIGHT, distributions_of
from fillrank.report.html import write_report
from fillrank.report.interface import Interface
from helpers.mixed_tables import mixed_model
from helpers.read_page import DOT, read
from helpers.small_models import SAMPLED, fit, fitted, parts_of

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")

COMMAND = Interface(
    setting=lambda setting: f"--{setting.name} {setting.value or ''}".strip(),
    note=lambda note: note.replace("dates", "days"),
    command="fillrank report '<b>.csv'",
    to_hold_out="fillrank report '<b>.csv' --hold-out 0.1",
    notes=("Read <i>: a wide table.",),
)


@pytest.fixture
def page_of(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "render", lambda *_, **__: DOT)

    def write(model, **options):
        write_report(model, tmp_path / "report.html", **options)
        return read(tmp_path / "report.html")

    return write


def test_a_run_that_has_not_converged_is_the_first_warning(page_of):
    model = fit(fr.GASR(**SAMPLED | {"n_sweeps": 4}), parts_of("GASR")[0])
    summary = page_of(model).text["summary"]
    first = summary.index("Check this first")
    assert first < summary.index("The run has not converged: ") < summary.index("The table has")
    assert "Set n_sweeps above the 4 of this run." in summary
    assert "n_sweeps" not in page_of(model, interface=COMMAND).text["summary"].replace("--n_s", "")
    assert "Set --n_sweeps above" in page_of(model, interface=COMMAND).text["summary"]


def test_without_a_warning_there_is_no_box(page_of, monkeypatch):
    model, _ = fitted("SoftImpute")
    assert "Check this first" not in page_of(model).text["summary"]


def test_few_draws_are_reported(page_of, monkeypatch):
    model, _ = fitted("GASR")
    monkeypatch.setattr(convergence, "convergence_of", lambda model: convergence.Convergence(True))
    monkeypatch.setattr(convergence, "SMALLEST_ESS", model.posterior_.n_draws)
    assert convergence.few_draws(model) is None
    monkeypatch.setattr(convergence, "SMALLEST_ESS", model.posterior_.n_draws + 1)
    text = describe(convergence.few_draws(model))
    assert text.startswith(f"Only {model.posterior_.n_draws} draws")
    assert text.endswith("Lower max_rank, or fit a subset of the rows.")


def test_notes_say_what_was_understood(page_of):
    model, _ = mixed_model()
    notes = page_of(model).text["summary"].partition("What was understood of the table")[2]
    for note in model.completion_.record.notes:
        assert note in notes
    notes = page_of(model, interface=COMMAND).text["summary"].partition("understood")[2]
    assert "Read <i>: a wide table." in notes
    assert "holds days" in notes
    assert "dates" not in notes
    assert "the option --kinds." in page_of(model, interface=COMMAND).text["columns"]


def test_the_command_comes_before_python(page_of):
    model, _ = fitted("GASR")
    page = page_of(model, interface=COMMAND)
    assert COMMAND.to_hold_out in page.text["held-out"]
    text = page.text["reproduce"]
    assert text.index(COMMAND.command) < text.index("In Python") < text.index("fr.GASR(")
    few = page_of(model, interface=COMMAND._replace(to_hold_out=""))
    assert "too few entries" in few.text["held-out"]
    assert "In Python" not in page_of(model).text["reproduce"]


def test_plots_have_no_style_of_their_own_and_tips(tmp_path):
    model, test = fitted("GASR")
    write_report(model, tmp_path / "report.html", test=test)
    page = read(tmp_path / "report.html")
    assert f"{model.rank_}: " in page.text["factors"]
    assert "chain 1" in page.text["convergence"]
    assert "level of the intervals 90: coverage of held-out values" in page.text["held-out"]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    links = {attrs["href"] for tag, attrs in page.tags if tag == "use"}
    assert links <= {f"#{each}" for each in ids}
    drawn = [attrs for tag, attrs in page.tags if tag == "path"]
    assert any("fill-ink" in attrs.get("class", "") for attrs in drawn)
    assert not any("#1f4e79" in str(attrs) for attrs in drawn)


def test_many_points_are_an_image():
    def draw(n, ax):
        ax.scatter(np.arange(n), np.arange(n))
        return ax

    few, many = (charts.render(lambda ax, n=n: draw(n, ax)).svg for n in (50, 5000))
    assert "<image" not in few
    assert "<image" in many
    assert len(many) < 200_000


def test_text_of_plots_is_escaped():
    def draw(ax):
        ax.bar([0], [1])
        ax.set_xticks([0], ["<script>alert(1)</script>"])
        ax.set_title("<b>", loc="left")
        return ax

    svg = charts.render(draw).svg
    assert "<script" not in svg
    assert "<b>" not in svg
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: 1" in svg


def test_distributions_are_those_of_the_columns():
    model, _ = mixed_model()
    data = model.observations_
    labels = data.column_labels.tolist()
    found = distributions_of(model, range(len(labels)))
    stars = found[labels.index("stars")].bars
    own = data.values[data.columns == "stars"]
    shares = [np.mean(own == value) for value in np.unique(own)]
    assert [bar.tip.partition(":")[0] for bar in stars] == ["1", "2", "3", "4", "5"]
    for bar, share in zip(stars, shares, strict=True):
        assert f": {share:.0%} of observed values" in bar.tip
    heights = [bar.observed for bar in stars]
    np.testing.assert_allclose(
        np.array(heights) / max(heights), np.array(shares) / max(shares), atol=0.01
    )
    for each in found.values():
        assert max(max(bar.observed, bar.filled) for bar in each.bars) == HEIGHT


def test_titles_are_text_of_the_page_and_plots_are_described():
    def draw(ax):
        ax.plot([1, 2], [1, 2])
        style.finish_axes(ax, "What follows", "sweep", "residual,\nin units")
        return ax

    chart = charts.render(draw)
    assert chart.title == "What follows"
    assert "What follows" not in chart.svg
    assert 'aria-label="Plot of residual, in units against sweep"' in chart.svg


def test_densities_are_images():
    """Colours that stand for numbers follow the page as a whole, or not at all."""

    def draw(ax):
        ax.hexbin([0, 1, 1], [0, 1, 1], gridsize=5, cmap=style.density_colours(), mincnt=1)
        return ax

    assert "<image" in charts.render(draw).svg
