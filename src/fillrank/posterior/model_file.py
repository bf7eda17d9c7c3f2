"""Model files, layouts 1 to 4: which parts a file has for each method, and what is checked in them.

A file has numbers and labels and nothing that could be executed. Its parts have the names of fitted
attributes. Everything in a file is checked before it is used: kernels do not check positions.

Files are written in layout 4. Layout 3 had numbers only, layout 2 no features of rows and columns, and
layout 1 one noise variance and one unit for all cells.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as in_short
from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import FillrankError, NotSupportedError, ReadError
from fillrank.features.new_rows import Axis
from fillrank.kernels.ordinal import Scorer
from fillrank.noise.laws import LawName
from fillrank.posterior.levels import (
    FitRows,
    FitRowsByMargin,
    FitRowsVariationally,
    LevelPosterior,
    SampleRows,
)
from fillrank.posterior.protocol import Posterior
from fillrank.posterior.record import LossName, Record
from fillrank.posterior.stored_low_rank import (
    OLDER_LOW_RANK,
    StoredLowRank,
    restored_signal,
    stored_low_rank,
)
from fillrank.posterior.stored_table import (
    StoredTable,
    StoredTable3,
    restored_table,
    stored_table,
)
from fillrank.posterior.validation import check_ordinal, check_summary, check_traces
from fillrank.run.recorder import Traces
from fillrank.solvers.fit import PathPoint
from fillrank.storage.array_file import VERSION, Content, read, write
from fillrank.storage.serialization import Labels, pack, unpack_all
from fillrank.table.observations import Observations
from fillrank.validation import check_choice, check_integer
from fillrank.version import __version__

_KIND = "model"
# A file must not request more threads than any machine has.
_MOST_THREADS = 1024
# Below this the losses of a table of any size exceed double precision.
SMALLEST_MARGIN_PENALTY = 1e-4
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
    "posterior_": StoredLowRank,
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
    "posterior_": StoredLowRank,
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
        "table": stored_table(model.observations, with_data),
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
    table = StoredTable if version >= _FIRST_WITH_KINDS else StoredTable3
    hints = {"settings": dict[str, Any], "table": table} | _LAYOUTS[method].parts
    if hints["posterior_"] is StoredLowRank:
        hints["posterior_"] = OLDER_LOW_RANK.get(version, StoredLowRank)
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


def _posterior_part(posterior: Posterior) -> StoredLowRank | _Levels:
    if posterior.levels is not None:
        return _Levels([*posterior.scorers], posterior.levels)
    return stored_low_rank(posterior.signal)


def _unpack(content: Content) -> ModelParts:
    about = content.about
    method, parts = about.get("method"), about.get("parts")
    if not isinstance(method, str) or method not in _LAYOUTS or not isinstance(parts, dict):
        raise ReadError(f"its method must be one of {', '.join(METHODS)}, got {method!r} instead.")
    hint = _parts_type(method, parts, content.version)
    fitted = unpack_all(hint, parts, content.arrays)._asdict()
    settings = _checked_settings(method, fitted.pop("settings", {}))
    observations = restored_table(fitted.pop("table", None))
    shape = observations.shape
    _check_parts(method, fitted, shape)
    record = _record_of(fitted)
    part = fitted["posterior_"]
    if isinstance(part, _Levels):
        posterior: Posterior = _levels_of(
            part, _row_fitter(method, settings, record), fitted, shape
        )
        if record.traces is not None:
            check_traces(record.traces, shape)
    else:
        posterior = restored_signal(part, record, observations)
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
