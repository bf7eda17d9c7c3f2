"""What came out, in words for the terminal and as JSON for programs."""

from __future__ import annotations

import json
import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank import __version__
from fillrank.cli.messages import Lines
from fillrank.cli.messages import in_words as as_shown
from fillrank.cli.source import Source, ends
from fillrank.cli.tables import is_written_wide
from fillrank.estimators.convergence import convergence_of
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from fillrank.cli.job import Job
    from fillrank.estimators.gasr import GASR

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


def in_words(model: Any, hidden: Hidden | None) -> Lines:
    """The results as (what, text)."""
    return [
        *_of_factors(model),
        *([] if hidden is None else _of_hidden(hidden)),
        ("Stopped", model.stop_reason_),
        ("Converged", verdict(model)),
    ]


def _of_factors(model: Any) -> Lines:
    rank = str(model.rank_)
    if hasattr(model, "rank_probabilities_"):
        rank += f" (probability {100 * model.rank_probabilities_[model.rank_]:.0f}%)"
    lines = [("Rank", rank)]
    if hasattr(model, "noise_variance_"):
        noise = math.sqrt(model.noise_variance_)
        lines.append(("Noise level", f"{noise:.3g} (standard deviation)"))
    return lines


def _of_hidden(hidden: Hidden) -> Lines:
    lines = [
        (
            "Error",
            f"RMSE {hidden.rmse:.4g}, MAE {hidden.mae:.4g} on {hidden.entries:,} hidden "
            f"entries, whose standard deviation is {hidden.spread:.4g}",
        )
    ]
    if not math.isnan(hidden.coverage):
        lines.append(
            (
                "Coverage",
                f"{100 * hidden.coverage:.1f}% of the hidden entries are within their "
                f"{100 * hidden.level:g}% intervals",
            )
        )
    return lines


def verdict(model: Any) -> str:
    """Whether a fit has converged; if not, why, and what to do."""
    found = convergence_of(model)
    is_run = hasattr(model, "traces_")
    if not found.converged:
        advice = "" if is_run else " Both are settings in Python."
        return as_shown(found.warning("no")) + advice
    if not is_run:
        return "yes"
    worst = model.diagnostics().worst
    return (
        f"yes (R-hat {worst.rhat:.2f}, {worst.ess:.0f} effective draws for the worst 5% of cells)"
    )


def write(path: Path, job: Job, model: GASR, hidden: Hidden | None) -> None:
    """Write settings, versions and figures."""
    content = {
        "table": of_source(job.source, model.observations_),
        "settings": _settings(job),
        "versions": _versions(),
        "results": _results(model),
        "hidden_entries": None if hidden is None else hidden._asdict(),
    }
    path.write_text(as_json(content) + "\n", encoding="utf-8")


def as_json(content: Any, ascii_only: bool = False) -> str:
    """Text that every reader of JSON takes."""
    return json.dumps(_without_nan(content), indent=2, ensure_ascii=ascii_only, allow_nan=False)


def of_source(source: Source, data: Observations) -> dict[str, Any]:
    """What was read, for programs."""
    low, high = ends(data)
    return {
        "path": str(source.table),
        "layout": data.origin.layout,
        "rows": data.shape[0],
        "columns": data.shape[1],
        "entries": data.n_entries,
        "missing_cells": math.prod(data.shape) - data.n_entries,
        "smallest": low,
        "largest": high,
    }


def _settings(job: Job) -> dict[str, Any]:
    given = job.source._asdict() | job.settings._asdict()
    given |= {"level": job.level, "hold_out": job.hold_out, "intervals": job.intervals}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if name != "table"
    }


def _versions() -> dict[str, str]:
    own = {"fillrank": __version__, "python": platform.python_version()}
    return own | {package: version(package) for package in _PACKAGES}


def _results(model: GASR) -> dict[str, Any]:
    diagnostics = model.diagnostics()
    found = convergence_of(model)
    return {
        "rank": model.rank_,
        "rank_probabilities": {str(k): p for k, p in model.rank_probabilities_.items()},
        "noise_standard_deviation": math.sqrt(model.noise_variance_),
        "singular_values": model.singular_values_[: model.rank_].tolist(),
        "sweeps": model.n_sweeps_,
        "stopped": model.stop_reason_,
        "converged": found.converged,
        "verdict": str(found),
        "rhat": diagnostics.rhat,
        "effective_draws": diagnostics.ess,
    }


def _without_nan(value: Any) -> Any:
    """The same with null for what is no finite number: JSON has no other word for it."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
