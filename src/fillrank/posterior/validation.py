"""Validation of what was read from a file: kernels index arrays without bounds checks."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from fillrank.errors import ReadError
from fillrank.features.blocks import (
    MISSINGNESS,
    Block,
    Field,
    PatternCode,
    TableCode,
    TimeBasis,
    TimeCode,
)
from fillrank.posterior.levels import LevelPosterior
from fillrank.posterior.low_rank import LowRankPosterior
from fillrank.run.recorder import Traces
from fillrank.samplers.model import LARGEST_ENTRY, Draw, Noise
from fillrank.table.units import Units

_FLOATS = (np.float32, np.float64)
_EMPTY = np.zeros(0)
# Entries store the index of their level as int8.
_MAX_LEVELS = np.iinfo(np.int8).max


def check_posterior(posterior: LowRankPosterior, shape: tuple[int, int]) -> None:
    """Raise ReadError for draws that do not fit a table of this shape, or are not finite."""
    draws = posterior.draws
    _require(len(draws) > 0, "there must be a draw")
    width, dtype = draws[0].left.shape[-1:], draws[0].left.dtype
    for draw in (*draws, posterior.mean):
        _check_draw(draw, shape)
    same = all(draw.left.shape[-1:] == width and draw.left.dtype == dtype for draw in draws)
    _require(same, "all draws must have the same number of factors")
    _check_units(posterior.units, shape[1])
    _check_features(posterior, shape)


def check_ordinal(posterior: LevelPosterior, shape: tuple[int, int]) -> None:
    """Raise ReadError for scorers that do not fit a table of this shape, or unordered levels."""
    levels = posterior.levels
    is_valid = _is_numeric(levels, 1) and levels.dtype == np.float64
    _require(is_valid, "levels must be finite numbers")
    _require(1 <= levels.size <= _MAX_LEVELS, f"there must be 1 to {_MAX_LEVELS} levels")
    _require(all(a < b for a, b in pairwise(levels.tolist())), "levels must be increasing")
    _require(len(posterior.scorers) > 0, "there must be a scorer")
    for left, right, thresholds in posterior.scorers:
        arrays = left, right, thresholds
        is_valid = all(_is_numeric(array, 2) and array.dtype == np.float64 for array in arrays)
        _require(is_valid, "scores must be finite numbers")
        fits = left.shape == (shape[0], right.shape[1]) and right.shape[0] == shape[1]
        fits &= thresholds.shape == (shape[0], levels.size - 1)
        _require(fits, "scorers must have the shape of the table")


def check_traces(traces: Traces, shape: tuple[int, int]) -> None:
    """Raise ReadError for traces of different runs, or of cells that are not in the table."""
    history_shape = check_history(traces.history)
    _require(len(history_shape) == 2, "histories must have two dimensions, chains and sweeps")
    n_chains, n_sweeps = history_shape
    _require(traces.burn_in >= 0, "the burn-in cannot be negative")
    _require(traces.thinning >= 1, "the thinning must be at least 1")
    _require(
        1 <= traces.n_entries <= math.prod(shape),
        "the number of observed entries must be from 1 to the number of cells",
    )
    for array in (traces.spectra, traces.probes):
        is_valid = _is_numeric(array, 3) and len(array) == n_chains
        _require(is_valid, "traces must have all chains")
    n_stored, n_probed = traces.spectra.shape[1], traces.probes.shape[1]
    # An interrupt can come while the last sweep is being recorded.
    n_extra = n_probed - max(n_sweeps - traces.burn_in, 0)
    _require(n_extra in (0, 1), "probes must be those of the sweeps after the burn-in")
    _require(
        0 <= n_stored - n_probed // traces.thinning <= 1,
        "the number of stored draws must follow from the thinning",
    )
    _require(n_stored > 0 and traces.probes.shape[2] > 0, "a run must have draws and probes")
    cells = traces.probe_rows, traces.probe_columns
    for positions, n in zip(cells, shape, strict=True):
        has_type = positions.shape == traces.probes.shape[2:] and positions.dtype == np.int64
        # A single row or column is fitted together with an empty copy.
        is_inside = has_type and bool(((positions >= 0) & (positions < max(n, 2))).all())
        _require(is_inside, "probes must be cells of the table")


def check_summary(fitted: Mapping[str, Any], shape: tuple[int, int]) -> None:
    """Raise ReadError for impossible values of fitted attributes; any of them may be absent."""
    rank, spectrum = fitted.get("rank_", 0), fitted.get("singular_values_")
    _require(rank >= 0, "the rank cannot be negative")
    if spectrum is not None:
        is_valid = _is_numeric(spectrum, 1) and bool((spectrum >= 0).all())
        _require(is_valid, "singular values must be finite and not negative")
        _require(rank <= spectrum.size, "the rank cannot exceed the number of singular values")
    if "traces_" in fitted:
        n_values = fitted["traces_"].spectra.shape[-1:]
        _require(n_values >= (rank,), "the rank cannot exceed the number of singular values")
    _require(_is_amount(fitted.get("noise_variance_", 0.0)), "the noise cannot be negative")
    for name, n in zip(("row_noise_", "column_noise_"), shape, strict=True):
        noise = fitted.get(name, np.zeros(n))
        is_valid = noise.shape == (n,) and _is_numeric(noise, 1) and bool((noise >= 0).all())
        _require(is_valid, f"{name} must have the shape of the table and not be negative")
    probabilities = fitted.get("rank_probabilities_", {0: 1.0})
    is_valid = all(k >= 0 and 0 <= p <= 1 for k, p in probabilities.items())
    _require(
        is_valid and math.isclose(sum(probabilities.values()), 1.0),
        "the probabilities of the ranks must sum to 1",
    )
    _require(fitted.get("n_sweeps_", 1) >= 1, "a run must have sweeps")
    penalties = [fitted.get("penalty_", 0.0), *(point.penalty for point in fitted.get("path_", ()))]
    _require(all(map(_is_amount, penalties)), "a penalty cannot be negative")
    if "history_" in fitted:
        check_history(fitted["history_"])
    for name in ("levels_", "sticks_"):
        is_valid = fitted.get(name, _EMPTY).dtype == np.float64
        _require(is_valid, f"{name} must be float64 numbers")


def check_history(history: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """Return the shape of every trace; raise ReadError if they differ in it."""
    arrays = [*history.values()]
    is_valid = bool(arrays) and all(a.size and _is_numeric(a, a.ndim) for a in arrays)
    _require(is_valid, "a fit must have a history of finite numbers")
    same = len({a.shape for a in arrays}) == 1 and arrays[0].ndim > 0
    _require(same, "histories must have the same length")
    return arrays[0].shape


def _check_draw(draw: Draw, shape: tuple[int, int]) -> None:
    left, right, noise = draw.left, draw.right, draw.noise
    _require(_is_numeric(left, 2) and _is_numeric(right, 2), "factors must be finite numbers")
    fits = left.shape == (shape[0], right.shape[1]) and right.shape[0] == shape[1]
    _require(fits and left.dtype == right.dtype, "factors must have the shape of the table")
    _check_noise(noise, shape)


def _check_noise(noise: Noise, shape: tuple[int, int]) -> None:
    for precisions, n in zip((noise.rows, noise.columns), shape, strict=True):
        fits = precisions.shape == (n,) and precisions.dtype == np.float64
        _require(fits, "the noise must have the shape of the table")
    _require(noise.is_valid, "the noise cannot be negative, and must be finite")


def _check_features(posterior: LowRankPosterior, shape: tuple[int, int]) -> None:
    m, n = shape
    rows, columns = posterior.blocks
    dtype = posterior.draws[0].left.dtype
    for blocks, counts in ((rows, (m, n)), (columns, (n, m))):
        names = [block.name for block in blocks]
        _require(len({*names}) == len(names), "the blocks of features must have different names")
        for block in blocks:
            _check_block(block, counts, dtype)
    n_rows, n_columns = (sum(block.values.shape[1] for block in side) for side in (rows, columns))
    for draw in posterior.draws:
        _check_weights(draw.row_weights, n_rows, draw.left)
        _check_weights(draw.column_weights, n_columns, draw.right)


def _check_block(block: Block, counts: tuple[int, int], dtype: np.dtype) -> None:
    """``counts`` are how many rows there are on the block's side of the table, and on the other."""
    (n_own, n_other), code, terms = counts, block.code, block.terms
    values, means, directions = block.values, code.means, code.directions
    _require(block.name != "", "a block of features must have a name")
    is_named = isinstance(code, PatternCode) == (block.name == MISSINGNESS)
    _require(is_named, f"only the block {MISSINGNESS} can come from the pattern of entries")
    for each in (values, directions):
        is_valid = _is_moderate(each, 2) and each.dtype == dtype
        _require(is_valid, "features must be moderate numbers, in the precision of the draws")
    fits = len(values) == n_own and values.shape[1] > 0
    _require(fits, "features must have the shape of the table")
    is_valid = _is_moderate(means, 1) and means.dtype == np.float64
    _require(is_valid, "the means of features must be moderate numbers")
    fits = directions.shape == (means.size, values.shape[1])
    _require(fits, "features must have as many directions as values")
    if isinstance(code, TableCode):
        for field in code.fields:
            _check_field(field)
        fields = [field.name for field in code.fields]
        _require(len({*fields}) == len(fields), "fields of features must have different names")
        n_terms = sum(field.n_terms for field in code.fields)
        _require(means.size == len(terms) == n_terms, "terms must be those of the fields")
    elif isinstance(code, TimeCode):
        _check_basis(code.basis)
        _require(means.size == len(terms), "terms must be those of the times")
    else:
        _require(means.size == n_other and not terms, "patterns must be those of the table")


def _check_basis(basis: TimeBasis) -> None:
    numbers = np.array([basis.origin, basis.reach])
    waves = np.array([basis.frequencies, basis.phases, basis.weights])
    is_valid = bool(np.isfinite(numbers).all() and np.isfinite(waves).all() and basis.reach > 0)
    is_valid = is_valid and 0 <= basis.n_trend <= len(basis.names)
    _require(is_valid, "the terms of times must be finite numbers")


def _check_field(field: Field) -> None:
    is_valid = math.isfinite(field.mean) and 0 < field.scale < math.inf
    _require(is_valid, "the scale of a field of features must be positive, and its mean finite")
    is_number, levels = field.kind == "number", field.levels
    is_valid = is_number != bool(levels) and len({*levels}) == len(levels)
    _require(is_valid, "categories must have different levels, and numbers none")


def _check_weights(weights: np.ndarray, n_features: int, factors: np.ndarray) -> None:
    if n_features == 0:
        _require(weights.size == 0, "there must be features for weights")
        return
    fits = weights.shape == (n_features, factors.shape[1]) and weights.dtype == factors.dtype
    is_valid = fits and _is_moderate(weights, 2)
    _require(is_valid, "every draw must have moderate weights of all features")


def _check_units(units: Units, n_columns: int) -> None:
    location, scale, value_range = units
    for each in (location, scale):
        fits = each.shape == (n_columns,) and _is_numeric(each, 1) and each.dtype == np.float64
        _require(fits, "units must be finite numbers, one for each column")
    _require(bool((scale > 0).all()), "the scale of units must be positive")
    low, high = value_range or (0.0, 1.0)
    is_valid = math.isfinite(low) and math.isfinite(high) and low < high
    _require(is_valid, "the lower end of the value range must be below the upper end")


def _is_amount(number: float) -> bool:
    return math.isfinite(number) and number >= 0


def _is_numeric(array: np.ndarray, n_dimensions: int) -> bool:
    return bool(array.ndim == n_dimensions and array.dtype in _FLOATS and np.isfinite(array).all())


def _is_moderate(array: np.ndarray, n_dimensions: int) -> bool:
    """Whether products of two such numbers are within the range of single precision."""
    return _is_numeric(array, n_dimensions) and bool((np.abs(array) <= LARGEST_ENTRY).all())


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ReadError(f"its parts are inconsistent: {rule}", advice="Restore it from a copy.")
