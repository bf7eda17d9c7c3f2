"""Model files, layouts 1 to 4: which parts a file has for each method, and what is checked in them.

A file has numbers and labels and nothing that could be executed. Its parts have the names of fitted
attributes. Everything in a file is checked before it is used: kernels do not check positions.

Files are written in layout 4. Layout 3 had numbers only, layout 2 no features of rows and columns, and
layout 1 one noise variance and one unit for all cells.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from reprlib import repr as in_short
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import FillrankError, InputError, NotSupportedError, ReadError
from fillrank.features.blocks import Blocks
from fillrank.kernels.ordinal import Scorer
from fillrank.noise.laws import LAWS, LawName
from fillrank.posterior.levels import (
    FitRows,
    FitRowsByMargin,
    FitRowsVariationally,
    LevelPosterior,
    SampleRows,
)
from fillrank.posterior.low_rank import Axis, LowRankPosterior
from fillrank.posterior.protocol import Posterior
from fillrank.posterior.record import LossName, Record
from fillrank.posterior.stored_features import (
    StoredSide,
    restored_blocks,
    restored_weights,
    stored_side,
)
from fillrank.posterior.stored_kinds import (
    StoredCoding,
    StoredRowCoding,
    StoredType,
    check_types,
    restored_coding,
    restored_posterior,
    restored_types,
    stored_coding,
    stored_types,
)
from fillrank.posterior.validation import (
    check_history,
    check_ordinal,
    check_posterior,
    check_summary,
    check_traces,
)
from fillrank.run.recorder import Traces
from fillrank.samplers.feature_steps import share_name
from fillrank.samplers.model import Draw, Noise
from fillrank.solvers.fit import PathPoint
from fillrank.storage.array_file import VERSION, Content, read, write
from fillrank.storage.serialization import Labels, pack, unpack_all
from fillrank.table.entries import compact_floats
from fillrank.table.frames import Origin
from fillrank.table.labels import check_unique
from fillrank.table.latent import Coding
from fillrank.table.observations import Observations
from fillrank.table.units import Units
from fillrank.validation import check_choice, check_integer
from fillrank.version import __version__

_KIND = "model"
# A file must not request more threads than any machine has.
_MOST_THREADS = 1024
# Below this the losses of a table of any size exceed double precision.
SMALLEST_MARGIN_PENALTY = 1e-4
_Field = str | int | float | bool | None
# The first layout that knows kinds of values.
_FIRST_WITH_KINDS = 4


class ModelParts(NamedTuple):
    """What a file has of a completed table."""

    method: str
    settings: Mapping[str, Any]
    observations: Observations
    posterior: Posterior
    record: Record
    feature_names: np.ndarray | None
    folded_in: tuple[Axis, ...]


class _Entries(NamedTuple):
    """The entries that were fitted."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray


class _WeightedEntries(NamedTuple):
    """The entries that were fitted, with weights. Files of entries without weights do not change."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray
    weights: np.ndarray


class _MixedEntries(NamedTuple):
    """The entries that were fitted, of which some are known to be in an interval (k, 2)."""

    row_index: np.ndarray
    column_index: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    cells: np.ndarray
    intervals: np.ndarray


class _Table(NamedTuple):
    """The table that was fitted: its labels and layout, and its entries on request."""

    row_labels: Labels
    column_labels: Labels
    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Literal["pandas", "polars", "pyarrow", "modin", "cudf"] | None
    row_field: _Field
    column_field: _Field
    value_field: _Field
    rows_in_index: bool
    entries: _Entries | _WeightedEntries | _MixedEntries | None
    column_types: list[StoredType] | None


class _Table3(NamedTuple):
    """The same in layouts up to 3."""

    row_labels: Labels
    column_labels: Labels
    layout: Literal["long", "wide", "matrix", "sparse", "triplets"]
    backend: Literal["pandas", "polars", "pyarrow", "modin", "cudf"] | None
    row_field: _Field
    column_field: _Field
    value_field: _Field
    rows_in_index: bool
    entries: _Entries | _WeightedEntries | None


class _StoredNoise(NamedTuple):
    """The noise of a draw; None for precisions that are all 1."""

    variance: float
    rows: np.ndarray | None
    columns: np.ndarray | None
    degrees: float


class _StoredDraw(NamedTuple):
    left: np.ndarray
    right: np.ndarray
    noise: _StoredNoise


class _LowRank(NamedTuple):
    """The posterior of a low-rank signal, and the kinds of values if they are not all numbers."""

    draws: list[_StoredDraw]
    units: Units
    mean: _StoredDraw
    row_features: StoredSide | None
    column_features: StoredSide | None
    coding: StoredCoding | StoredRowCoding | None


class _LowRank3(NamedTuple):
    """The same in layout 3."""

    draws: list[_StoredDraw]
    units: Units
    mean: _StoredDraw
    row_features: StoredSide | None
    column_features: StoredSide | None


class _LowRank2(NamedTuple):
    """The posterior of a method that predicts numbers, in layout 2."""

    draws: list[_StoredDraw]
    units: Units
    mean: _StoredDraw


class _Draw1(NamedTuple):
    """A draw in layout 1."""

    left: np.ndarray
    right: np.ndarray
    noise_variance: float


class _Units1(NamedTuple):
    """Units in layout 1."""

    location: float
    scale: float
    value_range: tuple[float, float] | None


class _LowRank1(NamedTuple):
    """The posterior of a method that predicts numbers, in layout 1."""

    draws: list[_Draw1]
    units: _Units1
    mean: _Draw1


class _Levels(NamedTuple):
    """The posterior of a method that predicts levels."""

    scorers: list[Scorer]
    levels: np.ndarray


class _Layout(NamedTuple):
    """The parts of a method's files with their types, those that must be there, and the settings."""

    parts: dict[str, Any]
    required: set[str]
    settings: set[str]


_COMMON: dict[str, Any] = {
    "n_features_in_": int,
    "feature_names_in_": Labels,
    "folded_in_": list[Literal["rows", "columns"]],
}
_REQUIRED = {"history_", "n_features_in_", "posterior_", "rank_", "stop_reason_"}
_SAMPLER_PARTS: dict[str, Any] = _COMMON | {
    "posterior_": _LowRank,
    "rank_": int,
    "rank_probabilities_": dict[int, float],
    "noise_variance_": float,
    "row_noise_": np.ndarray,
    "column_noise_": np.ndarray,
    "singular_values_": np.ndarray,
    "history_": dict[str, np.ndarray],
    "n_sweeps_": int,
    "stop_reason_": str,
    "interrupted_": bool,
    "reached_limit_": bool,
    "traces_": Traces,
    "units_": Literal["table", "columns"],
    "noise_": Literal["one", "rows", "columns", "both"],
    "notes_": list[str],
    "likelihood_": LawName,
}
# New rows have no run, files of layout 1 have less, and Gaussian noise is not named.
_SAMPLER_OPTIONAL = {
    "traces_", "reached_limit_", "row_noise_", "column_noise_", "units_", "noise_", "notes_",
    "likelihood_",
}  # fmt: skip
_SAMPLER_REQUIRED = _REQUIRED | (_SAMPLER_PARTS.keys() - _COMMON.keys() - _SAMPLER_OPTIONAL)
_SOLVER_PARTS: dict[str, Any] = _COMMON | {
    "posterior_": _LowRank,
    "penalty_": float,
    "beta_": float,
    "path_": list[PathPoint],
    "rank_": int,
    "singular_values_": np.ndarray,
    "noise_variance_": float,
    "history_": dict[str, np.ndarray],
    "violation_": float,
    "converged_": bool,
    "stop_reason_": str,
}
_MARGIN_PARTS: dict[str, Any] = _COMMON | {
    "posterior_": _Levels,
    "levels_": np.ndarray,
    "penalty_": float,
    "path_": list[PathPoint],
    "rank_": int,
    "history_": dict[str, np.ndarray],
    "converged_": bool,
    "stop_reason_": str,
}
_MARGIN_REQUIRED = _REQUIRED | {"levels_", "penalty_"}

# Settings that have another name in files, which it stays.
_NAMES_IN_FILES = {"keep_empty_features": "keep_empty"}
_SHARED_SETTINGS = {"max_rank", "n_threads", "progress", "random_state"}
_RUN_SETTINGS = _SHARED_SETTINGS | {
    "burn_in", "dtype", "keep_empty", "missingness", "n_chains", "n_sweeps", "noise", "robust", "start",
    "units", "value_range", "likelihood", "round", "thresholds",
}  # fmt: skip
_SOLVER_SETTINGS = _SHARED_SETTINGS | {
    "effects", "max_iterations", "penalty", "tolerance", "value_range",
}  # fmt: skip
_MARGIN_SETTINGS = _SHARED_SETTINGS | {"levels", "max_iterations", "penalty", "tolerance"}

_LAYOUTS = {
    "BPMF": _Layout(
        _SAMPLER_PARTS,
        _SAMPLER_REQUIRED,
        _RUN_SETTINGS | {"inverse_scale", "noise_precision", "row_draws"},
    ),
    "GASR": _Layout(
        _SAMPLER_PARTS, _SAMPLER_REQUIRED, _RUN_SETTINGS | {"centres", "effects", "sampler"}
    ),
    "HASI": _Layout(_SOLVER_PARTS, _REQUIRED, _SOLVER_SETTINGS | {"beta"}),
    "IPM3F": _Layout(
        _MARGIN_PARTS
        | {"n_sweeps_": int, "interrupted_": bool, "traces_": Traces, "sticks_": np.ndarray},
        _MARGIN_REQUIRED,
        _MARGIN_SETTINGS | {"burn_in", "inference", "n_sweeps"},
    ),
    "M3F": _Layout(
        _MARGIN_PARTS | {"singular_values_": np.ndarray, "violation_": float},
        _MARGIN_REQUIRED,
        _MARGIN_SETTINGS,
    ),
    "RelaxedSpectral": _Layout(_SOLVER_PARTS, _REQUIRED, _SOLVER_SETTINGS | {"beta", "form"}),
    "SoftImpute": _Layout(
        _SOLVER_PARTS | {"likelihood_": LossName},
        _REQUIRED,
        _SOLVER_SETTINGS | {"likelihood"},
    ),
    "SoftImputeALS": _Layout(_SOLVER_PARTS, _REQUIRED, _SOLVER_SETTINGS),
}
METHODS = tuple(_LAYOUTS)


def write_model(path: str | os.PathLike[str], model: ModelParts, with_data: bool) -> None:
    """Write a file. An existing one is replaced when the new one is complete."""
    if model.method not in _LAYOUTS:
        raise NotSupportedError(
            f"models of {', '.join(METHODS)} can be saved; got one of {model.method}, which nobody "
            "could load. Use pickle for your own methods."
        )
    names = _LAYOUTS[model.method].parts
    fitted = {
        "n_features_in_": model.observations.shape[1],
        "feature_names_in_": model.feature_names,
        "folded_in_": [*model.folded_in] or None,
        "posterior_": _posterior_part(model.posterior),
        "levels_": model.posterior.levels,
    } | model.record.fitted_attributes()
    parts = {name: fitted[name] for name in names if fitted.get(name) is not None} | {
        "settings": {
            _NAMES_IN_FILES.get(name, name): _as_json(value)
            for name, value in model.settings.items()
            if _NAMES_IN_FILES.get(name, name) in _LAYOUTS[model.method].settings
        },
        "table": _table_part(model.observations, with_data),
    }
    hint = _parts_type(model.method, parts, VERSION)
    tree, arrays = pack(hint, hint(**parts))
    about = {"method": model.method, "made_by": f"fillrank {__version__}", "parts": tree}
    write(path, Content(_KIND, about, arrays))


def read_model(path: str | os.PathLike[str]) -> ModelParts:
    """Read a file. Nothing in it is executed, and parts that do not fit together are refused."""
    content = read(path, _KIND)
    try:
        return _unpack(content)
    except FillrankError as error:
        raise ReadError(f"{Path(path)} cannot be loaded: {error}") from error


def _parts_type(method: str, names: Iterable[str], version: int) -> Any:
    """The type of the parts of these names in a version of the layout."""
    table = _Table if version >= _FIRST_WITH_KINDS else _Table3
    hints = {"settings": dict[str, Any], "table": table} | _LAYOUTS[method].parts
    if hints["posterior_"] is _LowRank:
        older = {1: _LowRank1, 2: _LowRank2, 3: _LowRank3}
        hints["posterior_"] = older.get(version, _LowRank)
    if unknown := set(names) - hints.keys():
        raise ReadError(f"{method} has no such parts: {in_short(sorted(unknown))}.")
    return NamedTuple("Parts", [(name, hints[name]) for name in names])


def _as_json(value: Any) -> Any:
    """A setting as JSON can hold it; a source of random numbers is not stored."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    if np.ndim(value) > 0:
        return np.asarray(value).tolist()
    return value.item() if isinstance(value, np.generic) else value


def _posterior_part(posterior: Posterior) -> _LowRank | _Levels:
    if posterior.levels is not None:
        return _Levels([*posterior.scorers], posterior.levels)
    signal, coding = posterior.signal.low_rank, posterior.signal.coding
    draws, blocks = signal.draws, signal.blocks
    return _LowRank(
        [_stored_draw(draw) for draw in draws],
        signal.units,
        _stored_draw(signal.mean),
        stored_side(blocks.rows, [draw.row_weights for draw in draws]),
        stored_side(blocks.columns, [draw.column_weights for draw in draws]),
        None if coding is None else stored_coding(coding, draws),
    )


def _stored_draw(draw: Draw) -> _StoredDraw:
    variance, rows, columns, degrees = draw.noise
    noise = _StoredNoise(variance, _unless_ones(rows), _unless_ones(columns), degrees)
    return _StoredDraw(draw.left, draw.right, noise)


def _unless_ones(precisions: np.ndarray) -> np.ndarray | None:
    return None if bool((precisions == 1.0).all()) else precisions


def _table_part(observations: Observations, with_data: bool) -> _Table:
    origin = observations.origin
    entries: _Entries | _WeightedEntries | _MixedEntries | None = None
    if with_data:
        entries = _Entries(observations.row_index, observations.column_index, observations.values)
        if observations.cells is not None and observations.intervals is not None:
            entries = _MixedEntries(
                *entries, observations.weights, observations.cells, observations.intervals
            )
        elif observations.weights is not None:
            entries = _WeightedEntries(*entries, observations.weights)
    return _Table(
        observations.row_labels,
        observations.column_labels,
        origin.layout,
        None if origin.backend is None else origin.backend.value,
        origin.row_field,
        origin.column_field,
        origin.value_field,
        origin.rows_in_index,
        entries,
        stored_types(observations.column_types),
    )


def _unpack(content: Content) -> ModelParts:
    about = content.about
    method, parts = about.get("method"), about.get("parts")
    if not isinstance(method, str) or method not in _LAYOUTS or not isinstance(parts, dict):
        raise ReadError(f"its method must be one of {', '.join(METHODS)}, got {method!r} instead.")
    hint = _parts_type(method, parts, content.version)
    fitted = unpack_all(hint, parts, content.arrays)._asdict()
    settings = _checked_settings(method, fitted.pop("settings", {}))
    observations = _observations_of(fitted.pop("table", None))
    shape = observations.shape
    _check_parts(method, fitted, shape)
    record = _record_of(fitted)
    part = fitted["posterior_"]
    if isinstance(part, _LowRank1):
        part = _updated(part, shape)
    if isinstance(part, _LowRank2):
        part = _LowRank3(*part, row_features=None, column_features=None)
    if isinstance(part, _LowRank3):
        part = _LowRank(*part, coding=None)
    if isinstance(part, _LowRank):
        posterior: Posterior = _signal_of(part, record, observations)
    else:
        posterior = _levels_of(part, _row_fitter(method, settings, record), fitted, shape)
        if record.traces is not None:
            check_traces(record.traces, shape)
    names = fitted.get("feature_names_in_")
    folded_in = tuple(fitted.get("folded_in_", ()))
    return ModelParts(method, settings, observations, posterior, record, names, folded_in)


def _check_parts(method: str, fitted: Mapping[str, Any], shape: tuple[int, int]) -> None:
    if missing := _LAYOUTS[method].required - fitted.keys():
        raise ReadError(f"it lacks {', '.join(sorted(missing))}.")
    if fitted["n_features_in_"] != shape[1]:
        raise ReadError("its number of columns is not that of its table.")
    names = fitted.get("feature_names_in_")
    if names is not None and names.size != shape[1]:
        raise ReadError("its features are not the columns of its table.")
    check_summary(fitted, shape)


def _record_of(fitted: Mapping[str, Any]) -> Record:
    names = {f"{name}_": name for name in Record.__dataclass_fields__}
    names["likelihood_"] = "law" if "n_sweeps_" in fitted else "loss"
    return Record(**{names[name]: value for name, value in fitted.items() if name in names})


def _updated(part: _LowRank1, shape: tuple[int, int]) -> _LowRank2:
    """The posterior of a file in layout 1, as layout 2 has it."""
    draws = [
        _StoredDraw(left, right, _StoredNoise(noise_variance, None, None, math.inf))
        for left, right, noise_variance in (*part.draws, part.mean)
    ]
    location, scale, value_range = part.units
    return _LowRank2(draws[:-1], Units.equal(location, scale, shape[1], value_range), draws[-1])


def _signal_of(part: _LowRank, record: Record, observations: Observations) -> Posterior:
    """The posterior of a signal, or of the kinds of values that follow from it."""
    law = _law_of(record)
    of_levels = record.loss in ("logistic", "ordered")
    if record.n_sweeps is None and of_levels != (part.coding is not None):
        raise ReadError("its likelihood is not that of its values.")
    if part.coding is None:
        if LAWS[law].of_levels:
            raise ReadError(f"its likelihood, {law}, is for two levels, and it has numbers.")
        return _low_rank_of(part, record, observations.shape)
    coding = restored_coding(part.coding, observations.column_labels)
    if law != "gaussian":
        _check_two_levels(coding, law)
    check_types(coding, observations.column_types)
    latent_shape = observations.shape[0], coding.n_latent
    return restored_posterior(_low_rank_of(part, record, latent_shape), part.coding, coding)


def _law_of(record: Record) -> LawName:
    """The distribution of the noise. Solvers have none, but the link of two levels."""
    if record.loss == "logistic":
        return "logistic"
    return record.law or "gaussian"


def _check_two_levels(coding: Coding, law: LawName) -> None:
    """Raise ReadError unless all values are one of the same two levels."""
    has_two_levels = [each.kind for each in coding.scales] == ["yes_no"]
    if not has_two_levels or not LAWS[law].of_levels:
        raise ReadError(f"its likelihood, {law}, is not for its kinds of values.")


def _low_rank_of(part: _LowRank, record: Record, shape: tuple[int, int]) -> LowRankPosterior:
    is_sampled = record.n_sweeps is not None
    sides = part.row_features, part.column_features
    weights = zip(*(restored_weights(side, len(part.draws)) for side in sides), strict=True)
    draws = [
        _restored_draw(draw, shape)._replace(row_weights=row_weights, column_weights=column_weights)
        for draw, (row_weights, column_weights) in zip(part.draws, weights, strict=True)
    ]
    posterior = LowRankPosterior(
        draws,
        part.units,
        _restored_draw(part.mean, shape),
        has_draws=is_sampled,
        blocks=Blocks(*map(restored_blocks, sides)),
        law=_law_of(record),
    )
    check_posterior(posterior, shape)
    if is_sampled:
        _check_sampler(posterior, record, shape)
    elif any(sides):
        raise ReadError("it has features, which no solver takes.")
    return posterior


def _restored_draw(draw: _StoredDraw, shape: tuple[int, int]) -> Draw:
    variance, rows, columns, degrees = draw.noise
    noise = Noise.equal(variance, shape)._replace(degrees=degrees)
    if rows is not None:
        noise = noise._replace(rows=rows)
    if columns is not None:
        noise = noise._replace(columns=columns)
    return Draw(draw.left, draw.right, noise)


def _check_sampler(posterior: LowRankPosterior, record: Record, shape: tuple[int, int]) -> None:
    by_chain = len(check_history(record.history)) == 2
    if not by_chain or min(trace.min() for trace in record.history.values()) < 0:
        raise ReadError("its history is not that of a sampler's variances and scales.")
    if min(draw.noise.variance for draw in posterior.draws) <= 0:
        raise ReadError("its noise variance is 0, which no sampler gives.")
    row_shares = (share_name("row", block.name) for block in posterior.blocks.rows)
    column_shares = (share_name("column", block.name) for block in posterior.blocks.columns)
    if not {*row_shares, *column_shares} <= record.history.keys():
        raise ReadError("its features are not those of its history.")
    if record.traces is not None:
        check_traces(record.traces, shape)
        assert record.singular_values is not None  # a required part
        if record.traces.spectra.shape[2] != record.singular_values.size:
            raise ReadError("its singular values are not those of its draws.")


def _levels_of(
    part: _Levels, fit_rows: FitRows, fitted: Mapping[str, Any], shape: tuple[int, int]
) -> LevelPosterior:
    posterior = LevelPosterior(part.scorers, part.levels, fit_rows)
    check_ordinal(posterior, shape)
    if not np.array_equal(fitted["levels_"], posterior.levels):
        raise ReadError("its levels are not those of its predictions.")
    if not SMALLEST_MARGIN_PENALTY <= fitted["penalty_"] < np.inf:
        raise ReadError(f"its penalty must be at least {SMALLEST_MARGIN_PENALTY:g} and finite.")
    if not fit_rows.is_valid(n_features=posterior.scorers[0].left.shape[1]):
        raise ReadError("its features are not those of its predictions.")
    return posterior


def _row_fitter(method: str, settings: Mapping[str, Any], record: Record) -> FitRows:
    """How new rows are fitted: as the method and its settings say."""
    assert record.penalty is not None  # a required part
    if method == "M3F":
        return FitRowsByMargin(record.penalty)
    check_choice("inference", settings.get("inference"), ("variational", "gibbs"))
    if settings["inference"] == "gibbs":
        max_rank = check_integer("max_rank", settings.get("max_rank"), 1)
        return SampleRows(record.penalty, max_rank)
    sticks = np.zeros(0) if record.sticks is None else record.sticks
    return FitRowsVariationally(record.penalty, sticks)


def _checked_settings(method: str, settings: dict[str, Any]) -> dict[str, Any]:
    if unknown := settings.keys() - _LAYOUTS[method].settings:
        raise ReadError(f"it has settings that are not known: {in_short(sorted(unknown))}.")
    if (n_threads := settings.get("n_threads")) is not None:
        check_integer("n_threads", n_threads, 1, _MOST_THREADS)
    names = {in_file: name for name, in_file in _NAMES_IN_FILES.items()}
    return {names.get(name, name): value for name, value in settings.items()}


def _observations_of(table: _Table | _Table3 | None) -> Observations:
    if table is None:
        raise ReadError("it does not say which table it was fitted on.")
    try:
        check_unique(table.row_labels, "row")
        check_unique(table.column_labels, "column")
    except InputError as error:
        raise ReadError(f"its labels are not valid: {error}") from error
    shape = len(table.row_labels), len(table.column_labels)
    if 0 in shape:
        raise ReadError("its table has no rows, or no columns.")
    none = np.zeros(0, dtype=np.int32)
    entries = table.entries or _Entries(none, none, np.zeros(0))
    if table.entries is not None:
        _check_entries(entries, shape)
    backend = None
    if table.backend is not None and find_spec(table.backend) is not None:
        backend = nw.Implementation.from_string(table.backend)
    origin = Origin(
        table.layout,
        backend,
        table.row_field,
        table.column_field,
        table.value_field,
        table.rows_in_index,
    )
    pointers = np.searchsorted(entries.row_index, np.arange(shape[0] + 1))
    mixed = entries if isinstance(entries, _MixedEntries) else None
    types = None
    if isinstance(table, _Table):
        types = restored_types(table.column_types, shape[1])
    return Observations(
        pointers,
        entries.column_index,
        compact_floats(entries.values),
        table.row_labels,
        table.column_labels,
        origin,
        weights=None if isinstance(entries, _Entries) else entries.weights,
        column_types=types,
        cells=None if mixed is None else mixed.cells,
        intervals=None if mixed is None else mixed.intervals,
    )


def _check_entries(
    entries: _Entries | _WeightedEntries | _MixedEntries, shape: tuple[int, int]
) -> None:
    """Entries as Observations have them: within the table, in order, each cell once."""
    i, j, values = entries.row_index, entries.column_index, entries.values
    valid = (
        i.dtype == j.dtype == np.int32
        and values.dtype == np.float64
        and i.ndim == 1
        and i.shape == j.shape == values.shape
        and i.size > 0
        and np.isfinite(values).all()
        and all((k >= 0).all() and (k < n).all() for k, n in zip((i, j), shape, strict=True))
        and (np.diff(i.astype(np.int64) * shape[1] + j) > 0).all()
    )
    if not valid:
        raise ReadError("its entries are not those of a table of its size.")
    if isinstance(entries, _MixedEntries):
        _check_intervals(entries)
    weights = None if isinstance(entries, _Entries) else entries.weights
    if weights is not None:
        is_known = weights.dtype == np.float64 and weights.shape == values.shape
        if not is_known or not (np.isfinite(weights) & (weights > 0)).all():
            raise ReadError("its weights must be finite and above 0, one for each entry.")


def _check_intervals(entries: _MixedEntries) -> None:
    """Numbers of intervals that are there, with a lower and an upper end."""
    cells, intervals = entries.cells, entries.intervals
    is_valid = (
        cells.dtype == np.int32
        and cells.shape == entries.values.shape
        and intervals.dtype == np.float64
        and intervals.ndim == 2
        and intervals.shape[1] == 2
        and bool(((cells >= -1) & (cells < len(intervals))).all())
        and bool((intervals[:, 0] < intervals[:, 1]).all())
    )
    if not is_valid:
        raise ReadError("its intervals of values are not valid.")
