"""What is decided about a table before its fit: the units of its columns, and how its noise differs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from fillrank.posterior.low_rank import log_densities
from fillrank.run.chains import Chain, Sampler
from fillrank.samplers.model import Data
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.table.entries import Entries, transpose
from fillrank.table.observations import Observations
from fillrank.table.units import Units, choose_units, column_units, shared_units

UNITS = ("auto", "table", "columns")
NOISES = ("auto", "one", "rows", "columns", "both")
# The smallest noise that is distinguished if columns have their own units, in standard deviations.
_RESOLUTION = 0.03
# Where it is not clear whether the noise differs by row, both are tried on a share of the entries, with
# so many sweeps, of which the second half counts. Row noise must gain so much of the mean log density:
# its gain is in some rows, and its loss in the squared error of others.
_HELD_OUT, _TRIAL_SWEEPS, _CLEAR_GAIN = 0.1, 150, 0.05
# Fewer entries cannot show such a gain. In larger tables row noise is taken without a trial.
_ENTRIES_TO_TRY = (20, 200_000)


class TableModel(NamedTuple):
    """The units of a table's columns, its noise, and notes that say what was chosen and why.

    ``by_column`` is whether columns have their own units; ``in_doubt`` whether row noise is to be
    decided by held-out entries.
    """

    units: Units
    by_column: bool
    noise: NoiseModel
    in_doubt: bool = False
    notes: tuple[str, ...] = ()

    @property
    def noise_name(self) -> str:
        """The setting of ``noise`` that gives the same."""
        names = {(False, False): "one", (True, False): "rows", (False, True): "columns"}
        return names.get((self.noise.rows, self.noise.columns), "both")

    @property
    def units_name(self) -> str:
        """The setting of ``units`` that gives the same."""
        return "columns" if self.by_column else "table"


class Choices(NamedTuple):
    """The settings of an estimator that a `TableModel` depends on."""

    units: str
    noise: str
    robust: bool
    centred: bool
    keep_empty: bool
    value_range: tuple[float, float] | None


def table_model(observations: Observations, choices: Choices) -> TableModel:
    """Decide on units and noise by the table alone."""
    by_column, reason = choices.units == "columns", ""
    if choices.units == "auto":
        by_column, reason = choose_units(observations)
    if by_column:
        units = column_units(observations, choices.value_range, choices.keep_empty)
    else:
        units = shared_units(observations, choices.centred, choices.value_range)
    is_wide = observations.origin.layout in ("wide", "matrix")
    is_auto = choices.noise == "auto"
    fewest, most = _ENTRIES_TO_TRY
    n_entries, may_doubt = len(observations), is_auto and is_wide and not by_column
    in_doubt = may_doubt and fewest <= n_entries <= most
    has_equal_rows = by_column or (may_doubt and n_entries < fewest)
    name = ("columns" if has_equal_rows else "both") if is_auto else choices.noise
    noise = NoiseModel(
        rows=name in ("rows", "both"),
        columns=name in ("columns", "both"),
        robust=choices.robust,
        resolution=_RESOLUTION if by_column else 0.0,
    )
    notes = [_units_note(by_column, reason)] if reason else []
    notes += _column_notes(observations, units) if by_column else []
    return TableModel(units, by_column, noise, in_doubt, tuple(notes))


def remote_table_model(units: Units, choices: Choices) -> TableModel:
    """The same for a table on a cluster, whose columns share one unit."""
    name = "both" if choices.noise == "auto" else choices.noise
    noise = NoiseModel(name in ("rows", "both"), name in ("columns", "both"), choices.robust)
    return TableModel(units, False, noise)


def _units_note(by_column: bool, reason: str) -> str:
    what = "Each column has its own unit" if by_column else "All columns have one unit"
    return f"{what}: {reason}."


def _column_notes(observations: Observations, units: Units) -> list[str]:
    """Notes on columns without values, and on constant ones."""
    counts = np.bincount(observations.column_index, minlength=observations.shape[1])
    first = np.full(counts.size, np.nan)
    first[observations.column_index] = observations.values
    labels, notes = observations.column_labels, []
    empty = labels[counts == 0]
    if empty.size:
        filled = "filled with 0" if np.isfinite(units.location).all() else "left empty"
        notes.append(f"Columns without any value are {filled}: {_listed(empty)}.")
    is_constant = (counts > 0) & (units.scale <= 1e-11 * np.abs(units.location))
    is_constant |= (counts > 0) & (units.scale < 1e-150)
    if is_constant.any():
        notes.append(
            f"Constant columns are filled with their constant: {_listed(labels[is_constant])}."
        )
    return notes


def _listed(labels: np.ndarray, most: int = 5) -> str:
    shown = ", ".join(str(label) for label in labels[:most])
    return shown if labels.size <= most else f"{shown} and {labels.size - most} more"


# Row noise by held-out entries


def hold_out(data: Data, seed: int) -> tuple[Data, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(the data without some entries, (rows, columns, values) of these)."""
    entries, n_columns = data.rows, data.shape[1]
    n_held = max(1, round(_HELD_OUT * entries.n_entries))
    chosen = np.zeros(entries.n_entries, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(entries.n_entries)[:n_held]] = True
    row_of = np.repeat(np.arange(data.shape[0]), np.diff(entries.pointers))
    held = row_of[chosen], entries.indices[chosen], entries.values[chosen].astype(np.float64)
    pointers = np.searchsorted(row_of[~chosen], np.arange(data.shape[0] + 1))
    weights = entries.weights[~chosen] if entries.weights.size else entries.weights
    rows = Entries(pointers, entries.indices[~chosen], entries.values[~chosen], weights)
    return Data(rows, transpose(rows, n_columns)), held


def log_score(
    chain: Chain, sampler: Sampler, data: Any, held: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> float:
    """The mean log predictive density of held-out entries, from a short run of a chain."""
    rows, columns, values = held
    state, terms = chain.state, []
    for t in range(_TRIAL_SWEEPS):
        state, _ = sampler.sweep(state, data, chain.context)
        if t >= _TRIAL_SWEEPS // 2:
            drawn = sampler.draw(state)
            distance = values - drawn.at(rows, columns)
            variance, degrees = drawn.noise.at(rows, columns), np.array(drawn.noise.degrees)
            terms.append(log_densities(distance, variance, degrees))
    density = logsumexp(np.array(terms), axis=0) - math.log(len(terms))
    return float(density.mean())


def decide_row_noise(model: TableModel, equal_rows: float, unequal_rows: float) -> TableModel:
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
