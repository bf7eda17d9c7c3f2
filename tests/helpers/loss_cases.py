"""Small problems for SoftImpute with other losses than squares."""

import numpy as np

import fillrank as fr
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Data
from fillrank.solvers.fit import Limits
from fillrank.solvers.losses import Logistic, Ordered, settle
from fillrank.solvers.soft_impute_absolute import largest_absolute_penalty, soft_impute_absolute
from fillrank.solvers.soft_impute_losses import LossData, largest_loss_penalty, soft_impute_loss

ONE = Workers(1)
TIGHT = Limits(max_rank=100, max_iterations=20_000, tolerance=1e-7)
KINDS = ("laplace", "logistic", "ordered")


def table(kind, m=12, n=9, missing=0.3, seed=0):
    """A table of rank 2 with missing cells: numbers with outliers, or numbers of levels."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, 2)) @ rng.normal(size=(2, n))
    if kind == "laplace":
        X = Z + 0.2 * rng.standard_t(1.5, size=(m, n))
    elif kind == "logistic":
        X = (Z + rng.logistic(size=(m, n)) > 0).astype(float)
    else:
        X = np.digitize(Z + rng.normal(size=(m, n)), [-1.0, 0.0, 1.2]).astype(float)
    X[rng.random((m, n)) < missing] = np.nan
    return X


def data_of(X, offsets=None):
    """An array with NaN for missing cells, as the solvers take it."""
    observations = fr.Observations.from_matrix(np.asarray(X, dtype=float))
    sides = (observations.by_row(), observations.by_column())
    data = Data(*(each._replace(values=each.values.astype(float)) for each in sides))
    return LossData.of(data, np.zeros(data.n_entries) if offsets is None else offsets)


def first_loss(kind, data):
    """The loss at its start."""
    if kind == "logistic":
        return Logistic()
    start = Ordered(np.linspace(-1, 1, int(data.x.max())))
    return settle(start, data.x, data.offsets, ONE)


def largest(kind, X):
    """The penalty from which on Z = 0 is optimal."""
    data = data_of(X)
    if kind == "laplace":
        return largest_absolute_penalty(data.data, ONE)
    return largest_loss_penalty(data, first_loss(kind, data), ONE)


def solve(kind, X, penalty, limits=TIGHT, start=None):
    """(fit, thresholds)."""
    data = data_of(X)
    if kind == "laplace":
        return soft_impute_absolute(data, penalty, limits, ONE, start), ()
    fit, loss = soft_impute_loss(data, first_loss(kind, data), penalty, limits, ONE, start)
    return fit, loss.thresholds if kind == "ordered" else ()


def dense(factors):
    """Z."""
    return (factors.U * factors.s) @ factors.V.T
