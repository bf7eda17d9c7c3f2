"""``fillrank evaluate``: how well hidden entries of a table are predicted."""

import math
from typing import Annotated, Any

import typer

from fillrank.cli import estimate, methods, scores, source, summary
from fillrank.cli import options as given
from fillrank.cli.answers import show_json
from fillrank.cli.messages import Lines, say, show_results
from fillrank.cli.methods import Settings
from fillrank.cli.scores import Split
from fillrank.cli.source import Source
from fillrank.errors import InputError
from fillrank.table.observations import Observations

_USUAL_FOLDS = 5


def evaluate(
    table: given.Table,
    method: given.Method = "GASR",
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, help="Part the entries into N sets, and hide each of them once.",
            show_default=str(_USUAL_FOLDS),
        ),
    ] = None,
    hold_out: given.OptionalHoldOut = None,
    level: given.Level = 0.9,
    row: given.Row = None,
    column: given.Column = None,
    value: given.Value = None,
    layout: given.Layout = "auto",
    duplicates: given.Duplicates = "error",
    format: given.Format = None,
    skip: given.Skip = 0,
    encoding: given.Encoding = None,
    seed: given.Seed = 0,
    max_rank: given.MaxRank = "auto",
    sweeps: given.Sweeps = "auto",
    chains: given.Chains = 2,
    threads: given.Threads = None,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:  # fmt: skip
    """Hide entries, predict them from the others, and say how well that goes.

    Tells the typical error (RMSE, MAE), beside the standard deviation of the values, which is the
    error of always guessing their mean; and how many hidden entries are within their intervals.

    Examples:

    - fillrank evaluate ratings.csv
    - fillrank evaluate ratings.csv --method SoftImpute --hold-out 0.1 --json
    """
    if folds is not None and hold_out is not None:
        raise InputError("--folds and --hold-out are two ways to hide entries. Leave out one.")
    origin = Source(table, row, column, value, layout, duplicates, format, skip, encoding)
    settings = Settings(method, max_rank, sweeps, chains, threads, seed)
    methods.check(settings)
    data = source.read(origin, quiet, to_fill=False)
    splits = _splits(data, folds or _USUAL_FOLDS, hold_out, seed)
    if not quiet:
        estimate.tell(settings, data, len(splits))
    found = []
    for number, split in enumerate(splits, start=1):
        if not quiet:
            which = f"{number} of {len(splits)}: " if len(splits) > 1 else ""
            say(f"{which}Fitting without {len(split.test):,} hidden entries.")
        found.append(scores.measure(settings, split, level, progress=not quiet))
    spread = float(data.values.std())
    if as_json:
        show_json(
            {
                "table": summary.of_source(origin, data),
                "method": method,
                "level": level,
                "values_standard_deviation": spread,
                **scores.for_programs(found),
            }
        )
    else:
        show_results(_in_words(found, level, spread))


def _splits(data: Observations, n: int, hold_out: float | None, seed: int) -> list[Split]:
    if hold_out is not None:
        return [Split(*data.split(hold_out, random_state=seed))]
    return list(scores.folds(data, n, seed))


def _in_words(found: list[dict[str, Any]], level: float, spread: float) -> Lines:
    rmse, mae, coverage, seconds, rank = (
        scores.gathered(found, name) for name in ("rmse", "mae", "coverage", "seconds", "rank")
    )
    lines = [
        ("RMSE", f"{rmse}; the values' standard deviation is {spread:.4g}"),
        ("MAE", str(mae)),
    ]
    if not math.isnan(coverage.mean):
        lines.append(
            (
                "Coverage",
                f"{100 * coverage.mean:.1f}% of the hidden entries are within their "
                f"{100 * level:g}% intervals",
            )
        )
    return [*lines, ("Rank", str(rank)), ("Seconds a fit", f"{seconds.mean:.1f}")]
