"""Errors for input that a cluster does not support, and for too little memory."""

import sys

import numpy as np
import pytest

import fillrank as fr
from fillrank.cluster.memory import check_worker_memory, estimate_worker_memory
from fillrank.errors import InputError, NotSupportedError

TABLE = fr.Observations.from_matrix([[1.0, 2.0, np.nan], [2.0, np.nan, 4.0]])
FLOAT32 = np.dtype(np.float32)


@pytest.mark.parametrize("method", [fr.SoftImpute, fr.M3F, fr.IPM3F])
def test_other_methods_refer_to_gasr(method):
    with pytest.raises(NotSupportedError, match="GASR"):
        method().fit(TABLE, client=object())


def test_without_dask(monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotSupportedError, match=r'pip install "fillrank\[dask\]"'):
        fr.GASR().fit(TABLE, client=object())


def test_an_address_is_not_a_client():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"dask\.distributed\.Client.*got 'tcp://somewhere:8786'"):
        fr.GASR().fit(TABLE, client="tcp://somewhere:8786")


@pytest.mark.parametrize(
    "settings", [{"start": "hasi"}, {"start": "soft_impute"}, fr.GASR.as_published().get_params()]
)
def test_unsupported_starts_and_samplers(settings, monkeypatch):
    monkeypatch.setattr("fillrank.cluster.monitor.check_client", lambda client: None)
    with pytest.raises(NotSupportedError, match="on a cluster there is the mixture sampler"):
        fr.GASR(**settings).fit(TABLE, client=object())


def test_too_little_memory():
    table = (10**9, (10**7, 10**5), 32, FLOAT32)
    with pytest.raises(InputError, match=r"each of the 2 workers .*12.5 GB.*more workers"):
        check_worker_memory([64 * 10**9, 8 * 10**9], *table)
    check_worker_memory([64 * 10**9, 64 * 10**9], *table)
    check_worker_memory([0, 0], *table)  # unknown limits


def test_more_workers_need_less_memory_each_except_for_factors():
    def needed(n_workers):
        return estimate_worker_memory(10**9, (10**7, 10**5), 32, FLOAT32, n_workers)

    factors = 10**7 * 32 * 4
    assert needed(1) > needed(10) > needed(10**6) > 2 * factors
    assert needed(10**6) < 2.01 * factors
