"""Do values look like ratings?"""

import numpy as np

from fillrank.table.blocks import blocks

MOST_LEVELS = 20
ENTRIES_PER_LEVEL = 10  # on average: a handful of measurements may be evenly spaced by chance


def rating_scale(values: np.ndarray) -> tuple[float, float] | None:
    """Find the ends of the scale if values are on few, evenly spaced, well used levels.

    Examples
    --------
    >>> rating_scale(np.array([1.0, 1.5, 2.0] * 10))
    (1.0, 2.0)
    >>> rating_scale(np.array([1.0, 1.7, 2.0] * 10)) is None
    True
    """
    levels = _levels(values)
    if levels.size < 2 or values.size < ENTRIES_PER_LEVEL * levels.size:
        return None
    if not evenly_spaced(levels):
        return None
    return float(levels[0]), float(levels[-1])


def _levels(values: np.ndarray) -> np.ndarray:
    """The distinct values, ascending; none if there are too many for a scale."""
    levels = np.empty(0)
    for part in blocks(values.size):
        block = values[part]
        levels = np.union1d(levels, block[~np.isin(block, levels)])
        if levels.size > MOST_LEVELS:
            return np.empty(0)
    return levels


def evenly_spaced(levels: np.ndarray) -> bool:
    """Whether ascending levels are all the same step apart."""
    steps = np.diff(levels)
    return bool(np.allclose(steps, steps[0], rtol=1e-9, atol=0))
