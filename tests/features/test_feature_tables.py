"""Tables of features of rows or columns as blocks."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fillrank.errors import InputError
from fillrank.features import coding, directions
from fillrank.features.table import code_rows, feature_block
from fillrank.table.feature_table import FeatureTable

NAMES = np.array(["Ana", "Ben", "Cid", "Dan", "Eve", "Fay"], dtype=object)
PEOPLE = {
    "age": [30.0, 40.0, None, 25.0, 61.0, 33.0],
    "sex": ["F", "M", "M", "M", "F", "F"],
    "member": [True, False, True, True, False, True],
}


def people(kind="polars", names=NAMES):
    frame = pl.DataFrame({"who": names.tolist(), **PEOPLE})
    if kind == "polars":
        return frame
    if kind == "pyarrow":
        return frame.to_arrow()
    table = pd.DataFrame({"who": names, **PEOPLE})
    return table.set_index("who") if kind == "index" else table


def assert_is_block(block):
    """Centred, orthogonal, and in descending order."""
    values = block.values
    assert values.dtype == np.float64
    np.testing.assert_allclose(values.sum(axis=0), 0.0, atol=1e-10)
    squares = values.T @ values
    np.testing.assert_allclose(squares, np.diag(np.diag(squares)), atol=1e-9 * squares.max())
    assert np.all(np.diff(np.diag(squares)) <= 1e-9 * squares.max())
    assert len(block.terms) == len(block.code.means) == len(block.code.directions)


@pytest.mark.parametrize("kind", ["pandas", "index", "polars", "pyarrow"])
def test_frames_of_all_libraries_give_the_same_block(kind):
    block, notes = feature_block(people(kind), NAMES, "row")
    assert notes == ()
    assert block.name == "features"
    assert block.terms == (
        "age",
        "age is missing",
        "sex = F",
        "sex = M",
        "member = False",
        "member = True",
    )
    assert_is_block(block)
    assert block.values.shape == (6, 4)  # two terms follow from others
    np.testing.assert_allclose(block.values, feature_block(people(), NAMES, "row")[0].values)


def test_the_coding_is_that_of_the_docstring():
    block, _ = feature_block(people(), NAMES, "row")
    ages = np.array([30.0, 40.0, np.nan, 25.0, 61.0, 33.0])
    numbers = np.nan_to_num((ages - np.nanmean(ages)) / np.nanstd(ages))
    is_f = np.array([1.0, 0, 0, 0, 1, 1])
    member = np.array([1.0, 0, 1, 1, 0, 1])
    sex_scale = np.sqrt(1 - 2 * 0.5**2)
    member_scale = np.sqrt(1 - (1 / 3) ** 2 - (2 / 3) ** 2)
    raw = np.column_stack(
        [
            numbers,
            np.isnan(ages),
            is_f / sex_scale,
            (1 - is_f) / sex_scale,
            (1 - member) / member_scale,
            member / member_scale,
        ]
    )
    raw = raw - raw.mean(axis=0)
    np.testing.assert_allclose(raw[:, 2:4].var(axis=0).sum(), 1.0)
    raw /= np.sqrt(np.mean(np.sum(raw**2, axis=1)))
    np.testing.assert_allclose(block.values @ block.values.T, raw @ raw.T, atol=1e-12)


def test_rows_are_matched_by_labels_in_any_order():
    order = [3, 0, 5, 1, 2, 4]
    block, _ = feature_block(people(), NAMES, "row")
    shuffled, _ = feature_block(people()[order], NAMES, "row")
    np.testing.assert_allclose(shuffled.values, block.values, atol=1e-12)


def test_labels_without_features_have_zeros_and_unknown_ones_are_left_out():
    labels = np.array(["Zoe", *NAMES[:4], "Yan"], dtype=object)
    block, notes = feature_block(people(), labels, "row")
    assert notes == (
        "2 labels of the features are left out, because no row has them: 'Eve', 'Fay'.",
        "Without features, and treated as the mean of the others: 2 of 6 rows, 'Zoe', 'Yan'.",
    )
    assert_is_block(block)
    assert not block.values[[0, 5]].any()
    alone, _ = feature_block(people()[:4], NAMES[:4], "row")
    np.testing.assert_allclose(block.values[1:5], alone.values, atol=1e-12)
    assert np.isclose(np.mean(np.sum(block.values[1:5] ** 2, axis=1)), 1.0)


def test_a_default_index_of_pandas_is_not_taken_for_labels():
    ids = np.arange(1, 7)
    by_column, notes = feature_block(people("pandas", ids), ids, "row")
    assert notes == ()
    expected, _ = feature_block(people("index", ids), ids, "row")
    np.testing.assert_allclose(by_column.values, expected.values)


def test_a_default_index_of_pandas_matches_the_labels_of_an_array():
    table = pd.DataFrame({"x": [5.0, 2.5, 9.0], "y": [0.0, 1.5, 1.0]})
    block, _ = feature_block(table, np.arange(3), "row")
    assert block.terms == ("x", "y")
    expected, _ = feature_block(table.to_numpy(), np.arange(3), "row")
    np.testing.assert_allclose(block.values, expected.values)


def test_the_label_column_is_the_one_that_has_most_labels():
    table = people().select("age", "sex", "who")
    block, notes = feature_block(table, NAMES, "row")
    assert notes == ("The labels of the features are in column 'who'.",)
    assert block.terms == ("age", "age is missing", "sex = F", "sex = M")


def test_numbers_and_their_text_are_different_labels():
    with pytest.raises(InputError, match=r"same type as the row labels, 1, 2, 3, .*got '1', '2'"):
        feature_block(people(names=np.array(list("123456"), dtype=object)), np.arange(1, 7), "row")


def test_labels_of_files_match_by_their_text():
    table = FeatureTable(np.array(["1", "2", "x"], dtype=object), {"a": np.arange(3.0)}, True)
    block, _ = feature_block(table, np.array([2, 1]), "column")
    assert block.values[0, 0] == -block.values[1, 0] != 0


def test_no_label_in_common():
    with pytest.raises(
        InputError, match=r"has none of the column labels, 'x', 'y'; .* 'Ana', 'Ben'"
    ):
        feature_block(people(), np.array(["x", "y"], dtype=object), "column")


def test_a_label_with_two_lines():
    table = pl.concat([people(), people()[1:3]])
    with pytest.raises(InputError, match=r"2 labels have several: 'Ben', 'Cid'"):
        feature_block(table, NAMES, "row")


def test_a_line_without_a_label():
    table = people().with_columns(who=pl.Series(["Ana", None, "Cid", None, "Eve", "Fay"]))
    with pytest.raises(InputError, match="needs a row label; 2 have none"):
        feature_block(table, NAMES, "row")


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_infinite_numbers_are_refused_with_their_place(value):
    table = people().with_columns(height=pl.Series([1.0, value, 2.0, 3.0, 4.0, 5.0]))
    with pytest.raises(InputError, match=r"field 'height' .*label 'Ben' must be a finite number"):
        feature_block(table, NAMES, "row")
    matrix = np.array([[1.0, 0.0], [0.0, value], [2.0, 3.0]])
    for form in (matrix, sp.csr_array(matrix)):
        with pytest.raises(
            InputError, match=r"field 'feature 1' .*label 1 must be a finite number"
        ):
            feature_block(form, np.arange(3), "row")


def test_constant_fields_and_identifiers_are_left_out():
    table = people().with_columns(
        planet=pl.lit("Earth"),
        zero=pl.lit(0.0),
        nothing=pl.lit(None, dtype=pl.Float64),
        mail=pl.Series([f"{name}@x" for name in NAMES]),
    )
    block, notes = feature_block(table, NAMES, "row")
    assert notes == (
        "Field 'mail' is left out: it has 6 levels in 6 lines.",
        "3 fields are left out, because all lines have the same value: 'planet', 'zero', 'nothing'.",
    )
    assert block.terms == feature_block(people(), NAMES, "row")[0].terms


def test_a_field_may_be_constant_only_in_the_lines_that_are_used():
    table = pl.DataFrame({"who": ["a", "b", "c"], "x": [1, 1, 2], "y": [1, 2, 3]})
    block, _ = feature_block(table, np.array(["a", "b"]), "row")
    assert block.terms == ("y",)


def test_categories_with_many_levels_are_left_out(monkeypatch):
    monkeypatch.setattr(coding, "MOST_LEVELS", 60)
    n = 200
    table = {"id": range(n), "x": range(n)}
    for n_levels in (60, 61):
        table[f"c{n_levels}"] = [f"level {i % n_levels}" for i in range(n)]
    block, notes = feature_block(pl.DataFrame(table), np.arange(n), "row")
    assert notes == ("Field 'c61' is left out: it has 61 levels in 200 lines.",)
    assert len(block.terms) == 61
    monkeypatch.undo()
    block, notes = feature_block(pl.DataFrame(table)[:110], np.arange(110), "row")
    assert [note[:11] for note in notes] == ["Field 'c60'", "Field 'c61'"]


def test_what_is_missing_may_be_all_that_differs():
    table = {"who": NAMES[:3].tolist(), "x": [1.0, None, 1.0], "y": ["a", "a", None]}
    block, notes = feature_block(pl.DataFrame(table), NAMES[:3], "row")
    assert notes == ()
    assert block.terms == ("x", "x is missing", "y = a", "y is missing")
    assert_is_block(block)


@pytest.mark.parametrize("field", ["x", "who"])
def test_no_usable_field(field):
    table = pl.DataFrame({"who": NAMES.tolist(), "x": [1.0] * 6})
    with pytest.raises(InputError, match="must have a field that differs"):
        feature_block(table[["who", field] if field == "x" else ["who"]], NAMES, "row")


@pytest.mark.parametrize("value", [date(2020, 1, 2), [1, 2]])
def test_dates_and_lists_are_refused(value):
    table = people().with_columns(other=pl.Series([value] * 6))
    words = "fr.features.times" if isinstance(value, date) else "numbers, text or booleans"
    with pytest.raises(InputError, match=rf"field 'other' of the features.*{words}"):
        feature_block(table, NAMES, "row")
    block, _ = feature_block(people(), NAMES, "row")
    np.testing.assert_allclose(code_rows(block.code, table, NAMES, "row"), block.values)


def test_dates_may_be_labels():
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
    table = pl.DataFrame({"day": days[::-1], "x": [1.0, 2.0, 4.0]})
    block, notes = feature_block(table, days.astype("datetime64[ns]"), "row")
    assert notes == ()
    assert np.argmax(block.values[:, 0] * np.sign(block.values[0, 0])) == 0


def test_objects_of_pandas_are_numbers_or_text():
    table = pd.DataFrame(
        {
            "number": np.array([1, None, 2.5, 3], dtype=object),
            "truth": np.array([True, None, False, True], dtype=object),
            "category": pd.Categorical([3, 1, 3, 1]),
            "nullable": pd.array([1, None, 3, 4], dtype="Int64"),
        },
        index=list("abcd"),
    )
    block, _ = feature_block(table, np.array(list("abcd"), dtype=object), "row")
    assert block.terms == (
        "number",
        "number is missing",
        "truth = False",
        "truth = True",
        "truth is missing",
        "category = 1",
        "category = 3",
        "nullable",
        "nullable is missing",
    )


def test_arrays_need_a_line_for_each_label():
    for table in (np.zeros((4, 2)), sp.csr_array((4, 2))):
        with pytest.raises(InputError, match="must have a line for each row, 3; got 4"):
            feature_block(table, np.arange(3), "row")
    with pytest.raises(InputError, match="two dimensions"):
        feature_block(np.zeros(3), np.arange(3), "row")


def test_the_leading_directions_are_kept():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 30)) + 0.01 * rng.normal(size=(20, 30))
    full, notes = feature_block(table, np.arange(20), "row")
    assert full.values.shape == (20, 19)
    assert notes == ()
    block, notes = feature_block(table, np.arange(20), "row", n_max=2)
    assert notes == (
        "The 30 terms of the features are replaced by their 2 leading directions, which have 100% of "
        "their variance.",
    )
    np.testing.assert_allclose(block.values, full.values[:, :2], atol=1e-12)
    with pytest.raises(InputError, match="n_max"):
        feature_block(table, np.arange(20), "row", n_max=0)


# Sparse matrices.


def sparse_features(m=40, q=60, seed=0):
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((m, q)) < 0.2, rng.integers(1, 4, size=(m, q)), 0)
    cells[:, 7] = 0
    cells[:, 8] = 1
    return cells.astype(float)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_give_the_block_of_the_array(form):
    cells = sparse_features()
    expected, expected_notes = feature_block(cells, np.arange(40), "row")
    block, notes = feature_block(sp.coo_array(cells).asformat(form), np.arange(40), "row")
    assert block.terms == expected.terms
    assert notes == expected_notes
    assert notes[0].endswith("all lines have the same value: 'feature 7', 'feature 8'.")
    np.testing.assert_allclose(block.values, expected.values, atol=1e-10)


@pytest.mark.parametrize("shape", [(40, 60), (60, 15)])
def test_large_matrices_are_never_dense(shape, monkeypatch):
    cells = sparse_features(*shape)
    labels = np.arange(shape[0])
    exact, _ = feature_block(cells, labels, "row", n_max=20)
    monkeypatch.setattr(directions, "DENSE_CELLS", 0)
    monkeypatch.setattr(directions, "EXACT_COST", 0)
    monkeypatch.setattr(directions, "_STEPS", 100)  # the spectrum is flat
    for table in (cells, sp.csr_array(cells)):
        block, _ = feature_block(table, labels, "row", n_max=20)
        again, _ = feature_block(table, labels, "row", n_max=20)
        assert_is_block(block)
        np.testing.assert_array_equal(block.values, again.values)
        np.testing.assert_allclose(block.values, exact.values, atol=1e-6)


def test_new_rows_of_sparse_matrices_and_arrays():
    cells = sparse_features()
    for fitted in (cells, sp.csr_array(cells)):
        block, _ = feature_block(fitted, np.arange(40), "row")
        for new in (cells, sp.coo_array(cells)):
            values = code_rows(block.code, new, np.arange(40), "row")
            np.testing.assert_allclose(values, block.values, atol=1e-10)
        with pytest.raises(InputError, match="lacks 1 of them: 'feature 59'"):
            code_rows(block.code, cells[:, :59], np.arange(40), "row")
        with pytest.raises(InputError, match="lacks 1 of them: 'feature 59'"):
            code_rows(block.code, sp.csr_array(cells[:, :59]), np.arange(40), "row")


# New rows.


def test_new_rows_with_fields_that_are_missing_or_more():
    block, _ = feature_block(people(), NAMES, "row")
    table = people().with_columns(extra=pl.lit("x"))
    np.testing.assert_allclose(code_rows(block.code, table, NAMES, "row"), block.values)
    with pytest.raises(InputError, match=r"lacks 2 of them: 'age', 'member'"):
        code_rows(block.code, table.drop("age", "member"), NAMES, "row")


def test_new_rows_without_features_have_zeros():
    block, _ = feature_block(people(), NAMES, "row")
    values = code_rows(block.code, people(), np.array(["Ben", "Zoe"], dtype=object), "row")
    np.testing.assert_allclose(values, [block.values[1], np.zeros(4)], atol=1e-12)
    assert not code_rows(block.code, people(), np.array(["Zoe"]), "row").any()


def test_unknown_levels_and_new_missing_values_are_the_mean():
    table = pl.DataFrame({"who": NAMES.tolist(), "x": list("aabbcc")})
    block, _ = feature_block(table, NAMES, "row")
    new = pl.DataFrame({"who": ["v", "w", "a"], "x": ["d", None, "a"]})
    values = code_rows(block.code, new, np.array(["v", "w", "a"]), "row")
    np.testing.assert_allclose(values, [np.zeros(2), np.zeros(2), block.values[0]], atol=1e-12)


def test_an_unknown_level_is_not_a_missing_value():
    table = pl.DataFrame({"who": NAMES.tolist(), "x": ["a", "a", "b", "b", None, None]})
    block, _ = feature_block(table, NAMES, "row")
    new = pl.DataFrame({"who": ["v", "Eve"], "x": ["d", None]})
    unknown, missing = code_rows(block.code, new, np.array(["v", "Eve"]), "row")
    np.testing.assert_allclose(missing, block.values[4], atol=1e-12)
    # The only term that differs from its mean says that the value is not missing.
    np.testing.assert_allclose(unknown, -missing / 2, atol=1e-12)


def test_levels_that_are_all_numbers_in_the_new_table():
    table = pl.DataFrame({"who": NAMES.tolist(), "x": ["1", "1", "2", "2", "k", "k"]})
    block, _ = feature_block(table, NAMES, "row")
    new = pl.DataFrame({"who": ["v"], "x": [2]})
    values = code_rows(block.code, new, np.array(["v"]), "row")
    np.testing.assert_allclose(values[0], block.values[2], atol=1e-12)


def test_text_in_a_field_of_numbers_is_refused():
    block, _ = feature_block(people(), NAMES, "row")
    table = people().with_columns(age=pl.lit("old"))
    with pytest.raises(
        InputError, match=r"field 'age' .* must be numbers, as at the fit, got 'old'"
    ):
        code_rows(block.code, table, NAMES, "row")


numbers = st.one_of(st.none(), st.floats(-1e100, 1e100), st.integers(-9, 9).map(float))
levels = st.one_of(st.none(), st.sampled_from(["", "a", "b", "Ünïcode"]))
lines = st.tuples(numbers, numbers, levels, st.one_of(st.none(), st.booleans()))


@settings(deadline=None, max_examples=60)
@given(st.lists(lines, min_size=2, max_size=12), st.integers(0, 3), st.integers(1, 5))
def test_coding_the_fitted_rows_again_gives_their_values(cells, n_without, n_max):
    names = ["x", "y", "c", "b"]
    kinds = {"x": pl.Float64, "y": pl.Float64, "c": pl.String, "b": pl.Boolean}
    columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
    labels = np.array([f"r{i}" for i in range(len(cells) + n_without)], dtype=object)
    table = pl.DataFrame({"id": labels[: len(cells)].tolist(), **columns}, schema_overrides=kinds)
    try:
        block, _ = feature_block(table, labels, "row", n_max)
    except InputError as error:
        assert "must have a field that differs" in str(error)  # noqa: PT017
        return
    assert np.isfinite(block.values).all()
    assert 1 <= block.values.shape[1] <= n_max
    assert_is_block(block)
    again = code_rows(block.code, table[::-1], labels, "row")
    np.testing.assert_allclose(again, block.values, atol=1e-12)


def test_a_single_feature_needs_two_dimensions():
    with pytest.raises(InputError, match=r"two dimensions.*np\.newaxis"):
        feature_block(np.arange(3.0), np.arange(3), "row")
