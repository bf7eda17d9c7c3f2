"""The text and the numbers of the report: a summary of a fit, and code that reproduces it."""

from __future__ import annotations

import math
import platform
from datetime import datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from fillrank.completions.convergence import convergence_of
from fillrank.errors import Setting, describe
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.report.columns import is_mixed
from fillrank.report.features import SIDES, has_table
from fillrank.report.held_out import HeldOut, LevelScores
from fillrank.report.interface import PYTHON, Interface
from fillrank.report.style import count_noun, format_number, format_percent
from fillrank.table.observations import Observations, fingerprint
from fillrank.version import __version__

_QUANTITIES = {
    "residual_variance": "fit to the entries",
    "hinge_loss": "fit to the entries",
    "prediction (median)": "typical prediction",
    "prediction (worst 5%)": "worst 5% of predictions",
}
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# Settings that do not change the result and are specific to the machine.
_MACHINE_SETTINGS = {"checkpoint"}


class Tile(NamedTuple):
    """A number at the top of the report, and its label; ``tone`` is good, bad or plain."""

    value: str
    label: str
    tone: str = "plain"


class Verdict(NamedTuple):
    """Whether the fit has converged, as one term and as a sentence, and why it ended."""

    short: str
    long: str
    tone: str
    ended: str = ""


class DiagnosticsRow(NamedTuple):
    """A row of the table of diagnostics."""

    quantity: str
    rhat: str
    ess: str
    error: str
    state: str


def format_together(*values: float, width: float) -> list[str]:
    """Format numbers with the decimals that show a difference of ``width`` with two digits.

    Examples
    --------
    >>> format_together(3.14159, 2.5, -1e-9, width=0.042)
    ['3.142', '2.500', '0.000']
    """
    decimals = 1 - math.floor(math.log10(width)) if width > 0 else math.inf
    if not -6 < decimals < 10 or max(map(abs, values)) >= 1e9:
        return [f"{value:.4g}" for value in values]
    return [f"{value:z,.{max(0, decimals)}f}" for value in values]


def count_entries(model: Any) -> int | None:
    """Return the number of fitted entries, also if they were not saved; None if it is unknown."""
    if n := len(model.observations_):
        return n
    if is_mixed(model):  # traces count the entries of the latent table
        return None
    return model.traces_.n_entries if model.completion_.record.traces is not None else None


def describe_table(model: Any) -> str:
    """Describe the size of the table, and how much was filled in."""
    n_rows, n_columns = model.observations_.shape
    size = f"The table has {count_noun(n_rows, 'row')} and {count_noun(n_columns, 'column')}"
    n, n_cells = count_entries(model), n_rows * n_columns
    if n is None:
        return f"{size}. The model was saved without the entries that it was fitted to."
    if n == n_cells:
        return f"{size}, and no missing values: all of its {count_noun(n, 'cell')} are observed."
    are = "is" if n == 1 else "are"
    return (
        f"{size}. {n:,} of its {n_cells:,} cells {are} observed ({100 * n / n_cells:.3g}%); the other "
        f"{n_cells - n:,} are filled in."
    )


def describe_error(held_out: HeldOut) -> str:
    """Describe the errors of predictions of held-out entries."""
    if held_out.levels is not None:
        return _describe_mixed_error(held_out, held_out.levels)
    n = len(held_out.test)
    unit = " standard deviations of the column" if held_out.are_standard else ""
    of_what = "its mean" if held_out.are_standard else "the mean of these entries"
    return (
        f"Predictions of {n:,} held-out {'entry' if n == 1 else 'entries'} have a root mean square "
        f"error of {format_number(held_out.rmse)}{unit}; half of them are off by at most "
        f"{format_number(held_out.median_error)}. Always predicting {of_what} would "
        f"have an error of {format_number(held_out.spread)}."
    )


def _describe_mixed_error(held_out: HeldOut, levels: LevelScores) -> str:
    """Describe the errors of numbers and the accuracy of levels."""
    texts = []
    if levels.n_numbers:
        texts.append(
            f"Predictions of {count_noun(levels.n_numbers, 'held-out number')} have a root mean square "
            f"error of {format_number(held_out.rmse)} standard deviations of the column; half of them "
            f"are off by at most {format_number(held_out.median_error)}. Always predicting the mean of "
            f"the column would have an error of {format_number(held_out.spread)}."
        )
    if levels.n_levels:
        texts.append(
            f"Of {count_noun(levels.n_levels, 'held-out value')} in columns of levels (ordered answers, "
            f"two values, categories), {levels.accuracy:.0%} are predicted correctly. Always predicting "
            f"the most frequent level of the column would be correct for {levels.usual_accuracy:.0%}."
        )
    return " ".join(texts)


def describe_rank(model: Any) -> str:
    """Describe the number of factors."""
    definition = "A factor is a pattern that rows and columns share, such as a taste or a season."
    if model.completion_.record.rank_probabilities is not None:
        if model.rank_ == 0:
            return "No pattern that rows and columns share is stronger than the noise."
        share = model.rank_probabilities_[model.rank_]
        verb = "is" if model.rank_ == 1 else "are"
        return (
            f"{count_noun(model.rank_, 'factor')} {verb} stronger than the noise in "
            f"{format_percent(share)} of the draws. {definition}"
        )
    return (
        f"{model.completion_.method} uses {count_noun(model.rank_, 'factor')}; it has no draws of this "
        f"number. {definition}"
    )


def describe_noise(model: Any) -> str:
    """Describe the noise; empty for methods without a noise model, and for mixed kinds of values."""
    if not model.posterior_.has_draws or is_mixed(model):
        return ""
    noise = format_number(math.sqrt(model.noise_variance_))
    if model.completion_.record.has_own_units:
        return (
            f"The noise level is {noise} standard deviations of a column on average: so much do "
            "observed values differ from their values without noise."
        )
    return (
        f"The noise level is {noise}: the standard deviation of observed values around their values "
        "without noise. Predictions of new observations cannot be expected to have a smaller error."
    )


def describe_convergence(model: Any, interface: Interface = PYTHON) -> Verdict:
    """Describe whether the fit has converged, and what that means."""
    if model.completion_.folded_in:
        long = (
            "These rows or columns were folded in after the fit, without sweeps or iterations. The "
            "report of the model that they were folded into shows whether it has converged."
        )
        return Verdict("folded in", long, "plain")
    ended = f"Why it ended: {_reason(model)}."
    convergence = convergence_of(model)
    if convergence.converged is None:
        long = "Whether the fit has converged is unknown: the file is from an older version."
        return Verdict("unknown", long, "plain", ended)
    is_run = model.completion_.record.traces is not None
    what, steps = ("run", "sweeps") if is_run else ("fit", "iterations")
    if convergence.converged:
        long = f"The {what} has converged: more {steps} would change predictions little."
        return Verdict("converged", long, "good", ended)
    narrow = ", and intervals may be too narrow" if model.posterior_.has_draws else ""
    warning = describe(convergence.warning(f"The {what} has not converged"), interface.setting)
    # Of the settings of solvers, only the largest rank is an option.
    where = "" if is_run or not interface.command else " Both are settings in Python."
    long = f"{warning}{where} Predictions would still change with more {steps}{narrow}."
    return Verdict("not converged", long, "bad", ended)


def _reason(model: Any) -> str:
    reason = model.stop_reason_
    # Only then was the number of sweeps the user's choice.
    return f"{reason}, as requested" if reason.startswith("all ") else reason


def list_tiles(model: Any, held_out: HeldOut | None, verdict: Verdict) -> list[Tile]:
    """Return the numbers at the top of the report."""
    tiles = []
    n = count_entries(model)
    if n is not None:
        n_missing = math.prod(model.observations_.shape) - n
        tiles.append(Tile(f"{n_missing:,}", "cells filled in"))
    if held_out is not None:
        tiles += _error_tiles(held_out)
    share = (model.completion_.record.rank_probabilities or {}).get(model.rank_)
    in_draws = "" if share is None else f" in {format_percent(share)} of the draws"
    noun = "factor" if model.rank_ == 1 else "factors"
    tiles.append(Tile(f"{model.rank_:,}", noun + in_draws))
    tiles.append(Tile(verdict.short, "state of the fit", verdict.tone))
    return tiles


def _error_tiles(held_out: HeldOut) -> list[Tile]:
    tone = "bad" if held_out.n_fitted else "plain"
    label = "typical error, underestimated" if held_out.n_fitted else "typical error"
    error = format_number(held_out.rmse)
    if held_out.are_standard:
        error = f"{error} SD"
    if (levels := held_out.levels) is None:
        return [Tile(error, label, tone)]
    tiles = [Tile(error, f"{label} of numbers", tone)] if levels.n_numbers else []
    if levels.n_levels:
        tiles.append(Tile(f"{levels.accuracy:.0%}", "of levels predicted correctly", tone))
    return tiles


def list_diagnostics(diagnostics: Diagnostics) -> list[DiagnosticsRow]:
    """Return the table of diagnostics; everything that the verdict depends on has a row."""
    rows = [
        DiagnosticsRow(
            _quantity(name),
            _finite(found.rhat, ".3f"),
            _finite(found.ess, ",.0f"),
            "" if found.error is None else f"{100 * found.error:.2g}%",
            _state(found.converged),
        )
        for name, found in diagnostics.quantities.items()
    ]
    if (error := diagnostics.added_error) is not None:
        share = f"{100 * error:.2g}%" if math.isfinite(error) else "unknown"
        rows.append(
            DiagnosticsRow("mean of all draws", "", "", share, _state(diagnostics.is_precise))
        )
    if diagnostics.ended:
        rows.append(DiagnosticsRow("length of the run", "", "", "", _state(False)))
    return rows


def _state(converged: bool) -> str:
    return "converged" if converged else "not converged"


def _finite(x: float, form: str) -> str:
    return f"{x:{form}}" if np.isfinite(x) else "unknown"


def _quantity(name: str) -> str:
    if name.startswith("singular_value "):
        return f"strength of factor {name.removeprefix('singular_value ')}"
    return _QUANTITIES.get(name, name)


def list_versions() -> str:
    """Return the versions of all packages that determine the numbers."""
    packages = [f"{name} {version(name)}" for name in _PACKAGES]
    return ", ".join([f"fillrank {__version__}", *packages, f"Python {platform.python_version()}"])


def reproduction_code(model: Any) -> str:
    """Return Python code that fits the same model to the same data."""
    settings = [
        f"    {name}={_as_python(value)},"
        for name, value in model.completion_.settings.items()
        if name not in _MACHINE_SETTINGS
    ]
    n_rows, n_columns = model.observations_.shape
    given = [f"{side.removesuffix('s')}_features" for side in SIDES if has_table(model, side)]
    lines = [
        *(["import pandas as pd"] if given else []),
        "import fillrank as fr",
        "",
        f"# {list_versions()}",
        f"# report made on {datetime.now().astimezone():%Y-%m-%d %H:%M %z}",
        f"# data: {n_rows} rows x {n_columns} columns{_describe_entries(model.observations_)}",
        'data = fr.read("table.csv")  # put your own table here',
        *(
            f'{name} = pd.read_csv("{name}.csv", index_col=0)  # put your own features here'
            for name in given
        ),
        f"model = fr.{model.completion_.method}(",
        *settings,
        ")",
        f"model.fit({', '.join(['data', *(f'{name}={name}' for name in given)])})",
    ]
    return "\n".join(lines)


def reproduction_caveats(model: Any, interface: Interface = PYTHON) -> list[str]:
    """Return the reasons why the code does not reproduce the same numbers, as sentences."""
    caveats = []
    if not isinstance(model.completion_.settings.get("random_state"), int | np.integer):
        caveats.append(
            "The fit had no fixed seed, so another run gives slightly different numbers. Set "
            f"{interface.setting(Setting('random_state', 0))}, or any other integer, to get the same "
            "numbers each time."
        )
    if folded_in := model.completion_.folded_in:
        caveats.append(
            f"The {' and '.join(folded_in)} were added after the fit, by fold_in; the code has "
            "the settings of the fit."
        )
    return caveats


def _describe_entries(data: Observations) -> str:
    if len(data) == 0:
        return " (the model was saved without its entries)"
    return f", {len(data)} entries\n# sha256 of the entries: {fingerprint(data)}"


def _as_python(value: Any) -> str:
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return "None"
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    # One line: a value must not start another statement.
    return " ".join(repr(value).split("\n"))
