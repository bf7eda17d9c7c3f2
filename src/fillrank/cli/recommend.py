"""``fillrank recommend``: the best columns for a row."""

from typing import Annotated, Literal

import typer

from fillrank.cli import answers, models
from fillrank.cli import options as given
from fillrank.cli.messages import show_files
from fillrank.errors import InputError

By = Literal["mean", "cautious", "curious"]


def recommend(
    model: given.Model,
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ROW]...", help="Names of rows.", show_default=False),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="For all rows.")] = False,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many for each row.")] = 10,
    by: Annotated[
        By,
        typer.Option(
            help="mean: the highest expected value. cautious: what will hardly disappoint. curious: by "
            "chance, so that columns are tried about which little is known.",
        ),
    ] = "mean",
    with_seen: Annotated[
        bool, typer.Option("--with-seen", help="Also what a row has a value for already.")
    ] = False,
    output: given.AnswersFile = None,
    as_json: given.Json = False,
    seed: given.Seed = 0,
    threads: given.Threads = None,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:
    """Recommend columns for rows, the best first.

    What a row has a value for already is left out. The value shown is what the order is by: the mean,
    a low quantile, or a draw by chance.

    Examples:

    - fillrank recommend ratings.fillrank Ana "Ben Okri" -n 5
    - fillrank recommend ratings.fillrank --all --by cautious -o best.csv
    """
    if everyone == bool(rows):
        raise InputError(
            "name one row or more, or ask for all by --all; not both, and not neither."
        )
    where = answers.target(output, as_json, force, [model])
    loaded = models.load(model, threads, quiet)
    data = loaded.observations_
    if not with_seen:
        models.check_entries(
            loaded, model, "leaving out what was seen", "; or add --with-seen to leave out nothing"
        )
    found = loaded.recommend(
        None if everyone else models.row_names(data).of(rows or []),
        n,
        by,
        leave_out=None if with_seen else "seen",
        random_state=seed,
    )
    answers.write([found], where, data.values)
    if where.is_file:
        show_files([where.path])
