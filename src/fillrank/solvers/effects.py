"""Row and column effects as shrunken means: where chains begin, and what solvers take off first."""

import numpy as np

from fillrank.data.entries import Entries
from fillrank.samplers.state import Data, Effect, Options

_STEPS = 10
_FIRST_VARIANCE = 0.1
_SMALLEST_VARIANCE = 1e-6


def shrunken_means(entries: Entries, noise: float, law: Effect) -> tuple[np.ndarray, Effect]:
    """The effects of rows with residuals N(effect, noise) and effects N(law), and the law again.

    One step of EM: posterior means of the effects, then the mean and variance that they imply.
    """
    n = np.diff(entries.pointers)
    sums = np.add.reduceat(np.append(entries.values, 0.0), entries.pointers[:-1])
    sums[n == 0] = 0.0  # reduceat gives an empty row its neighbour's value
    variance = 1.0 / (n / noise + 1.0 / law.variance)
    effects = variance * (sums / noise + law.mean / law.variance)
    mean = float(effects.mean())
    spread = float(np.mean((effects - mean) ** 2 + variance))
    return effects, Effect(mean, max(spread, _SMALLEST_VARIANCE))


def start_effects(
    data: Data, options: Options
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[Effect, Effect]]:
    """Effects of both sides by alternating ``shrunken_means``; zeros where a side has none."""
    sides = (data.rows, data.columns)
    has = (options.row_effects, options.column_effects)
    effects = [np.zeros(side.pointers.size - 1) for side in sides]
    laws = [Effect(0.0, _FIRST_VARIANCE), Effect(0.0, _FIRST_VARIANCE)]
    values = [side.values.astype(np.float64) for side in sides]
    for _ in range(_STEPS if any(has) else 0):
        for a, b in ((1, 0), (0, 1)):
            if not has[a]:
                continue
            others = sides[a]._replace(values=values[a] - effects[b][sides[a].indices])
            own = np.repeat(effects[a], np.diff(sides[a].pointers))
            noise = max(float(np.mean((others.values - own) ** 2)), _SMALLEST_VARIANCE)
            effects[a], laws[a] = shrunken_means(others, noise, laws[a])
    return (effects[0], effects[1]), (laws[0], laws[1])


def without(data: Data, effects: tuple[np.ndarray, np.ndarray]) -> Data:
    """The data less the effects of both sides."""
    dtype = data.rows.values.dtype

    def less(entries: Entries, own: np.ndarray, other: np.ndarray) -> Entries:
        both = np.repeat(own, np.diff(entries.pointers)) + other[entries.indices]
        return entries._replace(values=(entries.values - both).astype(dtype))

    return Data(less(data.rows, *effects), less(data.columns, *effects[::-1]))
