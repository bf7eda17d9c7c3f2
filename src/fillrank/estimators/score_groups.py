"""Scores by column and by level of the prediction, and the columns that are predicted badly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr

from fillrank.completion import Completion
from fillrank.estimators.base import Estimator
from fillrank.estimators.score import HeldOutPredictions, predict_test
from fillrank.table.frames import to_column_table, to_frame
from fillrank.table.observations import Observations

N_LEVELS = 5
# A column needs this many held-out values before it is said to be predicted badly.
FEWEST_VALUES = 20
# The probability of a false warning about the intervals of a column.
_FALSE_ALARMS = 0.001
# The standard deviation of a constant, relative to its size, is at most this: rounding.
_ROUNDING = 1e-13


class GroupSums(NamedTuple):
    """Sums over the held-out values of each group: of a column, or of a level of the prediction.

    Sums of several splits can be added. Relative errors are in standard deviations of the column, and
    only of columns that have one.
    """

    n: np.ndarray
    predicted: np.ndarray
    missing: np.ndarray
    error: np.ndarray
    squared_error: np.ndarray
    n_relative: np.ndarray
    relative: np.ndarray
    relative_squared: np.ndarray
    covered: np.ndarray


class GroupScores(NamedTuple):
    """Scores of groups; ``group`` has their numbers. `score_by_column` explains the others."""

    group: np.ndarray
    prediction: np.ndarray
    entries: np.ndarray
    missing: np.ndarray
    rmse: np.ndarray
    rmse_in_sd: np.ndarray
    standard_error: np.ndarray
    mean_error: np.ndarray
    coverage: np.ndarray

    def fields(self) -> dict[str, np.ndarray]:
        """The scores that tables show."""
        names = ("entries", "missing", "rmse", "rmse_in_sd", "mean_error", "coverage")
        return {name: getattr(self, name) for name in names}


def score_by_column(test: Any, model: Estimator | Completion, level: float = 0.9) -> Any:
    """Compare a model's predictions with held-out entries, for each column.

    Parameters
    ----------
    test : Observations or table
        Entries that were not fitted, whose rows and columns the model knows.
    model : fitted estimator or Completion
    level : float
        Of the intervals for new observations whose coverage is measured.

    Returns
    -------
    table
        Of the type that was fitted, with a line for each column that has held-out entries, worst first:
        the label of the column; ``entries``, the number of held-out entries; ``missing``, the share of
        missing cells in the table that was fitted; ``rmse``; ``rmse_in_sd``, the same in standard
        deviations of the fitted values of the column, where 1 is what the mean of the column achieves;
        ``mean_error``, the mean of prediction minus value; ``coverage``, the share of entries within
        their intervals. What is not known is NaN: ``rmse_in_sd`` of a column without two different
        values, ``coverage`` of a method without draws, ``missing`` and ``rmse_in_sd`` of a model that
        was saved without entries.

    See Also
    --------
    score : scores of all entries together.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(50, 40, rank=1, noise=0.1, missing=0.2, random_state=0)
    >>> train, test = data.split(random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(train)
    >>> table = fr.score_by_column(test, model)
    >>> list(table.columns)
    ['column', 'entries', 'missing', 'rmse', 'rmse_in_sd', 'mean_error', 'coverage']
    >>> bool(table["rmse_in_sd"][0] == table["rmse_in_sd"].max())
    True
    """
    scores = compute_scores(
        sums_by_column(predict_test(test, model, level), model), worst_first=True
    )
    data = model.observations_
    return to_column_table(data, data.column_labels[scores.group], scores.fields())


def score_by_level(test: Any, model: Estimator | Completion, level: float = 0.9) -> Any:
    """Compare a model's predictions with held-out entries, from low to high predictions.

    Parameters
    ----------
    test : Observations or table
        Entries that were not fitted, whose rows and columns the model knows.
    model : fitted estimator or Completion
    level : float
        Of the intervals for new observations whose coverage is measured.

    Returns
    -------
    table
        Of the type that was fitted, with a line for each fifth of the predictions, lowest first (equal
        predictions are in the same fifth, so there can be fewer): ``fifth``, from 1 to 5;
        ``prediction``, their mean; and the fields of `score_by_column`, where ``missing`` and
        ``rmse_in_sd`` refer to the columns of the entries.

    See Also
    --------
    score : scores of all entries together.

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(50, 40, rank=1, noise=0.1, missing=0.2, random_state=0)
    >>> train, test = data.split(random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(train)
    >>> fr.score_by_level(test, model)[["fifth", "entries"]].to_numpy().tolist()
    [[1, 64], [2, 64], [3, 64], [4, 64], [5, 64]]
    """
    scores = compute_scores(sums_by_level(predict_test(test, model, level), model))
    return to_frame(model.observations_, level_fields(scores))


def level_fields(scores: GroupScores) -> dict[str, np.ndarray]:
    """The fields of a table by level."""
    return {"fifth": scores.group + 1, "prediction": scores.prediction, **scores.fields()}


def sums_by_column(found: HeldOutPredictions, model: Estimator | Completion) -> GroupSums:
    """Sums for each column of the table that was fitted."""
    columns = _column_positions(found.test, model.observations_)
    return _sums(found, model.observations_, columns, columns, model.observations_.shape[1])


def sums_by_level(found: HeldOutPredictions, model: Estimator | Completion) -> GroupSums:
    """Sums for each fifth of the predictions."""
    shares = np.arange(1, N_LEVELS) / N_LEVELS
    fifths = np.searchsorted(np.quantile(found.predicted, shares), found.predicted)
    columns = _column_positions(found.test, model.observations_)
    return _sums(found, model.observations_, columns, fifths, N_LEVELS)


def add_sums(parts: Iterable[GroupSums]) -> GroupSums:
    """The sums over the held-out entries of several splits."""
    return GroupSums(*(np.sum(each, axis=0) for each in zip(*parts, strict=True)))


def _column_positions(test: Observations, fitted: Observations) -> np.ndarray:
    """The position that the column of each entry has in the table that was fitted."""
    used, of_entry = np.unique(test.column_index, return_inverse=True)
    return fitted.column_positions(test.column_labels[used])[of_entry]


def _sums(
    found: HeldOutPredictions,
    fitted: Observations,
    columns: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
) -> GroupSums:
    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(groups, values, n_groups)

    values = found.test.values
    errors = found.predicted - values
    missing, spread = _columns_of(fitted)
    has_spread = spread[columns] > 0
    relative = np.zeros(len(values))
    relative[has_spread] = (errors[has_spread] / spread[columns][has_spread]) ** 2
    covered = np.full(len(values), np.nan)
    if found.interval is not None:
        low, high = found.interval
        covered = (low <= values) & (values <= high)
    return GroupSums(
        np.bincount(groups, minlength=n_groups),
        total(found.predicted),
        total(missing[columns]),
        total(errors),
        total(errors**2),
        total(has_spread),
        total(relative),
        total(relative**2),
        total(covered),
    )


def _columns_of(fitted: Observations) -> tuple[np.ndarray, np.ndarray]:
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


def compute_scores(sums: GroupSums, worst_first: bool = False) -> GroupScores:
    """The scores of all groups with entries, in their order or with the largest ``rmse_in_sd`` first."""
    group = np.flatnonzero(sums.n)
    sums = GroupSums(*(each[group] for each in sums))
    rmse = np.sqrt(sums.squared_error / sums.n)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_square = sums.relative / sums.n_relative
        variance = np.maximum(sums.relative_squared / sums.n_relative - mean_square**2, 0.0)
        rmse_in_sd = np.sqrt(mean_square)
        standard_error = np.sqrt(variance / sums.n_relative) / (2.0 * rmse_in_sd)
    scores = GroupScores(
        group,
        sums.predicted / sums.n,
        sums.n,
        sums.missing / sums.n,
        rmse,
        rmse_in_sd,
        standard_error,
        sums.error / sums.n,
        sums.covered / sums.n,
    )
    if not worst_first:
        return scores
    order = np.lexsort((-rmse, -rmse_in_sd))  # NaN comes last
    return GroupScores(*(each[order] for each in scores))


def find_problems(scores: GroupScores, level: float) -> dict[int, str]:
    """Describe columns that are predicted worse than by their mean, or whose intervals are too narrow.

    Parameters
    ----------
    scores : GroupScores
        Of columns. Those with fewer than 20 held-out values are not judged.
    level : float
        Of the intervals.

    Returns
    -------
    dict
        The positions of columns, in the order of ``scores``, and a clause about each of them.
    """
    is_judged = scores.entries >= FEWEST_VALUES
    is_worse = is_judged & (scores.rmse_in_sd - 1.0 > 2.0 * scores.standard_error)
    covered = np.rint(scores.coverage * scores.entries)
    # NaN, without intervals, is not below.
    is_narrow = is_judged & (bdtr(covered, scores.entries, level) < _FALSE_ALARMS)
    return {
        int(scores.group[k]): _describe(scores, k, bool(is_worse[k]), bool(is_narrow[k]), level)
        for k in np.flatnonzero(is_worse | is_narrow).tolist()
    }


def _describe(scores: GroupScores, k: int, is_worse: bool, is_narrow: bool, level: float) -> str:
    entries = f"{scores.entries[k]:,} held-out values"
    share = f"only {100 * scores.coverage[k]:.0f}% of"
    intervals = f"are within their {100 * level:g}% intervals"
    if not is_worse:
        return f"{share} {entries} {intervals}"
    worse = (
        "predictions are worse than the column mean "
        f"(error {scores.rmse_in_sd[k]:.2f} standard deviations over {entries})"
    )
    return f"{worse}, and {share} these values {intervals}" if is_narrow else worse
