"""Creates the model files that every later version must read, and what they must predict.

Run once for each layout of files, by ``PYTHONPATH=tests python tests/helpers/make_models.py``;
existing files are not changed. A released layout is never written again.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fillrank as fr
from helpers.small_patterns import use_small_patterns

FOLDER = Path(__file__).parents[1] / "estimators" / "models"
LAYOUT = 3
COMMON = {"n_threads": 1, "random_state": 0, "progress": False}
SAMPLED = {"max_rank": 2, "n_sweeps": 30, "n_chains": 1} | COMMON
MARGIN = {"penalty": 1.0, "max_rank": 2, "max_iterations": 10} | COMMON
MODELS = {
    "gasr": fr.GASR(**SAMPLED),
    "bpmf": fr.BPMF(dtype="float64", **SAMPLED),
    "soft_impute": fr.SoftImpute(max_rank=2, **COMMON),
    "m3f": fr.M3F(**MARGIN),
    "ipm3f": fr.IPM3F(**MARGIN),
    "ipm3f_gibbs": fr.IPM3F(inference="gibbs", n_sweeps=20, **MARGIN),
}
CELLS = ["Zoë", "r3", "r7", "r11"], ["c0", "c5", "c2", "c7"]


def ratings():
    """Return a wide table of ratings from 1 to 5, with labels."""
    scores, _ = fr.synthetic(12, 8, rank=1, noise=0.3, missing=0.2, random_state=0)
    cells = np.full(scores.shape, np.nan)
    cells[scores.row_index, scores.column_index] = np.clip(np.rint(3 + scores.values), 1, 5)
    who = pd.Index(["Zoë", *(f"r{i}" for i in range(1, 12))], name="who")
    return pd.DataFrame(cells, who, [f"c{j}" for j in range(8)])


def people():
    """Features of the rows."""
    table = ratings()
    ages, sexes = 20.0 + 3 * np.arange(len(table)), ["F", "M", "M"] * 4
    return pd.DataFrame({"age": ages, "sex": sexes}, table.index)


def answers(model):
    """What a model says of some cells, as JSON."""
    said = {"rank": model.rank_, "predict": model.predict(*CELLS).tolist()}
    if model.posterior_.has_draws:
        low, high = model.predict_interval(*CELLS, kind="observation")
        said |= {"low": low.tolist(), "high": high.tolist()}
    return said


def main():
    expected_path = FOLDER / "expected.json"
    expected = json.loads(expected_path.read_text()) if expected_path.exists() else {}
    warnings.simplefilter("ignore")
    for name, model in MODELS.items():
        path = FOLDER / f"layout{LAYOUT}-{name}.fillrank"
        if path.exists():
            continue
        given = {"row_features": people()} if name in ("gasr", "bpmf") else {}
        with pytest.MonkeyPatch.context() as monkeypatch:
            use_small_patterns(monkeypatch)
            model.fit(ratings(), **given).save(path, with_data=True)
        expected[path.name] = answers(model)
    expected_path.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
