"""What cannot go to a cluster is refused, kindly."""

import sys

import numpy as np
import pytest

import fillrank as fr
from fillrank.cluster.memory import check_worker_memory, estimate_worker_memory
from fillrank.errors import InputError, NotSupportedError

TABLE = fr.Observations.from_matrix([[1.0, 2.0, np.nan], [2.0, np.nan, 4.0]])
FLOAT32 = np.dtype(np.float32)


@pytest.mark.parametrize("method", [fr.BPMF, fr.SoftImpute, fr.M3F, fr.IPM3F])
def test_other_methods_name_the_one_that_can(method):
    with pytest.raises(NotSupportedError, match="GASR"):
        method().fit(TABLE, client=object())


def test_without_dask_what_to_install_is_said(monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[dask\]"'):
        fr.GASR().fit(TABLE, client=object())


def test_an_address_is_no_client():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"dask\.distributed\.Client.*got 'tcp://somewhere:8786'"):
        fr.GASR().fit(TABLE, client="tcp://somewhere:8786")


@pytest.mark.parametrize(
    "settings", [{"start": "hasi"}, {"start": "soft_impute"}, fr.GASR.as_published().get_params()]
)
def test_starts_and_samplers_of_one_machine_are_refused(settings, monkeypatch):
    monkeypatch.setattr("fillrank.cluster.monitor.check_client", lambda client: None)
    with pytest.raises(NotSupportedError, match="on a cluster there is the mixture sampler"):
        fr.GASR(**settings).fit(TABLE, client=object())


def test_a_table_that_workers_cannot_hold_is_refused_with_advice():
    table = (10**9, (10**7, 10**5), 32, FLOAT32)
    with pytest.raises(InputError, match=r"each of the 2 workers .*11.9 GB.*more workers"):
        check_worker_memory([64 * 10**9, 8 * 10**9], *table)
    check_worker_memory([64 * 10**9, 64 * 10**9], *table)
    check_worker_memory([0, 0], *table)  # without limits nobody says


def test_more_workers_need_less_memory_each_but_for_the_factors():
    def needed(n_workers):
        return estimate_worker_memory(10**9, (10**7, 10**5), 32, FLOAT32, n_workers)

    factors = 10**7 * 32 * 4
    assert needed(1) > needed(10) > needed(10**6) > 2 * factors
    assert needed(10**6) < 2.01 * factors
