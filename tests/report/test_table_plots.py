import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import fillrank as fr
from fillrank.report import cells, style
from helpers.small_models import DRAWN, METHODS, SAMPLED, fit, fitted


def image(ax):
    return np.ma.filled(ax.images[0].get_array().astype(float), np.nan)


def test_matrix_shows_the_observed_and_the_completed_table():
    model, _ = fitted("GASR")
    data = model.observations_
    ax = fr.plot.matrix(model)
    np.testing.assert_array_equal(image(ax)[data.row_index, data.column_index], data.values)
    assert np.isnan(image(ax)).sum() == 600 - len(data)
    assert f"{100 * data.density:.3g}% of the cells are observed" in ax.get_title("left")
    filled = fr.plot.matrix(model, filled=True)
    assert np.isfinite(image(filled)).all()
    # The same value has the same colour in both.
    assert filled.images[0].get_clim() == ax.images[0].get_clim()


def test_a_large_matrix_is_shown_as_blocks(monkeypatch):
    model, _ = fitted("GASR")
    monkeypatch.setattr(cells, "MAX_BLOCKS", 10)
    ax = fr.plot.matrix(model)
    assert image(ax).shape == (10, 10)
    assert np.nanmax(image(ax)) <= 100
    assert "blocks" in ax.get_title("left")
    assert ax.get_ylim() == (30.5, 0.5)


def test_a_matrix_without_entries_can_only_be_filled(tmp_path):
    fitted("GASR")[0].save(tmp_path / "model")
    loaded = fr.load(tmp_path / "model")
    with pytest.raises(fr.FillrankError, match="filled=True"):
        fr.plot.matrix(loaded)
    assert np.isfinite(image(fr.plot.matrix(loaded, filled=True))).all()


def test_rank_has_a_bar_for_each_probability():
    model, _ = fitted("GASR")
    ax = fr.plot.rank(model)
    bars = {round(bar.get_x() + bar.get_width() / 2): bar for bar in ax.patches}
    assert bars.keys() == model.rank_probabilities_.keys()
    for k, bar in bars.items():
        assert bar.get_height() == pytest.approx(100 * model.rank_probabilities_[k])
        assert to_hex(bar.get_facecolor()) == (style.INK if k == model.rank_ else style.MUTED)
    assert ax.get_xlim()[0] < min(bars)
    assert ax.get_xlim()[1] > max(bars)


def test_calibration_has_a_dot_for_each_level():
    model, test = fitted("GASR")
    ax = fr.plot.calibration(model, test)
    (dots,) = [line for line in ax.lines if line.get_label() == "this model"]
    np.testing.assert_allclose(dots.get_xdata(), [10, 20, 30, 40, 50, 60, 70, 80, 90, 95])
    low, high = model.predict_interval(test.rows, test.columns, 0.9, kind="observation")
    inside = 100 * np.mean((low <= test.values) & (test.values <= high))
    assert dots.get_ydata()[8] == pytest.approx(inside)
    assert f"cover {inside:.0f}% of {len(test)} held-out" in ax.get_title("left")


def test_certainty_counts_every_missing_cell():
    model, _ = fitted("GASR")
    ax = fr.plot.certainty(model)
    n_missing = 600 - len(model.observations_)
    # Also the widest interval, one in a thousand, which is beyond the last bar.
    assert sum(bar.get_height() for bar in ax.patches) == n_missing
    with pytest.raises(fr.FillrankError, match="no missing cell"):
        fr.plot.certainty(fit(fr.GASR(**SAMPLED), [[1.0, 2.0], [3.0, 4.0]]))


def test_intervals_by_column_are_those_of_missing_cells():
    model, _ = fitted("GASR")
    data = model.observations_
    ax = fr.plot.intervals(model, level=0.8)
    medians = {}
    for j in range(data.shape[1]):
        rows = np.setdiff1d(np.arange(data.shape[0]), data.row_index[data.column_index == j])
        low, high = model.predict_interval(
            data.row_labels[rows], data.column_labels[j], level=0.8, kind="signal"
        )
        medians[data.column_labels[j]] = np.quantile(0.5 * (high - low), [0.05, 0.5, 0.95])
    expected = sorted(medians.items(), key=lambda item: -item[1][1])
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels == [str(label) for label, _ in expected]
    (dots,) = ax.lines
    np.testing.assert_allclose(dots.get_xdata(), [ends[1] for _, ends in expected], rtol=1e-6)
    bars = np.array(ax.collections[0].get_segments())[:, :, 0]
    np.testing.assert_allclose(bars, [ends[[0, 2]] for _, ends in expected], rtol=1e-6)
    assert "80% interval" in ax.get_xlabel()
    with pytest.raises(fr.FillrankError, match="no missing cell"):
        fr.plot.intervals(fit(fr.GASR(**SAMPLED), [[1.0, 2.0], [3.0, 4.0]]))


def test_intervals_of_columns_in_different_units_are_in_standard_deviations(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 35))
    X[rng.random(X.shape) < 0.2] = np.nan
    names = [rf"$\frac{{{j} %" for j in range(35)]
    widths = []
    for scale in (1.0, 1000.0):
        frame = pd.DataFrame(X * np.where(np.arange(35) == 3, scale, 1.0), columns=names)
        ax = fr.plot.intervals(fit(fr.GASR(**SAMPLED, units="columns"), frame))
        widths.append(ax.lines[0].get_xdata())
    np.testing.assert_allclose(widths[0], widths[1], rtol=1e-3)
    assert ax.get_title("left") == "Intervals of 35 columns: the 30 widest"
    assert ax.get_xlabel().endswith("SD of the column")
    assert len(ax.get_yticklabels()) == 30
    ax.figure.savefig(tmp_path / "intervals.png")  # labels are not parsed as mathematics


def test_notebooks_show_the_figure():
    model, _ = fitted("GASR")
    before = plt.get_fignums()
    data, metadata = fr.plot.rank(model)._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"].startswith("<")
    assert metadata["image/png"] == {"width": 612, "height": 378}
    assert plt.get_fignums() == before  # nothing remains to be closed


def test_map_labels_the_outermost_points_as_plain_text(tmp_path):
    names = np.array([rf"${'x' * i}_{{$ \frac % & # {i}" for i in range(12)], dtype=object)
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((12, 12)) < 0.9)
    X = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 12))
    data = fr.Observations.from_triplets(names[i], names[j], X[i, j])
    ax = fr.plot.map(fit(fr.GASR(**SAMPLED), data), "columns")
    # Parsed as mathematics, they could not be drawn.
    ax.figure.savefig(tmp_path / "map.png")
    assert len(ax.texts) >= 3
    assert all(text.get_text().startswith("$") and not text.get_parse_math() for text in ax.texts)
    assert len(ax.collections[0].get_offsets()) == 12
    assert "similar ones are near" in ax.get_title("left")


@pytest.mark.parametrize("name", METHODS)
def test_which_plots_a_method_has(name):
    model, test = fitted(name)
    assert fr.plot.predicted(model, test).has_data()
    assert fr.plot.map(model, "rows").has_data()
    drawn = {"rank": (), "certainty": (), "intervals": (), "calibration": (test,)}
    for plot, arguments in drawn.items():
        if name in DRAWN:
            assert getattr(fr.plot, plot)(model, *arguments).has_data()
        else:
            with pytest.raises(fr.FillrankError, match="GASR and BPMF"):
                getattr(fr.plot, plot)(model, *arguments)
    for plot, has in (
        ("spectrum", "IPM3F" not in name),
        ("trace", name in DRAWN or name == "IPM3F gibbs"),
    ):
        if has:
            assert getattr(fr.plot, plot)(model).has_data()
        else:
            with pytest.raises(fr.FillrankError, match="has none"):
                getattr(fr.plot, plot)(model)


def test_spectrum_of_a_solver_shows_its_singular_values():
    model, _ = fitted("SoftImpute")
    (dots,) = [line for line in fr.plot.spectrum(model).lines if line.get_label() == "counted"]
    np.testing.assert_allclose(dots.get_ydata(), model.singular_values_)


def test_levels_are_shown_as_discs():
    model, test = fitted("M3F")
    ax = fr.plot.predicted(model, test)
    (discs,) = ax.collections
    predicted = model.predict(test.rows, test.columns)
    pairs, counts = np.unique(np.column_stack([predicted, test.values]), axis=0, return_counts=True)
    np.testing.assert_array_equal(discs.get_offsets(), pairs)
    np.testing.assert_allclose(discs.get_sizes() / counts, discs.get_sizes()[0] / counts[0])
    assert f"{100 * np.mean(predicted == test.values):.0f}% predicted exactly" in ax.get_title(
        "left"
    )


@pytest.mark.parametrize("name", ["matrix", "rank", "calibration", "certainty", "intervals", "map"])
def test_plots_draw_on_the_axes_that_are_given(name):
    model, test = fitted("GASR")
    left, right = Figure().subplots(1, 2)
    arguments = (model, test) if name == "calibration" else (model,)
    assert getattr(fr.plot, name)(*arguments, ax=right) is right
    assert right.has_data()
    assert not left.has_data()
