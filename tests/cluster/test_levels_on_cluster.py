"""Tables of one scale of ordered levels on a cluster: the bits of one machine, and errors."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError

pytest.importorskip("distributed")

import dask.dataframe as dd

from fillrank.cluster.jobs import write_predictions, write_recommendations
from fillrank.cluster.memory import estimate_worker_memory
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Partition, SidePartitions
from fillrank.cluster.remote_levels import RemoteLikelihood
from fillrank.cluster.remote_side import RemoteSide
from fillrank.draws import streams
from fillrank.kernels.gaussian_rows import RowNoise
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data, RemoteData
from fillrank.table.entries import rows_of
from fillrank.table.latent import code_ratings, latent_data
from helpers.clusters import assert_same, harm_in_the_middle, small_table, wait_until

# Thresholds are drawn in the sweeps 0 and 10.
SHORT = {
    "likelihood": "ordered",
    "thresholds": "table",  # those of rows need one machine
    "n_sweeps": 12,
    "burn_in": 5,
    "n_chains": 1,
    "max_rank": 3,
    "start": "random",
    "missingness": False,
    "random_state": 3,
    "progress": False,
}
METHODS = [fr.GASR, fr.BPMF]


def ratings(n_levels=6):
    """Levels that are not evenly spaced, in text labels and in random order."""
    table = small_table()
    latent = 1.2 * table.values / table.values.std() + n_levels / 2
    codes = np.clip(np.rint(latent), 1, n_levels)
    order = np.random.default_rng(5).permutation(codes.size)
    return pd.DataFrame(
        {
            "row": [f"person {i}" for i in table.rows[order]],
            "column": 10 * table.columns[order],
            "value": (codes**2)[order],
        }
    )


def partitioned(table, n):
    return dd.from_pandas(table, npartitions=n, sort=False)


def levels_of(model):
    (scale,) = model.posterior_.coding.scales
    return scale.levels


def assert_same_levels(one, other):
    """Two models of levels have the same bits, thresholds included."""
    np.testing.assert_array_equal(levels_of(one), levels_of(other))
    draws, others = one.posterior_.low_rank.draws, other.posterior_.low_rank.draws
    assert len(draws) == len(others) > 1
    for draw, again in zip(draws, others, strict=True):
        for part, same in zip((*draw[:2], draw.limits), (*again[:2], again.limits), strict=True):
            np.testing.assert_array_equal(part, same)
        for part, same in zip(draw.noise, again.noise, strict=True):
            np.testing.assert_array_equal(part, same)
    for name, trace in one.history_.items():
        np.testing.assert_array_equal(trace, other.history_[name])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n_workers", "n_partitions"), [(1, 2), (2, 1), (3, 4)])
def test_a_fit_has_the_bits_of_one_machine(method, n_workers, n_partitions, crew):
    table, client = ratings(), crew.with_workers(n_workers)
    here = method(**SHORT).fit(table)
    limits = [draw.limits for draw in here.posterior_.low_rank.draws]
    assert not np.array_equal(limits[0], limits[-1])  # thresholds were drawn
    there = method(**SHORT).fit(partitioned(table, n_partitions), client=client)
    assert_same_levels(here, there)
    assert there.notes_ == here.notes_
    assert len(there.observations_) == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_usual_start_and_features_of_missing_values(method, client):
    """In two chains, of a table that is in the memory of this machine."""
    table = fr.Observations.from_table(ratings())
    model = method(**SHORT | {"start": "spectral", "missingness": True, "n_chains": 2})
    assert_same_levels(clone(model).fit(table), model.fit(table, client=client))


@pytest.mark.parametrize("n_levels", [2, 3])
def test_without_thresholds_to_draw(n_levels, client):
    table = ratings(n_levels)
    here = fr.GASR(**SHORT | {"dtype": "float64"}).fit(table)
    there = fr.GASR(**SHORT | {"dtype": "float64"}).fit(partitioned(table, 2), client=client)
    assert levels_of(here).size == n_levels
    assert_same_levels(here, there)


def test_numbers_with_bpmf(client):
    table = small_table()
    settings = SHORT | {"likelihood": "auto", "n_sweeps": 8, "burn_in": 4}
    for changes in ({}, {"robust": True}, {"start": "spectral", "noise_precision": 2.0}):
        model = fr.BPMF(**settings | changes)
        assert_same(clone(model).fit(table), model.fit(table, client=client))


def test_predictions_are_those_of_one_machine(client, tmp_path):
    table = ratings()
    train, held = table[:1800], fr.Observations.from_table(table[1800:])
    here = fr.GASR(**SHORT).fit(train)
    there = fr.GASR(**SHORT).fit(partitioned(train, 3), client=client)
    there.save(tmp_path / "model.fillrank")
    loaded = fr.load(tmp_path / "model.fillrank")
    rows, columns = ["person 5", "person 6", "person 7"], [70, 80, 90]
    for model in (there, loaded):
        for statistic in ("median", "mean"):
            expected = here.predict(rows, columns, statistic=statistic)
            np.testing.assert_array_equal(
                model.predict(rows, columns, statistic=statistic), expected
            )
        pd.testing.assert_frame_equal(model.predict_proba(rows, 70), here.predict_proba(rows, 70))
        new = pd.DataFrame({"row": "another", "column": columns, "value": [9.0, 16.0, 4.0]})
        np.testing.assert_array_equal(
            model.fold_in(new).predict("another", 100), here.fold_in(new).predict("another", 100)
        )
    assert there.score(held) == here.score(held)
    with pytest.raises(InputError, match=r"1, 4, 9, 16, 25, \.\.\.; got 8"):
        there.fold_in(new.assign(value=[9.0, 8.0, 4.0]))


def test_jobs_on_the_cluster(client, tmp_path):
    table = ratings()
    model = fr.GASR(**SHORT).fit(partitioned(table, 2), client=client)
    (file,) = write_predictions(model, partitioned(table[:50], 1), tmp_path / "asked", client)
    found = pd.read_parquet(file)
    np.testing.assert_array_equal(
        found["value"], model.predict(table["row"][:50], table["column"][:50])
    )
    files = write_recommendations(
        model, tmp_path / "best", client, n=2, leave_out=partitioned(table, 2)
    )
    best = pd.concat(map(pd.read_parquet, files))
    seen = set(zip(table["row"], table["column"], strict=True))
    assert len(best) == 2 * table["row"].nunique()
    assert not seen & set(zip(best["row"], best["column"], strict=True))


# The likelihood


def level_data():
    """Levels of a table on this machine."""
    table = fr.Observations.from_table(ratings())
    coding = code_ratings(table)
    return coding, Data(*latent_data(coding, table, np.dtype("float32")))


def remote_data(data, bounds, client):
    """The same with columns in partitions of these bounds."""
    partitions = [
        client.submit(
            Partition.as_writable, Partition(a, rows_of(data.columns, slice(a, b))), pure=False
        )
        for a, b in pairwise(bounds)
    ]
    side = SidePartitions(data.columns.pointers, np.array(bounds), partitions)
    columns = RemoteSide(Monitor(client), side, data.columns.dtype)
    return RemoteData(columns, columns)


@pytest.fixture
def problem():
    coding, data = level_data()
    rng = np.random.default_rng(1)
    (m, n), k = data.shape, coding.limits.shape[1]
    factors = tuple(rng.standard_normal((size, 4)).astype(np.float32) for size in (n, m))
    noise = RowNoise(
        rng.uniform(0.3, 2.0, n),
        rng.uniform(0.5, 2.0, m),
        np.inf,
        streams.COLUMN_ENTRIES,
        coding.limits,
    )
    return data, (factors, noise, k)


# One partition; uneven ones; one without columns; many.
@pytest.mark.parametrize("bounds", [[0, 60], [0, 7, 41, 60], [0, 0, 3, 60], list(range(0, 61, 6))])
def test_likelihoods_do_not_depend_on_partitions(bounds, problem, client):
    data, arguments = problem
    with Workers(1) as workers:
        here = data.level_likelihood(*arguments, workers)
        there = remote_data(data, bounds, client).level_likelihood(*arguments, workers)
        np.testing.assert_array_equal(there.counts, here.counts)
        assert there.counts.sum() == data.n_entries
        for c, cuts in ((1, (-1.0, -0.2, 0.5)), (3, (0.1, 0.4, 1e6))):
            for got, expected in zip(
                there.block_sums(c, cuts), here.block_sums(c, cuts), strict=True
            ):
                np.testing.assert_array_equal(got, expected)
            assert there.at(c, cuts) == here.at(c, cuts)


def test_entries_that_were_lost_are_sorted_again(problem, client):
    data, arguments = problem
    with Workers(1) as workers:
        here = data.level_likelihood(*arguments, workers)
    there = remote_data(data, [0, 7, 60], client).columns.level_likelihood(*arguments)
    lost = there._entries
    lost[0].cancel()
    wait_until(lambda: lost[0].status == "cancelled", "a cancelled task")
    assert there.at(1, (-1.0, -0.2, 0.5)) == here.at(1, (-1.0, -0.2, 0.5))
    assert not set(there._entries) & set(lost)


# Failures of workers


def test_a_worker_dies_while_thresholds_are_drawn(monkeypatch, crew):
    crew.with_workers(2)
    table = fr.Observations.from_table(ratings())
    killed, block_sums = [], RemoteLikelihood.block_sums

    def kill_first(self, c, cuts):
        if not killed:
            killed.append(crew.replace(0))
        return block_sums(self, c, cuts)

    monkeypatch.setattr(RemoteLikelihood, "block_sums", kill_first)
    there = fr.GASR(**SHORT).fit(table, client=crew.client)
    assert len(killed) == 1
    assert_same_levels(fr.GASR(**SHORT).fit(table), there)


@pytest.mark.slow  # starts a process for every kill
@pytest.mark.parametrize("seed", range(3))
def test_many_kills_do_not_change_the_result(seed, monkeypatch, crew):
    crew.with_workers(2)
    table, rng = ratings(), np.random.default_rng(seed)
    settings = SHORT | {"n_chains": 2}
    # A chain waits for tasks about 70 times: 24 times in half-sweeps, otherwise for thresholds.
    moments = set((1 + rng.choice(150, size=6, replace=False)).tolist())
    killed = []
    harm_in_the_middle(
        monkeypatch, moments, lambda: killed.append(crew.replace(int(rng.integers(2))))
    )
    there = fr.BPMF(**settings).fit(partitioned(table, 3), client=crew.client)
    monkeypatch.undo()
    assert len(killed) >= 4
    assert_same_levels(fr.BPMF(**settings).fit(table), there)


def test_a_run_is_resumed_by_another_number_of_workers(monkeypatch, crew, tmp_path):
    table = ratings()
    settings = SHORT | {"checkpoint": tmp_path, "n_sweeps": 7}
    harm_in_the_middle(monkeypatch, {9}, lambda: crew.replace(1))
    fr.GASR(**settings).fit(partitioned(table, 3), client=crew.with_workers(3))
    monkeypatch.undo()
    client, longer = crew.with_workers(2), settings | {"n_sweeps": 12}
    other = table.assign(value=2 * table["value"])  # the same codes, of other levels
    with pytest.raises(InputError, match="entries"):
        fr.GASR(**longer).fit(partitioned(other, 3), client=client)
    again = fr.GASR(**longer).fit(partitioned(table, 2), client=client)
    assert_same_levels(fr.GASR(**SHORT).fit(table), again)


# Input that is refused


def test_too_many_or_too_few_levels(client):
    table = ratings()
    many = table.assign(value=np.arange(len(table)) % 51 + 0.5)
    for wrong, words in ((many, "more than 50 different values"), (table.assign(value=2.0), "1 ")):
        for source in (partitioned(wrong, 2), fr.Observations.from_table(wrong)):
            with pytest.raises(
                InputError, match=f'likelihood="ordered".*2 to 50 levels; got {words}'
            ):
                fr.GASR(**SHORT).fit(source, client=client)
    fits = table.assign(value=np.arange(len(table)) % 50 + 0.5)
    model = fr.GASR(**SHORT | {"n_sweeps": 2, "burn_in": 0})
    assert levels_of(model.fit(partitioned(fits, 2), client=client)).size == 50


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        (fr.GASR, {"kinds": {10: "count"}, "likelihood": "auto"}, "kinds"),
        (fr.GASR, {"bounds": {10: (0, 1)}, "likelihood": "auto"}, "bounds"),
        (fr.BPMF, {"row_draws": "joint"}, "row_draws"),
        (fr.BPMF, {"units": "columns"}, "units"),
    ],
)
def test_settings_of_one_machine(method, settings, words, monkeypatch):
    monkeypatch.setattr("fillrank.cluster.monitor.check_client", lambda client: None)
    with pytest.raises(NotSupportedError, match=words):
        method(**SHORT | settings).fit(ratings(), client=object())


@pytest.mark.parametrize("settings", [{"robust": True}, {"bounds": {10: (0, 1)}}])
def test_settings_of_numbers(settings, client):
    for arguments in ({}, {"client": client}):
        with pytest.raises(InputError, match=next(iter(settings))):
            fr.GASR(**SHORT | settings).fit(fr.Observations.from_table(ratings()), **arguments)


@pytest.mark.parametrize("likelihood", ["auto", "ordered"])
def test_categories_and_limits(likelihood, client):
    table = pd.DataFrame({"a": ["x", "y", "z", "x"] * 9, "b": np.arange(36.0), "c": np.ones(36)})
    for data in (table, table.assign(a=["<0.5", "1", "2", "3"] * 9)):
        with pytest.raises(NotSupportedError, match="a cluster takes numbers"):
            fr.GASR(**SHORT | {"likelihood": likelihood}).fit(fr.read(data), client=client)


def test_levels_need_more_memory():
    table = (10**9, (10**7, 10**5), 32, np.dtype("float32"), 10)
    numbers, levels = estimate_worker_memory(*table), estimate_worker_memory(*table, 2)
    assert levels - numbers == (2 * 4 + 2 * 25) * 10**8
