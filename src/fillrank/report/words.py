"""What a fit has found, in plain words and numbers that can be read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fillrank.estimators.checks import few_entries
from fillrank.estimators.convergence import convergence_of
from fillrank.estimators.sampled import SampledCompleter
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.report.held_out import HeldOut
from fillrank.report.style import count_noun, format_percent

# Numbers of these sizes are written out, others with a power of ten.
_WRITTEN_OUT = range(-4, 7)
_QUANTITIES = {
    "residual_variance": "how well the entries are fitted",
    "hinge_loss": "how well the entries are fitted",
    "prediction (median)": "a typical prediction",
    "prediction (worst 5%)": "the worst 5% of predictions",
}


_MORE_ITERATIONS = "more iterations would not change the result noticeably"


class Tile(NamedTuple):
    """A number to catch the eye, and what it is; ``tone`` is good, bad or plain."""

    value: str
    label: str
    tone: str = "plain"


class Verdict(NamedTuple):
    """Whether the fit can be relied on, and why it ended where it did."""

    short: str
    long: str
    tone: str
    ended: str = ""


class Judged(NamedTuple):
    """A quantity that was followed over the run, with its verdict."""

    quantity: str
    rhat: str
    ess: str
    error: str
    verdict: str


def number(x: float, digits: int = 3) -> str:
    """A number with so many digits that count.

    Examples
    --------
    >>> number(0.01234), number(1234567), number(1.5e-9), number(0)
    ('0.0123', '1,234,567', '1.50e-09', '0')
    """
    if x == 0 or not math.isfinite(x):
        return f"{x + 0.0:g}"
    size = math.floor(math.log10(abs(x)))
    if size not in _WRITTEN_OUT:
        return f"{x:.{digits - 1}e}"
    return f"{x:,.{max(0, digits - 1 - size)}f}"


def alike(*values: float, width: float) -> list[str]:
    """Numbers with as many decimals as show a difference of ``width`` with two digits.

    Examples
    --------
    >>> alike(3.14159, 2.5, width=0.042)
    ['3.142', '2.500']
    """
    decimals = 1 - math.floor(math.log10(width)) if width > 0 else math.inf
    if not -6 < decimals < 10 or max(map(abs, values)) >= 1e9:
        return [f"{value:.4g}" for value in values]
    return [f"{value:,.{max(0, decimals)}f}" for value in values]


def n_entries(model: Any) -> int | None:
    """How many entries were fitted, also if they did not come along; None if no one knows."""
    if n := len(model.observations_):
        return n
    return model.traces_.n_entries if hasattr(model, "traces_") else None


def of_table(model: Any) -> str:
    """What there was, and what was filled in."""
    n_rows, n_columns = model.observations_.shape
    size = f"The table has {count_noun(n_rows, 'row')} and {count_noun(n_columns, 'column')}"
    n, n_cells = n_entries(model), n_rows * n_columns
    if n is None:
        return f"{size}. The model came from a file without the entries that it was fitted on."
    if n == n_cells:
        return f"{size}, and no missing values: all of its {count_noun(n, 'cell')} are observed."
    are = "is" if n == 1 else "are"
    return (
        f"{size}. {n:,} of its {n_cells:,} cells {are} observed ({100 * n / n_cells:.3g}%); the other "
        f"{n_cells - n:,} are filled in."
    )


def of_error(held_out: HeldOut) -> str:
    """How far predictions are off."""
    n = len(held_out.test)
    text = (
        f"Predictions of {n:,} {'entry' if n == 1 else 'entries'} that the fit had not seen "
        f"are off by {number(held_out.rmse)} (root mean square), half of them by at most "
        f"{number(held_out.median_error)}. Always guessing their average would be off by "
        f"{number(held_out.spread)}."
    )
    if held_out.n_fitted:
        text += (
            f" But {held_out.n_fitted:,} of these entries were also fitted, so the error looks "
            "smaller than it is: keep them out of the fit."
        )
    return text


def of_rank(model: Any) -> str:
    """How many factors there are."""
    what = "A factor is a pattern that rows and columns share, such as a taste or a season."
    if hasattr(model, "rank_probabilities_"):
        if model.rank_ == 0:
            return "No pattern that rows and columns share is stronger than the noise."
        share = model.rank_probabilities_[model.rank_]
        verb = "is" if model.rank_ == 1 else "are"
        return (
            f"{count_noun(model.rank_, 'factor')} {verb} stronger than the noise, with a probability of "
            f"{format_percent(share)}. {what}"
        )
    if hasattr(model, "rank_"):
        return (
            f"{type(model).__name__} uses {count_noun(model.rank_, 'factor')}; it gives no probability "
            f"for that. {what}"
        )
    return "How many factors there are is known to the model from which this one came."


def of_noise(model: Any) -> str:
    """How noisy the entries are; empty where no one knows."""
    if not isinstance(model, SampledCompleter):
        return ""
    noise = number(math.sqrt(model.noise_variance_))
    return (
        f"The noise level is {noise}: so far do single entries lie from what the factors say, and no "
        "prediction of a new entry can be expected to be closer than that."
    )


def of_few_entries(model: Any) -> str:
    """That there are too few entries for intervals; empty if there are enough, or no intervals."""
    n = n_entries(model)
    if n is None or not isinstance(model, SampledCompleter):
        return ""
    text = few_entries(n, model._fewest_entries)
    return text[:1].upper() + text[1:]


def verdict(model: Any) -> Verdict:
    """Whether the fit has converged, and what that means."""
    if not hasattr(model, "stop_reason_") or getattr(model, "folded_in_", None):
        long = (
            "These rows or columns came after the fit and had no run of their own. Whether the fit has "
            "converged, the report of the model that they were added to says."
        )
        return Verdict("added later", long, "plain")
    ended = f"Why it ended: {_reason(model)}."
    found = convergence_of(model)
    if found.converged is None:
        long = "Whether the fit has converged is not known: the file is of an older version."
        return Verdict("not known", long, "plain", ended)
    is_run = hasattr(model, "traces_")
    what = "run" if is_run else "fit"
    if found.converged:
        more = "predictions would change little if it went on" if is_run else _MORE_ITERATIONS
        return Verdict("converged", f"The {what} has converged: {more}.", "good", ended)
    narrow = ", and intervals may be too narrow" if isinstance(model, SampledCompleter) else ""
    long = (
        f"{found.warning(f'The {what} has not converged')} Predictions would still change if it went "
        f"on{narrow}."
    )
    return Verdict("not converged", long, "bad", ended)


def _reason(model: Any) -> str:
    reason = model.stop_reason_
    # Only then was the number of sweeps the user's choice.
    return f"{reason}, as was asked for" if reason.startswith("all ") else reason


def tiles(model: Any, held_out: HeldOut | None, verdict: Verdict) -> list[Tile]:
    """The headline's numbers."""
    found = []
    n = n_entries(model)
    if n is not None:
        n_missing = math.prod(model.observations_.shape) - n
        found.append(Tile(f"{n_missing:,}", "cells filled in"))
    if held_out is not None:
        tone = "bad" if held_out.n_fitted else "plain"
        label = "typical error; not honest" if held_out.n_fitted else "typical error"
        found.append(Tile(number(held_out.rmse), label, tone))
    if hasattr(model, "rank_"):
        chance = getattr(model, "rank_probabilities_", {}).get(model.rank_)
        sure = "" if chance is None else f", {format_percent(chance)} sure"
        found.append(Tile(f"{model.rank_:,}", ("factor" if model.rank_ == 1 else "factors") + sure))
    found.append(Tile(verdict.short, "state of the fit", verdict.tone))
    return found


def judged(diagnostics: Diagnostics) -> list[Judged]:
    """The table of diagnostics, in words; all that the verdict depends on has a line."""
    lines = [
        Judged(
            _quantity(name),
            _finite(found.rhat, ".3f"),
            _finite(found.ess, ",.0f"),
            "" if found.error is None else f"{100 * found.error:.2g}%",
            _converged(found.converged),
        )
        for name, found in diagnostics.quantities.items()
    ]
    if (error := diagnostics.added_error) is not None:
        share = f"{100 * error:.2g}%" if math.isfinite(error) else "unknown"
        lines.append(
            Judged("the mean of all draws", "", "", share, _converged(diagnostics.is_precise))
        )
    if diagnostics.ended:
        lines.append(Judged(f"the run: {diagnostics.ended}", "", "", "", _converged(False)))
    return lines


def _converged(is_so: bool) -> str:
    return "converged" if is_so else "not converged"


def _finite(x: float, form: str) -> str:
    return f"{x:{form}}" if np.isfinite(x) else "unknown"


def _quantity(name: str) -> str:
    if name.startswith("singular_value "):
        return f"the strength of factor {name.removeprefix('singular_value ')}"
    return _QUANTITIES.get(name, name)
