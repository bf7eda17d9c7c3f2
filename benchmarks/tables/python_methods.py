"""The methods that run in Python, by name: each fills in an array with NaN."""

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import fillrank as fr

BASELINE = "column mean"
OURS = "GASR"
# Variants of fillrank's method: the arguments of `fr.GASR` that are not the default, by name.
GASR_SETTINGS = {OURS: {}}
LEVEL = 0.9


class Filled(NamedTuple):
    """A table without missing values; the limits of 90% intervals, if the method has them."""

    mean: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def fill_with_means(X, n_threads):
    """The baseline: the mean of the observed values of the column."""
    return Filled(np.where(np.isnan(X), np.nanmean(X, axis=0), X))


def fill_with_gasr(X, n_threads, **settings):
    """fillrank's GASR on the table as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fr.GASR(random_state=0, progress=False, **settings).fit(X)
    cells = np.nonzero(np.isnan(X))
    mean, low, high = X.copy(), X.copy(), X.copy()
    mean[cells] = model.predict(*cells)
    low[cells], high[cells] = model.predict_interval(*cells, level=LEVEL)
    return Filled(mean, low, high)


def fill_with_imputer(X, n_threads, make_imputer):
    """An imputer of scikit-learn on standardised columns."""
    location, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    scale[scale == 0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = make_imputer(n_threads).fit_transform((X - location) / scale)
    return Filled(location + scale * filled)


def chained_ridge(n_threads):
    return IterativeImputer(random_state=0)


def chained_trees(n_threads):
    trees = ExtraTreesRegressor(n_estimators=50, n_jobs=n_threads, random_state=0)
    return IterativeImputer(trees, max_iter=5, random_state=0)


def _neighbours(n_threads, k):
    return KNNImputer(n_neighbors=k, weights="distance")


_IMPUTERS = {
    "IterativeImputer": chained_ridge,
    "KNN 5": partial(_neighbours, k=5),
    "KNN 10": partial(_neighbours, k=10),
    "extra trees": chained_trees,
}
PYTHON_METHODS = {
    BASELINE: fill_with_means,
    **{name: partial(fill_with_gasr, **settings) for name, settings in GASR_SETTINGS.items()},
    **{name: partial(fill_with_imputer, make_imputer=make) for name, make in _IMPUTERS.items()},
}
