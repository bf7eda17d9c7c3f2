"""The benchmark of several kinds of columns, on a generated table, without R and with a simple model."""

from functools import partial
from types import SimpleNamespace

import kinds
import mixed_methods
import numpy as np
import pandas as pd
import pytest
from masks import make_masks
from mixed_methods import Answer, answer, decode, encode, run_mice, summarise_draws
from mixed_results import finished, read_results, score_answer
from mixed_tables import (
    CATEGORY,
    KINDS,
    NUMBER,
    ORDERED,
    YES_NO,
    Column,
    MixedTable,
    read_mixed_table,
    to_frame,
    to_values,
)
from predictives import Marginals, likely_levels, median_levels

import fillrank as fr

COLUMNS = [
    Column("size", NUMBER),
    Column("stage", ORDERED, ("low", "middle", "high")),
    Column("smokes", YES_NO, (False, True)),
    Column("sex", YES_NO, ("female", "male")),
    Column("region", CATEGORY, ("east", "north", "south", "west")),
]


def generated(n=80):
    """Columns that depend on one trait; some values are missing."""
    rng = np.random.default_rng(3)
    trait = rng.standard_normal(n)
    levels = [np.searchsorted(cuts, trait) for cuts in ([-0.5, 0.5], [0.0], [0.3], [-1, 0, 1])]
    values = np.column_stack([20 + 3 * trait, *levels]).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    return MixedTable("generated", COLUMNS, values)


class SimpleModel:
    """In place of GASR: every cell has the distribution of its column."""

    def __init__(self, **settings):
        assert settings["random_state"] == 0

    def fit_transform(self, frame):
        self._names = list(frame)
        columns = [_described(frame[name]) for name in frame]
        values = to_values(frame, columns)
        self._marginals = Marginals(values, columns)
        guesses = [self._marginals.guess(j) for j in range(len(columns))]
        return to_frame(np.where(np.isnan(values), guesses, values), columns)

    def predict_proba(self, rows, column):
        return self._marginals.probabilities(self._names.index(column), rows)

    def predict_interval(self, rows, columns, level):
        return self._marginals.interval(self._names.index(columns[0]), rows, level)

    def log_density(self, rows, columns, values):
        return self._marginals.log_density(self._names.index(columns[0]), rows, values)


def _described(series):
    if series.dtype == "boolean":
        return Column(series.name, YES_NO, (False, True))
    if isinstance(series.dtype, pd.CategoricalDtype):
        kind = ORDERED if series.cat.ordered else CATEGORY
        return Column(series.name, kind, tuple(series.cat.categories))
    return Column(series.name, NUMBER)


@pytest.fixture
def table():
    return generated()


def test_data_frames_have_the_types_of_their_columns(table):
    frame = to_frame(table.values, table.columns)
    assert frame["size"].dtype == float
    assert frame["stage"].cat.ordered
    assert list(frame["stage"].cat.categories) == ["low", "middle", "high"]
    assert frame["smokes"].dtype == "boolean"
    assert not frame["region"].cat.ordered
    np.testing.assert_array_equal(frame.isna().to_numpy(), np.isnan(table.values))
    np.testing.assert_array_equal(to_values(frame, table.columns), table.values)


def test_codes_of_a_file_are_its_levels(tmp_path):
    names = ["Gender", "Age", "FAVC", "CAEC", "MTRANS"]
    lines = [(0, 21.5, 1, 3, 0), (1, 30.0, 0, 0, 4), (0, np.nan, 1, 2, 3)]
    pd.DataFrame(lines, columns=names).to_csv(tmp_path / "obesity.csv")
    found = read_mixed_table(tmp_path, "obesity")
    assert [column.kind for column in found.columns] == [YES_NO, NUMBER, YES_NO, ORDERED, CATEGORY]
    frame = to_frame(found.values, found.columns)
    assert frame["CAEC"].tolist() == ["no", "Always", "Sometimes"]
    assert frame["CAEC"].max() == "Always"
    assert frame["MTRANS"].tolist() == ["Automobile", "Walking", "Public_Transportation"]
    assert frame["FAVC"].tolist() == [True, False, True]


def test_codes_are_decoded(table):
    coded = encode(table)
    assert coded.shape[1] == 4 + 3
    complete = MixedTable("full", COLUMNS, np.nan_to_num(table.values, nan=1.0))
    np.testing.assert_array_equal(decode(encode(complete), table), complete.values)
    cell = np.array([[np.nan, np.nan, np.nan, np.nan, np.nan]])
    filled = decode(np.array([[21.3, 7.2, -0.4, 0.8, 0.1, 0.2, 0.3]]), table._replace(values=cell))
    np.testing.assert_array_equal(filled, [[21.3, 2, 0, 1, 0]])


@pytest.mark.parametrize(
    "method", ["most frequent", "IterativeImputer", "GASR on codes", "forests", "GASR"]
)
@pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")
def test_methods_fill_in_levels(method, table, monkeypatch):
    model = SimpleModel if method == "GASR" else partial(fr.GASR, n_sweeps=50)
    monkeypatch.setattr(fr, "GASR", model)
    answers, seconds = answer(method, table, 1)
    assert seconds > 0
    observed = ~np.isnan(table.values)
    for found in answers.values():
        np.testing.assert_array_equal(found.values[observed], table.values[observed])
        for j, column in enumerate(COLUMNS[1:], 1):
            assert set(found.values[:, j]) <= set(range(len(column.levels)))


def test_chained_forests_know_what_columns_say_about_each_other(table):
    (mask,) = make_masks(table, 0.3, 1)
    visible = table._replace(values=np.where(mask.hidden, np.nan, table.values))
    errors = {}
    for method in ("most frequent", "forests"):
        (found,) = answer(method, visible, 1)[0].values()
        scores = pd.DataFrame(score_answer(table, mask.hidden, found))
        errors[method] = scores["rmse"].mean(), -scores["accuracy"].mean()
    # The trait is known from four other columns: far from a matter of chance.
    assert errors["forests"][0] < 0.7 * errors["most frequent"][0]
    assert errors["forests"][1] < errors["most frequent"][1] - 0.15


def test_scores_of_a_perfect_answer_and_of_one_that_is_off(table):
    hidden = ~np.isnan(table.values)
    right = pd.DataFrame(score_answer(table, hidden, Answer(table.values))).set_index("column")
    assert right.loc["size", "rmse"] == 0
    assert (right["accuracy"].dropna() == 1).all()
    assert right["mae"].dropna().to_dict() == {"stage": 0}
    off = table.values + np.array([2 * np.nanstd(table.values[:, 0]), 2, 0, 0, 0])
    found = pd.DataFrame(score_answer(table, hidden, Answer(off, table.values))).set_index("column")
    assert found.loc["size", "rmse"] == pytest.approx(2)
    assert found.loc["stage", "accuracy"] == 0
    assert found.loc["stage", "mae"] == 0  # that of the medians


def test_scores_of_distributions(table):
    hidden = ~np.isnan(table.values)
    given = Answer(table.values, None, Marginals(table.values, COLUMNS))
    found = pd.DataFrame(score_answer(table, hidden, given)).set_index("column")
    np.testing.assert_allclose(found["coverage"], found["expected"], atol=0.05)
    # A normal distribution: minus its entropy.
    assert found.loc["size", "log_score"] == pytest.approx(-0.5 * np.log(2 * np.pi * np.e))
    shares = np.bincount(table.values[hidden[:, 4], 4].astype(int)) / hidden[:, 4].sum()
    assert found.loc["region", "log_score"] == pytest.approx(shares @ np.log(shares), abs=0.01)


def test_sets_of_levels():
    probabilities = np.array([[0.2, 0.5, 0.3], [0.95, 0.03, 0.02], [0.4, 0.5, 0.1]])
    sets = likely_levels(probabilities, 0.9)
    np.testing.assert_array_equal(
        sets, [[True, True, True], [True, False, False], [True, True, False]]
    )
    np.testing.assert_array_equal(median_levels(probabilities), [1, 0, 1])


def test_imputations_are_summarised(table):
    draws = np.zeros((5, 2, len(COLUMNS)))
    draws[:, 0, 0] = [1, 2, 3, 4, 5]
    draws[:, 0, 1] = [2, 0, 1, 0, 2]
    draws[:, 0, 4] = [3, 1, 1, 2, 1]
    found = summarise_draws(draws, table)
    assert found.values[0].tolist() == [3, 2, 0, 0, 1]
    assert found.medians[0, 1] == 1


def test_mice_gets_numbers_of_levels_and_leaves_imputed_tables(table, monkeypatch):
    table.values[0, 0] = np.nan

    def run(command, **options):
        _, _, folder, n = command
        described = np.loadtxt(f"{folder}/columns.csv", delimiter=",")
        assert described.tolist() == [[0, 0], [3, 1], [2, 0], [2, 0], [4, 0]]
        given = np.loadtxt(f"{folder}/values.csv", delimiter=",")
        for i in range(int(n)):
            filled = np.where(np.isnan(given), i % 2, given)
            filled[0, 0] = np.nan  # as mice leaves cells of constant columns
            np.savetxt(f"{folder}/draw-{i + 1}.csv", filled, delimiter=",")

    monkeypatch.setattr(mixed_methods, "subprocess", SimpleNamespace(run=run))
    draws = run_mice(table)
    assert len(draws) == mixed_methods.N_IMPUTATIONS
    missing = np.isnan(table.values)
    assert (draws[1][missing] == 1).sum() >= missing.sum() - 1
    assert draws[0][0, 0] == pytest.approx(np.nanmean(table.values[:, 0]))


@pytest.fixture
def folder(tmp_path):
    """A table with the columns of boys."""
    frame = to_frame(generated().values, COLUMNS)
    boys = pd.DataFrame({"hgt": frame["size"], "wgt": frame["size"] ** 2})
    boys["gen"] = frame["stage"].cat.rename_categories({"low": "G1", "middle": "G2", "high": "G5"})
    boys["reg"] = frame["region"]
    boys.to_csv(tmp_path / "boys.csv", index=False)
    return tmp_path


def test_what_has_results_is_not_run_again(folder, monkeypatch, capsys):
    monkeypatch.setattr(fr, "GASR", SimpleModel)
    monkeypatch.setattr(kinds, "why_missing", lambda package: "R is not present")
    path = folder / "results" / "kinds.jsonl"
    asked = ["--data", str(folder), "--tables", "boys", "--results", str(path)]
    kinds.main([*asked, "--methods", "most frequent,mice", "--masks", "1"])
    assert "mice is left out: R is not present" in capsys.readouterr().err
    before = path.read_text("utf-8")
    kinds.main([*asked, "--methods", "most frequent,GASR", "--masks", "2"])
    text, said = capsys.readouterr()
    assert said.count("most frequent") == 1
    assert path.read_text("utf-8").startswith(before)
    methods = "most frequent", "GASR"
    assert finished(path) == {("boys", mask, method) for mask in (0, 1) for method in methods}
    assert set(read_results(path)["kind"]) == set(KINDS) - {YES_NO}
    assert "| table | most frequent | GASR | GASR, mode and median |" in text
    assert "## Coverage of 90% intervals and sets of levels by GASR" in text


def test_unknown_methods_are_named(folder, capsys):
    with pytest.raises(SystemExit):
        kinds.main(["--data", str(folder), "--methods", "magic"])
    assert "unknown methods ['magic']" in capsys.readouterr().err
