"""New rows of a fitted table, drawn under one draw: see `fillrank.posterior.fold_in`.

A new row is a regression, whose letters are those of that module. ``tile`` is as in
`fillrank.kernels.row_systems`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fillrank.draws.normal import normal_from_bits
from fillrank.draws.streams import (
    AUGMENTATION,
    ROW_SCALARS,
    THRESHOLDS,
    row_bits,
    seek,
    start_stream,
    uniform,
)
from fillrank.kernels.interval_rows import slice_coefficients
from fillrank.kernels.new_row_values import (
    approximate_intervals,
    draw_entry_weights,
    draw_levels_of_row,
    draw_new_thresholds,
    draw_values_of_row,
    find_ends,
    start_values,
)
from fillrank.kernels.row_systems import (
    add_product,
    choose,
    factorise,
    multiply_rows,
    precision_probabilities,
    solve_transposed,
)
from fillrank.kernels.row_thresholds import ThresholdPrior, empty_values
from fillrank.kernels.tiles import longest_row
from fillrank.runtime.kernel_cache import njit

# Alternations of coefficients and weights for Student-t noise. Each has its own random numbers: those of
# draw t + step * _STEP, where t is below _STEP.
_ALTERNATIONS, _STEP = 3, 2**16
# The same for values of which only an interval is known.
_VALUE_ALTERNATIONS = 10


class Regression(NamedTuple):
    """The regression of a new row under a draw.

    ``mean`` (k,) and ``L`` (k, k) are its prior, ``factors`` (n, k) holds g_j, ``offsets`` (n,) holds
    mean . f_j, ``noise_sd`` (n,) holds s / sqrt(b_j). ``precisions`` are the possible values of a, and
    ``degrees`` is nu. ``turn`` (K, k) transforms c to the basis that all draws share. ``right`` (n, k)
    holds f_j. ``shifts`` (rows, k) is what features add to the mean of each new row, and ``scales``
    (rows,) holds sqrt(1 + h); both are empty without features. ``rows`` says for each new row whether
    this is its regression; empty if all are. ``limits`` (2, k) are the ends of intervals of values. If
    they differ by column, they are ``thresholds`` (n, L + 1); if by row, ``threshold_prior`` is that of
    a new row. Both are empty otherwise. ``law`` is that of the noise.
    """

    mean: np.ndarray
    L: np.ndarray
    factors: np.ndarray
    offsets: np.ndarray
    noise_sd: np.ndarray
    precisions: np.ndarray
    degrees: float
    turn: np.ndarray
    right: np.ndarray
    shifts: np.ndarray
    scales: np.ndarray
    rows: np.ndarray
    limits: np.ndarray
    thresholds: np.ndarray
    threshold_prior: ThresholdPrior
    law: Any


class NewRows(NamedTuple):
    """New rows: the sums of their expected coefficients, and under one draw c, a and thresholds."""

    means: np.ndarray
    draws: np.ndarray
    precisions: np.ndarray
    thresholds: np.ndarray


@njit
def _gather(entries, i, regression, tile):
    """Copy the g_j of a row's columns into ``tile``, component by component, and y_j below them.

    Both are multiplied by the root of the entry's weight.
    """
    first, k = entries.pointers[i], regression.mean.size
    n = entries.pointers[i + 1] - first
    for t in range(n):
        j = entries.indices[first + t]
        root = math.sqrt(entries.weights[first + t]) if entries.weights.size else 1.0
        for a in range(k):
            tile[a, t] = root * regression.factors[j, a]
        y = (entries.values[first + t] - regression.offsets[j]) / regression.noise_sd[j]
        tile[k, t] = root * y
    return n


@njit
def _take_off_explained(entries, i, regression, tile):
    """Subtract from y_j what features add to the expected value of each entry."""
    first, k = entries.pointers[i], regression.mean.size
    for t in range(entries.pointers[i + 1] - first):
        j = entries.indices[first + t]
        explained = 0.0
        for a in range(k):
            explained += regression.shifts[i, a] * regression.right[j, a]
        root = math.sqrt(entries.weights[first + t]) if entries.weights.size else 1.0
        tile[k, t] -= root * explained / regression.noise_sd[j]


@njit
def _widen(tile, n, k, scale):
    """Multiply the g_j by the scale of a row's prior."""
    for a in range(k):
        for t in range(n):
            tile[a, t] *= scale


@njit
def _add_expected(gram, regression, centre, scale, probabilities, system, w, c, out):
    """Add ``turn`` E[c | x], averaged over the precisions of a row."""
    k = w.size
    for q in range(probabilities.size):
        factorise(gram, regression.precisions[q], system)
        for a in range(k):
            w[a] = probabilities[q] * system[k, a]
            c[a] = probabilities[q] * centre[a]
        solve_transposed(system, w)
        w *= scale
        add_product(regression.L, w, c)
        add_product(regression.turn, c, out)


@njit
def _draw_precision(gram, n, i, precisions, key, sweep, system, probabilities):
    """Draw the precision of a row; ``probabilities`` become those of all of them."""
    if precisions.size == 1:
        return precisions[0]
    precision_probabilities(gram, precisions, n, system, probabilities)
    stream = start_stream(key, sweep, ROW_SCALARS)
    seek(stream, i, 0)
    return precisions[choose(probabilities, uniform(stream))]


@njit
def _draw_coefficients(system, stream, i, bits, w, noise):
    """``w`` becomes E[w | x, a], and ``noise`` a draw of w minus it, from a factorised system."""
    k = w.size
    row_bits(stream, i, bits)
    for a in range(k):
        w[a] = system[k, a]
        noise[a] = normal_from_bits(bits[a], stream, i, a)
    solve_transposed(system, w)
    solve_transposed(system, noise)


@njit(nogil=True, cache=True)
def regress_rows(entries, regression, address, new, start, stop):
    """Draw a and c of the rows start to stop, and add ``turn`` E[c | x] to ``new.means``.

    If weights are drawn, the expectation is also given those of the last alternation.
    """
    L, turn, precisions = regression.L, regression.turn, regression.precisions
    key, law, k = address.key, regression.law, regression.mean.size
    longest = longest_row(entries.pointers, start, stop)
    draws_weights = regression.degrees < math.inf or law.is_mixture
    has_intervals, n_cuts = entries.cells.size > 0, new.thresholds.shape[1]
    last = _ALTERNATIONS - 1 if draws_weights else 0
    if has_intervals or n_cuts:
        last = _VALUE_ALTERNATIONS - 1
    is_weighted = draws_weights or law.of_levels
    n_weighted = longest if is_weighted or has_intervals else 0
    tile, weighted = np.empty((k + 1, longest)), np.empty((k + 1, n_weighted))
    ends, sites = np.empty((2, n_weighted)), np.empty((2, n_weighted))
    approximation = np.empty((k + 1, k))
    gram, system = np.empty((k + 1, k + 1)), np.empty((k + 1, k))
    bits, probabilities = np.empty(k, dtype=np.uint64), np.empty(precisions.size)
    centre, w, noise, c = regression.mean.copy(), np.empty(k), np.empty(k), np.empty(k)
    by_level = empty_values(longest, max(n_cuts - 1, 1))
    scale = 1.0
    for i in range(start, stop):
        if regression.rows.size and not regression.rows[i]:
            continue
        n = _gather(entries, i, regression, tile)
        if regression.shifts.size:
            _take_off_explained(entries, i, regression, tile)
            centre[:] = regression.mean + regression.shifts[i]
            scale = regression.scales[i]
            _widen(tile, n, k, scale)
        origin = tile[k, :n].copy()
        cuts = new.thresholds[i] if n_cuts else centre[:0]
        cuts[1:-1] = regression.threshold_prior.means
        is_sliced = False
        if has_intervals:
            is_sliced = find_ends(entries, i, regression, origin, cuts, ends) and not is_weighted
        if is_sliced:
            a = precisions[precisions.size // 2]
            approximate_intervals(tile, n, ends, a, sites, weighted, gram, approximation)
            stream = start_stream(key, address.sweep + (last + 1) * _STEP, AUGMENTATION)
            start_values(tile, n, ends, a, approximation, stream, i)
        for step in range(last + 1):
            sweep = address.sweep + step * _STEP
            multiply_rows(weighted if step and is_weighted else tile, n, gram)
            a = _draw_precision(gram, n, i, precisions, key, sweep, system, probabilities)
            if step == last and precisions.size > 1:
                _add_expected(
                    gram, regression, centre, scale, probabilities, system, w, c, new.means[i]
                )
            factorise(gram, a, system)
            stream = start_stream(key, sweep, address.purpose)
            _draw_coefficients(system, stream, i, bits, w, noise)
            if step < last:
                stream, drawn = start_stream(key, sweep, AUGMENTATION), w + noise
                if is_sliced:
                    seek(stream, i, n)
                    slice_coefficients(tile, n, ends, a, approximation, drawn, stream)
                if n_cuts:
                    of_cuts = start_stream(key, sweep, THRESHOLDS)
                    draw_new_thresholds(
                        entries, i, regression, tile, origin, drawn, a, by_level, cuts, of_cuts
                    )
                    find_ends(entries, i, regression, origin, cuts, ends)
                if law.of_levels:
                    draw_levels_of_row(
                        entries, i, regression, tile, origin, drawn, stream, weighted
                    )
                elif has_intervals:
                    draw_values_of_row(tile, n, ends, drawn, a, stream, i)
                if draws_weights:
                    draw_entry_weights(tile, n, drawn, a, regression, stream, i, weighted)
        for b in range(k):
            c[b] = centre[b]
            w[b] *= scale
            noise[b] *= scale
        add_product(L, w, c)
        if precisions.size == 1:
            add_product(turn, c, new.means[i])
        add_product(L, noise, c)
        new.precisions[i] = a
        for b in range(k):
            new.draws[i, b] = c[b]
