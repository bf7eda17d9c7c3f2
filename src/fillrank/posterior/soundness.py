"""Whether what comes from a file can have been kept there: kernels look up cells without asking."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from fillrank.errors import ReadError
from fillrank.posterior.ordinal import OrdinalPosterior
from fillrank.posterior.posterior import Posterior, Units
from fillrank.run.recorder import Traces
from fillrank.samplers.draw import Draw

_FLOATS = (np.float32, np.float64)
_NO_NUMBERS = np.zeros(0)
# Entries hold the numbers of their levels as int8.
_MOST_LEVELS = np.iinfo(np.int8).max


def check_posterior(posterior: Posterior, shape: tuple[int, int]) -> None:
    """Refuse draws that are not of a table of this shape, or no numbers."""
    draws = posterior.draws
    _demand(len(draws) > 0, "there must be a draw")
    width, dtype = draws[0].left.shape[-1:], draws[0].left.dtype
    for draw in (*draws, posterior.mean):
        _check_draw(draw, shape)
    alike = all(draw.left.shape[-1:] == width and draw.left.dtype == dtype for draw in draws)
    _demand(alike, "all draws must have as many factors")
    _check_units(posterior.units)


def check_ordinal(posterior: OrdinalPosterior, shape: tuple[int, int]) -> None:
    """Refuse scorers that are not of a table of this shape, or levels that do not ascend."""
    levels = posterior.levels
    _demand(_are_numbers(levels, 1) and levels.dtype == np.float64, "levels must be numbers")
    _demand(2 <= levels.size <= _MOST_LEVELS, f"there must be 2 to {_MOST_LEVELS} levels")
    _demand(all(a < b for a, b in pairwise(levels.tolist())), "levels must ascend")
    _demand(len(posterior.scorers) > 0, "there must be a scorer")
    for left, right, thresholds in posterior.scorers:
        parts = left, right, thresholds
        numbers = all(_are_numbers(part, 2) and part.dtype == np.float64 for part in parts)
        _demand(numbers, "scores must be numbers")
        fits = left.shape == (shape[0], right.shape[1]) and right.shape[0] == shape[1]
        fits &= thresholds.shape == (shape[0], levels.size - 1)
        _demand(fits, "scorers must be of the table's shape")


def check_traces(traces: Traces, shape: tuple[int, int]) -> None:
    """Refuse traces of different runs, or of cells that are not in the table."""
    shape_of_history = check_history(traces.history)
    _demand(len(shape_of_history) == 2, "histories must be of chains and sweeps")
    n_chains, n_sweeps = shape_of_history
    _demand(traces.burn_in >= 0 and traces.thinning >= 1, "a burn-in cannot be negative")
    _demand(
        1 <= traces.n_entries <= math.prod(shape), "a table has as many entries as cells at most"
    )
    for part in (traces.spectra, traces.probes):
        _demand(_are_numbers(part, 3) and len(part) == n_chains, "traces must be of all chains")
    n_kept, n_probed = traces.spectra.shape[1], traces.probes.shape[1]
    # Ctrl-C may have come before the last sweep was noted everywhere.
    extra = n_probed - max(n_sweeps - traces.burn_in, 0)
    _demand(extra in (0, 1), "a run is probed once it has burnt in")
    _demand(0 <= n_kept - n_probed // traces.thinning <= 1, "draws are kept from the probed sweeps")
    _demand(n_kept > 0 and traces.probes.shape[2] > 0, "a run must have draws and probes")
    cells = traces.probe_rows, traces.probe_columns
    for places, n in zip(cells, shape, strict=True):
        # A single row or column has an empty twin while it is fitted.
        sound = places.shape == traces.probes.shape[2:] and places.dtype == np.int64
        _demand(
            sound and bool(((places >= 0) & (places < max(n, 2))).all()), "probes must be cells"
        )


def check_summary(fitted: Mapping[str, Any]) -> None:
    """Refuse attributes, by name, that say of a fit what cannot be; those that are not there are not."""
    rank, spectrum = fitted.get("rank_", 0), fitted.get("singular_values_")
    _demand(rank >= 0, "a rank cannot be negative")
    if spectrum is not None:
        sound = _are_numbers(spectrum, 1) and bool((spectrum >= 0).all())
        _demand(sound and rank <= spectrum.size, "a rank counts singular values")
    if "traces_" in fitted:
        _demand(fitted["traces_"].spectra.shape[-1:] >= (rank,), "a rank counts singular values")
    _demand(_is_amount(fitted.get("noise_variance_", 0.0)), "noise cannot be negative")
    chances = fitted.get("rank_probabilities_", {0: 1.0})
    sound = all(k >= 0 and 0 <= p <= 1 for k, p in chances.items())
    _demand(sound and math.isclose(sum(chances.values()), 1.0), "ranks must have probabilities")
    _demand(fitted.get("n_sweeps_", 1) >= 1, "a run must have sweeps")
    penalties = [fitted.get("penalty_", 0.0), *(point.penalty for point in fitted.get("path_", ()))]
    _demand(all(map(_is_amount, penalties)), "a penalty cannot be negative")
    if "history_" in fitted:
        check_history(fitted["history_"])
    for name in ("levels_", "sticks_"):
        _demand(fitted.get(name, _NO_NUMBERS).dtype == np.float64, f"{name} must be numbers")


def check_history(history: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """Refuse what cannot have been traced side by side; give the shape of every trace."""
    arrays = [*history.values()]
    traced = bool(arrays) and all(a.size and _are_numbers(a, a.ndim) for a in arrays)
    _demand(traced, "a fit must have a history")
    alike = len({a.shape for a in arrays}) == 1 and arrays[0].ndim > 0
    _demand(alike, "histories must be as long")
    return arrays[0].shape


def _check_draw(draw: Draw, shape: tuple[int, int]) -> None:
    left, right, noise_variance = draw
    _demand(_are_numbers(left, 2) and _are_numbers(right, 2), "factors must be numbers")
    fits = left.shape == (shape[0], right.shape[1]) and right.shape[0] == shape[1]
    _demand(fits and left.dtype == right.dtype, "factors must be of the table's shape")
    _demand(_is_amount(noise_variance), "noise cannot be negative")


def _check_units(units: Units) -> None:
    location, scale, value_range = units
    _demand(math.isfinite(location) and math.isfinite(scale) and scale > 0, "units must be numbers")
    ends = value_range or (0.0, 1.0)
    _demand(
        all(map(math.isfinite, ends)) and ends[0] < ends[1], "a range has a lower and an upper end"
    )


def _is_amount(number: float) -> bool:
    return math.isfinite(number) and number >= 0


def _are_numbers(array: np.ndarray, n_dimensions: int) -> bool:
    return bool(array.ndim == n_dimensions and array.dtype in _FLOATS and np.isfinite(array).all())


def _demand(is_so: bool, what: str) -> None:
    if not is_so:
        raise ReadError(f"its parts do not fit together: {what}. Restore it from a copy.")
