import subprocess
import sys

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import fillrank as fr
from fillrank.report import held_out, plot, run_plots, style
from fillrank.solvers.rank import detection_level
from helpers.processes import LIMIT

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")


def quick(data, **settings):
    settings = {"n_sweeps": 60, "n_chains": 1, "random_state": 0, "progress": False} | settings
    return fr.GASR(**settings).fit(data)


@pytest.fixture(scope="module")
def parts():
    data, _ = fr.synthetic(60, 40, rank=2, noise=0.3, missing=0.3, random_state=0)
    return data.split(0.1, random_state=0)


@pytest.fixture(scope="module")
def model(parts):
    return quick(parts[0], n_chains=2, burn_in=20)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def bars(ax):
    """Return the vertical lines, as an array (bar, end, x or y)."""
    found = [c.get_segments() for c in ax.collections if isinstance(c, LineCollection)]
    return np.array([segment for segments in found for segment in segments])


def test_spectrum_shows_means_draws_level_and_rank(model):
    ax = plot.spectrum(model)
    assert ax.get_yscale() == "log"
    assert ax.get_title(loc="left") == "2 factors are stronger than the noise"
    x, y = lines(ax)["counted"].get_data()
    np.testing.assert_array_equal(x, [1, 2])
    np.testing.assert_allclose(y, model.singular_values_[:2])
    level = detection_level((60, 40), model.observations_.n_entries, model.noise_variance_)
    np.testing.assert_allclose(lines(ax)["detection level"].get_ydata(), level)

    scale = model.posterior_.units.shared_scale
    first = scale * model.traces_.spectra[..., 0]
    np.testing.assert_allclose(bars(ax)[0, :, 1], np.quantile(first, (0.05, 0.95)))


def test_spectrum_shows_every_factor_once(model):
    ax = plot.spectrum(model)
    shown = np.concatenate(
        [lines(ax)[name].get_xdata() for name in ("counted", "not counted", "shrunk towards zero")]
    )
    np.testing.assert_array_equal(np.sort(shown), 1 + np.arange(model.singular_values_.size))


def test_trace_shows_every_chain_the_burn_in_and_the_noise(model):
    ax = plot.trace(model)
    for chain in range(2):
        x, y = lines(ax)[f"chain {chain + 1}"].get_data()
        np.testing.assert_array_equal(x, np.arange(1, 61))
        np.testing.assert_allclose(y, np.sqrt(model.history_["residual_variance"][chain]))
    noise = np.sqrt(model.noise_variance_)
    np.testing.assert_allclose(lines(ax)[f"noise level {noise:.3g}"].get_ydata(), noise)
    (shade,) = [patch for patch in ax.patches if patch.get_label() == "burn-in"]
    assert shade.get_x() == 0.5
    assert shade.get_x() + shade.get_width() == 20.5
    assert "60 sweeps of 2 chains" in ax.get_title(loc="left")


def test_trace_without_burn_in_has_no_shade(parts):
    assert not plot.trace(quick(parts[0], burn_in=0)).patches


def points(ax, label):
    found = [c for c in ax.collections if isinstance(c, PathCollection) and c.get_label() == label]
    return np.concatenate([c.get_offsets() for c in found])


def test_predicted_shows_values_against_predictions_with_intervals(model, parts):
    test = parts[1]
    ax = plot.predicted(model, test, level=0.8)
    cloud = next(c for c in ax.collections if isinstance(c, PathCollection)).get_offsets()
    np.testing.assert_allclose(cloud[:, 0], model.predict(test.rows, test.columns))
    np.testing.assert_allclose(cloud[:, 1], test.values)

    low, high = model.predict_interval(test.rows, test.columns, 0.8, kind="observation")
    drawn = bars(ax)
    assert len(drawn) == 40
    where = [int(np.argmin(np.abs(cloud[:, 0] - x))) for x in drawn[:, 0, 0]]
    np.testing.assert_allclose(drawn[:, 0, 1], low[where])
    np.testing.assert_allclose(drawn[:, 1, 1], high[where])

    inside = points(ax, "within its 80% interval")
    assert len(inside) + len(points(ax, "outside its 80% interval")) == 40
    share = np.mean((low <= test.values) & (test.values <= high))
    assert f"{len(test)} held-out values, {100 * share:.0f}% within" in ax.get_title(loc="left")
    assert ax.get_xlim() == ax.get_ylim()


def test_very_many_values_are_shown_as_a_density(model, parts, monkeypatch):
    monkeypatch.setattr(held_out, "_MAX_POINTS", 50)
    ax = plot.predicted(model, parts[1])
    (density,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert not [c for c in ax.collections if isinstance(c, (PathCollection, LineCollection))]
    # Only colours are on a logarithmic scale: the array has the counts of all entries.
    assert density.get_array().sum() == len(parts[1])


def test_predicted_takes_a_table(model, parts):
    test = parts[1]
    cells = np.full(test.shape, np.nan)
    cells[test.row_index, test.column_index] = test.values
    assert plot.predicted(model, cells).get_title(loc="left").startswith(f"{len(test)} held-out")


@pytest.mark.parametrize("name", ["spectrum", "trace", "predicted"])
def test_plots_draw_on_given_axes_and_save_without_a_display(model, parts, name, tmp_path):
    arguments = (model, parts[1]) if name == "predicted" else (model,)
    left, right = Figure().subplots(1, 2)
    assert getattr(plot, name)(*arguments, ax=right) is right
    assert not left.has_data()
    assert right.has_data()
    assert right.get_xlabel()
    assert style.UNITS in right.get_ylabel()

    own = getattr(plot, name)(*arguments)
    own.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_pyplot_is_never_imported():
    code = """
import sys, fillrank as fr
fr.plot, fr.GASR
assert "matplotlib" not in sys.modules
fr.plot.spectrum(fr.GASR(n_sweeps=5, progress=False).fit([[1.0, 2.0], [3.0, 5.0]]))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=LIMIT)


@pytest.mark.parametrize(
    "cells",
    [
        [[2.0, 2.0, np.nan], [2.0, np.nan, 2.0]],
        [[1.0, 3.0, np.nan]],
        [[1.0, 2.0, np.nan], [2.0, np.nan, 5.0], [3.0, 5.0, 6.0]],
    ],
    ids=["constant", "one row", "tiny"],
)
@pytest.mark.parametrize("n_sweeps", [1, 20])
@pytest.mark.filterwarnings("error::UserWarning:matplotlib")
def test_degenerate_tables_can_be_drawn(cells, n_sweeps, tmp_path):
    data = fr.Observations.from_matrix(cells)
    model = quick(data, n_sweeps=n_sweeps)
    for ax in (plot.spectrum(model), plot.trace(model), plot.predicted(model, data)):
        ax.figure.savefig(tmp_path / "plot.png")
        assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()


@pytest.mark.parametrize(
    ("rank", "title"),
    [(0, "No factor is"), (1, "1 factor is"), (1200, "1,200 factors are")],
)
def test_rank_title(rank, title):
    assert run_plots._rank_title(rank) == f"{title} stronger than the noise"


def test_counted_factors_have_another_colour(model):
    found = lines(plot.spectrum(model))
    assert to_hex(found["counted"].get_color()) == style.INK
    assert to_hex(found["not counted"].get_color()) == style.MUTED


def test_path_shows_the_chosen_penalty():
    data, _ = fr.synthetic(40, 30, rank=2, noise=0.5, missing=0.3, random_state=0)
    model = fr.SoftImpute(random_state=0, progress=False).fit(data)
    ax = fr.plot.path(model)
    held_out = ax.lines[0]
    errors = dict(zip(held_out.get_xdata(), held_out.get_ydata(), strict=True))
    assert min(errors, key=errors.get) == pytest.approx(model.penalty_)
    assert len(errors) == len(model.path_)
    with pytest.raises(fr.FillrankError, match="penalty was given"):
        fr.plot.path(fr.SoftImpute(penalty=1.0, progress=False).fit(data))
