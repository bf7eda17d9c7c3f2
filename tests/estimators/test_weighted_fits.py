"""Weights of entries from fit to model files; what the samplers do with them is tested there."""

import warnings

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from fillrank.errors import InputError, NotSupportedError, ReadError
from fillrank.samplers.model import CompleteData
from fillrank.storage.array_file import read, write

SAMPLERS = {
    "GASR": lambda: fr.GASR(n_sweeps=20, max_rank=2, random_state=0, progress=False),
    "BPMF": lambda: fr.BPMF(n_sweeps=20, max_rank=2, random_state=0, progress=False),
}
OTHERS = {
    "SoftImpute": lambda: fr.SoftImpute(penalty=1.0),
    "SoftImputeALS": lambda: fr.SoftImputeALS(penalty=1.0),
    "HASI": lambda: fr.HASI(penalty=1.0, beta=1.0),
    "RelaxedSpectral": lambda: fr.RelaxedSpectral(penalty=1.0, beta=1.0),
    "M3F": lambda: fr.M3F(penalty=1.0),
    "IPM3F": lambda: fr.IPM3F(penalty=1.0),
    "published sampler": lambda: fr.GASR.as_published(),
}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        yield


def table(missing=0.3):
    """Values and weights of a table, with NaN where the value is missing."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=12), rng.normal(size=8)) + 0.1 * rng.normal(size=(12, 8))
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.where(np.isnan(X), np.nan, rng.uniform(0.5, 2, X.shape))


@pytest.mark.parametrize("name", SAMPLERS)
def test_weights_of_an_array_a_frame_and_observations(name):
    X, W = table()
    make = SAMPLERS[name]
    expected = make().fit(fr.Observations.from_matrix(X, weights=W))
    columns = [f"c{j}" for j in range(8)]
    frames = [pd.DataFrame(each, columns=columns) for each in (X, W)]
    for model in (make().fit(X, weights=W), make().fit(frames[0], weights=frames[1])):
        np.testing.assert_array_equal(model.observations_.weights, expected.observations_.weights)
        np.testing.assert_array_equal(
            model.completion_.predict_table(), expected.completion_.predict_table()
        )


@pytest.mark.parametrize("name", SAMPLERS)
def test_fit_transform_takes_weights(name):
    X, W = table()
    model = SAMPLERS[name]()
    filled = model.fit_transform(X, weights=W)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert model.observations_.weights is not None
    framed = SAMPLERS[name]().set_output(transform="pandas").fit_transform(X, weights=W)
    np.testing.assert_array_equal(framed, filled)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_sampler_gets_weights_by_row_and_by_column(name, monkeypatch):
    seen = []
    model = SAMPLERS[name]().set_params(noise="both")  # without a trial, which holds entries out
    right = type(model)._first_chain

    def record(self, data, *rest):
        seen.append(data)
        return right(self, data, *rest)

    monkeypatch.setattr(type(model), "_first_chain", record)
    X, W = table()
    model.fit(X, weights=W)
    rows, columns = seen[0]
    assert rows.weights.dtype == columns.weights.dtype == np.float32
    np.testing.assert_array_equal(rows.weights, W[~np.isnan(X)].astype(np.float32))
    np.testing.assert_array_equal(columns.weights, W.T[~np.isnan(X.T)].astype(np.float32))


def test_a_complete_table_with_weights_is_swept_by_entries():
    X, W = table(missing=0)
    model = SAMPLERS["GASR"]()
    for weights, is_dense in ((W, False), (None, True)):
        observations = fr.Observations.from_matrix(X, weights=weights)
        chosen = model._table_model(observations)
        swept = model._swept(model._standard(observations, chosen), chosen)
        assert isinstance(swept, CompleteData) == is_dense


@pytest.mark.parametrize("name", OTHERS)
def test_other_methods_refuse_weights(name):
    X, W = table()
    weighted = fr.Observations.from_matrix(np.rint(X) + 0.0, weights=W)
    for fit in (OTHERS[name]().fit, OTHERS[name]().fit_transform):
        with pytest.raises(NotSupportedError, match=f"{name} cannot use the weights of entries"):
            fit(weighted)


def test_other_methods_refuse_weights_of_new_rows():
    X, W = table()
    weighted = fr.Observations.from_matrix(X, weights=W)
    model = fr.SoftImpute(penalty=1.0, progress=False).fit(X)
    for use in (model.transform, model.fold_in):
        with pytest.raises(NotSupportedError, match="SoftImpute cannot use the weights"):
            use(weighted)
    folded = SAMPLERS["GASR"]().fit(X).fold_in(weighted)
    np.testing.assert_array_equal(folded.observations_.weights, weighted.weights)


def test_a_cluster_refuses_weights():
    X, W = table()
    with pytest.raises(NotSupportedError, match="a cluster cannot use the weights of entries"):
        SAMPLERS["GASR"]().fit(X, weights=W, client=object())


def test_wrong_weights():
    X, W = table()
    with pytest.raises(InputError, match=r"weights must be .* \(12, 8\), got \(8, 12\)"):
        SAMPLERS["GASR"]().fit(X, weights=W.T)
    with pytest.raises(InputError, match="must be a number from 1e-12 to"):
        SAMPLERS["GASR"]().fit(X, weights=-W)
    with pytest.raises(InputError, match="Observations have their own weights"):
        SAMPLERS["GASR"]().fit(fr.Observations.of(X), weights=W)


def test_a_run_continues_only_with_the_same_weights(tmp_path):
    X, W = table()
    model = fr.GASR(n_sweeps=20, random_state=0, progress=False, checkpoint=tmp_path / "run")
    model.fit(X, weights=W)
    model.fit(X, weights=W)
    with pytest.raises(InputError, match="entries"):
        model.fit(X, weights=2 * W)
    assert len(SAMPLERS["GASR"]().fit(X, weights=W).run_longer(5).observations_.weights)


def saved(path, weights):
    X, _ = table()
    model = SAMPLERS["GASR"]().fit(X, weights=weights)
    model.save(path, with_data=True)
    return model


def test_a_model_file_has_the_weights(tmp_path):
    W = table()[1]
    model = saved(tmp_path / "m.fillrank", W)
    found = fr.load(tmp_path / "m.fillrank")
    np.testing.assert_array_equal(found.observations_.weights, model.observations_.weights)
    assert found.observations_.weights.dtype == np.float64
    found.save(tmp_path / "again.fillrank", with_data=True)
    assert (tmp_path / "again.fillrank").read_bytes() == (tmp_path / "m.fillrank").read_bytes()
    saved(tmp_path / "plain.fillrank", None)
    assert fr.load(tmp_path / "plain.fillrank").observations_.weights is None
    assert b"weights" not in (tmp_path / "plain.fillrank").read_bytes()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w: np.append(w[1:], 0.0),
        lambda w: -w,
        lambda w: np.append(w[1:], np.nan),
        lambda w: np.append(w[1:], np.inf),
        lambda w: w[1:],
        lambda w: w.astype(np.float32),
        lambda w: w.reshape(1, -1),
    ],
)
def test_wrong_weights_in_a_model_file(spoil, tmp_path):
    path = tmp_path / "m.fillrank"
    saved(path, table()[1])
    content = read(path, "model")
    arrays = dict(content.arrays)
    arrays["table/entries/weights"] = spoil(arrays["table/entries/weights"])
    write(path, content._replace(arrays=arrays))
    with pytest.raises(ReadError, match="weights must be finite and above 0, one for each entry"):
        fr.load(path)
