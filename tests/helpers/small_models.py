"""A small fitted model of every method, for tests of what is shown of models."""

import warnings
from functools import cache

import numpy as np

import fillrank as fr

SETTINGS = {"n_threads": 1, "random_state": 0, "progress": False}
SAMPLED = {"n_sweeps": 40, "n_chains": 1, "max_rank": 3} | SETTINGS
MARGIN = {"penalty": 1.0, "max_rank": 3, "max_iterations": 20} | SETTINGS
METHODS = {
    "GASR": lambda: fr.GASR(**SAMPLED | {"n_chains": 2}),
    "BPMF": lambda: fr.BPMF(**SAMPLED),
    "SoftImpute": lambda: fr.SoftImpute(max_rank=3, **SETTINGS),
    "SoftImputeALS": lambda: fr.SoftImputeALS(penalty=1.0, max_rank=3, **SETTINGS),
    "HASI": lambda: fr.HASI(penalty=1.0, beta=1.0, max_rank=3, **SETTINGS),
    "RelaxedSpectral": lambda: fr.RelaxedSpectral(penalty=1.0, beta=1.0, max_rank=3, **SETTINGS),
    "M3F": lambda: fr.M3F(**MARGIN),
    "IPM3F": lambda: fr.IPM3F(**MARGIN),
    "IPM3F gibbs": lambda: fr.IPM3F(inference="gibbs", n_sweeps=20, **MARGIN),
}
ORDINAL = {"M3F", "IPM3F", "IPM3F gibbs"}
DRAWN = {"GASR", "BPMF"}


def parts_of(name, n_rows=30, n_columns=20):
    """Entries to fit the method of this name on, and others kept aside."""
    data, _ = fr.synthetic(n_rows, n_columns, rank=2, noise=0.2, missing=0.4, random_state=0)
    values = np.clip(np.rint(3 + data.values), 1, 5) if name in ORDINAL else data.values
    rows = np.array([f"row {i}" for i in data.rows], dtype=object)
    columns = np.array([f"column {j}" for j in data.columns], dtype=object)
    return fr.Observations.from_triplets(rows, columns, values).split(0.15, random_state=0)


def fit(method, data):
    """Fit, whatever it says of the length of its run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        return method.fit(data)


@cache
def fitted(name):
    """(model, entries kept aside) of the method of this name: not to be changed."""
    train, test = parts_of(name)
    return fit(METHODS[name](), train), test
