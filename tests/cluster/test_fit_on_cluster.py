"""Fits on a cluster have the bits of fits on one machine."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError
from fillrank.features.blocks import Block, Blocks, TableCode
from fillrank.features.given import GivenFeatures

pytest.importorskip("distributed")

from fillrank.cluster.memory import MASK_COLUMNS
from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Partition, SidePartitions
from fillrank.cluster.remote_side import HalfSweep, RemoteSide
from fillrank.draws import streams
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import Prior, RowNoise
from fillrank.kernels.mask import mask_product
from fillrank.kernels.products import Fitted, effect_sums, residual_products
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import draw_rows
from fillrank.table.entries import Entries
from helpers.clusters import assert_same, small_table
from helpers.standard_units import standardised

# A random start needs no tasks; the spectral one waits for tasks 40 times, the missing values 22 times.
SPECTRAL = {"n_sweeps": 8, "burn_in": 4, "n_chains": 1, "random_state": 3, "progress": False}
SHORT = SPECTRAL | {"start": "random", "missingness": False}
ONE_THREAD = Workers(1)


def remote_side(entries, bounds, client):
    """The entries as a remote side, in partitions with these bounds."""
    partitions = []
    for start, stop in pairwise(bounds):
        first, last = entries.pointers[[start, stop]]
        pointers = entries.pointers[start : stop + 1] - first
        some = Entries(pointers, entries.indices[first:last], entries.values[first:last])
        partitions.append(client.submit(Partition.as_writable, Partition(start, some), pure=False))
    side = SidePartitions(entries.pointers, np.array(bounds), partitions)
    return RemoteSide(Monitor(client), side, entries.dtype)


def long_tables(table):
    """The table as a pandas and as a Dask data frame."""
    import dask.dataframe as dd
    import pandas as pd

    long = pd.DataFrame({"row": table.rows, "column": table.columns, "value": table.values})
    return long, dd.from_pandas(long, npartitions=3, sort=False)


def row_noises(m, n, rng):
    """Equal noise, noise by row and by column, and the same with Student-t noise."""
    yield RowNoise(np.full(m, 0.5), np.zeros(0), math.inf, streams.ROW_ENTRIES)
    variances, roots = rng.uniform(0.1, 2.0, m), rng.uniform(0.5, 2.0, n)
    for degrees in (math.inf, 5.0):
        yield RowNoise(variances, roots, degrees, streams.ROW_ENTRIES)


# One partition; uneven ones; one without rows, and one whose only row has no entries; many.
@pytest.mark.parametrize(
    "bounds", [[0, 90], [0, 7, 60, 90], [0, 0, 1, 46, 46, 90], list(range(0, 91, 9))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_remote_side_has_the_bits_of_local_entries(bounds, dtype, client):
    rows, (m, n) = standardised(small_table(), dtype).rows, (90, 60)
    side = remote_side(rows, bounds, client)
    rng = np.random.default_rng(0)
    own, other = (rng.standard_normal((size, 5)).astype(dtype) for size in (m, n))

    equal = Prior(np.arange(4), np.zeros(4), np.ones(4), -0.3)
    shifted = equal._replace(shifts=rng.standard_normal((m, 5)).astype(dtype))
    address = Address(np.uint64(8), 5, 0)
    for prior, noise in product((equal, shifted), row_noises(m, n, rng)):
        here, there = own.copy(), own.copy()
        sums = draw_rows(rows, here, other, prior, noise, address, ONE_THREAD)
        sums_there = draw_rows(side, there, other, prior, noise, address, ONE_THREAD)
        for got, expected in zip(sums_there, sums, strict=True):
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(there, here)
        assert not np.array_equal(here, own)

    effects = rng.standard_normal(m), rng.standard_normal(n)
    sums, squares = effect_sums(rows, *effects, ONE_THREAD)
    sums_there, squares_there = side.effect_sums(*effects)
    np.testing.assert_array_equal(sums_there, sums)
    np.testing.assert_array_equal(squares_there, squares)

    # The pattern of missing values is in float32 always; more columns than a worker gets at a time.
    for width in (1, 2 * MASK_COLUMNS + 5, 0):
        block = rng.standard_normal((n, width), dtype=np.float32)
        expected = mask_product(rows.pointers, rows.indices, block, ONE_THREAD)
        np.testing.assert_array_equal(side.mask_product(block), expected)

    fitted = Fitted(own, other, rng.standard_normal((2, 5)).astype(dtype))
    for width in (4, 0):
        block = rng.standard_normal((n, width)).astype(dtype)
        here = rng.standard_normal((m, width)).astype(dtype)
        there = here.copy()
        back, squares = residual_products(rows, fitted, block, here, ONE_THREAD)
        back_there, squares_there = side.residual_products(fitted, block, there)
        np.testing.assert_array_equal(there, here)
        np.testing.assert_array_equal(back_there, back)
        np.testing.assert_array_equal(squares_there, squares)


def test_partitions_get_the_shifts_and_variances_of_their_own_rows(client, monkeypatch):
    rows, bounds = standardised(small_table()).rows, [0, 7, 60, 90]
    side = remote_side(rows, bounds, client)
    submitted, submit = [], RemoteSide.submit

    def record(self, task, *arguments):
        submitted.append(arguments)
        return submit(self, task, *arguments)

    monkeypatch.setattr(RemoteSide, "submit", record)
    rng = np.random.default_rng(0)
    own, other, shifts = (rng.standard_normal((size, 5), np.float32) for size in (90, 60, 90))
    prior = Prior(np.arange(4), np.zeros(4), np.ones(4), 0.0, shifts)
    noise = RowNoise(rng.uniform(0.1, 2.0, 90), np.zeros(0), math.inf, streams.ROW_ENTRIES)
    draw_rows(side, own, other, prior, noise, Address(np.uint64(8), 5, 0), ONE_THREAD)

    (shared,), *tasks = submitted
    assert isinstance(shared, HalfSweep)
    assert shared.prior.shifts.size == shared.noise.variances.size == 0
    for (start, stop), (_, _, *by_row, _) in zip(pairwise(bounds), tasks, strict=True):
        for part, all_rows in zip(by_row, (shifts, noise.variances), strict=True):
            np.testing.assert_array_equal(part, all_rows[start:stop])


def test_the_digest_of_entries_does_not_depend_on_partitions(client):
    rows = standardised(small_table()).rows
    digests = {remote_side(rows, bounds, client).digest() for bounds in ([0, 90], [0, 7, 60, 90])}
    assert len(digests) == 1
    values, indices = rows.values.copy(), rows.indices.copy()
    values[5] += 1
    indices[5] += 1
    for other in (rows._replace(values=values), rows._replace(indices=indices)):
        assert remote_side(other, [0, 90], client).digest() not in digests


@pytest.mark.parametrize("n_workers", [2, 3, 4])
def test_a_fit_has_the_bits_of_one_machine(n_workers, crew):
    client = crew.with_workers(n_workers)
    table = small_table()
    plain = {"effects": None, "centres": False, "missingness": False, "noise": "one"}
    bare = plain | {"dtype": "float64", "max_rank": 4}
    for changes in ({}, bare, {"robust": True}):
        model = fr.GASR(**SPECTRAL | changes)
        assert_same(clone(model).fit(table), model.fit(table, client=client))
        assert model.noise_ == changes.get("noise", "both")
        assert ("row_missingness_share" in model.history_) == model.missingness


def random_features(observations, row_features, column_features):
    """Features as given ones are coded: two blocks for the rows, and one for the columns, or none."""

    def block(name, n_rows, width, seed):
        raw = np.random.default_rng(seed).standard_normal((n_rows, width))
        P, s, Q = np.linalg.svd(raw - raw.mean(axis=0), full_matrices=False)
        terms = tuple(f"{name}{j}" for j in range(width))
        return Block(name, P * s / 9, TableCode((), raw.mean(axis=0), Q.T), terms)

    (m, n), rows, columns = observations.shape, (), ()
    if row_features is not None:
        rows = block("age", m, 2, row_features), block("place", m, 4, row_features + 1)
    if column_features is not None:
        columns = (block("size", n, 3, column_features),)
    return GivenFeatures(Blocks(rows, columns), ("These features are random.",))


@pytest.fixture
def given(monkeypatch):
    """Settings of fits with features; a seed stands for a table of them."""
    monkeypatch.setattr("fillrank.estimators.sampled.given_features", random_features)
    return {"row_features": 1, "column_features": 5}


def test_given_features_have_the_bits_of_one_machine(client, given):
    table = small_table()
    plain = fr.GASR(**SHORT).fit(table)
    cases = (
        ({}, given),
        ({"missingness": True, "n_chains": 2}, given),
        ({"dtype": "float64"}, {"row_features": 1}),
        ({"robust": True}, {"column_features": 5}),
    )
    for changes, features in cases:
        model = fr.GASR(**SHORT | changes)
        here = clone(model).fit(table, **features)
        assert_same(here, model.fit(table, client=client, **features))
        assert model.notes_[-1] == here.notes_[-1] == "These features are random."
        assert ("row_age_share" in model.history_) == ("row_features" in features)
        assert not np.array_equal(model.predict(5, 7), plain.predict(5, 7))


def test_features_of_a_table_that_workers_read(client, given, tmp_path):
    long, partitioned = long_tables(small_table())
    settings = SHORT | {"missingness": True, "checkpoint": tmp_path}
    fr.GASR(**settings).fit(partitioned, client=client, **given)
    longer = settings | {"n_sweeps": 11}
    for other in ({}, given | {"row_features": 2}):
        with pytest.raises(InputError, match="features"):
            fr.GASR(**longer).fit(partitioned, client=client, **other)
    model = fr.GASR(**longer).fit(partitioned, client=client, **given)
    assert_same(fr.GASR(**longer | {"checkpoint": None}).fit(long, **given), model)


def test_a_run_with_features_continues_on_one_machine(client, given, tmp_path):
    table = small_table()
    settings = SHORT | {"checkpoint": tmp_path}
    model = fr.GASR(**settings).fit(table, client=client, **given)
    longer = fr.GASR(**SHORT | {"n_sweeps": 11}).fit(table, **given)
    assert_same(longer, model.run_longer(3))
    assert_same(longer, fr.GASR(**settings | {"n_sweeps": 11}).fit(table, **given))


@pytest.mark.parametrize("shape", [(3, 40), (40, 2)])
def test_more_workers_than_rows_or_columns(shape, crew):
    client = crew.with_workers(4)
    table, _ = fr.synthetic(*shape, rank=1, noise=0.1, missing=0.2, random_state=0)
    model = fr.GASR(**SPECTRAL)
    assert_same(clone(model).fit(table), model.fit(table, client=client))


def test_another_number_of_workers_resumes_a_checkpoint(crew, tmp_path):
    long, partitioned = long_tables(small_table())
    settings = SHORT | {"checkpoint": tmp_path}
    fr.GASR(**settings).fit(partitioned, client=crew.with_workers(4))
    again = fr.GASR(**settings | {"n_sweeps": 11})
    again.fit(partitioned.repartition(npartitions=2), client=crew.with_workers(2))
    assert_same(fr.GASR(**SHORT | {"n_sweeps": 11}).fit(long), again)


def test_chains_have_the_bits_of_one_machine(client):
    model = fr.GASR(**SHORT | {"n_chains": 3})
    assert_same(clone(model).fit(small_table()), model.fit(small_table(), client=client))


def test_a_single_row(client):
    table = fr.Observations.from_matrix([[1.0, 2.0, np.nan, 4.0, 2.0]])
    model = fr.GASR(**SHORT)
    assert_same(clone(model).fit(table), model.fit(table, client=client))


def test_the_client_is_not_a_parameter_in_scikit_learn(client):
    model = fr.GASR(**SHORT).fit(small_table(), client=client)
    assert "client" not in model.get_params()
    assert "client" not in model.get_metadata_routing().fit.requests
    assert_same(clone(model).fit(small_table()), model)


def test_a_table_in_memory_has_its_entries_and_can_be_resumed_on_one_machine(client, tmp_path):
    table = small_table()
    model = fr.GASR(**SHORT).fit(table, client=client)
    assert len(model.observations_) == len(table)
    next(model.predict_missing())
    longer = fr.GASR(**SHORT | {"n_sweeps": 11}).fit(table)
    assert_same(longer, model.run_longer(3))

    settings = SHORT | {"checkpoint": tmp_path}
    fr.GASR(**settings).fit(table, client=client)
    assert_same(longer, fr.GASR(**settings | {"n_sweeps": 11}).fit(table))


def test_a_model_of_a_dask_data_frame_has_labels_but_no_entries(client, tmp_path):
    table = small_table()
    long, partitioned = long_tables(table)
    here = fr.GASR(**SHORT).fit(long)
    model = fr.GASR(**SHORT).fit(partitioned, client=client)
    assert_same(here, model)
    assert model.n_features_in_ == here.n_features_in_

    np.testing.assert_array_equal(model.predict([5, 6], [7, 8]), here.predict([5, 6], [7, 8]))
    model.save(tmp_path / "model.fillrank")
    assert fr.load(tmp_path / "model.fillrank").predict(5, 7) == here.predict(5, 7)
    with pytest.raises(NotSupportedError, match="came from a cluster"):
        next(model.predict_missing())
    with pytest.raises(NotSupportedError, match="n_sweeps"):
        model.run_longer(3)
