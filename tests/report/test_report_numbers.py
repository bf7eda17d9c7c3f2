import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import fillrank as fr
from fillrank.report import cells, held_out
from fillrank.report.maps import Projection, outermost, project, select_points, svg_map
from fillrank.report.names import Names
from fillrank.report.style import format_label
from fillrank.report.summary import format_together, reproduction_caveats, reproduction_code
from fillrank.table.observations import fingerprint
from helpers.small_models import SAMPLED, fit, fitted


def with_missing_values(shape, share, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    X[rng.random(shape) < share] = np.nan
    X[0, 0] = 1.0
    return X


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.97])
def test_missing_cells_are_those_without_an_entry(share):
    X = with_missing_values((17, 23), share, seed=1)
    i, j = cells.missing_cells(fr.Observations.from_matrix(X))
    np.testing.assert_array_equal((i, j), np.nonzero(np.isnan(X)))


def test_sampled_missing_cells_are_distinct_and_spread():
    X = with_missing_values((40, 50), 0.6, seed=2)
    data = fr.Observations.from_matrix(X)
    i, j = cells.missing_cells(data, n_max=300)
    assert np.isnan(X[i, j]).all()
    assert np.unique(i * 50 + j).size == 300
    # Of 300 uniform numbers, each tenth of the rows lacks one with probability 2e-13.
    assert np.unique(i // 4).size == 10


def test_without_entries_every_cell_counts_as_missing():
    data = fr.Observations.from_matrix(np.ones((3, 4)))._select(np.zeros(0, dtype=int))
    assert cells.missing_cells(data)[0].size == 12


def test_the_most_and_the_least_certain_cells_are_found():
    model, _ = fitted("GASR")
    intervals = cells.missing_intervals(model, level=0.8)
    data = model.observations_
    i, j = data.missing_positions(0, data.shape[0])
    low, high = model.predict_interval(data.row_labels[i], data.column_labels[j], 0.8, "signal")
    narrowest, widest = np.argmin(high - low), np.argmax(high - low)
    assert (intervals.rows[0], intervals.columns[0]) == (i[narrowest], j[narrowest])
    assert (intervals.rows[-1], intervals.columns[-1]) == (i[widest], j[widest])
    assert intervals.n_missing == intervals.rows.size == i.size
    np.testing.assert_allclose(
        intervals.values[0],
        model.predict(data.row_labels[i[narrowest]], data.column_labels[j[narrowest]]),
    )


def block_means(X, n_rows, n_columns):
    """Means of the blocks of X, by a loop."""
    rows = [k * n_rows // X.shape[0] for k in range(X.shape[0])]
    columns = [k * n_columns // X.shape[1] for k in range(X.shape[1])]
    means = np.empty((n_rows, n_columns))
    for a in range(n_rows):
        for b in range(n_columns):
            means[a, b] = X[np.ix_(np.equal(rows, a), np.equal(columns, b))].mean()
    return means


@pytest.mark.parametrize("most", [7, 25])
def test_blocks_are_shares_and_averages(most, monkeypatch):
    model, _ = fitted("SoftImpute")  # 30 x 20
    monkeypatch.setattr(cells, "MAX_BLOCKS", most)
    size = min(most, 30), min(most, 20)
    data = model.observations_
    seen = np.zeros((30, 20))
    seen[data.row_index, data.column_index] = 1.0
    observed, filled = cells.observed_blocks(data), cells.filled_blocks(model)
    assert not observed.exact
    np.testing.assert_allclose(observed.cells, block_means(seen, *size))
    signal = model.posterior_.block(np.arange(30), np.arange(20))
    np.testing.assert_allclose(filled.cells, block_means(signal, *size))


def test_blocks_of_columns_with_their_own_units(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 20)) * 10.0 ** np.arange(20) + 7.0
    X[3, :5] = X[:, 19] = np.nan  # the last block has a column without values
    model = fit(fr.GASR(**SAMPLED), X)
    assert model.units_ == "columns"
    monkeypatch.setattr(cells, "MAX_BLOCKS", 7)
    signal = model.posterior_.block(np.arange(30), np.arange(20))
    filled = cells.filled_blocks(model).cells
    expected = block_means(signal, 7, 7)
    size = np.abs(expected).max(axis=0)  # factors are in single precision, relative to it
    np.testing.assert_allclose(filled / size, expected / size, atol=1e-5)
    assert np.isnan(filled[:, -1]).all()
    assert np.isfinite(filled[:, :-1]).all()


def test_the_units_of_singular_values_and_maps_are_named():
    X = np.random.default_rng(0).normal(size=(12, 8))
    one, own = (
        fit(fr.GASR(**SAMPLED, noise="one", units=units), X) for units in ("table", "columns")
    )
    for model, units in ((one, "in the table's units"), (own, "in standard units")):
        assert fr.plot.spectrum(model).get_ylabel() == f"singular value, {units}"
        assert units in fr.plot.map(model).get_xlabel()


@pytest.mark.parametrize("name", ["GASR", "M3F"])
def test_small_tables_are_shown_cell_by_cell(name):
    model, _ = fitted(name)
    data = model.observations_
    observed, filled = cells.observed_blocks(data), cells.filled_blocks(model)
    assert observed.exact
    assert filled.exact
    seen = np.isfinite(observed.cells)
    assert seen.sum() == len(data)
    np.testing.assert_array_equal(filled.cells[seen], observed.cells[seen])
    i, j = np.nonzero(~seen)
    predicted = model.predict(data.row_labels[i], data.column_labels[j])
    np.testing.assert_allclose(filled.cells[i, j], predicted, rtol=1e-5, atol=1e-6)


def test_levels_of_a_large_table_are_those_of_one_cell_in_each_block(monkeypatch):
    model, _ = fitted("M3F")
    monkeypatch.setattr(cells, "MAX_BLOCKS", 6)
    filled = cells.filled_blocks(model).cells
    assert filled.shape == (6, 6)
    assert np.isin(filled, model.levels_).all()


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_distances_on_the_map_are_those_of_the_filled_table(side):
    model, _ = fitted("GASR")
    Z = model.posterior_.block(np.arange(30), np.arange(20))
    Z = Z if side == "rows" else Z.T
    U, s, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    expected = U[:, :2] * s[:2] / np.sqrt(Z.shape[1])
    found = project(model, side)
    np.testing.assert_allclose(np.abs(found.points), np.abs(expected), rtol=1e-4, atol=1e-5)
    assert found.share == pytest.approx((s[:2] @ s[:2]) / (s @ s), rel=1e-4)
    assert found.points.max(axis=0) == pytest.approx(np.abs(found.points).max(axis=0))
    assert not found.empty


@pytest.mark.parametrize("name", ["SoftImpute", "M3F", "IPM3F", "IPM3F gibbs"])
def test_every_method_has_maps(name):
    model, _ = fitted(name)
    assert np.isfinite(project(model, "rows").points).all()
    assert project(model, "columns").points.shape == (20, 2)


def test_another_side_is_refused():
    with pytest.raises(fr.FillrankError, match="'rows' or 'columns', got 'row'"):
        project(fitted("GASR")[0], "row")


def test_equal_rows_have_no_map():
    model = fit(
        fr.SoftImpute(penalty=1.0, progress=False), [[2.0, 2.0, np.nan], [2.0, np.nan, 2.0]]
    )
    assert project(model, "rows").empty


def test_the_outermost_points_are_always_selected():
    points = np.random.default_rng(0).normal(size=(500, 2))
    far = outermost(points)
    assert {points[:, 0].argmax(), points[:, 1].argmin()} <= set(far)
    selected = select_points(points, 50)
    assert np.unique(selected).size == 50
    assert set(far) <= set(selected)


def test_errors_of_held_out_entries():
    model, test = fitted("GASR")
    found = held_out.predict_held_out(model, test)
    errors = test.values - model.predict(test.rows, test.columns)
    assert found.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert found.median_error == pytest.approx(np.median(np.abs(errors)))
    assert found.n_fitted == 0
    some = model.observations_[np.arange(7)]
    assert held_out.predict_held_out(model, some).n_fitted == 7


def test_calibrate_counts_covered_entries():
    model, test = fitted("GASR")
    found = held_out.calibrate(model, test)
    assert found.n == len(test)
    low, high = model.predict_interval(test.rows, test.columns, 0.5, kind="observation")
    inside = np.mean((low <= test.values) & (test.values <= high))
    assert found.shares[list(found.levels).index(0.5)] == pytest.approx(inside)
    assert (np.diff(found.shares) >= 0).all()


def test_plots_by_level_show_the_scores_of_the_fifths():
    model, test = fitted("GASR")
    levels = held_out.score_groups(model, test).levels
    table = fr.score_by_level(test, model)
    ax = held_out.draw_error_by_level(levels, Figure().subplots())
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], table["rmse"])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), table["mean_error"])
    assert [float(tick.get_text()) for tick in ax.get_xticklabels()] == pytest.approx(
        table["prediction"].tolist(), rel=0.01
    )
    ax = held_out.draw_coverage_by_level(levels, Figure().subplots())
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 100 * table["coverage"])
    for bar, n in zip(ax.patches, table["entries"], strict=True):
        chance = 1.96 * np.sqrt(0.09 / n)
        assert bar.get_y() == pytest.approx(100 * (0.9 - chance))
        assert bar.get_y() + bar.get_height() == pytest.approx(100 * min(0.9 + chance, 1))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("two\nlines\t", "two lines"),
        ("\x00\x1b[1m", "��[1m"),
        ("\ud800", "�"),
        (" \r\n", "(blank)"),
        (7, "7"),
        (np.datetime64("2024-02-29"), "2024-02-29"),
        ("é" * 12, "é" * 9 + "…"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
    ],
)
def test_labels_are_formatted_on_one_line(label, text):
    assert format_label(label, max_length=10) == text


def test_intervals_have_the_decimals_that_they_need():
    assert format_together(3.14159, 3.1, 3.2, width=0.1) == ["3.14", "3.10", "3.20"]
    assert format_together(1234.5, 1000.0, 1500.0, width=500.0) == ["1,234", "1,000", "1,500"]
    assert format_together(5.0, 5.0, 5.0, width=0.0) == ["5", "5", "5"]
    assert format_together(2e12, 1e12, 3e12, width=2e12) == ["2e+12", "1e+12", "3e+12"]


@pytest.mark.parametrize(
    "method",
    [
        fr.GASR(**SAMPLED | {"random_state": np.int64(3), "value_range": np.array([-9.0, 9.0])}),
        fr.SoftImpute(penalty=np.float64(0.5), progress=False, random_state=1),
        fr.IPM3F(
            penalty=1.0, max_iterations=5, levels=[1, 2, 3, 4, 5], progress=False, random_state=2
        ),
    ],
    ids=lambda method: type(method).__name__,
)
def test_the_code_reproduces_the_model(method, monkeypatch):
    name = "M3F" if isinstance(method, fr.IPM3F) else "GASR"
    data = fitted(name)[0].observations_
    model = fit(method, data)
    monkeypatch.setattr(fr, "read", lambda path: data, raising=False)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        exec(reproduction_code(model), names)
    np.testing.assert_array_equal(
        names["model"].predict(data.rows, data.columns), model.predict(data.rows, data.columns)
    )
    assert reproduction_caveats(model) == []
    assert fingerprint(data) in reproduction_code(model)


def test_caveats_report_what_the_code_cannot_reproduce(tmp_path):
    data = fitted("GASR")[0].observations_
    settings = SAMPLED | {"random_state": np.random.default_rng(0), "checkpoint": tmp_path / "run"}
    model = fit(fr.GASR(**settings), data)
    assert "random_state=None" in reproduction_code(model)
    assert str(tmp_path) not in reproduction_code(model)
    assert "no fixed seed" in reproduction_caveats(model)[0]


def test_the_fingerprint_depends_on_values_and_positions():
    X = with_missing_values((6, 5), 0.4, seed=3)
    first = fingerprint(fr.Observations.from_matrix(X))
    other = X.copy()
    other[0, 0] += 1e-9
    moved = X[::-1]
    assert first == fingerprint(fr.Observations.from_matrix(X))
    assert len({first, *(fingerprint(fr.Observations.from_matrix(Y)) for Y in (other, moved))}) == 3


def test_few_points_of_a_map_have_labels_beside_them():
    """Labels cover neither each other nor points; those of the outermost points are placed first."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.concatenate([ring, [[0.0, 0.0], [0.0, 1e-3], [1e-3, 0.0]]])
    labels = np.array([f"place {k}" for k in range(15)], dtype=object)
    drawn = svg_map(Projection(points, labels, 1.0, "rows"), Names().row)
    names = [label.text for label in drawn.labels]
    assert {f"place {k}" for k in range(12)} <= set(names)
    assert len(names) <= 14  # of three in the same place, one on each side
    many = np.random.default_rng(0).normal(size=(100, 2))
    drawn = svg_map(Projection(many, np.arange(100), 1.0, "rows"), Names().row)
    assert 0 < len(drawn.labels) <= 12
