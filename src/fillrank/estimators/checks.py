"""Validation of settings and tables that several estimators share."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fillrank.errors import InputError, Setting, SmallTableWarning, UnitsWarning
from fillrank.estimators.table_model import law_of
from fillrank.noise.laws import GAUSSIAN, LAWS
from fillrank.runtime.warnings import warn_user
from fillrank.table.kinds import check_kinds
from fillrank.table.observations import Observations

# The scale of columns with fewer entries is not judged. Smaller ratios of scales can result from random
# factors alone.
_FEWEST_TO_JUDGE, _UNEQUAL = 5, 30.0
# With fewer entries, the intervals of a method are not calibrated: the prior of BPMF assumes that the
# noise level is known better than it is in small tables.
FEWEST_ENTRIES = {"BPMF": 40, "GASR": 3}
EFFECTS = (None, "mean", "rows", "columns", "both")


def check_value_range(value_range: Any, observations: Observations) -> tuple[float, float] | None:
    """The range to which predictions are clipped: found, given, or none."""
    if value_range is None:
        return None
    if isinstance(value_range, str) and value_range == "auto":
        return observations.value_range()
    try:
        low, high = map(float, value_range)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise InputError(
            place=Setting("value_range"),
            allowed='"auto", None or two numbers (low, high) with low < high',
            value=value_range,
        )
    return low, high


def check_likelihood(
    likelihood: str, robust: bool, units: str, noise: str, kinds: Any, thresholds: str
) -> None:
    """Reject settings of a sampler that its likelihood does not have."""
    _check_kinds(kinds, likelihood)
    _check_thresholds(thresholds, likelihood)
    _check_law(likelihood, robust, units, noise)


def _check_kinds(kinds: Any, likelihood: str) -> None:
    """Reject kinds that are neither "auto" nor a mapping, or that the likelihood contradicts."""
    check_kinds(kinds)
    if not isinstance(kinds, str) and likelihood != "auto":
        raise InputError(
            "a likelihood is for all columns, so kinds of single columns cannot be given with it",
            place=Setting("likelihood"),
            value=likelihood,
        )


def _check_thresholds(thresholds: str, likelihood: str) -> None:
    """Reject thresholds by row for values that are not levels of one scale."""
    if thresholds == "rows" and likelihood != "ordered":
        raise InputError(
            "thresholds by row are for ratings, whose values are levels of one scale",
            place=Setting("thresholds"),
            value=thresholds,
            advice=("Use ", Setting("likelihood", "ordered"), "."),
        )


def _check_law(likelihood: str, robust: bool, units: str, noise: str) -> None:
    """Reject settings that the likelihood does not have."""
    law, given = LAWS[law_of(likelihood)], Setting("likelihood", likelihood)
    if law is not GAUSSIAN and robust:
        raise InputError(
            "robust noise has a Student-t distribution, and the likelihood says another one",
            place=given,
            advice=("Leave out ", Setting("robust"), " or ", Setting("likelihood"), "."),
        )
    if law.of_levels and units == "columns":
        raise InputError(
            "all columns have the same two values, so they have no units of their own",
            place=given,
            advice=("Leave out ", Setting("units"), "."),
        )
    if law.of_levels and noise not in ("auto", "one"):
        raise InputError(
            "two values cannot say how large the noise of a row or column is",
            place=given,
            advice=("Leave out ", Setting("noise"), "."),
        )


def few_entries(n_entries: int, fewest: int) -> str:
    """The message that a table has too few entries for intervals; empty if it has enough."""
    if n_entries >= fewest:
        return ""
    how = (
        "cannot be estimated from so few"
        if n_entries < 3
        else "is estimated with too little uncertainty"
    )
    entries = "1 entry" if n_entries == 1 else f"{n_entries} entries"
    return (
        f"the table has {entries}; credible intervals need {fewest} or more. How much the values vary "
        f"{how}: intervals may be far too narrow."
    )


def warn_of_few_entries(n_entries: int, fewest: int) -> None:
    """Warn if a table has fewer entries than a method needs for its intervals."""
    if message := few_entries(n_entries, fewest):
        warn_user(SmallTableWarning(message))


def warn_of_units(observations: Observations) -> None:
    """Warn if the scales of the columns of a wide table differ much, as with different units.

    Solvers have one penalty: next to a column with large values, another would count for nothing.
    """
    if observations.origin.layout not in ("wide", "matrix"):
        return
    column, values, n = observations.column_index, observations.values, observations.shape[1]
    count = np.bincount(column, minlength=n)
    largest = float(np.abs(values).max()) or 1.0
    values = values / largest
    means = np.bincount(column, values, n) / np.maximum(count, 1)
    squares = np.bincount(column, (values - means[column]) ** 2, n)
    spread = largest * np.sqrt(squares / np.maximum(count, 1))
    spread = spread[(count >= _FEWEST_TO_JUDGE) & (spread > 0)]
    if spread.size < 2:
        return
    low, high = np.quantile(spread, [0.1, 0.9])
    if high > _UNEQUAL * low:
        warn_user(
            UnitsWarning(
                "the columns differ much in scale: their standard deviations range from "
                f"{spread.min():.3g} to {spread.max():.3g}, and this method has one penalty for all",
                advice="If they are in different units, use fr.GASR, which gives each column its own.",
            )
        )


def seed_from(random_state: Any) -> int:
    """A seed from any random state that scikit-learn or numpy accepts."""
    most = 2**31 - 1
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(most))
    return int(check_random_state(random_state).randint(most))
