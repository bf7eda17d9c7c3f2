"""Small problems for SoftImpute, dense twins of what the solvers do, and answers of the R package."""

import json
from pathlib import Path

import numpy as np

import fillrank as fr
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Limits

R_PACKAGE = json.loads((Path(__file__).parent / "softimpute_r.json").read_text())
ONE = Workers(1)
TIGHT = Limits(max_rank=100, max_iterations=20_000, tolerance=1e-9)


def data_of(X):
    """An array with NaN for missing cells, from both sides."""
    observations = fr.Observations.from_matrix(np.asarray(X, dtype=float))
    return Data(observations.by_row(), observations.by_column())


def table(m=24, n=17, rank=3, missing=0.5, noise=0.3, seed=0):
    """Low rank and noise, with missing cells."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    X += noise * rng.standard_normal((m, n))
    X[rng.random((m, n)) < missing] = np.nan
    return X


def dense(factors):
    """Z."""
    return (factors.U * factors.s) @ factors.V.T


def objective(X, Z, penalty):
    """f(Z) from its definition."""
    return 0.5 * np.nansum((X - Z) ** 2) + penalty * np.linalg.svd(Z, compute_uv=False).sum()


def gap(X, Z, penalty):
    """The relative duality gap from its definition."""
    R = np.where(np.isnan(X), 0.0, X - Z)
    W = R * min(1.0, penalty / np.linalg.norm(R, 2))
    f = objective(X, Z, penalty)
    return (f - (np.sum(W * np.nan_to_num(X)) - 0.5 * np.sum(W**2))) / f


def shrunk(W, penalty):
    """S_lambda(W)."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return (U * np.maximum(s - penalty, 0.0)) @ Vt


def step(X, Z, penalty):
    """One iteration of SoftImpute at Z."""
    return shrunk(np.where(np.isnan(X), Z, X), penalty)
