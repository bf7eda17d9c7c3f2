"""``fillrank complete --imputations``: completed tables as R's mice reads them."""

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from helpers.mixed_tables import mixed_frame
from helpers.refusals import assert_refused
from helpers.result_files import read_json


def read_imputations(folder):
    # As R's read.csv does, only NA is missing.
    return pd.read_csv(folder / "imputations.csv", keep_default_na=False, na_values=["NA"])


def test_the_original_and_the_completed_tables(complete, write_wide, matrix, tmp_path):
    ran = complete(write_wide(), "--imputations", "3", "--seed", "3")
    assert ran.code == 0, ran.err
    assert "imputations.csv" in ran.out
    folder = tmp_path / "table-filled"
    long = read_imputations(folder)
    assert long.columns.tolist() == [".imp", ".id", *(f"column {j}" for j in range(8))]
    assert long[".imp"].tolist() == np.repeat(range(4), 14).tolist()
    assert long[".id"].tolist() == [f"row {i}" for i in range(14)] * 4
    tables = long.iloc[:, 2:].to_numpy().reshape(4, 14, 8)
    np.testing.assert_array_equal(tables[0], matrix)
    observed = ~np.isnan(matrix)
    model = fr.GASR(n_sweeps=20, max_rank=3, random_state=3, progress=False)
    with pytest.warns(fr.ConvergenceWarning):
        model.fit(fr.read(tmp_path / "table.csv"))
    for found, drawn in zip(tables[1:], model.sample_completions(3, random_state=3), strict=True):
        np.testing.assert_array_equal(found[observed], matrix[observed])
        np.testing.assert_allclose(found, drawn, rtol=1e-5)
    assert read_json(folder / "summary.json")["settings"]["imputations"] == 3


def test_not_written_unless_requested(complete, write_wide, tmp_path):
    complete(write_wide())
    assert not (tmp_path / "table-filled" / "imputations.csv").exists()


def test_a_long_table(complete, write_long, matrix, tmp_path):
    complete(write_long(), "--imputations", "1")
    long = read_imputations(tmp_path / "ratings-filled")
    assert long.shape == (2 * matrix.shape[0], 2 + matrix.shape[1])
    assert long.loc[long[".imp"] == 0].isna().sum().sum() == np.isnan(matrix).sum()


def test_every_kind_of_values(complete, tmp_path):
    frame = mixed_frame()
    frame.insert(3, "remark", [f"free text number {i * i}" for i in range(len(frame))])
    frame.to_csv(tmp_path / "mixed.csv")
    ran = complete(tmp_path / "mixed.csv", "--imputations", "2", "--ignore", "remark")
    assert ran.code == 0, ran.err
    long = read_imputations(tmp_path / "mixed-filled")
    assert long.columns.tolist() == [".imp", ".id", *frame.columns]
    original, *completed = (part for _, part in long.groupby(".imp"))
    limits = frame["lead"].str.startswith(("<", ">"), na=False).to_numpy()
    expected = frame.isna()
    expected["lead"] |= limits
    np.testing.assert_array_equal(original[frame.columns].isna(), expected)
    for part in completed:
        assert not part.isna().any(axis=None)
        assert set(part["region"]) <= set(frame["region"].dropna())
        assert part["remark"].tolist() == frame["remark"].tolist()


def test_more_tables_than_draws(complete, write_wide, tmp_path):
    ran = complete(write_wide(), "--imputations", "100")
    assert "so imputations.csv has 20 completed tables" in ran.err + ran.out
    assert read_imputations(tmp_path / "table-filled")[".imp"].max() == 20


def test_standard_output_takes_one_table(complete, write_wide):
    assert_refused(complete(write_wide(), "--imputations", "2", "-o", "-"), "--imputations")


def test_a_column_of_the_same_name_is_refused_before_the_fit(complete, write_wide, matrix):
    columns = [".id", *(f"column {j}" for j in range(1, matrix.shape[1]))]
    assert_refused(complete(write_wide(columns=columns), "--imputations", "2"), "adds a column")
