"""What is decided about a table before its fit: the units of its columns, and how its noise differs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.features.blocks import NO_BLOCKS, Blocks
from fillrank.features.latent_columns import latent_blocks
from fillrank.noise.laws import LAWS, LawName
from fillrank.samplers.feature_steps import WITHOUT_FEATURES, BothFeatures, join_blocks
from fillrank.samplers.noise_steps import NoiseModel
from fillrank.samplers.threshold_steps import NO_INTERVALS, Intervals
from fillrank.table.column_types import coded_columns
from fillrank.table.kinds import LEVEL_KINDS, ColumnKind, choose_kinds
from fillrank.table.latent import Coding, checked_bounds, code_ratings, code_table, code_two_levels
from fillrank.table.observations import Observations
from fillrank.table.units import Units, choose_units, column_units, shared_units

UNITS = ("auto", "table", "columns")
NOISES = ("auto", "one", "rows", "columns", "both")
Likelihood = Literal["auto", "gaussian", "ordered", "laplace", "logistic", "hinge"]
LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)
THRESHOLDS = ("auto", "table", "rows")
# The smallest noise that is distinguished if columns have their own units, in standard deviations.
_RESOLUTION = 0.03
# Numbers of entries for which a trial decides on row noise (`noise_trial`), if it is not clear. Fewer
# cannot show a gain; in larger tables row noise is taken without a trial.
_ENTRIES_TO_TRY = (20, 200_000)


class TableModel(NamedTuple):
    """The units of a table's columns, its noise, and notes that say what was chosen and why.

    ``by_column`` is whether columns have their own units; ``in_doubt`` whether row noise is to be
    decided by held-out entries. ``features`` are ``blocks`` as samplers take them. If a table has other
    values than numbers, ``coding`` says how they become the latent numbers that samplers work with, and
    ``has_row_thresholds`` whether the thresholds between levels differ by row.
    """

    units: Units
    by_column: bool
    noise: NoiseModel
    in_doubt: bool = False
    notes: tuple[str, ...] = ()
    blocks: Blocks = NO_BLOCKS
    features: BothFeatures = WITHOUT_FEATURES
    coding: Coding | None = None
    has_row_thresholds: bool = False

    def latent_shape(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The shape of the latent table, for a table of this shape."""
        return shape if self.coding is None else (shape[0], self.coding.n_latent)

    @property
    def intervals(self) -> Intervals:
        """The intervals of values at the start of a chain."""
        if self.coding is None:
            return NO_INTERVALS
        scales = self.coding.drawn_scales()
        return Intervals(self.coding.limits, scales, by_row=self.has_row_thresholds)

    def with_blocks(self, blocks: Blocks, dtype: np.dtype) -> TableModel:
        """The same with these features, in the precision of the sampler."""
        if self.coding is not None:
            blocks = latent_blocks(blocks, self.coding)
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
    kinds: Any = "auto"
    likelihood: str = "gaussian"
    bounds: Any = None
    thresholds: str = "auto"


def law_of(likelihood: str) -> LawName:
    """The law of the noise of an entry; that of "auto" and "ordered" is Gaussian."""
    return next((name for name in LAWS if name == likelihood), "gaussian")


def table_model(observations: Observations, choices: Choices) -> TableModel:
    """Decide on kinds of values, units and noise by the table alone."""
    if choices.likelihood == "ordered":
        return ratings_model(code_ratings(observations), choices)
    law = law_of(choices.likelihood)
    if LAWS[law].of_levels:
        return _model_of_two_levels(observations, choices, law)
    kinds = _kinds(observations, choices)
    bounds = checked_bounds(observations, choices.bounds)
    if _are_numbers(kinds, observations) and not bounds:
        return _model_of_numbers(observations, choices)
    if law != "gaussian":
        raise InputError(
            "it is for exact numbers without bounds; this table has "
            + ("bounds" if bounds else "limits or intervals"),
            place=Setting("likelihood", law),
            advice=("Use ", Setting("likelihood", "auto"), ", or leave them out."),
        )
    _check_robust(choices)
    _check_bounds(kinds, bounds, observations)
    if choices.value_range is not None:
        numbers = (j for j, each in enumerate(kinds) if each.kind not in LEVEL_KINDS)
        bounds = dict.fromkeys(numbers, choices.value_range) | bounds
    coding = code_table(observations, kinds, bounds)
    noise = _noise_of_kinds(coding, "columns" if choices.noise == "auto" else choices.noise)
    noise = noise._replace(resolution=_RESOLUTION)
    units = Units.equal(0.0, 1.0, coding.n_latent, None)
    if choices.keep_empty:
        coding = coding.with_empty_at_zero()
    notes = (*_kind_notes(observations, kinds), *_empty_notes(observations, coding))
    return TableModel(units, True, noise, notes=notes, coding=coding)


def ratings_model(coding: Coding, choices: Choices) -> TableModel:
    """The model of a table whose values are levels of one scale."""
    _check_robust(choices)
    if choices.bounds:
        raise InputError(
            "bounds are for numbers; the values of this table are levels", place=Setting("bounds")
        )
    by_row = _has_row_thresholds(coding, choices)
    name = choices.noise
    if name == "auto":
        # Thresholds of rows say how consistently people rate; row noise in addition predicts worse.
        name = "columns" if by_row else "both"
    units, noise = Units.equal(0.0, 1.0, coding.n_latent, None), _noise_of_kinds(coding, name)
    return TableModel(units, False, noise, coding=coding, has_row_thresholds=by_row)


def _noise_of_kinds(coding: Coding, name: str) -> NoiseModel:
    """The noise of latent numbers, for a setting of ``noise`` other than "auto"."""
    fixed = coding.fixed_columns()
    return NoiseModel(
        rows=name in ("rows", "both"),
        columns=name in ("columns", "both") or fixed.size > 0,
        fixed=fixed,
    )


def _check_robust(choices: Choices) -> None:
    if choices.robust:
        raise InputError(
            "robust noise is for tables of numbers; this one has other kinds of values",
            advice=("Leave out ", Setting("robust"), "."),
        )


def _has_row_thresholds(coding: Coding, choices: Choices) -> bool:
    """Whether thresholds differ by row: those of one scale of at least three levels do by default."""
    is_possible = coding.scales[0].levels.size > 2
    if choices.thresholds == "rows" and not is_possible:
        raise InputError(
            "thresholds by row are for ratings of at least three levels; this table has two",
            place=Setting("thresholds"),
        )
    return is_possible and choices.thresholds != "table"


def _model_of_two_levels(observations: Observations, choices: Choices, law: LawName) -> TableModel:
    """All values of a table are one of two levels, with noise of a given scale."""
    kinds = [ColumnKind("yes_no", _two_levels(observations, law))] * observations.shape[1]
    _check_bounds(kinds, checked_bounds(observations, choices.bounds), observations)
    coding = code_two_levels(observations, kinds[0].levels, LAWS[law].quantile)
    units = Units.equal(0.0, 1.0, coding.n_latent, None)
    return TableModel(units, False, NoiseModel(law=law), coding=coding)


def _two_levels(observations: Observations, law: LawName) -> np.ndarray:
    """The two levels of a table; codes, if columns are text or booleans."""
    types = observations.column_types or ()
    is_coded = coded_columns(types)
    levels = np.unique(observations.values).astype(np.float64)
    names = {each.levels for each in types}
    if is_coded is not None and is_coded.all() and len(names) == 1:
        levels = np.arange(float(len(names.pop())))
    elif is_coded is not None:
        levels = np.zeros(0)
    if observations.cells is not None or levels.size != 2:
        found = f"{levels.size} different values" if levels.size else "columns of different values"
        raise InputError(
            f"all values of the table must be one of the same two, such as 0 and 1; got {found}",
            place=Setting("likelihood", law),
            advice=("Use ", Setting("likelihood", "auto"), " for other values."),
        )
    return levels


def _empty_notes(observations: Observations, coding: Coding) -> list[str]:
    """A note on columns without values."""
    empty = [j for j in range(coding.scale_of.size) if np.isnan(coding.scale(j).location)]
    if not empty:
        return []
    labels = observations.column_labels[empty]
    return [f"Columns without any value are left empty: {_listed(labels)}."]


def _check_bounds(
    kinds: list[ColumnKind], bounds: dict[int, tuple[float, float]], observations: Observations
) -> None:
    """Reject bounds of columns whose values are levels."""
    wrong = [j for j in bounds if kinds[j].kind in LEVEL_KINDS]
    if wrong:
        raise InputError(
            f"bounds are for numbers; the values of column {observations.column_labels[wrong[0]]!r} are "
            "levels",
            place=Setting("bounds"),
        )


def _kinds(observations: Observations, choices: Choices) -> list[ColumnKind]:
    """The kind of every column."""
    n = observations.shape[1]
    if choices.likelihood in LAWS:
        if observations.column_types is None:
            return [ColumnKind("number")] * n
        return choose_kinds(observations, dict.fromkeys(observations.column_labels, "number"))
    if choices.units == "table" and isinstance(choices.kinds, str) and is_plain(observations):
        return [ColumnKind("number")] * n
    return choose_kinds(observations, choices.kinds)


def is_plain(observations: Observations) -> bool:
    """Whether all values are exact numbers."""
    return observations.cells is None and coded_columns(observations.column_types) is None


def _are_numbers(kinds: list[ColumnKind], observations: Observations) -> bool:
    return observations.cells is None and all(each.kind == "number" for each in kinds)


def _kind_notes(observations: Observations, kinds: list[ColumnKind]) -> tuple[str, ...]:
    """The kind of each column, a sentence for each kind."""
    labels = observations.column_labels
    notes = []
    for kind, what in _KIND_NAMES.items():
        mine = [j for j, each in enumerate(kinds) if each.kind == kind]
        if mine and kind != "number":
            reasons = {kinds[j].reason for j in mine}
            why = f" ({reasons.pop()})" if len(reasons) == 1 and len(mine) == 1 else ""
            notes.append(f"Columns of {what}: {_listed(labels[mine])}{why}.")
    return tuple(notes)


_KIND_NAMES = {
    "number": "numbers",
    "positive": "positive numbers, on the logarithmic scale",
    "ordered": "ordered levels",
    "yes_no": "two values",
    "count": "counts",
    "category": "categories",
}


def _model_of_numbers(observations: Observations, choices: Choices) -> TableModel:
    """Decide on units and noise of a table of numbers."""
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
        law=law_of(choices.likelihood),
    )
    notes = [_units_note(by_column, reason)] if reason else []
    notes += _column_notes(observations, units) if by_column else []
    return TableModel(units, by_column, noise, in_doubt, tuple(notes))


def remote_table_model(units: Units, choices: Choices) -> TableModel:
    """The same for a table of numbers on a cluster, whose columns share one unit."""
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
