"""Scores of a fitted model on held-out entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fillrank.completion import Completion
from fillrank.completions.unknown_labels import Unknown
from fillrank.errors import InputError
from fillrank.estimators.base import Estimator
from fillrank.posterior.metrics import coverage, interval_score, mae, nmae, rmse
from fillrank.table.observations import Observations


class HeldOutPredictions(NamedTuple):
    """Held-out entries, their predictions and, if the method has draws, their intervals."""

    test: Observations
    predicted: np.ndarray
    interval: tuple[np.ndarray, np.ndarray] | None
    level: float


def score(
    test: Any, model: Estimator | Completion, level: float = 0.9, *, unknown: Unknown = "error"
) -> dict[str, float]:
    """Compare a model's predictions with held-out entries.

    Parameters
    ----------
    test : Observations or table
        Entries that were not fitted.
    model : fitted estimator or Completion
    level : float
        The level of the intervals for new observations whose coverage is measured.
    unknown : {"error", "prior"}
        What to do about rows and columns that the model does not know: raise an error, or predict them
        as rows and columns without entries.

    Returns
    -------
    dict
        ``rmse``, ``mae``, ``nmae`` (the mean absolute error divided by the range of values: that of the
        scale, or of the entries fitted, or of ``test`` if the model has come from a file without them);
        ``rmse_rounded``, ``mae_rounded`` and ``nmae_rounded`` with predictions rounded to whole
        numbers; ``coverage``, the share of entries within their intervals; ``interval_score``, the mean
        width of the intervals plus a penalty for entries outside (Gneiting and Raftery 2007; lower is
        better); ``log_score``, the mean logarithm of the predictive density at the entries, in the
        units of the data (higher is better). The last three are NaN if the method has no draws.

    See Also
    --------
    score_by_column, score_by_level : the same for parts of the table.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(50, 40, rank=1, noise=0.1, missing=0.2, random_state=0)
    >>> train, test = data.split(random_state=0)
    >>> fr.score(test, fr.GASR(n_sweeps=200, random_state=0).fit(train))["rmse"] < 0.2
    True
    """
    return overall_scores(predict_test(test, model, level, unknown), model, unknown)


def predict_test(
    test: Any, model: Estimator | Completion, level: float, unknown: Unknown = "error"
) -> HeldOutPredictions:
    """Predict held-out entries, with intervals if the method has draws."""
    test = Observations.of(test)
    if len(test) == 0:
        raise InputError("test must have at least one held-out entry, got none.")
    predicted = model.predict(test.rows, test.columns, unknown=unknown)
    interval = None
    if model.posterior_.has_draws:
        interval = model.predict_interval(test.rows, test.columns, level, unknown=unknown)
    return HeldOutPredictions(test, predicted, interval, level)


def overall_scores(
    found: HeldOutPredictions, model: Estimator | Completion, unknown: Unknown = "error"
) -> dict[str, float]:
    """The scores that `score` returns, from predictions."""
    test, predicted = found.test, found.predicted
    seen = model.observations_.values if len(model.observations_) else test.values
    value_range = model.posterior_.units.value_range or (float(seen.min()), float(seen.max()))
    rounded = np.rint(predicted)
    return {
        "rmse": rmse(test.values, predicted),
        "mae": mae(test.values, predicted),
        "nmae": nmae(test.values, predicted, value_range),
        "rmse_rounded": rmse(test.values, rounded),
        "mae_rounded": mae(test.values, rounded),
        "nmae_rounded": nmae(test.values, rounded, value_range),
        **_interval_scores(found),
        "log_score": _log_score(test, model, unknown),
    }


def _interval_scores(found: HeldOutPredictions) -> dict[str, float]:
    if found.interval is None:
        return {"coverage": float("nan"), "interval_score": float("nan")}
    values = found.test.values
    return {
        "coverage": coverage(values, *found.interval),
        "interval_score": interval_score(values, *found.interval, found.level),
    }


def _log_score(test: Observations, model: Estimator | Completion, unknown: Unknown) -> float:
    if not model.posterior_.has_draws:
        return float("nan")
    return float(np.mean(model.log_density(test.rows, test.columns, test.values, unknown=unknown)))
