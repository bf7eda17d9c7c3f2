"""A short summary of a fitted model, as text and as HTML for notebooks."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from dataclasses import dataclass

import numpy as np

from fillrank.completions.convergence import convergence_of
from fillrank.completions.extrapolation import describe_extrapolations
from fillrank.completions.fitted_table import FittedTable
from fillrank.errors import describe
from fillrank.run.recorder import Traces
from fillrank.table.html import html_table
from fillrank.table.notes import describe_entries, describe_size

_WIDTH = 100  # of the text
_MOST_NOTES = 5
_KINDS = {
    "number": "numbers",
    "positive": "positive numbers",
    "ordered": "ordered levels",
    "yes_no": "two values",
    "count": "counts",
    "category": "categories",
}


@dataclass(frozen=True, repr=False)
class Summary:
    """A summary of a fitted model: titles and texts, in ``lines``.

    `print` shows it as text, a notebook as a table.
    """

    lines: list[tuple[str, str]]

    def __str__(self) -> str:
        width = 2 + max(len(title) for title, _ in self.lines)
        return "\n".join(
            textwrap.fill(
                f"{title:<{width}}{' '.join(text.split())}", _WIDTH, subsequent_indent=" " * width
            )
            for title, text in self.lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.lines)


def summarize(model: FittedTable) -> Summary:
    """Summarize a model: table, kinds, rank, noise, expected error, convergence, notes, what to do."""
    lines = [
        ("Method", model.method),
        ("Table", _describe_table(model)),
        ("Columns", _describe_kinds(model)),
        ("Rank", _describe_rank(model)),
    ]
    if (noise := _describe_noise(model)) is not None:
        lines.append(("Noise level", noise))
    if (error := _describe_error(model)) is not None:
        lines.append(("Expected error", error))
    lines += _describe_convergence(model)
    lines += [("Warning", text) for text in describe_extrapolations(model)]
    notes = model.record.notes or []
    lines += [("Note", note) for note in notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        lines.append(("Note", f"{len(notes) - _MOST_NOTES} more are in notes_."))
    return Summary([*lines, ("Next", _suggest(model))])


def _describe_table(model: FittedTable) -> str:
    size = describe_size(model.observations.shape)
    n, n_cells = len(model.observations), math.prod(model.observations.shape)
    if n == 0:
        return f"{size}; the model is without the entries that it was fitted on"
    return f"{size}, {describe_entries(n)} ({100 * n / n_cells:.3g}% observed)"


def _describe_kinds(model: FittedTable) -> str:
    counts = Counter(model.posterior.column_kinds)
    return ", ".join(f"{n:,} of {_KINDS[kind]}" for kind, n in counts.most_common())


def _describe_rank(model: FittedTable) -> str:
    rank, shares = model.record.rank, model.record.rank_probabilities
    factors = "1 factor" if rank == 1 else f"{rank:,} factors"
    if shares is None:
        return factors
    return f"{factors} above the noise, in {100 * shares[rank]:.0f}% of the draws"


def _describe_noise(model: FittedTable) -> str | None:
    # Solvers have no noise, and that of numbers and that of levels have no common unit.
    if model.record.noise_variance is None or not model.posterior.has_draws or model.is_mixed:
        return None
    return f"{math.sqrt(model.record.noise_variance):.3g}, {_unit(model)}"


def _unit(model: FittedTable) -> str:
    if model.record.has_own_units:
        return "in standard deviations of a column"
    return "a standard deviation in the units of the table"


def _describe_error(model: FittedTable) -> str | None:
    """The error of predictions that the model expects, or that a solver has measured."""
    if model.record.path:
        best = min(point.validation_error for point in model.record.path)
        return f"{best:.3g}, the RMSE of entries that were held out to choose the penalty"
    traces, noise = model.record.traces, model.record.noise_variance
    if traces is None or noise is None or model.is_mixed or traces.probes.shape[1] < 2:
        return None
    signal = _posterior_variance(traces, model)
    return (
        f"{math.sqrt(signal + noise):.3g} for a new value in an average cell, "
        f"{math.sqrt(signal):.3g} for its value without noise"
    )


def _posterior_variance(traces: Traces, model: FittedTable) -> float:
    """The posterior variance of the signal, averaged over the cells that the run traced."""
    scale = model.posterior.signal.low_rank.units.shared_scale
    return float(np.mean(traces.probes.var(axis=(0, 1)))) * float(scale) ** 2


def _describe_convergence(model: FittedTable) -> list[tuple[str, str]]:
    if model.folded_in:
        return [("Converged", "not known: these rows or columns were folded in after the fit")]
    found = convergence_of(model)
    if found.converged is None:
        return [("Converged", "not known: the file is from an older version")]
    if not found.converged:
        return [("Converged", describe(found.warning("no")))]
    return [("Converged", f"yes: {model.record.stop_reason}")]


def _suggest(model: FittedTable) -> str:
    """What to do with the model."""
    if model.folded_in or not model.posterior.has_draws:
        return "fr.score(test, model) measures the error on held-out entries."
    return (
        "fr.score(test, model) measures the error and the coverage of intervals on held-out entries; "
        "model.diagnostics() and fr.plot show the run."
    )
