"""Summaries of results: for the terminal, and summary.json."""

from __future__ import annotations

import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank import __version__
from fillrank.cli.completed_table import is_written_wide
from fillrank.cli.messages import Results, describe_error, option
from fillrank.cli.results import as_json
from fillrank.cli.source import Source, value_limits
from fillrank.completions.convergence import convergence_of
from fillrank.completions.extrapolation import describe_extrapolations
from fillrank.runtime.progress import is_reported
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from fillrank.cli.complete import Job
    from fillrank.cli.group_scores import GroupResults
    from fillrank.features.blocks import Block

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
_MOST_NAMES = 1000  # of terms of a block of features
_NUMBER_LENGTH = 12  # characters of a prediction and its delimiter


class HeldOut(NamedTuple):
    """How well held-out entries were predicted; ``spread`` is their standard deviation."""

    entries: int
    rmse: float
    mae: float
    coverage: float
    level: float
    spread: float
    interval_score: float
    log_score: float
    groups: GroupResults

    def summary(self) -> dict[str, Any]:
        """Everything, for JSON."""
        figures = self._asdict()
        groups = figures.pop("groups")
        # Errors that have a meaning if columns have different units come before those across all units.
        first = {"entries": figures.pop("entries"), **groups.relative_scores()}
        return {**first, **figures, **groups.summary()}


def results_size(data: Observations, with_intervals: bool, n_imputations: int = 0) -> int:
    """Estimate the number of bytes of the completed tables."""
    n_cells = math.prod(data.shape)
    n_missing = n_cells - data.n_entries
    labels = sum(_label_length(labels) for labels in (data.row_labels, data.column_labels))
    filled = n_missing * (labels + _NUMBER_LENGTH)
    if is_written_wide(data):
        filled = n_cells * _NUMBER_LENGTH
    intervals = n_missing * (labels + 3 * _NUMBER_LENGTH) if with_intervals else 0
    imputations = (1 + n_imputations) * n_cells * _NUMBER_LENGTH if n_imputations else 0
    return filled + intervals + imputations


def _label_length(labels: np.ndarray) -> int:
    sample = labels[:: max(1, len(labels) // 1000)]
    return 1 + round(sum(len(str(label)) for label in sample) / len(sample))


def describe_model(model: Any, held_out: HeldOut | None) -> Results:
    """The results of a fit, for the terminal."""
    return [
        *_describe_factors(model),
        *([] if held_out is None else _describe_held_out(held_out)),
        *(("Warning", text) for text in describe_extrapolations(model.completion_, option)),
        ("Stopped", model.stop_reason_),
        ("Converged", describe_convergence(model)),
    ]


def _describe_factors(model: Any) -> Results:
    from fillrank.report.columns import is_mixed

    rank = str(model.rank_)
    if model.completion_.record.rank_probabilities is not None:
        rank += f" (in {100 * model.rank_probabilities_[model.rank_]:.0f}% of the draws)"
    lines = [("Rank", rank)]
    # The noise of numbers and that of levels have no common unit.
    if model.completion_.record.noise_variance is not None and not is_mixed(model):
        noise = math.sqrt(model.noise_variance_)
        unit = (
            "in standard deviations of a column"
            if model.completion_.record.has_own_units
            else "standard deviation"
        )
        lines.append(("Noise level", f"{noise:.3g} ({unit})"))
    # Those of the choices before the run were progress.
    notes = [note for note in model.completion_.record.notes or [] if not is_reported(note)]
    return [*lines, *(("Note", note) for note in notes)]


def _describe_held_out(held_out: HeldOut) -> Results:
    error = (
        f"RMSE {held_out.rmse:.4g}, MAE {held_out.mae:.4g} on {held_out.entries:,} held-out "
        f"entries, whose standard deviation is {held_out.spread:.4g}"
    )
    if not held_out.groups.has_one_unit:
        error = held_out.groups.describe_error()
    lines = [("Error", error)]
    if not math.isnan(held_out.coverage):
        lines.append(("Coverage", describe_coverage(held_out.coverage, held_out.level)))
    warnings = held_out.groups.shown_warnings(all_in="summary.json")
    return [*lines, *(("Warning", text) for text in warnings)]


def describe_coverage(coverage: float, level: float) -> str:
    """Describe the coverage of intervals."""
    return (
        f"{100 * coverage:.1f}% of the held-out entries are within their {100 * level:g}% intervals"
    )


def describe_convergence(model: Any, verdict: str = "no") -> str:
    """Describe whether a fit has converged; if not, why, after a ``verdict``, and what to do."""
    found = convergence_of(model)
    has_run = model.completion_.record.traces is not None
    if not found.converged:
        advice = "" if has_run else " Both are settings in Python."
        return describe_error(found.warning(verdict)) + advice
    if not has_run:
        return "yes"
    worst = model.diagnostics().worst
    return (
        f"yes (R-hat {worst.rhat:.2f}, {worst.ess:.0f} effective draws for the worst 5% of cells)"
    )


def write_summary(path: Path, job: Job, model: Any, held_out: HeldOut | None) -> None:
    """Write settings, versions and figures."""
    content = {
        "table": table_summary(job.source, model.observations_),
        "settings": _settings(job),
        "versions": _versions(),
        "results": _results(model),
        "hidden_entries": None if held_out is None else held_out.summary(),
    }
    path.write_text(as_json(content) + "\n", encoding="utf-8")


def table_summary(source: Source, data: Observations) -> dict[str, Any]:
    """What was read, for JSON."""
    low, high = value_limits(data)
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


def features_summary(model: Any) -> dict[str, Any]:
    """The blocks of features of rows and columns, and the shares of the differences they explain."""
    from fillrank.report.features import REST, SIDES, shares_of, side_blocks

    shares = shares_of(model)
    return {
        side: {
            "blocks": [
                _block_summary(block, shares[side][block.name])
                for block in side_blocks(model, side)
            ],
            "rest": shares[side][REST] if side in shares else 1.0,
        }
        for side in SIDES
    }


def _block_summary(block: Block, share: float) -> dict[str, Any]:
    """A block: the number of its features as the model uses them, and the terms that they come from."""
    return {
        "name": block.name,
        "features": block.values.shape[1],
        "terms": len(block.terms),
        "names": list(block.terms[:_MOST_NAMES]),
        "share": share,
    }


def _settings(job: Job) -> dict[str, Any]:
    settings = job.source._asdict() | job.settings._asdict()
    settings |= {"level": job.level, "hold_out": job.hold_out, "intervals": job.intervals}
    settings |= {"imputations": job.imputations}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in settings.items()
        if name != "table"
    }


def _kinds(model: Any) -> dict[str, str]:
    """The kind of each column, if they are not all numbers."""
    kinds = model.posterior_.column_kinds
    labels = map(as_text, model.observations_.column_labels)
    return dict(zip(labels, kinds, strict=True)) if set(kinds) != {"number"} else {}


def _versions() -> dict[str, str]:
    own = {"fillrank": __version__, "python": platform.python_version()}
    return own | {package: version(package) for package in _PACKAGES}


def _results(model: Any) -> dict[str, Any]:
    from fillrank.report.features import has_block

    completion = model.completion_
    record, found = completion.record, convergence_of(model)
    results = {
        "rank": completion.rank_,
        "units": record.units,
        "noise": record.noise,
        "notes": record.notes,
        "kinds": _kinds(model),
        "singular_values": completion.singular_values_[: completion.rank_].tolist(),
        "stopped": completion.stop_reason_,
        "converged": found.converged,
        "verdict": str(found),
    }
    if record.rank_probabilities is not None:
        probabilities = completion.rank_probabilities_.items()
        results["rank_probabilities"] = {str(rank): share for rank, share in probabilities}
    if record.noise_variance is not None:
        results["noise_standard_deviation"] = math.sqrt(completion.noise_variance_)
    if record.traces is not None:
        diagnostics = model.diagnostics()
        results |= {
            "missingness": has_block(model, "missingness"),
            "features": features_summary(model),
            "sweeps": completion.n_sweeps_,
            "rhat": diagnostics.rhat,
            "effective_draws": diagnostics.ess,
        }
    return results
