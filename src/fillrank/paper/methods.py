"""The methods of the comparison, under the names that tables and figures show.

GASR appears as published and with the settings of this library. So does BPMF: with the noise precision
that its authors fixed, and with a sampled one. BPMF appears in two more variants that fail on sparse
matrices, as it does in the paper: one with a noise precision that is far too high, and one with a prior
so vague that the factors stay near a random start.
"""

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import fillrank as fr
from fillrank.estimators.sampled import SamplerEstimator
from fillrank.kernels.predictions import pair_values

GASR_PUBLISHED = "GASR, as published"
GASR = "GASR, fillrank"
BPMF_PUBLISHED = "BPMF, as published"
BPMF = "BPMF, fillrank"
BPMF_TOO_SURE = "BPMF, noise precision 100"
BPMF_VAGUE = "BPMF, W0 = 100 I, noise sampled"
SOFT_IMPUTE, SOFT_IMPUTE_ALS, HASI = "SoftImpute", "SoftImpute-ALS", "HASI"
M3F, IPM3F = "M3F", "iPM3F"

# Lambdas delay the import of an estimator until it is used: importing fillrank stays fast.
_MAKERS: dict[str, Callable[..., Any]] = {
    M3F: lambda **settings: fr.M3F(**settings),
    IPM3F: lambda **settings: fr.IPM3F(inference="variational", **settings),
    SOFT_IMPUTE: lambda **settings: fr.SoftImpute(**settings),
    SOFT_IMPUTE_ALS: lambda **settings: fr.SoftImputeALS(**settings),
    HASI: lambda **settings: fr.HASI(**settings),
    BPMF_PUBLISHED: lambda **settings: fr.BPMF.as_published(**settings),
    BPMF: lambda **settings: fr.BPMF(**settings),
    BPMF_TOO_SURE: lambda **settings: fr.BPMF.as_published(
        noise_precision=100.0, row_draws="entries", **settings
    ),
    BPMF_VAGUE: lambda **settings: fr.BPMF(
        start="random", inverse_scale=0.01, n_sweeps=100, burn_in=0, **settings
    ),
    GASR_PUBLISHED: lambda **settings: fr.GASR.as_published(**settings),
    GASR: lambda **settings: fr.GASR(**settings),
}

SAMPLERS = (BPMF_PUBLISHED, BPMF, GASR_PUBLISHED, GASR)
AS_PUBLISHED = (BPMF_PUBLISHED, BPMF_TOO_SURE, BPMF_VAGUE, GASR_PUBLISHED)
SPECTRAL = (SOFT_IMPUTE, SOFT_IMPUTE_ALS, HASI)


def make(name: str, **settings: Any) -> Any:
    """Return the estimator of a method, without its progress bar: the experiment reports progress."""
    return _MAKERS[name](progress=False, **settings)


def fit(model: Any, data: Any) -> float:
    """Fit a model and return the time in seconds.

    Convergence warnings are silenced: the experiment compares what methods reach in 100 iterations.
    """
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        model.fit(data)
    if getattr(model, "interrupted_", False):
        # An interrupted fit returns what it has, which is not a result of the experiment.
        raise KeyboardInterrupt
    return perf_counter() - started


def predict_at(model: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Predict the cells at positions (rows[p], columns[p]), by the average of all draws.

    The paper averages all draws of a run. `predict` uses a mean of fewer factors, which is slightly
    less exact and much faster.
    """
    if not model.posterior_.has_draws:
        labels = model.observations_.row_labels[rows], model.observations_.column_labels[columns]
        predicted: np.ndarray = model.predict(*labels)
        return predicted
    draws = model.recorded_draws()
    total, values = np.zeros(len(rows)), np.empty(len(rows))
    for draw in draws:
        pair_values(draw.left, draw.right, rows, columns, values)
        total += values
    average: np.ndarray = model.posterior_.units.restore(total / len(draws), columns)
    return average


def predict_matrix(model: SamplerEstimator) -> np.ndarray:
    """Predict all cells, by the average of all draws."""
    draws = model.recorded_draws()
    total = np.zeros(model.observations_.shape)
    for draw in draws:
        total += draw.left @ draw.right.T
    average: np.ndarray = model.posterior_.units.restore(total / len(draws), slice(None))
    return average
