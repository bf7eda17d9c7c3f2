"""Scores by column and by level of the prediction, and the columns that are predicted badly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr

from fillrank.completion import Completion
from fillrank.estimators.base import Estimator
from fillrank.estimators.score import HeldOutPredictions, columns_of, predict_test
from fillrank.table.frames import to_column_table, to_frame
from fillrank.table.observations import Observations

N_LEVELS = 5
# A column needs this many held-out values before it is said to be predicted badly.
FEWEST_VALUES = 20
# The probability of a false warning about the intervals of a column.
_FALSE_ALARMS = 0.001


class GroupSums(NamedTuple):
    """Sums over the held-out values of each group: of a column, or of a level of the prediction.

    Sums of several splits can be added. Relative errors are in standard deviations of the column, and
    only of columns that have one. ``usual_correct`` counts the levels that are the most frequent one of
    their column, and ``one_correct`` those that either this or the prediction gets right, not both.
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
    n_levels: np.ndarray
    correct: np.ndarray
    usual_correct: np.ndarray
    one_correct: np.ndarray


class GroupScores(NamedTuple):
    """Scores of groups; ``group`` has their numbers. `score_by_column` explains the others.

    ``usual_accuracy`` is that of always predicting the most frequent level of the column, and
    ``accuracy_error`` the standard error of the difference between both accuracies.
    """

    group: np.ndarray
    prediction: np.ndarray
    entries: np.ndarray
    missing: np.ndarray
    rmse: np.ndarray
    rmse_in_sd: np.ndarray
    standard_error: np.ndarray
    mean_error: np.ndarray
    coverage: np.ndarray
    accuracy: np.ndarray
    usual_accuracy: np.ndarray
    accuracy_error: np.ndarray

    def fields(self) -> dict[str, np.ndarray]:
        """The scores that tables show; the accuracy only if there are levels."""
        names = ["entries", "missing", "rmse", "rmse_in_sd", "mean_error", "coverage"]
        if not np.isnan(self.accuracy).all():
            names += ["accuracy", "usual_accuracy"]
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
        their intervals; in tables with levels also ``accuracy``, the share of levels whose most probable
        value is right, and ``usual_accuracy``, that of always predicting the most frequent level. What
        is not known is NaN: errors of text and categories, ``rmse_in_sd`` of a column without two
        different values, ``coverage`` of a method without draws, ``missing`` and
        ``rmse_in_sd`` of a model that was saved without entries.

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
    return _sums(found, model.observations_, found.columns, model.observations_.shape[1])


def sums_by_level(found: HeldOutPredictions, model: Estimator | Completion) -> GroupSums:
    """Sums for each fifth of the predictions."""
    if not found.is_number.any():
        return GroupSums(*np.zeros((len(GroupSums._fields), N_LEVELS)))
    found = _numbers_only(found)
    shares = np.arange(1, N_LEVELS) / N_LEVELS
    fifths = np.zeros(len(found.test), dtype=np.int64)
    if fifths.size:
        fifths = np.searchsorted(np.quantile(found.predicted, shares), found.predicted)
    return _sums(found, model.observations_, fifths, N_LEVELS)


def _numbers_only(found: HeldOutPredictions) -> HeldOutPredictions:
    """The predictions without those of codes of levels, which have no order in common."""
    if found.is_number.all():
        return found
    chosen = np.flatnonzero(found.is_number)
    return found._replace(
        test=found.test[chosen],
        columns=found.columns[chosen],
        predicted=found.predicted[chosen],
        covered=None if found.covered is None else found.covered[chosen],
        correct=found.correct[chosen],
        is_number=found.is_number[chosen],
    )


def add_sums(parts: Iterable[GroupSums]) -> GroupSums:
    """The sums over the held-out entries of several splits."""
    return GroupSums(*(np.sum(each, axis=0) for each in zip(*parts, strict=True)))


def _sums(
    found: HeldOutPredictions, fitted: Observations, groups: np.ndarray, n_groups: int
) -> GroupSums:
    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(groups, values, n_groups)

    values, columns = found.test.values, found.columns
    errors = np.where(found.is_number, found.predicted - values, np.nan)
    missing, spread = columns_of(fitted)
    has_spread = spread[columns] > 0
    relative = np.zeros(len(values))
    relative[has_spread] = (errors[has_spread] / spread[columns][has_spread]) ** 2
    covered = np.full(len(values), np.nan) if found.covered is None else found.covered
    is_level = ~np.isnan(found.correct)
    is_usual = is_level & (values == _most_frequent(fitted, np.unique(columns[is_level]))[columns])
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
        total(is_level),
        total(np.where(is_level, found.correct, 0.0)),
        total(is_usual),
        total(is_level & (found.correct != is_usual)),
    )


def _most_frequent(fitted: Observations, columns: np.ndarray) -> np.ndarray:
    """The most frequent value of some columns; NaN for others, and without entries."""
    found = np.full(fitted.shape[1], np.nan)
    if len(fitted) == 0:
        return found
    entries = fitted.by_column()
    for j in columns.tolist():
        own = entries.values[entries.pointers[j] : entries.pointers[j + 1]]
        values, counts = np.unique(own, return_counts=True)
        found[j] = values[counts.argmax()] if values.size else np.nan
    return found


def compute_scores(sums: GroupSums, worst_first: bool = False) -> GroupScores:
    """The scores of all groups with entries, in their order or with the worst first.

    That is the one with the largest ``rmse_in_sd``. Columns of text and categories have none: theirs is
    the share of wrong predictions relative to that of always predicting the most frequent level.
    """
    group = np.flatnonzero(sums.n)
    sums = GroupSums(*(each[group] for each in sums))
    rmse = np.sqrt(sums.squared_error / sums.n)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_square = sums.relative / sums.n_relative
        variance = np.maximum(sums.relative_squared / sums.n_relative - mean_square**2, 0.0)
        rmse_in_sd = np.sqrt(mean_square)
        standard_error = np.sqrt(variance / sums.n_relative) / (2.0 * rmse_in_sd)
        accuracy, usual = sums.correct / sums.n_levels, sums.usual_correct / sums.n_levels
        spread = np.maximum(sums.one_correct / sums.n_levels - (accuracy - usual) ** 2, 0.0)
        accuracy_error = np.sqrt(spread / sums.n_levels)
        badness = np.where(np.isnan(rmse_in_sd), (1.0 - accuracy) / (1.0 - usual), rmse_in_sd)
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
        accuracy,
        usual,
        accuracy_error,
    )
    if not worst_first:
        return scores
    order = np.lexsort((-rmse, -badness))  # NaN comes last
    return GroupScores(*(each[order] for each in scores))


def find_problems(scores: GroupScores, level: float) -> dict[int, str]:
    """Describe columns that are predicted badly, or whose intervals are too narrow.

    A column is predicted badly if its mean, or its most frequent level, would be a better prediction.

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
    is_worse = np.where(
        np.isnan(scores.rmse_in_sd),
        scores.usual_accuracy - scores.accuracy > 2.0 * scores.accuracy_error,
        scores.rmse_in_sd - 1.0 > 2.0 * scores.standard_error,
    )
    is_worse &= is_judged
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
    if np.isnan(scores.rmse_in_sd[k]):
        worse = (
            f"{100 * scores.accuracy[k]:.0f}% of {entries} are predicted correctly, fewer than by "
            f"always predicting the most frequent one ({100 * scores.usual_accuracy[k]:.0f}%)"
        )
    return f"{worse}, and {share} these values {intervals}" if is_narrow else worse
