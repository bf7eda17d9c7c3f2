"""``fillrank recommend``: the best columns for a row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import fillrank as fr
from fillrank.cli import models, options
from fillrank.cli.features import Features, labels_of, read_new
from fillrank.cli.labels import Labels
from fillrank.cli.messages import report_note, show_files
from fillrank.cli.predict import Pairs, read_pairs
from fillrank.cli.results import check_target, write_cells
from fillrank.cli.titles import TitleFiles
from fillrank.errors import InputError
from fillrank.table.labels import as_text
from fillrank.table.observations import Observations

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
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="COLUMN",
            help="Choose from this column. Repeat it for several.", show_default="all columns",
        ),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out", metavar="COLUMN",
            help="Do not recommend this column. Repeat it for several.",
        ),
    ] = None,
    leave_out_cells: Annotated[
        Path | None,
        typer.Option(
            "--leave-out-cells", metavar="PAIRS",
            help="Do not recommend these cells: a .csv or .parquet file with the row label and the "
            "column label of each.",
        ),
    ] = None,
    row_features: options.NewRowFeatures = None,
    row_titles: options.RowTitles = None,
    column_titles: options.ColumnTitles = None,
    output: options.ResultsFile = None,
    as_json: options.Json = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:  # fmt: skip
    """Recommend columns for rows, the best first.

    Columns in which the row has a value are left out. The value shown is the one that determines the
    order: the mean, a low quantile, or a random draw. Rows that the model does not know get what suits
    their features, if the model was fitted with features of rows.

    Examples:

    - fillrank recommend ratings.fillrank Ana "Ben Okri" -n 5
    - fillrank recommend ratings.fillrank --all --by cautious -o best.csv
    - fillrank recommend ratings.fillrank Ana --only tea --only coffee
    - fillrank recommend ratings.fillrank --all --leave-out-cells bought.csv
    - fillrank recommend ratings.fillrank Zoe --row-features people.csv
    - fillrank recommend ml-1m.fillrank 12 --column-titles movies.dat
    """
    if all_rows == bool(rows):
        raise InputError("give one or more rows, or --all for all rows, but not both.")
    files = [path for path in (row_features, leave_out_cells) if path is not None]
    title_files = TitleFiles(row_titles, column_titles)
    target = check_target(output, as_json, force, [model, *files, *title_files.paths])
    loaded = models.load(model, threads, quiet)
    data = loaded.observations_
    titles = title_files.read(data, quiet)
    if not with_seen:
        models.check_entries(
            loaded, model, "leaving out columns with a value", "; or include them with --with-seen"
        )
    known = Labels(data.row_labels)
    if all_rows and row_features is not None:
        rows = labels_of(row_features)
    labels = known.find(rows or [])
    given = Features(read_new(row_features, known.unknown(labels), "row", quiet))
    pairs = None if leave_out_cells is None else read_pairs(leave_out_cells, data, None, None)
    found = loaded.recommend(
        None if all_rows and row_features is None else labels,
        n,
        by,
        leave_out=_cells_left_out(pairs, with_seen),
        only=_candidates(data, only, leave_out),
        random_state=seed,
        **given.arguments(),
    )
    if not quiet and len(found) == 0:
        also = "" if with_seen else ", or the row has a value in it, which --with-seen allows"
        report_note(f"no column is left to recommend: each is left out{also}.")
    write_cells([found], target, data.values, titles)
    if target.is_file:
        show_files([target.path])


def _cells_left_out(pairs: Pairs | None, with_seen: bool) -> Any:
    """What to leave out: observed cells, unless ``with_seen``, and the given ones."""
    if pairs is None:
        return None if with_seen else "seen"
    if with_seen:
        rows, columns = pairs
        ones = [1.0] * len(rows)
        return fr.Observations.from_triplets(rows, columns, ones, duplicates="last")
    by_row: dict[Any, list[Any]] = {}
    for row, column in zip(*pairs, strict=True):
        by_row.setdefault(row, []).append(column)
    return by_row


def _candidates(
    data: Observations, only: Sequence[str] | None, leave_out: Sequence[str] | None
) -> list[Any] | None:
    """The columns to choose from; None for all."""
    if not only and not leave_out:
        return None
    known = Labels(data.column_labels)
    unwanted = known.find(leave_out or [])
    data.column_positions(unwanted)  # an error if one is not known
    candidates = known.find(only) if only else data.column_labels.tolist()
    texts = {as_text(label) for label in unwanted}
    return [label for label in candidates if as_text(label) not in texts]
