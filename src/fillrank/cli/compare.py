"""``fillrank compare``: every method on the same hidden entries of a table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fillrank.cli import estimate, output, source
from fillrank.cli import options as given
from fillrank.cli.answers import show_json
from fillrank.cli.contest import Contest, as_csv, for_programs, show
from fillrank.cli.exits import FAILED, INTERRUPTED
from fillrank.cli.messages import say, show_files
from fillrank.cli.methods import Settings
from fillrank.cli.scores import Split
from fillrank.cli.source import Source
from fillrank.cli.summary import as_json as json_text
from fillrank.errors import InputError
from fillrank.storage.atomic_write import write_atomically

_ALL = ",".join(given.METHODS)


def _methods(text: str) -> Any:
    """Take names of methods, with commas between them."""
    names = [given.method_name(name) for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"name one method at least. There are {', '.join(given.METHODS)}.")
    return list(dict.fromkeys(names))


def compare(
    table: given.Table,
    chosen: Annotated[
        Any,
        typer.Option(
            "--methods", parser=_methods, metavar="A,B,...", help="The methods to compare.",
            show_default="all",
        ),
    ] = _ALL,
    splits: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often entries are hidden, at random.")
    ] = 3,
    hold_out: given.Hidden = 0.2,
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
    threads: given.Threads = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the figures to this file too: .csv .json.",
        ),
    ] = None,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    force: given.Force = False,
) -> None:  # fmt: skip
    """Compare the methods on a table: their errors, intervals and times.

    All methods get the same hidden entries. One that cannot take the table, or fails, is listed with the
    reason. Ctrl-C shows what there is so far.

    Examples:

    - fillrank compare ratings.csv
    - fillrank compare ratings.csv --methods GASR,BPMF --splits 5 -o figures.csv
    """
    if file is not None:
        _check_file(file, force, table)
    origin = Source(table, row, column, value, layout, duplicates, format, skip, encoding)
    data = source.read(origin, quiet, to_fill=False)
    parts = [Split(*data.split(hold_out, random_state=seed + k)) for k in range(splits)]
    settings = [Settings(name, threads=threads, seed=seed) for name in chosen]
    if not quiet:
        estimate.tell(settings, data, times=splits)
    contest = Contest(settings, parts, level)
    interrupted = False
    try:
        contest.run(quiet)
    except KeyboardInterrupt:
        interrupted = True
        some = any(entrant.scores for entrant in contest.entrants)
        say("Interrupted. " + ("This is what there is." if some else "There are no results yet."))
    found = for_programs(contest, origin, data)
    if as_json:
        show_json(found)
    else:
        show(contest)
    if file is not None:
        _write(file, contest, found)
        if not as_json:
            show_files([file])
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not contest.ranked():
        raise typer.Exit(FAILED)


def _check_file(file: Path, force: bool, table: Path) -> None:
    if file.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"{file}: the figures are written as .csv or .json; got {file.suffix!r}.")
    output.check_file(file, force, [table])


def _write(file: Path, contest: Contest, found: dict[str, Any]) -> None:
    text = as_csv(contest) if file.suffix.lower() == ".csv" else json_text(found) + "\n"
    with write_atomically(file) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
