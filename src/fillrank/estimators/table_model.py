"""What is decided about a table before its fit: the units of its columns, and how its noise differs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fillrank.features.blocks import NO_BLOCKS, Blocks
from fillrank.samplers.feature_steps import WITHOUT_FEATURES, BothFeatures, join_blocks
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.table.observations import Observations
from fillrank.table.units import Units, choose_units, column_units, shared_units

UNITS = ("auto", "table", "columns")
NOISES = ("auto", "one", "rows", "columns", "both")
# The smallest noise that is distinguished if columns have their own units, in standard deviations.
_RESOLUTION = 0.03
# Numbers of entries for which a trial decides on row noise (`noise_trial`), if it is not clear. Fewer
# cannot show a gain; in larger tables row noise is taken without a trial.
_ENTRIES_TO_TRY = (20, 200_000)


class TableModel(NamedTuple):
    """The units of a table's columns, its noise, and notes that say what was chosen and why.

    ``by_column`` is whether columns have their own units; ``in_doubt`` whether row noise is to be
    decided by held-out entries. ``features`` are ``blocks`` as samplers take them.
    """

    units: Units
    by_column: bool
    noise: NoiseModel
    in_doubt: bool = False
    notes: tuple[str, ...] = ()
    blocks: Blocks = NO_BLOCKS
    features: BothFeatures = WITHOUT_FEATURES

    def with_blocks(self, blocks: Blocks, dtype: np.dtype) -> TableModel:
        """The same with these features, in the precision of the sampler."""
        sides = ({block.name: block.values for block in side} for side in blocks)
        features = BothFeatures(*(join_blocks(side, dtype) for side in sides))
        return self._replace(blocks=blocks.astype(dtype), features=features)

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
