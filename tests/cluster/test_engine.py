"""Rows drawn by the workers of a cluster: the same bits as on one machine."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import fillrank as fr
from fillrank.errors import NotSupportedError
from fillrank.table.units import standardise

pytest.importorskip("distributed")

from fillrank.cluster.monitor import Monitor
from fillrank.cluster.partitions import Partition, SidePartitions
from fillrank.cluster.remote_side import RemoteSide
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import Prior
from fillrank.kernels.products import Fitted, effect_sums, residual_products
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import draw_rows
from fillrank.table.entries import Entries
from helpers.clusters import assert_same, small_table

# A random start asks nothing of the workers: most tests do without the other one's 40 questions.
SPECTRAL = {"n_sweeps": 8, "burn_in": 4, "n_chains": 1, "random_state": 3, "progress": False}
SHORT = SPECTRAL | {"start": "random"}
ALONE = Workers(1)


def remote(entries, bounds, client):
    """The entries as a side in parts with these bounds."""
    parts = []
    for start, stop in pairwise(bounds):
        first, last = entries.pointers[[start, stop]]
        pointers = entries.pointers[start : stop + 1] - first
        some = Entries(pointers, entries.indices[first:last], entries.values[first:last])
        parts.append(client.submit(Partition.as_writable, Partition(start, some), pure=False))
    side = SidePartitions(entries.pointers, np.array(bounds), parts)
    return RemoteSide(Monitor(client), side, entries.dtype)


def lines_of(table):
    import dask.dataframe as dd
    import pandas as pd

    long = pd.DataFrame({"row": table.rows, "column": table.columns, "value": table.values})
    return long, dd.from_pandas(long, npartitions=3, sort=False)


# One part; uneven ones; one without rows, and one whose only row has no entries; many.
@pytest.mark.parametrize(
    "bounds", [[0, 90], [0, 7, 60, 90], [0, 0, 1, 46, 46, 90], list(range(0, 91, 9))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_side_in_parts_gives_the_bits_of_a_whole_one(bounds, dtype, client):
    standard = standardise(small_table(), True, np.dtype(dtype))
    rows, (m, n) = standard.rows, (90, 60)
    side = remote(rows, bounds, client)
    rng = np.random.default_rng(0)
    own, other = (rng.standard_normal((size, 5)).astype(dtype) for size in (m, n))

    prior = Prior(np.arange(4), np.zeros(4), np.ones(4), -0.3)
    address = Address(np.uint64(8), 5, 0)
    here, there = own.copy(), own.copy()
    square = draw_rows(rows, here, other, prior, 0.5, address, ALONE)
    assert draw_rows(side, there, other, prior, 0.5, address, ALONE) == square
    np.testing.assert_array_equal(there, here)
    assert not np.array_equal(here, own)

    effects = rng.standard_normal(m), rng.standard_normal(n)
    sums, squares = effect_sums(rows, *effects, ALONE)
    sums_there, squares_there = side.effect_sums(*effects)
    np.testing.assert_array_equal(sums_there, sums)
    np.testing.assert_array_equal(squares_there, squares)

    fitted = Fitted(own, other, rng.standard_normal((2, 5)).astype(dtype))
    for width in (4, 0):
        block = rng.standard_normal((n, width)).astype(dtype)
        here = rng.standard_normal((m, width)).astype(dtype)
        there = here.copy()
        back, squares = residual_products(rows, fitted, block, here, ALONE)
        back_there, squares_there = side.residual_products(fitted, block, there)
        np.testing.assert_array_equal(there, here)
        np.testing.assert_array_equal(back_there, back)
        np.testing.assert_array_equal(squares_there, squares)


def test_the_digest_of_entries_does_not_depend_on_parts(client):
    rows = standardise(small_table(), True, np.dtype(np.float32)).rows
    digests = {remote(rows, bounds, client).digest() for bounds in ([0, 90], [0, 7, 60, 90])}
    assert len(digests) == 1
    values, indices = rows.values.copy(), rows.indices.copy()
    values[5] += 1
    indices[5] += 1
    for other in (rows._replace(values=values), rows._replace(indices=indices)):
        assert remote(other, [0, 90], client).digest() not in digests


@pytest.mark.parametrize("n_workers", [2, 3, 4])
def test_a_fit_has_the_bits_of_one_machine(n_workers, crew):
    client = crew.with_workers(n_workers)
    table = small_table()
    for changes in ({}, {"effects": None, "centres": False, "dtype": "float64", "max_rank": 4}):
        model = fr.GASR(**SPECTRAL | changes)
        assert_same(clone(model).fit(table), model.fit(table, client=client))


@pytest.mark.parametrize("shape", [(3, 40), (40, 2)])
def test_there_may_be_more_workers_than_rows_or_columns(shape, crew):
    client = crew.with_workers(4)
    table, _ = fr.synthetic(*shape, rank=1, noise=0.1, missing=0.2, random_state=0)
    model = fr.GASR(**SPECTRAL)
    assert_same(clone(model).fit(table), model.fit(table, client=client))


def test_a_checkpoint_is_taken_up_by_another_number_of_workers(crew, tmp_path):
    long, partitioned = lines_of(small_table())
    settings = SHORT | {"checkpoint": tmp_path}
    fr.GASR(**settings).fit(partitioned, client=crew.with_workers(4))
    again = fr.GASR(**settings | {"n_sweeps": 11})
    again.fit(partitioned.repartition(npartitions=2), client=crew.with_workers(2))
    assert_same(fr.GASR(**SHORT | {"n_sweeps": 11}).fit(long), again)


def test_chains_have_the_bits_of_one_machine(client):
    model = fr.GASR(**SHORT | {"n_chains": 3})
    assert_same(clone(model).fit(small_table()), model.fit(small_table(), client=client))


def test_a_single_row_has_an_empty_twin_on_a_cluster_too(client):
    table = fr.Observations.from_matrix([[1.0, 2.0, np.nan, 4.0, 2.0]])
    model = fr.GASR(**SHORT)
    assert_same(clone(model).fit(table), model.fit(table, client=client))


def test_scikit_learn_does_not_see_the_client(client):
    model = fr.GASR(**SHORT).fit(small_table(), client=client)
    assert "client" not in model.get_params()
    assert not hasattr(model, "set_fit_request")
    assert_same(clone(model).fit(small_table()), model)


def test_a_table_from_here_is_known_as_on_one_machine(client, tmp_path):
    table = small_table()
    model = fr.GASR(**SHORT).fit(table, client=client)
    assert len(model.observations_) == len(table)
    next(model.predict_missing())
    longer = fr.GASR(**SHORT | {"n_sweeps": 11}).fit(table)
    assert_same(longer, model.run_longer(3))

    settings = SHORT | {"checkpoint": tmp_path}
    fr.GASR(**settings).fit(table, client=client)
    assert_same(longer, fr.GASR(**settings | {"n_sweeps": 11}).fit(table))


def test_a_model_of_a_dask_data_frame_has_names_but_no_entries(client, tmp_path):
    table = small_table()
    long, partitioned = lines_of(table)
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
