"""A small fitted model of every method, for tests of what becomes of models."""

import warnings
from functools import cache

import numpy as np

import fillrank as fr
from helpers.quick_fits import NAN, table

SETTINGS = {"n_threads": 1, "random_state": 0, "progress": False}
SAMPLED = {"n_sweeps": 30, "n_chains": 1, "max_rank": 3} | SETTINGS
# As long tables have it; wide ones have units by column, or a trial that takes time.
ONE_UNIT = {"units": "table", "noise": "both"}
MARGIN = {"penalty": 1.0, "max_rank": 3, "max_iterations": 20} | SETTINGS
METHODS = {
    "GASR": lambda: fr.GASR(**SAMPLED | ONE_UNIT | {"n_chains": 2}),
    "GASR as published": lambda: fr.GASR.as_published(**SAMPLED),
    "GASR float64": lambda: fr.GASR(dtype="float64", **SAMPLED, **ONE_UNIT),
    "BPMF": lambda: fr.BPMF(**SAMPLED, **ONE_UNIT),
    "SoftImpute": lambda: fr.SoftImpute(max_rank=3, **SETTINGS),
    "SoftImputeALS": lambda: fr.SoftImputeALS(penalty=1.0, max_rank=3, **SETTINGS),
    "HASI": lambda: fr.HASI(penalty=1.0, beta=1.0, max_rank=3, **SETTINGS),
    "RelaxedSpectral": lambda: fr.RelaxedSpectral(penalty=1.0, beta=1.0, max_rank=3, **SETTINGS),
    "M3F": lambda: fr.M3F(**MARGIN),
    "IPM3F": lambda: fr.IPM3F(**MARGIN),
    "IPM3F gibbs": lambda: fr.IPM3F(inference="gibbs", n_sweeps=20, **MARGIN),
}
ORDINAL = {"M3F", "IPM3F", "IPM3F gibbs"}
DRAWN = {"GASR", "GASR as published", "GASR float64", "BPMF"}


def ratings(n_rows=20, n_columns=12, seed=0):
    """Stars from 1 to 5 as an array with NaN."""
    return np.clip(np.rint(3.0 + table(n_rows, n_columns, rank=2, seed=seed)), 1, 5)


def cells_of(name, n_rows=20, n_columns=12, seed=0):
    """A table that the method of this name can be fitted on."""
    make = ratings if name in ORDINAL else table
    return make(n_rows, n_columns, seed=seed)


def fit(name, X, **changes):
    """Fit the method of this name, whatever it says of the length of its run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        return METHODS[name]().set_params(**changes).fit(X)


@cache
def fitted(name):
    """The method of this name, fitted on its table: not to be changed."""
    return fit(name, cells_of(name))


def new_rows(name):
    """Three rows that were not there at fit, the last without an entry."""
    cells = cells_of(name, n_rows=3, seed=1)
    cells[2] = NAN
    return cells
