"""Model files of all methods: every method of an accepted model is called."""

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fillrank as fr
from fillrank.errors import FillrankError
from fuzz.forgeries import forge
from fuzz.tables import FOODS, ratings
from helpers.given_features import fit_given, given_for

SUFFIX = ".fillrank"
_COMMON: dict[str, Any] = {"max_rank": 2, "n_threads": 1, "random_state": 0, "progress": False}
_SAMPLED = _COMMON | {"n_sweeps": 12}
_MARGIN = _COMMON | {"penalty": 1.0, "max_iterations": 10}
_METHODS: dict[str, Callable[[], Any]] = {
    "GASR": lambda: fr.GASR(n_chains=2, **_SAMPLED),
    "GASR float64": lambda: fr.GASR(dtype="float64", **_SAMPLED),
    "GASR as published": lambda: fr.GASR.as_published(**_SAMPLED),
    "BPMF": lambda: fr.BPMF(**_SAMPLED),
    "SoftImpute": lambda: fr.SoftImpute(**_COMMON),
    "SoftImputeALS": lambda: fr.SoftImputeALS(penalty=1.0, **_COMMON),
    "HASI": lambda: fr.HASI(penalty=1.0, beta=1.0, **_COMMON),
    "RelaxedSpectral": lambda: fr.RelaxedSpectral(penalty=1.0, beta=1.0, **_COMMON),
    "M3F": lambda: fr.M3F(**_MARGIN),
    "IPM3F": lambda: fr.IPM3F(**_MARGIN),
    "IPM3F gibbs": lambda: fr.IPM3F(inference="gibbs", n_sweeps=8, **_MARGIN),
}


def _table(n_rows: int = 12) -> pd.DataFrame:
    rows = pd.Index([f"p{i}" for i in range(n_rows)], name="person")
    return pd.DataFrame(ratings(n_rows), rows, list(FOODS))


@cache
def _seeds() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(_saved(Path(folder)))


def _saved(folder: Path) -> Iterator[bytes]:
    path = folder / "model.fillrank"
    for name, make in _METHODS.items():
        model = make().fit(_table())
        model.save(path, with_data=True)
        yield path.read_bytes()
        if name in ("GASR", "M3F"):
            model.save(path)
            yield path.read_bytes()
            model.fold_in(_table(3)).save(path, with_data=True)
            yield path.read_bytes()
    for method in (fr.GASR, fr.BPMF):
        model = fit_given(method(**_SAMPLED), _table(), given_for(_table().shape))
        model.save(path, with_data=True)
        yield path.read_bytes()


def seeds() -> list[bytes]:
    return list(_seeds())


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change items of the model; the checksum stays valid."""
    return forge(rng, data)


def attempt(path: Path) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model = fr.load(path)
        for request in _requests(model, path.with_name("copy")):
            with suppress(FillrankError):  # not every model supports every request
                request()


def _requests(model: Any, path: Path) -> Iterator[Callable[[], Any]]:
    data = model.observations_
    rows, columns = data.row_labels[:20], data.column_labels[:20]
    cells = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
    names = getattr(model, "feature_names_in_", data.column_labels)
    stars = np.resize(ratings(3), (3, len(names)))
    new = pd.DataFrame(stars, ["p0", "p1", "p2"], list(names))
    yield lambda: model.predict(*cells)
    yield lambda: model.predict_interval(*cells, kind="signal")
    yield lambda: model.predict_interval(*cells, kind="observation", level=0.5)
    yield lambda: model.predict_block(rows, columns)
    yield lambda: [*model.predict_missing()]
    yield lambda: [*model.predict_missing(level=0.9, n_draws=1)]
    yield lambda: model.recommend(n=2)
    yield lambda: model.recommend(n=2, by="cautious")
    yield lambda: model.recommend(n=2, by="curious", leave_out=None, random_state=0)
    yield lambda: model.sample_completions(1, random_state=0)
    yield lambda: model.fold_in(new).predict("p1", columns)
    yield lambda: model.fold_in(new).predict_interval("p1", columns)
    yield lambda: model.fold_in(_table(12).rename(columns=str.upper), axis="columns")
    yield lambda: model.transform(new)
    yield lambda: model.score(fr.Observations.of(_table()))
    yield lambda: fr.score(fr.Observations.of(_table()), model)
    for name in ("diagnostics", "to_arviz", "get_feature_names_out"):
        if hasattr(model, name):
            yield getattr(model, name)
    if hasattr(model, "predict_mean"):
        yield lambda: model.predict_mean(*cells)
    yield lambda: model.save(path, with_data=True)
