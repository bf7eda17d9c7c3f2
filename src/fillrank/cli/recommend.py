"""``fillrank recommend``: the best columns for a row."""

from typing import Annotated, Literal

import typer

from fillrank.cli import models, options
from fillrank.cli.features import Features, labels_of, read_new
from fillrank.cli.messages import show_files
from fillrank.cli.models import Labels
from fillrank.cli.results import check_target, write_cells
from fillrank.errors import InputError

By = Literal["mean", "cautious", "curious"]


def recommend(
    model: options.Model,
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ROW]...", help="Row labels.", show_default=False),
    ] = None,
    all_rows: Annotated[
        bool,
        typer.Option("--all", help="For all rows; with --row-features, for all rows in that file."),
    ] = False,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many for each row.")] = 10,
    by: Annotated[
        By,
        typer.Option(
            help="mean: the largest expected value. cautious: the largest low quantile. curious: the "
            "largest value of a random draw, so that columns with uncertain predictions are tried.",
        ),
    ] = "mean",
    with_seen: Annotated[
        bool, typer.Option("--with-seen", help="Include columns in which the row has a value.")
    ] = False,
    row_features: options.NewRowFeatures = None,
    output: options.ResultsFile = None,
    as_json: options.Json = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Recommend columns for rows, the best first.

    Columns in which the row has a value are left out. The value shown is the one that determines the
    order: the mean, a low quantile, or a random draw. Rows that the model does not know get what suits
    their features, if the model was fitted with features of rows.

    Examples:

    - fillrank recommend ratings.fillrank Ana "Ben Okri" -n 5
    - fillrank recommend ratings.fillrank --all --by cautious -o best.csv
    - fillrank recommend ratings.fillrank Zoe --row-features people.csv
    """
    if all_rows == bool(rows):
        raise InputError("give one or more rows, or --all for all rows, but not both.")
    target = check_target(
        output, as_json, force, [model] if row_features is None else [model, row_features]
    )
    loaded = models.load(model, threads, quiet)
    data = loaded.observations_
    if not with_seen:
        models.check_entries(
            loaded, model, "leaving out columns with a value", "; or include them with --with-seen"
        )
    known = Labels(data.row_labels)
    if all_rows and row_features is not None:
        rows = labels_of(row_features)
    labels = known.find(rows or [])
    given = Features(read_new(row_features, known.unknown(labels), "row", quiet))
    found = loaded.recommend(
        None if all_rows and row_features is None else labels,
        n,
        by,
        leave_out=None if with_seen else "seen",
        random_state=seed,
        **given.arguments(),
    )
    write_cells([found], target, data.values)
    if target.is_file:
        show_files([target.path])
