"""New columns of tables of mixed kinds, and new entries of their columns."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError
from fillrank.posterior.fold_in import FixedNoise, fold_in_rows
from fillrank.runtime.threads import Workers
from fillrank.samplers.noise_steps import FIXED_VARIANCE
from fillrank.table.entries import Entries
from fillrank.table.new_columns import code_new_columns, encode_columns
from helpers.mixed_tables import fit_mixed

N = 120
NEW = {
    "size": "number",
    "dose": "positive",
    "mood": "ordered",
    "member": "yes_no",
    "calls": "count",
    "town": "category",
}
TOWNS = np.array(["Ayr", "Perth", "Wick"])


@cache
def _complete():
    """Columns of two factors: of the fit, and of every kind."""
    rng = np.random.default_rng(4)
    u, v = rng.normal(size=(2, N))

    def mix(a, b):
        return a * u + b * v + 0.2 * rng.normal(size=N)

    return pd.DataFrame(
        {
            "x": 10 * mix(1, 0.2),
            "y": mix(0.1, 1),
            "z": 100 + mix(0.7, -0.7),
            "w": mix(-0.8, -0.5),
            "even": np.where(mix(0.8, 0.5) > 0, "yes", "no"),
            "odd": np.where(mix(0.5, -0.8) > 0.3, "yes", "no"),
            "size": 5 + 3 * mix(0.9, 0.3),
            "dose": np.exp(1 + mix(0.8, 0.6)),
            "mood": np.clip(np.rint(3 + 1.2 * mix(0.8, 0.7)), 1, 5),
            "member": np.where(mix(0.9, -0.6) > 0.2, "yes", "no"),
            "calls": np.floor(np.exp(1.3 + mix(0.8, -0.4))),
            "town": TOWNS[np.argmax([mix(1.2, 0) + 0.5, mix(-1, 1), mix(-1, -1)], axis=0)],
        },
        index=[f"p{i}" for i in range(N)],
    )


def _table():
    return _complete().mask(np.random.default_rng(5).random(_complete().shape) < 0.25)


@cache
def _model():
    return fit_mixed(_table().drop(columns=list(NEW)), n_sweeps=120)


@cache
def _new():
    return _model().fold_in(_table()[list(NEW)], axis="columns")


def test_the_kinds_are_those_of_the_values():
    assert dict(zip(NEW, _new().posterior_.column_kinds, strict=True)) == NEW
    given = _model().fold_in(_table()[["mood"]], axis="columns", kinds={"mood": "number"})
    assert given.posterior_.column_kinds == ["number"]


@pytest.mark.parametrize("name", NEW)
def test_new_columns_are_predicted_as_after_a_new_fit(name):
    """Better than by their mean or most frequent value; intervals hold what they say, roughly."""
    new, missing = _new(), _table().index[_table()[name].isna()]
    truth, at = _complete().loc[missing, name].to_numpy(), [name] * len(missing)
    if NEW[name] in ("ordered", "yes_no", "category"):
        usual = np.mean(truth == _table()[name].mode()[0])
        assert np.mean(new.predict(missing, at, statistic="mode") == truth) > usual + 0.1
        sets = new.predict_set(missing, name, level=0.9)
        covered = np.mean([value in each for value, each in zip(truth, sets, strict=True)])
    else:
        # Large values of a skewed column would decide alone.
        as_shown = np.asarray if NEW[name] == "number" else np.log1p
        errors = as_shown(new.predict(missing, at)) - as_shown(truth)
        assert np.sqrt(np.mean(errors**2)) < 0.5 * as_shown(_complete()[name]).std()
        low, high = new.predict_interval(missing, at, level=0.9)
        covered = np.mean((low <= truth) & (truth <= high))
    # About 30 cells: less than 70% has a probability of 0.002 at a coverage of 90%.
    assert covered > 0.7


def test_a_model_of_new_columns_is_saved_and_takes_further_columns(tmp_path):
    new = _new()
    new.save(tmp_path / "m", with_data=True)
    rows, names = np.repeat(_complete().index[:5], len(NEW)), 5 * list(NEW)
    np.testing.assert_array_equal(
        fr.load(tmp_path / "m").predict(rows, names), new.predict(rows, names)
    )
    again = new.fold_in(_table()[["dose", "town"]], axis="columns")
    alone = _model().fold_in(_table()[["dose", "town"]], axis="columns")
    np.testing.assert_array_equal(
        again.predict(rows[:2], ["dose", "town"]), alone.predict(rows[:2], ["dose", "town"])
    )
    assert set(new.predict(rows[:6], ["town"] * 6)) <= set(TOWNS)


def test_columns_learn_from_new_entries():
    """A column with few entries; its units and levels do not change."""
    table, few = _table(), _table()
    kept = np.isin(np.arange(N), np.arange(8, 24))
    few.loc[~kept, ["size", "member", "town"]] = None
    model = fit_mixed(few, n_sweeps=120, kinds={"size": "number"})
    more = table.loc[table.index[24:90], ["size", "member", "town"]]
    updated = model.update(more, axis="columns")
    rest = table.index[90:]
    truth = _complete().loc[rest]
    for name in ("size", "member", "town"):
        score = [m.log_density(rest, [name] * 30, truth[name]).mean() for m in (model, updated)]
        assert score[1] > score[0]
    assert updated.posterior_.coding is model.posterior_.coding
    others = rest[:5], ["x"] * 5
    np.testing.assert_array_equal(updated.predict(*others), model.predict(*others))
    # Columns that were folded in learn, too.
    first = _model().fold_in(few[["size", "member"]], axis="columns")
    then = first.update(more[["size", "member"]], axis="columns")
    score = [m.log_density(rest, ["size"] * 30, truth["size"]).mean() for m in (first, then)]
    assert score[1] > score[0]


def test_what_cannot_be_a_new_column():
    flat = pd.DataFrame({"flat": np.where(np.arange(N) < 9, 2.5, np.nan)}, index=_table().index)
    with pytest.raises(InputError, match=r"two different values.*column 'flat' has 1"):
        _model().fold_in(flat, axis="columns")
    with pytest.raises(InputError, match="column 'size' cannot be 'count'"):
        _model().fold_in(_table()[["size"]], axis="columns", kinds={"size": "count"})
    with pytest.raises(InputError, match="kinds are for new columns"):
        _model().fold_in(_table()[["x"]], kinds={"x": "number"})
    with pytest.raises(InputError, match='kinds must be "auto" or a mapping'):
        _model().fold_in(_table()[["x"]], axis="columns", kinds="number")
    with pytest.raises(NotSupportedError, match="its kind is not known"):
        _model().predict("p0", "nothing", unknown="prior")
    numbers = fit_mixed(_complete()[["x", "y", "z"]])
    with pytest.raises(InputError, match="that kind"):
        numbers.fold_in(_table()[["size"]], axis="columns", kinds={"size": "number"})


def test_noise_of_two_levels_is_fixed_and_that_of_numbers_is_not():
    posterior, source = _new().posterior_.low_rank, _model().posterior_
    fixed = np.isin(np.arange(posterior.shape[1]), _new().posterior_.coding.fixed_columns())
    assert 0 < fixed.sum() < fixed.size
    for draw, fitted in zip(posterior.draws[:5], source.low_rank.draws[:5], strict=True):
        variances = draw.noise.variance / draw.noise.columns
        np.testing.assert_allclose(variances[fixed], FIXED_VARIANCE)
        free = fitted.noise.columns[~source.are_fixed]
        inside = (draw.noise.columns >= free.min()) & (draw.noise.columns <= free.max())
        assert inside[~fixed].all()


def test_rows_with_fixed_noise_do_not_depend_on_the_others():
    """Those of each kind are drawn as if all were of that kind."""
    posterior = _model().posterior_.low_rank
    draws, n = [draw.transpose() for draw in posterior.draws], 3
    entries = Entries(np.arange(0, 4 * (n + 1), 4), np.arange(12, dtype=np.int32), np.ones(12))
    fitted = _model().posterior_.are_fixed

    def folded(new):
        fixed = FixedNoise(fitted, np.array(new))
        mean = posterior.mean.transpose()
        return fold_in_rows(draws, mean, entries, Workers(1), fixed=fixed)[0][0].left

    some = folded([True, False, True])
    np.testing.assert_array_equal(some[[0, 2]], folded([True] * 3)[[0, 2]])
    np.testing.assert_array_equal(some[1], folded([False] * 3)[1])


def test_latent_entries_by_column_are_those_by_row():
    """Of some columns of a coding, among them a category with two latent columns."""
    data = fr.Observations.of(_table()[["size", "town", "mood"]])
    coding = code_new_columns(data, "auto")
    columns = data.by_column()
    found = encode_columns(coding, columns, np.arange(3), N, None)
    assert found.positions.tolist() == [0, 1, 2, 3]
    assert found.first.tolist() == [0, 1, 1, 3]
    assert found.fixed.tolist() == [False, True, True, False]
    town = data.column_types[1].levels
    usual = _table()["town"].mode()[0]
    codes = columns.values[columns.pointers[1] : columns.pointers[2]]
    # The first latent column asks for the most frequent town, in all rows that have one.
    start, stop = found.entries.pointers[1:3]
    is_usual = found.entries.cells[start:stop] == coding.scales[1].first + 1
    np.testing.assert_array_equal(is_usual, codes == town.index(usual))
    assert found.entries.pointers[3] - stop == (~is_usual).sum()
    moved = found.after(7)
    np.testing.assert_array_equal(moved.limits[:, 7:], found.limits)
    known = found.entries.cells >= 0
    np.testing.assert_array_equal(moved.entries.cells[known], found.entries.cells[known] + 7)
    assert (moved.entries.cells[~known] == -1).all()
