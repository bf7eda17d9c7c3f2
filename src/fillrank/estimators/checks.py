"""Settings that several estimators have, judged in one place."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fillrank.data.observations import Observations
from fillrank.errors import InputError

EFFECTS = (None, "mean", "rows", "columns", "both")


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a value that is not one of those allowed."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {allowed}, got {value!r} instead.")


def check_value_range(value_range: Any, observations: Observations) -> tuple[float, float] | None:
    """The range to keep predictions in: found, given, or none."""
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
            'value_range must be "auto", None or two numbers (low, high) with low < high, '
            f"got {value_range!r} instead."
        )
    return low, high


def seed_from(random_state: Any) -> int:
    """A seed from whatever scikit-learn or numpy take as a source of randomness."""
    most = 2**31 - 1
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(most))
    return int(check_random_state(random_state).randint(most))
