"""``fillrank evaluate``: how well held-out entries of a table are predicted."""

import math
from typing import Annotated

import typer

import fillrank as fr
from fillrank.cli import features, models, options, source, summary
from fillrank.cli.features import Features
from fillrank.cli.fit_cost import report_cost
from fillrank.cli.group_scores import (
    GroupResults,
    SplitScores,
    pool_splits,
    show_worst_columns,
)
from fillrank.cli.messages import Results, report, show_results
from fillrank.cli.models import Settings
from fillrank.cli.ranking import Lists, Relevant, Scoring, Top, describe_lists, read_options
from fillrank.cli.results import show_json
from fillrank.cli.source import Source
from fillrank.cli.splits import Split, average, score_split, scores_summary
from fillrank.errors import InputError
from fillrank.table.observations import Observations

_USUAL_FOLDS = 5


@options.filled_in(first=("method",), without=("checkpoint",), origin=Source, settings=Settings)
def evaluate(
    *,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, help="Split the entries into N sets, and hold out each of them once.",
            show_default=str(_USUAL_FOLDS),
        ),
    ] = None,
    hold_out: options.OptionalHoldOut = None,
    level: options.Level = 0.9,
    top: Top = None,
    relevant: Relevant = None,
    origin: Source,
    settings: Settings,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """Hold out entries, predict them from the others, and report the error.

    The report has the error (RMSE, MAE) and, for comparison, the standard deviation of the values,
    which is the RMSE of predicting their mean; the share of held-out entries within their intervals; the
    interval score (lower is better) and the log score (higher is better). Below are the columns that are
    predicted worst: RMSE in SD is the error in standard deviations of the column; predicting its mean
    gives about 1. If columns have different units or kinds, the error of numbers is given in this way,
    and that of levels as the share that is predicted correctly. With --top, the recommendations are
    scored as well.

    Examples:

    - fillrank evaluate ratings.csv
    - fillrank evaluate ratings.csv --top 10 --relevant 4
    - fillrank evaluate ratings.csv --method SoftImpute --hold-out 0.1 --json
    """
    if folds is not None and hold_out is not None:
        raise InputError("use --folds or --hold-out, not both.")
    lists = read_options(top, relevant)
    models.check(settings, origin)
    data = source.read(origin, quiet)
    given = features.read(origin, data)
    splits = _splits(data, given, folds or _USUAL_FOLDS, hold_out, settings.seed)
    if not quiet:
        report_cost(settings, data, len(splits))
    scores = []
    for number, split in enumerate(splits, start=1):
        if not quiet:
            which = f"{number} of {len(splits)}: " if len(splits) > 1 else ""
            report(f"{which}Fitting without {len(split.test):,} held-out entries.")
        scores.append(score_split(settings, split, Scoring(level, lists), progress=not quiet))
    spread = float(data.values.std())
    own_units = models.has_own_units(settings, data)
    groups = pool_splits(scores, data.column_labels, level, own_units)
    if as_json:
        show_json(
            {
                "table": summary.table_summary(origin, data),
                "method": settings.method,
                "level": level,
                **({} if lists is None else lists.summary()),
                "values_standard_deviation": spread,
                **scores_summary(scores),
                **groups.summary(),
            }
        )
    else:
        show_results(_describe(scores, groups, spread, lists))
        show_worst_columns(groups, "Worst columns")


def _splits(
    data: Observations, given: Features, n: int, hold_out: float | None, seed: int
) -> list[Split]:
    if hold_out is not None:
        return [Split(*data.split(hold_out, random_state=seed), data, given)]
    folds = fr.EntryKFold(n, random_state=seed).split(data)
    return [Split(data[train], data[test], data, given) for train, test in folds]


def _describe(
    scores: list[SplitScores], groups: GroupResults, spread: float, lists: Lists | None
) -> Results:
    rmse, mae, coverage, seconds, rank = (
        average(scores, name) for name in ("rmse", "mae", "coverage", "seconds", "rank")
    )
    lines = [
        ("RMSE", f"{rmse}; the standard deviation of the values is {spread:.4g}"),
        ("MAE", str(mae)),
    ]
    if not groups.has_one_unit:
        lines = [("Error", groups.describe_error())]
    if not math.isnan(coverage.mean):
        lines.append(("Coverage", summary.describe_coverage(coverage.mean, groups.level)))
        if groups.has_one_unit:
            lines.append(("Interval score", str(average(scores, "interval_score"))))
        lines.append(("Log score", str(average(scores, "log_score"))))
    if lists is not None:
        lines += describe_lists(lists, lambda name: average(scores, name))
    return [*lines, ("Rank", str(rank)), ("Seconds per fit", f"{seconds.mean:.1f}")]
