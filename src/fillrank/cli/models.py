"""Models: fitted with the options of the command line, or loaded from files."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import fillrank as fr
from fillrank.cli import options
from fillrank.cli.features import NO_FEATURES, Features
from fillrank.cli.messages import escape, report
from fillrank.cli.source import Source, is_table
from fillrank.errors import ConvergenceWarning, InputError
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
    kinds = own_kinds(settings, table)
    found: dict[str, Any] = {
        "units": "columns" if has_own_units(settings, table) else "table",
        "value_range": table.value_range(),
    }
    if kinds is not None:
        found["kinds"] = dict(zip(table.column_labels, kinds, strict=True))
    return found


def own_kinds(settings: Settings, table: Observations) -> list[ColumnKind] | None:
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
