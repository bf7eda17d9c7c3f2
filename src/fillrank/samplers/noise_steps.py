"""The steps of a sweep for the noise, which GASR and BPMF share: see `fillrank.noise.precisions`."""

import math
from typing import Literal, NamedTuple

import numpy as np

from fillrank.draws import streams
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import RowNoise, RowSums
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
_ALONE = Workers(1)
# The quantity that a draw of the noise is for.
_VARIANCE, _ROW_DEGREES, _COLUMN_DEGREES, _ENTRY_DEGREES, _ROW_SCALE, _COLUMN_SCALE = range(6)


class NoiseModel(NamedTuple):
    """How the noise differs: by row, by column, and by entry (Student-t, with ``robust``).

    ``resolution`` is the smallest standard deviation of the noise that is distinguished, in standard
    units, if the noise differs by column: the squared residual of each entry counts as if it were
    larger by its square. Otherwise a column that follows exactly from others would fix the factors
    where they are.
    """

    rows: bool = False
    columns: bool = False
    robust: bool = False
    resolution: float = 0.0

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
            and self.has_valid_degrees
        )

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
    if model.columns:
        columns = column_precisions.copy()
    else:
        variance = float(variance * np.mean(1.0 / column_precisions))
        columns = np.ones(column_precisions.size)
    return NoiseState(Noise(variance, np.ones(n_rows), columns, degrees))


def row_noise(noise: Noise, model: NoiseModel) -> RowNoise:
    """The noise in the half-sweep of the rows."""
    roots = np.sqrt(noise.columns) if model.columns else np.zeros(0)
    return RowNoise(noise.variance / noise.rows, roots, noise.degrees, streams.ROW_ENTRIES)


def column_noise(noise: Noise, model: NoiseModel) -> RowNoise:
    """The noise in the half-sweep of the columns."""
    roots = np.sqrt(noise.rows) if model.rows else np.zeros(0)
    return RowNoise(noise.variance / noise.columns, roots, noise.degrees, streams.COLUMN_ENTRIES)


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
    return state._replace(cells=state.cells._replace(columns=columns))


def _distinguished(squares: np.ndarray, model: NoiseModel, counts: np.ndarray) -> np.ndarray:
    """The squares of the residuals of each column, larger by the square of the resolution."""
    return squares + model.resolution**2 * counts


def draw_level(
    state: NoiseState, model: NoiseModel, where: Address, counts: np.ndarray, sums: RowSums
) -> NoiseState:
    """sigma^2 and the degrees of freedom, after the half-sweep of the columns."""
    where, cells = where._replace(purpose=streams.NOISE), state.cells
    square = float(cells.columns @ _distinguished(sums.squares, model, counts))
    n_entries = int(counts.sum())
    variance = draw_noise_variance(where, cells.variance, n_entries, square)
    state = state._replace(cells=cells._replace(variance=max(variance, SMALLEST_NOISE)))
    if model.rows:
        # sigma^2 / b_j changes with sigma^2 here, and with it the term of the resolution.
        added = model.resolution**2 * float(cells.columns @ counts)
        state = _draw_side(state, "row", where, 0.5 * added / state.cells.variance)
    if model.columns:
        state = _draw_side(state, "column", where)
    if model.robust:
        total, log_total = float(sums.weights.sum()), float(sums.log_weights.sum())
        degrees = draw_degrees(where, _ENTRY_DEGREES, n_entries, total, log_total)
        state = state._replace(cells=state.cells._replace(degrees=degrees))
    return state


def _draw_side(
    state: NoiseState, side: Literal["row", "column"], where: Address, resolved: float = 0.0
) -> NoiseState:
    """The degrees of freedom of a side, and the scale that its precisions share with sigma^2."""
    cells = state.cells
    if side == "row":
        precisions, degrees, quantities = cells.rows, state.row_degrees, (_ROW_SCALE, _ROW_DEGREES)
    else:
        precisions, degrees = cells.columns, state.column_degrees
        quantities = (_COLUMN_SCALE, _COLUMN_DEGREES)
    relative = cells.variance / PRIOR_SCALE**2
    c = draw_common_scale(where, quantities[0], precisions, degrees, relative, resolved)
    precisions = c * precisions
    total, log_total = float(precisions.sum()), float(np.log(precisions).sum())
    degrees = draw_degrees(where, quantities[1], precisions.size, total, log_total)
    variance = max(c * cells.variance, SMALLEST_NOISE)
    if side == "row":
        return state._replace(
            cells=cells._replace(variance=variance, rows=precisions), row_degrees=degrees
        )
    return state._replace(
        cells=cells._replace(variance=variance, columns=precisions), column_degrees=degrees
    )


def residual_square(cells: Noise, sums: RowSums) -> float:
    """The sum of squared residuals after the half-sweep of the columns, each relative to its noise.

    It is in units of the average noise variance: with equal noise, the plain sum.
    """
    return float(cells.columns @ sums.squares) * cells.average() / cells.variance


def noise_history(state: NoiseState, model: NoiseModel) -> dict[str, float]:
    """What is traced of the noise."""
    return {"noise_variance": state.cells.average()} | {
        name: getattr(state, name) for name in model.traced()
    }
