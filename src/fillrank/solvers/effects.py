"""Row and column effects as shrunken means: where chains begin, and what solvers take off first."""

import numpy as np

from fillrank.kernels.products import effect_sums
from fillrank.runtime.workers import Workers
from fillrank.samplers.state import Data, Effect, Options, RemoteData
from fillrank.table.entries import Entries

_STEPS = 10
_FIRST_VARIANCE = 0.1
_SMALLEST_VARIANCE = 1e-6
_ALONE = Workers(1)


def shrunken_means(
    n: np.ndarray, sums: np.ndarray, noise: float, law: Effect
) -> tuple[np.ndarray, Effect]:
    """The effects of rows with n values N(effect, noise) that add up to ``sums``, and the law again.

    One step of EM for effects N(law): their posterior means, then the mean and variance that they imply.
    """
    variance = 1.0 / (n / noise + 1.0 / law.variance)
    effects = variance * (sums / noise + law.mean / law.variance)
    mean = float(effects.mean())
    spread = float(np.mean((effects - mean) ** 2 + variance))
    return effects, Effect(mean, max(spread, _SMALLEST_VARIANCE))


def start_effects(
    data: Data | RemoteData, options: Options, workers: Workers = _ALONE
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[Effect, Effect]]:
    """Effects of both sides by alternating ``shrunken_means``; zeros where a side has none."""
    sides = (data.rows, data.columns)
    has = (options.row_effects, options.column_effects)
    effects = [np.zeros(size) for size in data.shape]
    laws = [Effect(0.0, _FIRST_VARIANCE), Effect(0.0, _FIRST_VARIANCE)]
    for _ in range(_STEPS if any(has) else 0):
        for a, b in ((1, 0), (0, 1)):
            if not has[a]:
                continue
            sums, square = effect_sums(sides[a], effects[a], effects[b], workers)
            noise = max(square / data.n_entries, _SMALLEST_VARIANCE)
            effects[a], laws[a] = shrunken_means(data.counts[a], sums, noise, laws[a])
    return (effects[0], effects[1]), (laws[0], laws[1])


def without(data: Data, effects: tuple[np.ndarray, np.ndarray]) -> Data:
    """The data less the effects of both sides."""
    dtype = data.rows.values.dtype

    def less(entries: Entries, own: np.ndarray, other: np.ndarray) -> Entries:
        both = np.repeat(own, np.diff(entries.pointers)) + other[entries.indices]
        return entries._replace(values=(entries.values - both).astype(dtype))

    return Data(less(data.rows, *effects), less(data.columns, *effects[::-1]))
