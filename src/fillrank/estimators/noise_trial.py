"""Whether the noise of a table differs by row, where that is not clear: a trial on held-out entries."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from fillrank.estimators.table_model import TableModel
from fillrank.noise.laws import LawName
from fillrank.posterior.predictive import log_densities
from fillrank.run.chains import Chain, Sampler
from fillrank.samplers.model import Data
from fillrank.table.entries import Entries, transpose

# The share of the entries that is held out, and the sweeps of a trial, of which the second half counts.
_HELD_OUT, _SWEEPS = 0.1, 150
# Row noise must gain so much of the mean log density: its gain is in some rows, and its loss in the
# squared error of others.
_CLEAR_GAIN = 0.05
# A chain that no run has.
_CHAIN = 2**16


class _HeldOut(NamedTuple):
    """Entries that are held out, by position."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


# What starts a chain on some data, under a model; the third argument is [seed, number of the chain].
StartTrial = Callable[[Data, TableModel, list[int]], tuple[Chain, Sampler]]


def decide_row_noise(model: TableModel, data: Data, seed: int, start: StartTrial) -> TableModel:
    """The model with the noise under which held-out entries are more probable, and a note."""
    train, held = _hold_out(data, seed)
    scores = []
    for has_row_noise in (False, True):
        trial = model._replace(noise=model.noise._replace(rows=has_row_noise, columns=True))
        chain, sampler = start(train, trial, [seed, _CHAIN])
        scores.append(_log_score(chain, sampler, train, held, model.noise.law))
    return _decided(model, *scores)


def _hold_out(data: Data, seed: int) -> tuple[Data, _HeldOut]:
    """The data without some entries, and these."""
    entries, n_columns = data.rows, data.shape[1]
    n_held = max(1, round(_HELD_OUT * entries.n_entries))
    chosen = np.zeros(entries.n_entries, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(entries.n_entries)[:n_held]] = True
    row_of = np.repeat(np.arange(data.shape[0]), np.diff(entries.pointers))
    values = entries.values[chosen].astype(np.float64)
    held = _HeldOut(row_of[chosen], entries.indices[chosen], values)
    pointers = np.searchsorted(row_of[~chosen], np.arange(data.shape[0] + 1))
    weights = entries.weights[~chosen] if entries.weights.size else entries.weights
    cells = entries.cells[~chosen] if entries.cells.size else entries.cells
    rows = Entries(pointers, entries.indices[~chosen], entries.values[~chosen], weights, cells)
    return Data(rows, transpose(rows, n_columns)), held


def _log_score(chain: Chain, sampler: Sampler, data: Data, held: _HeldOut, law: LawName) -> float:
    """The mean log predictive density of held-out entries, from a short run of a chain."""
    rows, columns, values = held
    state, terms = chain.state, []
    for t in range(_SWEEPS):
        state, _ = sampler.sweep(state, data, chain.context)
        if t >= _SWEEPS // 2:
            drawn = sampler.draw(state)
            distance = values - drawn.at(rows, columns)
            variance, degrees = drawn.noise.at(rows, columns), np.array(drawn.noise.degrees)
            terms.append(log_densities(distance, variance, degrees, law))
    density = logsumexp(np.array(terms), axis=0) - math.log(len(terms))
    return float(density.mean())


def _decided(model: TableModel, equal_rows: float, unequal_rows: float) -> TableModel:
    """The model with the noise that the log scores of both prefer, and a note."""
    gain = unequal_rows - equal_rows
    has_row_noise = gain > _CLEAR_GAIN
    what = "differs by row and by column" if has_row_noise else "differs by column"
    note = (
        f"The noise {what}: with row noise the log density of held-out entries is "
        f"{abs(gain):.2g} {'higher' if gain > 0 else 'lower'}."
    )
    noise = model.noise._replace(rows=has_row_noise, columns=True)
    return model._replace(noise=noise, in_doubt=False, notes=(*model.notes, note))
