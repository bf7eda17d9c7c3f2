"""Effects of rows and columns under a loss, which SoftImpute subtracts first."""

import numpy as np

from fillrank.runtime.threads import Workers
from fillrank.samplers.gasr import Options
from fillrank.samplers.model import Data
from fillrank.solvers.losses import Loss, settle
from fillrank.solvers.soft_impute_losses import LossData
from fillrank.solvers.starts import start_effects
from fillrank.table.entries import Entries

# Steps of majorisation. Effects need not be exact, since the factors fit what is left.
_STEPS = 20


def offsets_of(entries: Entries, effects: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The sum of the effects of the row and the column of each entry."""
    rows, columns = effects
    return np.repeat(rows, np.diff(entries.pointers)) + columns[entries.indices]


def loss_effects(
    data: Data, loss: Loss, intercept: float, options: Options, workers: Workers
) -> tuple[tuple[np.ndarray, np.ndarray], Loss]:
    """Effects of both sides that make the loss small, and the loss with parameters that fit them.

    The quadratic upper bound of the loss at z is that of squares with the working values
    z - f'(z) / L, whose shrunken means are the next effects (`start_effects`). The effects of columns
    include the intercept.
    """
    table = LossData.of(data, np.full(data.n_entries, intercept))
    effects = np.zeros(data.shape[0]), np.full(data.shape[1], intercept)
    z = table.offsets
    for _ in range(_STEPS if options.row_effects or options.column_effects else 0):
        loss, _ = loss.refine(table.x, z, workers)
        slopes = loss.evaluate(table.x, z, workers).slopes
        working = table.sparse(z - slopes / loss.curvature - intercept)
        (rows, columns), _ = start_effects(working, options, workers)
        effects = rows, columns + intercept
        z = offsets_of(data.rows, effects)
    return effects, settle(loss, table.x, z, workers)
