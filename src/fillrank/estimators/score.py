"""Scores of a fitted model on held-out entries."""

from typing import Any

import numpy as np

from fillrank.completion import Completion, Unknown
from fillrank.estimators.base import Estimator
from fillrank.posterior.metrics import coverage, mae, nmae, rmse
from fillrank.table.observations import Observations


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
        scale, or of the fitted entries, or of ``test`` if the model was saved without its entries);
        ``rmse_rounded``, ``mae_rounded`` and ``nmae_rounded`` with predictions rounded to integers;
        ``coverage``, the share of entries within their intervals, NaN if the method has none.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(50, 40, rank=1, noise=0.1, missing=0.2, random_state=0)
    >>> train, test = data.split(random_state=0)
    >>> fr.score(test, fr.GASR(n_sweeps=200, random_state=0).fit(train))["rmse"] < 0.2
    True
    """
    test = Observations.of(test)
    predicted = model.predict(test.rows, test.columns, unknown=unknown)
    covered = float("nan")
    if model.posterior_.has_draws:
        low, high = model.predict_interval(test.rows, test.columns, level, unknown=unknown)
        covered = coverage(test.values, low, high)
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
        "coverage": covered,
    }
