"""Models: fitted with the options of the command line, their cost, or loaded from files.

The cost of a fit is estimated from measured constants. A sweep of a sampler has a cost of its own, one
per entry and factor, and one per entry of a column of levels or counts; recording it has one per row or
column and pair of factors. A run ends when it has enough draws: after about 500 sweeps of ratings, and
after more in other tables, up to the limit of sweeps. The other methods try about twenty
penalties: they have a cost per entry and factor for the complete fit. The constants are from MovieLens
1M and 100K (docs/figures.md); a busy machine can take several times as long.
"""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fillrank as fr
from fillrank.cli import options
from fillrank.cli.features import NO_FEATURES, Features
from fillrank.cli.messages import escape, format_duration, report
from fillrank.cli.source import Source, is_table
from fillrank.errors import ConvergenceWarning, InputError
from fillrank.runtime.memory import available_memory, format_bytes
from fillrank.runtime.threads import available_threads
from fillrank.table.kinds import ColumnKind, choose_kinds
from fillrank.table.labels import as_text
from fillrank.table.notes import describe_entries, describe_size
from fillrank.table.observations import Observations
from fillrank.table.units import choose_units

SAMPLERS = ("GASR", "BPMF")
_WITH_LIKELIHOODS = ("SoftImpute",)  # in addition to the samplers
# Likelihoods with which columns have units.
_WITH_SCALES = ("auto", "gaussian", "laplace")
_SHOWN = 5  # columns in a message
_USUAL_RANK = 30
_USUAL_SWEEPS = 500  # what "auto" takes on ratings
_START_SECONDS = 1.5  # imports, with cached kernels
# Seconds on one thread, per entry and factor of a sweep or of a complete fit.
_SWEEP_SECONDS = 2.5e-9
# Seconds of a sweep of any table, and per entry of a column of levels or counts.
_SWEEP_START_SECONDS, _LEVEL_SECONDS = 6e-4, 3e-7
_FIT_SECONDS = {
    "SoftImpute": 9e-6,
    "SoftImputeALS": 9e-6,
    "HASI": 3e-5,
    "RelaxedSpectral": 3e-5,
    "M3F": 5e-6,
    "IPM3F": 1e-5,
}
# Seconds per row or column and pair of factors, to record a sweep; this runs on one thread.
_RECORD_SECONDS = 2.7e-9
# Bytes of the program, of an entry (by row, by column, in standard units) and of a number of a draw.
_PROGRAM_BYTES, _ENTRY_BYTES, _NUMBER_BYTES = 250e6, 64, 4


class Settings(NamedTuple):
    """How to fit: the options of the commands."""

    method: options.Method = "GASR"
    seed: options.Seed = 0
    max_rank: options.MaxRank = "auto"
    sweeps: options.Sweeps = "auto"
    chains: options.Chains = 2
    units: options.Units = "auto"
    noise: options.Noise = "auto"
    robust: options.Robust = False
    keep_empty: options.KeepEmpty = False
    kinds: options.Kinds = []  # typer has lists only  # noqa: RUF012
    likelihood: options.Likelihood = "auto"
    thresholds: options.Thresholds = "auto"
    bounds: options.Bounds = []  # typer has lists only  # noqa: RUF012
    rounds: options.Round = True
    missingness: options.Missingness = True
    threads: options.Threads = None
    checkpoint: options.Checkpoint = None


# Options of the samplers, with the fields of `Settings` and of `Source`.
_SAMPLER_OPTIONS = {
    "sweeps": "--sweeps",
    "chains": "--chains",
    "checkpoint": "--checkpoint",
    "units": "--units",
    "noise": "--noise",
    "robust": "--robust",
    "keep_empty": "--keep-empty",
    "missingness": "--no-missingness",
    "kinds": "--kind",
    "likelihood": "--likelihood",
    "thresholds": "--thresholds",
    "bounds": "--bounds",
    "rounds": "--no-round",
}
_SOURCE_OPTIONS = {
    "weight": "--weight",
    "standard_error": "--standard-error",
    "row_features": "--row-features",
    "column_features": "--column-features",
}


def check(settings: Settings, source: Source | None = None) -> None:
    """Reject options that the method does not have: its own, and those of reading its table."""
    if settings.method in SAMPLERS:
        return
    default = Settings()
    given = [
        option
        for name, option in _SAMPLER_OPTIONS.items()
        if getattr(settings, name) != getattr(default, name)
        and not (name == "likelihood" and settings.method in _WITH_LIKELIHOODS)
    ]
    if source is not None:
        given += [option for name, option in _SOURCE_OPTIONS.items() if getattr(source, name)]
    if given:
        raise InputError(
            f"{given[0]} is an option of the samplers {' and '.join(SAMPLERS)}; got it with --method "
            f"{settings.method}",
            advice="Leave it out.",
        )


def make(settings: Settings, progress: bool) -> Any:
    """Make the estimator, not yet fitted."""
    check(settings)
    arguments: dict[str, Any] = {
        "n_threads": settings.threads,
        "random_state": settings.seed,
        "progress": progress,
    }
    if settings.max_rank != "auto":
        arguments["max_rank"] = settings.max_rank
    if settings.method in _WITH_LIKELIHOODS and settings.likelihood != "auto":
        arguments["likelihood"] = settings.likelihood
    if settings.method in SAMPLERS:
        arguments |= {
            "n_sweeps": settings.sweeps,
            "n_chains": settings.chains,
            "checkpoint": settings.checkpoint,
            "units": settings.units,
            "noise": settings.noise,
            "robust": settings.robust,
            "keep_empty_features": settings.keep_empty,
            "missingness": settings.missingness,
            "likelihood": settings.likelihood,
            "thresholds": settings.thresholds,
            "round": settings.rounds,
        }
    return getattr(fr, settings.method)(**arguments)


class FitInterrupted(KeyboardInterrupt):
    """The user interrupted a fit; ``n_saved`` sweeps are in its checkpoint, None without one."""

    def __init__(self, n_saved: int | None):
        super().__init__()
        self.n_saved = n_saved


@contextmanager
def interruptible(model: Any, warn: bool = False) -> Iterator[None]:
    """A context for a fit of the model: raises `FitInterrupted` if the user interrupts it.

    With ``warn``, it warns if the fit has not converged: for commands whose results do not report it.
    """
    try:
        with warnings.catch_warnings():
            if not warn:
                warnings.simplefilter("ignore", ConvergenceWarning)
            yield
        is_interrupted = getattr(model, "interrupted_", False)
    except KeyboardInterrupt:
        is_interrupted = True
    if is_interrupted:
        # The library returns what it has; at a terminal, Ctrl-C ends the program.
        raise FitInterrupted(getattr(model, "checkpoint_sweeps", None))


def fit(
    settings: Settings,
    data: Observations,
    progress: bool,
    warn: bool = False,
    features: Features = NO_FEATURES,
    table: Observations | None = None,
) -> Any:
    """Fit the method, as `interruptible` explains; only samplers take features.

    If some entries are held out, ``table`` has all of them, and decides on the scales of columns.
    """
    chosen = _column_settings(settings, data) | ({} if table is None else _scales(settings, table))
    model = make(settings, progress).set_params(**chosen)
    with interruptible(model, warn):
        model.fit(data, **features.arguments())
    return model


def _scales(settings: Settings, table: Observations) -> dict[str, Any]:
    """The kinds and units that a sampler chooses for a table, as settings for a fit of a part of it.

    Fewer entries may suggest others than those of the table, and the error on held-out entries would be
    that of another model. Like the unit of a measurement, they are scales on which values are modelled:
    they say nothing about a single value, so held-out entries remain unseen. The noise, unless it is
    given, is chosen by each fit, which tries it on entries that it holds out itself.
    """
    if settings.method not in SAMPLERS or settings.likelihood not in _WITH_SCALES:
        return {}
    kinds = _own_kinds(settings, table)
    found: dict[str, Any] = {
        "units": "columns" if has_own_units(settings, table) else "table",
        "value_range": table.value_range(),
    }
    if kinds is not None:
        found["kinds"] = dict(zip(table.column_labels, kinds, strict=True))
    return found


def _own_kinds(settings: Settings, table: Observations) -> list[ColumnKind] | None:
    """The kinds that a sampler chooses for the columns of a table; None if it takes one for all."""
    from fillrank.estimators.table_model import is_plain  # imported late: it loads numba

    are_numbers = settings.units == "table" and is_plain(table) and not settings.kinds
    if settings.method not in SAMPLERS or settings.likelihood != "auto" or are_numbers:
        return None
    return choose_kinds(table, _column_settings(settings, table).get("kinds", "auto"))


def has_own_units(settings: Settings, data: Observations) -> bool:
    """Whether the columns of a table have different units: as given, or by their values."""
    if settings.units == "auto":
        return choose_units(data).by_column
    return settings.units == "columns"


def check_columns(settings: Settings, data: Observations) -> None:
    """Reject kinds and bounds that are not those of columns of the table.

    For commands that fit several methods, of which a refusal would exclude one after the other.
    """
    if settings.kinds and settings.likelihood != "auto":
        raise InputError(
            "use --kind or --likelihood, not both: --likelihood is the kind of all columns; got "
            f"{settings.likelihood}."
        )
    given = _column_settings(settings, data)
    choose_kinds(data, given.get("kinds", "auto"))


def _column_settings(settings: Settings, data: Observations) -> dict[str, Any]:
    """The settings that were given for columns, by the names of the estimators."""
    found: dict[str, Any] = {}
    if settings.kinds:
        found["kinds"] = _by_column(settings.kinds, "--kind", "COLUMN=KIND", data)
    if settings.bounds:
        given = _by_column(settings.bounds, "--bounds", "COLUMN=LOW:HIGH", data)
        found["bounds"] = {label: _bounds(text) for label, text in given.items()}
    return found


def _by_column(given: Sequence[str], option: str, form: str, data: Observations) -> dict[Any, str]:
    """What was given for columns, by their labels."""
    labels = {as_text(label): label for label in data.column_labels}
    found = {}
    for text in given:
        name, separator, value = text.rpartition("=")
        if not separator or name not in labels:
            shown = ", ".join([*labels][:_SHOWN])
            raise InputError(
                f"{option} must be {form}, where COLUMN is a column of the table such as {shown}; got "
                f"{text!r}."
            )
        found[labels[name]] = value
    return found


def _bounds(text: str) -> tuple[float, float]:
    """The bounds LOW:HIGH, of which either can be empty."""
    low, separator, high = text.partition(":")
    try:
        if separator:
            return float(low or "-inf"), float(high or "inf")
    except ValueError:
        pass
    raise InputError(f"--bounds must be COLUMN=LOW:HIGH, with numbers; got {text!r}.")


class Cost(NamedTuple):
    """Seconds and bytes, and the seconds if a run needs as many sweeps as it may have."""

    seconds: float
    n_bytes: float
    most_seconds: float


def estimate_cost(
    settings: Settings, data: Observations, n_threads: int, n_levels: int = 0
) -> Cost:
    """Estimate the cost of a fit of a table with so many entries that are levels or counts."""
    from fillrank.run.loop import auto_most_sweeps  # imported late: it loads numba
    from fillrank.run.recorder import MOST_BYTES, MOST_DRAWS

    n_labels = sum(data.shape)
    rank = _USUAL_RANK if settings.max_rank == "auto" else settings.max_rank
    rank = min(rank, *data.shape)
    work = data.n_entries * rank / n_threads
    n_bytes = _PROGRAM_BYTES + _ENTRY_BYTES * data.n_entries
    if settings.method in _FIT_SECONDS:
        seconds = _START_SECONDS + _FIT_SECONDS[settings.method] * work
        return Cost(seconds, n_bytes + 8 * _NUMBER_BYTES * n_labels * rank, seconds)
    if settings.sweeps == "auto":
        n_sweeps, most_sweeps = _USUAL_SWEEPS, auto_most_sweeps(data.n_entries)
    else:
        n_sweeps = most_sweeps = settings.sweeps
    recording = _RECORD_SECONDS * n_labels * rank**2
    own = _SWEEP_START_SECONDS + _LEVEL_SECONDS * n_levels
    sweep = settings.chains * (_SWEEP_SECONDS * work + recording + own)
    n_draws = min(n_sweeps * settings.chains, MOST_DRAWS)
    stored = min(n_draws * _NUMBER_BYTES * n_labels * (rank + 2), MOST_BYTES)
    seconds, most = (_START_SECONDS + n * sweep for n in (n_sweeps, most_sweeps))
    return Cost(seconds, n_bytes + stored, most)


def report_cost(
    settings: Settings | Sequence[Settings], data: Observations, times: int = 1
) -> None:
    """Report the estimated cost of fits with these settings, each run ``times`` times."""
    each = [settings] if isinstance(settings, Settings) else settings
    costs = [
        estimate_cost(one, data, available_threads(one.threads), _count_levels(one, data))
        for one in each
    ]
    n_fits, n_bytes = times * len(costs), max(cost.n_bytes for cost in costs)
    duration = format_duration(times * sum(cost.seconds for cost in costs))
    most = format_duration(times * sum(cost.most_seconds for cost in costs))
    fits, need = ("The fit", "it needs") if n_fits == 1 else (f"{n_fits} fits", "they need")
    if most != duration:
        most = most.removeprefix("about ")
        duration += f", or up to {most} if {need} more sweeps,"
    text = f"{fits} will take {duration} and {format_bytes(_round_up(n_bytes))} of memory."
    available = available_memory()
    if available is not None and n_bytes > available:
        text += f" [bold yellow]Only {format_bytes(available)} are available.[/]"
    report(text)


def _count_levels(settings: Settings, data: Observations) -> int:
    """How many entries are in columns whose kind is not a number."""
    kinds = _own_kinds(settings, data) or []
    others = [j for j, each in enumerate(kinds) if each.kind not in ("number", "positive")]
    return int(np.isin(data.column_index, others).sum()) if others else 0


def _round_up(n_bytes: float) -> float:
    """Round up to one digit: the estimate is not more precise."""
    unit: float = 10 ** math.floor(math.log10(n_bytes))
    return math.ceil(n_bytes / unit) * unit


def load(path: Path, threads: int | None, quiet: bool) -> fr.Completion:
    """Load a model from a file, and set the number of threads."""
    if is_table(path):
        raise InputError(
            f"{path} looks like a table, but a model is required. Fit one first: "
            f"fillrank fit {shlex.quote(str(path))}"
        )
    model = fr.load(path).with_settings(n_threads=threads, progress=not quiet)
    if not quiet:
        report(f"Loaded {escape(str(path))}: {escape(_describe(model))}")
    return model


def _describe(model: Any) -> str:
    data = model.observations_
    entries = f"with its {describe_entries(len(data))}" if len(data) else "without its entries"
    return f"{model.completion_.method}, {describe_size(data.shape)}, {entries}."


def check_entries(model: Any, path: Path, purpose: str, alternative: str = "") -> None:
    """Raise an error if a purpose needs the entries of the fit, and the file does not have them."""
    if len(model.observations_) == 0:
        raise InputError(
            f"{purpose} needs the entries that the model was fitted on, and {path} was saved without "
            f"them. Fit it again with fillrank fit --with-data{alternative}."
        )


class Labels:
    """The labels of rows or of columns, found by their text.

    The text of a number or a date is the one that fillrank writes.
    """

    def __init__(self, labels: np.ndarray):
        self._labels = {as_text(label): label for label in labels.tolist()}
        if labels.dtype.kind == "M":  # lists have dates without their unit, or as integers
            self._labels = {as_text(label): label for label in labels}

    def __contains__(self, text: str) -> bool:
        return text in self._labels

    def unknown(self, labels: Iterable[Any]) -> list[Any]:
        """Those labels that are not among these, as `find` returns them."""
        return [label for label in labels if as_text(label) not in self._labels]

    def find(self, texts: Iterable[str]) -> list[Any]:
        """The labels with these texts; an unknown text stays as it is, for the model to refuse."""
        return [self._labels.get(text, text) for text in texts]
