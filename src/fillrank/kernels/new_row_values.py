"""Values of a new row that are drawn with its coefficients: see `fillrank.posterior.fold_in`.

Those are the weights of entries, the values of which only an interval is known, working responses of
levels, and the thresholds between levels. ``tile`` is as in `fillrank.kernels.row_systems`, and
``regression`` that of the row under a draw.
"""

import math

import numpy as np

from fillrank.draws.normal import normal
from fillrank.draws.streams import seek
from fillrank.draws.truncated_normal import truncated_normal
from fillrank.kernels.entry_laws import draw_weight, draw_working
from fillrank.kernels.gaussian_rows import level_of
from fillrank.kernels.interval_rows import slice_coefficients, update_sites
from fillrank.kernels.row_systems import factorise, multiply_rows, solve_transposed
from fillrank.kernels.row_thresholds import draw_thresholds_of_row, sort_by_level
from fillrank.runtime.kernel_cache import njit

# Sweeps of the normal approximation of coefficients given intervals.
_APPROXIMATIONS = 6


@njit
def draw_entry_weights(tile, n, w, precision, regression, stream, row, weighted):
    """Draw the weight of each entry given w and a; ``weighted`` becomes the tile with these weights."""
    k = w.size
    for t in range(n):
        residual = tile[k, t]
        for a in range(k):
            residual -= tile[a, t] * w[a]
        seek(stream, row, t)
        square = precision * residual * residual
        root = math.sqrt(draw_weight(regression.law, regression.degrees, square, stream))
        for a in range(k + 1):
            weighted[a, t] = root * tile[a, t]


@njit
def draw_new_thresholds(entries, i, regression, tile, origin, w, precision, values, cuts, stream):
    """Draw the thresholds of a new row, given w and a, in place.

    ``origin`` has the y_j of the values in ``entries``.
    """
    first, k, n = entries.pointers[i], w.size, origin.size
    signals, precisions = np.empty(n), np.empty(n)
    for t in range(n):
        mean = 0.0
        for a in range(k):
            mean += tile[a, t] * w[a]
        root = math.sqrt(entries.weights[first + t]) if entries.weights.size else 1.0
        unit = root / regression.noise_sd[entries.indices[first + t]]
        signals[t] = entries.values[first + t] + (mean - origin[t]) / unit
        precisions[t] = unit * math.sqrt(precision)
    sort_by_level(entries.cells[first : first + n], signals, precisions, values)
    draw_thresholds_of_row(cuts, values, regression.threshold_prior, stream, i)


@njit
def _interval_ends(regression, cuts, j, cell):
    """The ends of the interval with this number, in column j of a row with these thresholds."""
    if cuts.size:
        return cuts[cell], cuts[cell + 1]
    if regression.thresholds.size:
        return regression.thresholds[j, cell], regression.thresholds[j, cell + 1]
    return regression.limits[0, cell], regression.limits[1, cell]


@njit
def find_ends(entries, i, regression, origin, cuts, ends):
    """``ends`` (2, n) become those of the intervals of the y_j of a row, NaN for known values.

    Returns whether there are intervals. ``origin`` has the y_j of the values in ``entries``, ``cuts``
    the thresholds of the row.
    """
    first, found = entries.pointers[i], False
    for t in range(origin.size):
        cell = entries.cells[first + t]
        if cell < 0:
            ends[0, t], ends[1, t] = math.nan, math.nan
            continue
        found = True
        j, value = entries.indices[first + t], entries.values[first + t]
        root = math.sqrt(entries.weights[first + t]) if entries.weights.size else 1.0
        unit = root / regression.noise_sd[j]
        low, high = _interval_ends(regression, cuts, j, cell)
        ends[0, t], ends[1, t] = origin[t] + unit * (low - value), origin[t] + unit * (high - value)
    return found


@njit
def draw_values_of_row(tile, n, ends, w, precision, stream, row):
    """Draw the y_j of a row of which an interval is known, given w and a, in place."""
    k = w.size
    for t in range(n):
        if math.isnan(ends[0, t]):
            continue
        mean = 0.0
        for a in range(k):
            mean += tile[a, t] * w[a]
        seek(stream, row, t)
        sd = 1.0 / math.sqrt(precision)
        tile[k, t] = truncated_normal(stream, mean, sd, ends[0, t], ends[1, t])


@njit
def approximate_intervals(tile, n, ends, precision, sites, weighted, gram, system):
    """``system`` becomes that of a normal approximation of w given the values and the intervals."""
    k = system.shape[1]
    x = np.empty(k)
    for t in range(n):
        is_known = math.isnan(ends[0, t])
        sites[0, t], sites[1, t] = tile[k, t], precision if is_known else 0.0
    for step in range(_APPROXIMATIONS + 1):
        for t in range(n):
            root = math.sqrt(sites[1, t])
            for a in range(k):
                weighted[a, t] = root * tile[a, t]
            weighted[k, t] = root * sites[0, t]
        multiply_rows(weighted, n, gram)
        factorise(gram, 1.0, system)
        if step < _APPROXIMATIONS:
            update_sites(tile, n, ends, precision, system, sites, x)


@njit
def start_values(tile, n, ends, precision, approximation, stream, row):
    """Draw the y_j of a row in intervals, given w from a normal approximation and a step from it."""
    k = approximation.shape[1]
    seek(stream, row, n)
    w = np.empty(k)
    for a in range(k):
        w[a] = approximation[k, a] + normal(stream)
    solve_transposed(approximation, w)
    slice_coefficients(tile, n, ends, precision, approximation, w, stream)
    draw_values_of_row(tile, n, ends, w, precision, stream, row)


@njit
def draw_levels_of_row(entries, i, regression, tile, origin, w, stream, weighted):
    """Draw weights and working responses of a row of levels, given w.

    ``weighted`` becomes the tile with them; ``origin`` is as in `find_ends`.
    """
    first, k = entries.pointers[i], w.size
    for t in range(origin.size):
        cell = entries.cells[first + t]
        mean = 0.0
        for a in range(k):
            mean += tile[a, t] * w[a]
        x, threshold = level_of(regression.limits[0, cell], regression.limits[1, cell])
        threshold += origin[t] - entries.values[first + t]
        seek(stream, i, t)
        weight, above = draw_working(regression.law, x * (mean - threshold), stream)
        root = math.sqrt(weight)
        for a in range(k):
            weighted[a, t] = root * tile[a, t]
        weighted[k, t] = root * (mean + x * above)
