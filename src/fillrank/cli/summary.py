"""What came out, in words for the terminal and as JSON for programs."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank import __version__
from fillrank.cli.messages import Lines
from fillrank.cli.tables import is_written_wide
from fillrank.data.observations import Observations

if TYPE_CHECKING:
    from fillrank.cli.job import Job
    from fillrank.estimators.gasr import GASR
    from fillrank.posterior.diagnostics import Diagnostics

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
_NUMBER = 12  # characters of a prediction with what parts it from the next one


class Hidden(NamedTuple):
    """How well hidden entries were predicted; ``spread`` is their own standard deviation."""

    entries: int
    rmse: float
    mae: float
    coverage: float
    level: float
    spread: float


def of_table(data: Observations) -> str:
    """Say what was read, and how it was understood."""
    n_rows, n_columns = data.shape
    low, high = _ends(data)
    text = (
        f"{n_rows:,} rows x {n_columns:,} columns, {data.n_entries:,} entries "
        f"({100 * data.density:.3g}% of the cells), values {low:g} to {high:g}; {_layout(data)}."
    )
    if (scale := data.value_range()) is not None:
        text += f" The values are taken for ratings from {scale[0]:g} to {scale[1]:g}."
    return text


def _ends(data: Observations) -> tuple[float, float]:
    # Adding 0 turns -0 into 0, which is what a reader expects to see.
    return float(data.values.min()) + 0.0, float(data.values.max()) + 0.0


def _layout(data: Observations) -> str:
    origin = data.origin
    if origin.layout == "long":
        if origin.row_field is None:
            return "a long table, with a line for each entry"
        row, column, value = map(repr, origin[2:5])
        return f"a long table, with rows from {row}, columns from {column}, values from {value}"
    if origin.layout == "wide":
        return "a wide table, with a cell for each entry"
    return {"matrix": "a matrix", "sparse": "a sparse matrix"}.get(origin.layout, "triplets")


def size_of_results(data: Observations, with_intervals: bool) -> int:
    """About how many bytes the completed tables take."""
    n_cells = math.prod(data.shape)
    n_missing = n_cells - data.n_entries
    names = sum(_usual_length(labels) for labels in (data.row_labels, data.column_labels))
    filled = n_cells * _NUMBER if is_written_wide(data) else n_missing * (names + _NUMBER)
    return filled + (n_missing * (names + 3 * _NUMBER) if with_intervals else 0)


def _usual_length(labels: np.ndarray) -> int:
    some = labels[:: max(1, len(labels) // 1000)]
    return 1 + round(sum(len(str(name)) for name in some) / len(some))


def in_words(model: GASR, hidden: Hidden | None, diagnostics: Diagnostics) -> Lines:
    """The results as (what, text)."""
    probability = model.rank_probabilities_[model.rank_]
    lines = [
        ("Rank", f"{model.rank_} (probability {100 * probability:.0f}%)"),
        ("Noise level", f"{math.sqrt(model.noise_variance_):.3g} (standard deviation)"),
    ]
    if hidden is not None:
        lines += [
            (
                "Error",
                f"RMSE {hidden.rmse:.4g}, MAE {hidden.mae:.4g} on {hidden.entries:,} hidden "
                f"entries, whose standard deviation is {hidden.spread:.4g}",
            ),
            (
                "Coverage",
                f"{100 * hidden.coverage:.1f}% of the hidden entries are within their "
                f"{100 * hidden.level:g}% intervals",
            ),
        ]
    return [
        *lines,
        ("Stopped", model.stop_reason_),
        ("Converged", _verdict(diagnostics)),
    ]


def _verdict(found: Diagnostics) -> str:
    rhat, ess = found.rhat["prediction (median)"], found.ess["prediction (median)"]
    if not math.isfinite(rhat):
        return f"too few draws to tell ({found.n_draws}); give more --sweeps"
    figures = f"R-hat {rhat:.2f}, {ess:.0f} effective draws for the typical prediction"
    return f"yes ({figures})" if found.converged else f"not yet ({figures}); give more --sweeps"


def write(
    path: Path, job: Job, model: GASR, hidden: Hidden | None, diagnostics: Diagnostics
) -> None:
    """Write settings, versions and figures."""
    content = {
        "table": _table(job, model.observations_),
        "settings": _settings(job),
        "versions": _versions(),
        "results": _results(model, diagnostics),
        "hidden_entries": None if hidden is None else hidden._asdict(),
    }
    text = json.dumps(_without_nan(content), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _table(job: Job, data: Observations) -> dict[str, Any]:
    low, high = _ends(data)
    return {
        "path": str(job.table),
        "layout": data.origin.layout,
        "rows": data.shape[0],
        "columns": data.shape[1],
        "entries": data.n_entries,
        "missing_cells": math.prod(data.shape) - data.n_entries,
        "smallest": low,
        "largest": high,
    }


def _settings(job: Job) -> dict[str, Any]:
    about_files = {"table", "output", "quiet", "force"}
    return {name: value for name, value in asdict(job).items() if name not in about_files}


def _versions() -> dict[str, str]:
    own = {"fillrank": __version__, "python": platform.python_version()}
    return own | {package: version(package) for package in _PACKAGES}


def _results(model: GASR, diagnostics: Diagnostics) -> dict[str, Any]:
    return {
        "rank": model.rank_,
        "rank_probabilities": {str(k): p for k, p in model.rank_probabilities_.items()},
        "noise_standard_deviation": math.sqrt(model.noise_variance_),
        "singular_values": model.singular_values_[: model.rank_].tolist(),
        "sweeps": model.n_sweeps_,
        "stopped": model.stop_reason_,
        "converged": diagnostics.converged,
        "rhat": diagnostics.rhat,
        "effective_draws": diagnostics.ess,
    }


def _without_nan(value: Any) -> Any:
    """The same with null for what is no finite number: JSON has no other word for it."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
