"""The steps of a sweep for the noise, which GASR and BPMF share: see `fillrank.noise.precisions`."""

import math
from typing import NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import NO_LIMITS, RowNoise, RowSums
from fillrank.noise.laws import LAWS, LawName
from fillrank.noise.precisions import (
    DEGREES,
    PRIOR_SCALE,
    draw_common_scale,
    draw_degrees,
    draw_noise_variance,
    draw_precisions,
)
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import SMALLEST_NOISE, Noise

# The degrees of freedom of a chain's first precisions.
FIRST_DEGREES = 10.0
# The variance of the noise behind columns of two levels, in standard units.
FIXED_VARIANCE = 0.5
# Bounds of precisions in a valid state, far beyond what occurs.
_PRECISIONS = (1e-15, 1e15)
NO_COLUMNS = np.zeros(0, dtype=np.int64)
_ALONE = Workers(1)
# The quantity that a draw of the noise is for.
_VARIANCE, _ROW_DEGREES, _COLUMN_DEGREES, _ENTRY_DEGREES, _ROW_SCALE, _COLUMN_SCALE = range(6)


class NoiseModel(NamedTuple):
    """How the noise differs: by row, by column, and by entry (Student-t, with ``robust``).

    ``resolution`` is the smallest standard deviation of the noise that is distinguished, in standard
    units, if the noise differs by column: the squared residual of each entry counts as if it were
    larger by its square. Otherwise a column that follows exactly from others would fix the factors
    where they are.

    ``fixed`` are the positions of columns whose noise has the variance `FIXED_VARIANCE`, because their
    values, two levels, cannot say how large it is.

    ``law`` is the distribution of the noise of an entry. That of levels has the scale 1 in all cells.
    """

    rows: bool = False
    columns: bool = False
    robust: bool = False
    resolution: float = 0.0
    fixed: np.ndarray = NO_COLUMNS
    law: LawName = "gaussian"

    @property
    def is_given(self) -> bool:
        """Whether nothing of the noise is drawn."""
        return LAWS[self.law].of_levels

    @property
    def draws_by_entry(self) -> bool:
        """Whether weights or working responses of all entries are drawn."""
        return self.robust or self.law != "gaussian"

    def traced(self) -> tuple[str, ...]:
        """The names of the degrees of freedom that are drawn."""
        drawn = {
            "row_degrees": self.rows,
            "column_degrees": self.columns,
            "entry_degrees": self.robust,
        }
        return tuple(name for name, is_drawn in drawn.items() if is_drawn)


EQUAL_NOISE = NoiseModel()


class NoiseState(NamedTuple):
    """The noise of all cells, and the degrees of freedom of its precisions."""

    cells: Noise
    row_degrees: float = FIRST_DEGREES
    column_degrees: float = FIRST_DEGREES

    @property
    def entry_degrees(self) -> float:
        """The degrees of freedom of the noise of an entry."""
        return self.cells.degrees

    @property
    def is_valid(self) -> bool:
        """Whether a chain can continue from here; all numbers are known to be finite or inf."""
        return (
            self.cells.is_valid
            and SMALLEST_NOISE <= self.cells.variance <= 1.0 / SMALLEST_NOISE
            and self.has_valid_precisions
            and self.has_valid_degrees
        )

    @property
    def has_valid_precisions(self) -> bool:
        """Whether its precisions are far from where variances would overflow."""
        low, high = _PRECISIONS
        both = self.cells.rows, self.cells.columns
        return all(bool(((each >= low) & (each <= high)).all()) for each in both)

    @property
    def has_valid_degrees(self) -> bool:
        """Whether its degrees of freedom are possible ones."""
        entry = self.entry_degrees
        return all(map(_is_possible, (self.row_degrees, self.column_degrees))) and (
            entry == math.inf or _is_possible(entry)
        )


def _is_possible(degrees: float) -> bool:
    return bool(DEGREES[0] <= degrees <= DEGREES[-1])


def first_noise(
    variance: float, n_rows: int, column_precisions: np.ndarray, model: NoiseModel
) -> NoiseState:
    """The noise at the start of a chain: that of an average column if it does not differ by column."""
    degrees = FIRST_DEGREES if model.robust else math.inf
    if model.is_given:
        return NoiseState(Noise(1.0, np.ones(n_rows), np.ones(column_precisions.size)))
    if model.columns:
        columns = column_precisions.copy()
    else:
        variance = float(variance * np.mean(1.0 / column_precisions))
        columns = np.ones(column_precisions.size)
    return _with_fixed(NoiseState(Noise(variance, np.ones(n_rows), columns, degrees)), model)


def _with_fixed(state: NoiseState, model: NoiseModel) -> NoiseState:
    """The same with the fixed variance in the columns that have one."""
    if not model.fixed.size:
        return state
    cells, columns = state.cells, state.cells.columns.copy()
    columns[model.fixed] = cells.variance / FIXED_VARIANCE
    return state._replace(cells=cells._replace(columns=columns))


def row_noise(noise: Noise, model: NoiseModel, limits: np.ndarray = NO_LIMITS) -> RowNoise:
    """The noise in the half-sweep of the rows."""
    roots = np.sqrt(noise.columns) if model.columns else np.zeros(0)
    law = LAWS[model.law].compiled
    variances = noise.variance / noise.rows
    return RowNoise(variances, roots, noise.degrees, streams.ROW_ENTRIES, limits, law)


def column_noise(noise: Noise, model: NoiseModel, limits: np.ndarray = NO_LIMITS) -> RowNoise:
    """The noise in the half-sweep of the columns."""
    roots = np.sqrt(noise.rows) if model.rows else np.zeros(0)
    law = LAWS[model.law].compiled
    variances = noise.variance / noise.columns
    return RowNoise(variances, roots, noise.degrees, streams.COLUMN_ENTRIES, limits, law)


def draw_row_precisions(
    state: NoiseState, where: Address, counts: np.ndarray, sums: RowSums, workers: Workers = _ALONE
) -> NoiseState:
    """a_i, after the half-sweep of the rows."""
    where = where._replace(purpose=streams.ROW_NOISE)
    variance = state.cells.variance
    rows = draw_precisions(where, counts, sums.squares, variance, state.row_degrees, workers)
    return state._replace(cells=state.cells._replace(rows=rows))


def draw_column_precisions(
    state: NoiseState,
    model: NoiseModel,
    where: Address,
    counts: np.ndarray,
    sums: RowSums,
    workers: Workers = _ALONE,
) -> NoiseState:
    """b_j, after the half-sweep of the columns."""
    where = where._replace(purpose=streams.COLUMN_NOISE)
    squares = _distinguished(sums.squares, model, counts)
    columns = draw_precisions(
        where, counts, squares, state.cells.variance, state.column_degrees, workers
    )
    return _with_fixed(state._replace(cells=state.cells._replace(columns=columns)), model)


def _distinguished(squares: np.ndarray, model: NoiseModel, counts: np.ndarray) -> np.ndarray:
    """The squares of the residuals of each column, larger by the square of the resolution."""
    return squares + model.resolution**2 * counts


def draw_level(
    state: NoiseState, model: NoiseModel, where: Address, counts: np.ndarray, sums: RowSums
) -> NoiseState:
    """sigma^2 and the degrees of freedom, after the half-sweep of the columns.

    If the noise of all columns is fixed, sigma^2 has no meaning and does not change.
    """
    if model.is_given:
        return state
    where, cells = where._replace(purpose=streams.NOISE), state.cells
    free = np.delete(np.arange(cells.columns.size), model.fixed)
    if free.size:
        square = float(cells.columns[free] @ _distinguished(sums.squares, model, counts)[free])
        n_entries = int(counts[free].sum())
        variance = draw_noise_variance(where, cells.variance, n_entries, square)
        state = state._replace(cells=cells._replace(variance=max(variance, SMALLEST_NOISE)))
    if model.rows:
        # sigma^2 / b_j changes with sigma^2 here, and with it the term of the resolution.
        added = model.resolution**2 * float(cells.columns[free] @ counts[free])
        state = _draw_row_side(state, where, 0.5 * added / state.cells.variance, model)
    if model.columns and free.size:
        state = _draw_column_side(state, where, free)
    if model.robust:
        total, log_total = float(sums.weights.sum()), float(sums.log_weights.sum())
        degrees = draw_degrees(where, _ENTRY_DEGREES, int(counts.sum()), total, log_total)
        state = state._replace(cells=state.cells._replace(degrees=degrees))
    return _with_fixed(state, model)


def _draw_row_side(
    state: NoiseState, where: Address, resolved: float, model: NoiseModel
) -> NoiseState:
    """The degrees of freedom of the rows, and the scale that their precisions share with sigma^2.

    With columns of a fixed variance there is no such scale: their noise would change with it.
    """
    cells, degrees, c = state.cells, state.row_degrees, 1.0
    if not model.fixed.size:
        relative = cells.variance / PRIOR_SCALE**2
        c = draw_common_scale(where, _ROW_SCALE, cells.rows, degrees, relative, resolved)
    rows = c * cells.rows
    variance = max(c * cells.variance, SMALLEST_NOISE)
    degrees = _draw_degrees(where, _ROW_DEGREES, rows)
    return state._replace(cells=cells._replace(variance=variance, rows=rows), row_degrees=degrees)


def _draw_column_side(state: NoiseState, where: Address, free: np.ndarray) -> NoiseState:
    """The same for those columns whose noise is drawn."""
    cells, columns = state.cells, state.cells.columns.copy()
    relative = cells.variance / PRIOR_SCALE**2
    c = draw_common_scale(where, _COLUMN_SCALE, columns[free], state.column_degrees, relative)
    columns[free] *= c
    variance = max(c * cells.variance, SMALLEST_NOISE)
    degrees = _draw_degrees(where, _COLUMN_DEGREES, columns[free])
    return state._replace(
        cells=cells._replace(variance=variance, columns=columns), column_degrees=degrees
    )


def _draw_degrees(where: Address, quantity: int, precisions: np.ndarray) -> float:
    """The degrees of freedom behind some precisions."""
    total, log_total = float(precisions.sum()), float(np.log(precisions).sum())
    return draw_degrees(where, quantity, precisions.size, total, log_total)


def residual_square(cells: Noise, sums: RowSums) -> float:
    """The sum of squared residuals after the half-sweep of the columns, each relative to its noise.

    It is in units of the average noise variance: with equal noise, the plain sum.
    """
    return float(cells.columns @ sums.squares) * cells.average() / cells.variance


def noise_history(state: NoiseState, model: NoiseModel) -> dict[str, float]:
    """What is traced of the noise."""
    variance = LAWS[model.law].variance * state.cells.average()
    return {"noise_variance": variance} | {name: getattr(state, name) for name in model.traced()}
