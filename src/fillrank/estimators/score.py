"""Scores of a fitted model on held-out entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.completion import Completion
from fillrank.completions.unknown_labels import Cells, Unknown, find_cells
from fillrank.errors import InputError, Setting
from fillrank.estimators.base import Estimator
from fillrank.posterior.kind_predictions import credible_sets
from fillrank.posterior.metrics import interval_score, mae, nmae, rmse
from fillrank.table.column_types import coded_columns
from fillrank.table.observations import Observations
from fillrank.validation import check_real

# The standard deviation of a constant, relative to its size, is at most this: rounding.
_ROUNDING = 1e-13


class HeldOutPredictions(NamedTuple):
    """Held-out entries, their predictions and, if the method has draws, their intervals.

    ``columns`` are positions of the fit, negative for columns that it does not know. ``predicted`` are
    numbers; ``is_number`` says which entries are numbers too, and not codes of levels.
    ``covered`` says which entries are within their intervals or sets, and ``correct``, 1, 0 or NaN,
    which levels are predicted as the most probable ones; NaN for entries that are no levels.
    """

    test: Observations
    columns: np.ndarray
    predicted: np.ndarray
    interval: tuple[np.ndarray, np.ndarray] | None
    level: float
    is_number: np.ndarray
    covered: np.ndarray | None
    correct: np.ndarray


def score(
    test: Any, model: Estimator | Completion, level: float = 0.9, *, unknown: Unknown = "error"
) -> dict[str, float]:
    """Compare a model's predictions with held-out entries.

    Parameters
    ----------
    test : Observations or table
        Entries that were not fitted. Those of which only an interval is known are not scored.
    model : fitted estimator or Completion
    level : float
        The level of the intervals for new observations whose coverage is measured.
    unknown : {"error", "prior"}
        What to do about rows and columns that the model does not know: raise an error, or predict them
        as rows and columns without entries.

    Returns
    -------
    dict
        ``rmse_in_sd``, the error in standard deviations of the fitted values of each column, where 1 is
        what the means of the columns achieve: the one to read if columns have different units. In a
        table of mixed kinds it is that of columns without levels; it is NaN if no column has a standard
        deviation, or the model has come from a file without entries. Across all columns, in the units
        of the data: ``rmse``, ``mae``, ``nmae`` (the mean absolute error divided by the range of values:
        that of the scale, or of the entries fitted, or of ``test`` if the model has come from a file
        without them);
        ``rmse_rounded``, ``mae_rounded`` and ``nmae_rounded`` with predictions rounded to whole
        numbers; ``coverage``, the share of entries within their intervals; ``interval_score``, the mean
        width of the intervals plus a penalty for entries outside (Gneiting and Raftery 2007; lower is
        better); ``log_score``, the mean logarithm of the predictive density at the entries, in the
        units of the data (higher is better). These three are NaN if the method has no draws. In columns
        of levels, the log score is that of their probability, without entries whose level was not
        among those fitted, and ``accuracy`` is the share of entries whose most probable level is right,
        NaN without such columns. Errors are those of the mean, in all columns but those of text and
        categories.

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
    """Predict held-out entries, with intervals if the method has draws.

    Entries of which only an interval is known are left out: the error of their prediction is not known.
    """
    completion = completion_of(model)
    test = Observations.of(test, like=model.observations_)
    is_exact = np.ones(len(test), dtype=bool) if test.cells is None else test.cells < 0
    if not is_exact.any():
        raise InputError(
            "test must have at least one held-out entry with an exact value, got none."
        )
    if not is_exact.all():
        test = test[np.flatnonzero(is_exact)]
    check_real("level", level, "above 0 and below 1", lambda v: 0 < v < 1)
    cells = find_cells(completion, test.rows, test.columns, unknown)
    predicted = completion.predict_cells(cells, "mean")
    interval, covered = None, None
    if model.posterior_.has_draws:
        interval = completion.predict_cell_intervals(cells, level)
        covered = _covered(completion, cells, test.values, interval, level)
    is_number, correct = np.ones(len(test), dtype=bool), np.full(len(test), np.nan)
    is_level = model.posterior_.level_columns
    if is_level.any():
        has_level = is_level[cells.columns]
        most_probable = completion.predict_cells(cells, "mode")
        correct[has_level] = (most_probable == test.values)[has_level]
        is_coded = coded_columns(completion.observations.column_types)
        if is_coded is not None:
            is_number = ~is_coded[cells.columns]
    return HeldOutPredictions(
        test, cells.columns, predicted, interval, level, is_number, covered, correct
    )


def completion_of(model: Any) -> Completion:
    """The completion of a fitted model; an error if something else was given."""
    try:
        completion: Completion = model.completion_
    except AttributeError as error:
        if isinstance(model, Estimator):
            check_is_fitted(model)
        raise InputError(
            place=Setting("model"),
            allowed="a fitted model",
            value=type(model).__name__,
            advice="The held-out entries come first, as in fr.score(test, model).",
        ) from error
    return completion


def _covered(
    completion: Completion,
    cells: Cells,
    values: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray],
    level: float,
) -> np.ndarray:
    """Which values are within their intervals, or in the sets of levels without an order."""
    low, high = interval
    covered: np.ndarray = (low <= values) & (values <= high)
    posterior = completion.posterior
    # Columns without any fitted value have no interval either, and no levels.
    unordered = np.flatnonzero(np.isnan(low) & posterior.level_columns[cells.columns])
    with completion.workers() as workers:
        for j in np.unique(cells.columns[unordered]).tolist():
            mine = unordered[cells.columns[unordered] == j]
            probabilities = posterior.signal.probabilities(cells.rows[mine], j, workers)
            levels = posterior.level_values(j)
            sets = credible_sets(probabilities, level)
            covered[mine] = [
                value in levels[each] for value, each in zip(values[mine], sets, strict=True)
            ]
    return covered


def overall_scores(
    found: HeldOutPredictions, model: Estimator | Completion, unknown: Unknown = "error"
) -> dict[str, float]:
    """The scores that `score` returns, from predictions."""
    is_number = found.is_number
    test, values, predicted = found.test, found.test.values[is_number], found.predicted[is_number]
    seen = model.observations_.values if len(model.observations_) else test.values
    value_range = model.posterior_.units.value_range or (float(seen.min()), float(seen.max()))
    rounded = np.rint(predicted)
    scores = {
        "rmse_in_sd": _rmse_in_sd(found, model),
        "rmse": rmse(values, predicted),
        "mae": mae(values, predicted),
        "nmae": nmae(values, predicted, value_range),
        "rmse_rounded": rmse(values, rounded),
        "mae_rounded": mae(values, rounded),
        "nmae_rounded": nmae(values, rounded, value_range),
        **_interval_scores(found),
        "log_score": _log_score(test, model, unknown),
    }
    is_level = ~np.isnan(found.correct)
    accuracy = float(found.correct[is_level].mean()) if is_level.any() else float("nan")
    return scores | {"accuracy": accuracy}


def _rmse_in_sd(found: HeldOutPredictions, model: Estimator | Completion) -> float:
    """The error in standard deviations of the columns; in a table of mixed kinds, that of numbers."""
    _, spread = columns_of(model.observations_)
    own = np.where(found.columns >= 0, spread[found.columns], np.nan)
    counts = found.is_number & (own > 0)
    if model.completion_.is_mixed:
        counts &= np.isnan(found.correct)
    if not counts.any():
        return float("nan")
    return rmse(found.test.values[counts] / own[counts], found.predicted[counts] / own[counts])


def columns_of(fitted: Observations) -> tuple[np.ndarray, np.ndarray]:
    """The share of missing cells of each column, and the standard deviation of its values.

    The standard deviation of a constant is 0. Of a model that was saved without entries, all are NaN.
    """
    n_rows, n_columns = fitted.shape
    if len(fitted) == 0:
        return np.full(n_columns, np.nan), np.full(n_columns, np.nan)
    columns, values = fitted.column_index, fitted.values
    counts = np.bincount(columns, minlength=n_columns)
    n = np.maximum(counts, 1)
    means = np.bincount(columns, values, n_columns) / n
    spread = np.sqrt(np.bincount(columns, (values - means[columns]) ** 2, n_columns) / n)
    spread[spread <= _ROUNDING * np.abs(means)] = 0.0
    return 1.0 - counts / n_rows, spread


def _interval_scores(found: HeldOutPredictions) -> dict[str, float]:
    if found.interval is None or found.covered is None:
        return {"coverage": float("nan"), "interval_score": float("nan")}
    low, high = (each[found.is_number] for each in found.interval)
    values = found.test.values[found.is_number]
    return {
        "coverage": float(found.covered.mean()),
        "interval_score": interval_score(values, low, high, found.level),
    }


def _log_score(test: Observations, model: Estimator | Completion, unknown: Unknown) -> float:
    if not model.posterior_.has_draws:
        return float("nan")
    completion = model.completion_
    cells = find_cells(completion, test.rows, test.columns, unknown)
    return float(np.mean(completion.cell_log_density(cells, test.values)))
