"""Model files of all layouts so far: every later version must read them.

The files and what they predict were written by tests/helpers/make_models.py.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import ReadError
from fillrank.features.blocks import NO_BLOCKS
from fillrank.storage import array_file
from helpers import make_models as make

EXPECTED = json.loads((make.FOLDER / "expected.json").read_text())
PATHS = sorted(make.FOLDER.glob("*.fillrank"))


def test_every_file_has_expected_results():
    assert [path.name for path in PATHS] == sorted(EXPECTED)
    assert {name for path in PATHS for name in make.MODELS if path.stem.endswith(f"-{name}")} == {
        *make.MODELS
    }


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_files_of_earlier_versions_are_read(path):
    assert path.stat().st_size < 60_000
    model = fr.load(path)
    found = make.answers(model)
    assert found.keys() == EXPECTED[path.name].keys()
    for name, expected in EXPECTED[path.name].items():
        # Rounding differs between processors.
        np.testing.assert_allclose(found[name], expected, rtol=1e-6, atol=1e-6)
    table = make.ratings()
    assert model.transform(table).index.name == "who"
    assert len(model.observations_) == table.notna().to_numpy().sum()
    assert len(model.recommend(n=1, leave_out=None)) == 12
    if hasattr(model, "traces_"):
        assert model.traces_.n_entries == len(model.observations_)


@pytest.mark.parametrize("name", ["gasr", "bpmf"])
def test_features_are_those_of_the_layout(name):
    for layout in (1, 2):
        model = fr.load(make.FOLDER / f"layout{layout}-{name}.fillrank")
        assert model.posterior_.blocks == NO_BLOCKS
        assert "missingness" not in model.settings
    model = fr.load(make.FOLDER / f"layout3-{name}.fillrank")
    rows, columns = ([block.name for block in side] for side in model.posterior_.blocks)
    assert (rows, columns) == (["features", "missingness"], ["missingness"])
    assert model.settings["missingness"]
    n_features = sum(block.values.shape[1] for block in model.posterior_.blocks.rows)
    assert all(len(draw.row_weights) == n_features for draw in model.posterior_.draws)


def test_a_file_of_a_layout_is_loaded_with_the_parts_of_that_layout(tmp_path, monkeypatch):
    content = array_file.read(make.FOLDER / "layout3-gasr.fillrank", "model")
    monkeypatch.setattr(array_file, "VERSION", 2)
    array_file.write(tmp_path / "model", content)
    with pytest.raises(ReadError, match="must be a StoredLowRank2 with draws, units, mean"):
        fr.load(tmp_path / "model")


def test_a_changed_model_is_detected():
    """A small change of a model exceeds the tolerance."""
    first = fr.load(PATHS[0])
    wrong = first.posterior_.units._replace(location=first.posterior_.units.location + 1e-4)
    first = replace(first, posterior=replace(first.posterior, units=wrong))
    difference = np.subtract(make.answers(first)["predict"], EXPECTED[PATHS[0].name]["predict"])
    assert np.abs(difference).max() > 1e-5
