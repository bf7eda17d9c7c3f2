"""Completed tables in the layout of R's mice, read back by the rules of its as.mids."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fillrank as fr
from fillrank.errors import InputError
from helpers.mixed_tables import fit_mixed, mixed_frame
from helpers.quick_fits import quick, table

pytestmark = pytest.mark.filterwarnings("ignore::fillrank.errors.ConvergenceWarning")


def as_mids(long):
    """What as.mids of mice takes from a long table: the original, and the imputed values."""
    groups = long.groupby(".imp", sort=False)
    assert long[".imp"].tolist() == sorted(long[".imp"])
    assert groups.size().nunique() == 1
    ids = [part[".id"].tolist() for _, part in groups]
    assert all(each == ids[0] for each in ids)
    parts = [part.drop(columns=[".imp", ".id"]).set_axis(ids[0]) for _, part in groups]
    return parts[0], parts[1:]


def assert_only_missing_cells_change(original, completed, drawn):
    missing = original.isna()
    for part, table_drawn in zip(completed, drawn, strict=True):
        assert not part.isna().any(axis=None)
        for column in original:
            known = ~missing[column]
            assert part.loc[known, column].tolist() == original.loc[known, column].tolist()
            imputed = part.loc[missing[column], column]
            expected = table_drawn.loc[missing[column], column]
            assert imputed.tolist() == expected.tolist()


def test_the_tables_of_every_kind():
    frame = mixed_frame()
    model = fit_mixed(frame)
    long = model.sample_completions(3, random_state=1, layout="mids")
    original, completed = as_mids(long)
    drawn = model.sample_completions(3, random_state=1)
    assert_only_missing_cells_change(original, completed, drawn)
    # Values of which only a limit is known are drawn, so that they are missing in the original.
    limits = frame["lead"].str.startswith(("<", ">"), na=False)
    assert limits.any()
    assert original["lead"].isna().equals(frame["lead"].isna() | limits)
    others = frame.columns.drop("lead")
    assert original[others].isna().equals(frame[others].isna())
    assert long["answer"].dtype == frame["answer"].dtype


def test_original_values_of_a_frame_are_unchanged():
    frame = pd.DataFrame(table(), columns=[f"c{j}" for j in range(15)])
    original, completed = as_mids(quick().fit(frame).sample_completions(2, layout="mids"))
    pd.testing.assert_frame_equal(original, frame)
    assert len(completed) == 2


def test_columns_that_are_not_fitted_are_in_every_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(table(30, 6), columns=list("abcdef"), index=[f"r{i}" for i in range(30)])
    frame.insert(2, "remark", [f"{rng.random()} is a long remark" for _ in range(30)])
    model = quick().fit(frame)
    assert model.observations_.origin.passive
    long = model.sample_completions(2, layout="mids")
    assert long.columns.tolist() == [".imp", ".id", "a", "b", "remark", "c", "d", "e", "f"]
    assert long["remark"].tolist() == frame["remark"].tolist() * 3


@pytest.mark.parametrize("make", [np.asarray, lambda X: fr.Observations.from_matrix(X)])
def test_tables_without_a_library(make):
    X = table()
    long = quick().fit(make(X)).sample_completions(2, layout="mids")
    original, _ = as_mids(long)
    np.testing.assert_array_equal(original.to_numpy(), X)


def test_polars():
    frame = pl.DataFrame(table(), schema=[f"c{j}" for j in range(15)])
    long = quick().fit(frame).sample_completions(2, layout="mids")
    assert isinstance(long, pl.DataFrame)
    assert long[".imp"].to_list() == [0] * 20 + [1] * 20 + [2] * 20
    assert long[".id"].to_list() == [*range(20)] * 3


def test_a_long_table_becomes_wide():
    i, j = np.indices((12, 5)).reshape(2, -1)
    frame = pd.DataFrame({"user": [f"u{k}" for k in i], "item": [f"i{k}" for k in j]})
    frame["rating"] = np.random.default_rng(0).normal(size=60)
    long = quick().fit(frame.drop(index=[3, 17])).sample_completions(1, layout="mids")
    original, _ = as_mids(long)
    assert original.shape == (12, 5)
    assert original.isna().sum().sum() == 2


def test_names_of_the_added_columns_are_refused():
    frame = pd.DataFrame(table(10, 3), columns=["a", ".imp", "c"])
    with pytest.raises(InputError, match=r"adds a column '\.imp'"):
        quick().fit(frame).sample_completions(1, layout="mids")


def test_another_layout_is_refused():
    with pytest.raises(InputError, match="layout must be one of"):
        quick().fit(table()).sample_completions(1, layout="long")


def test_a_text_file_reads_back():
    frame = mixed_frame(60)
    long = fit_mixed(frame).sample_completions(2, layout="mids")
    text = long.to_csv(index=False, na_rep="NA")
    original, completed = as_mids(pd.read_csv(io.StringIO(text)))
    assert original.isna().sum().sum() > 0
    assert not any(part.isna().any(axis=None) for part in completed)
