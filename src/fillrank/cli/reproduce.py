"""``fillrank reproduce``: run the paper's experiments again."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from fillrank.cli import output
from fillrank.cli.exits import INTERRUPTED
from fillrank.cli.messages import duration, escape, out, say, show_files
from fillrank.cli.options import Threads

if TYPE_CHECKING:
    from fillrank.paper.study import Experiment, Record, Step

What = Literal["figure1", "table1", "figure2", "table2"]


def reproduce(
    what: Annotated[What, typer.Argument(help="The experiment.", metavar="WHAT")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version on generated data: a minute at most.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For table2 and figure2: a folder that has ml-1m in it, and eachmovie-sample if you "
            "have that. Without it, MovieLens 1M is downloaded.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the folders of results.",
            show_default="paper-results, paper-quick",
        ),
    ] = None,
    threads: Threads = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew, without earlier results.")
    ] = False,
) -> None:  # fmt: skip
    """Run an experiment of the paper again, with every method: figure1, table1, figure2 or table2.

    Results go to a folder of that name in the output folder: tables as .csv and .md, figures as .png
    and .svg. Each result is kept in results.jsonl as soon as it is there. If the run is stopped, the
    same command takes it up again.

    Examples:

    - fillrank reproduce figure1 --quick
    - fillrank reproduce table2 --data ~/movielens
    """
    from fillrank.paper.study import Request, open_record, results_of

    root = folder or Path("paper-quick" if quick else "paper-results")
    experiment: Experiment = import_module(f"fillrank.paper.{what}").experiment(
        Request(quick, data, root, threads)
    )
    place = root / what
    with output.staged(place, experiment.files, force=True) as stage:
        with output.writing(place):
            record = open_record(place, experiment, fresh)
        _run(experiment, record)
        with output.writing(place):
            words = experiment.present(results_of(experiment, record), stage)
    if words:
        out().print(escape("\n".join(words)))
    show_files([place / name for name in experiment.files])


def _run(experiment: "Experiment", record: "Record") -> None:
    """Do what is not done yet, and tell how far it is."""
    from fillrank.paper.study import advance

    step: Step | None = None
    try:
        with Console(stderr=True, highlight=False).status("") as status:
            for step in advance(experiment, record):
                if step.task is not None:
                    text = escape(_in_words(step))
                    say(text)
                    status.update(text)
    except KeyboardInterrupt as error:
        done = 0 if step is None else step.done
        say(
            f"Interrupted. {done} of {len(experiment.tasks)} results are kept in "
            f"{escape(str(record.path))}: the same command takes it up again."
        )
        raise typer.Exit(INTERRUPTED) from error


def _in_words(step: "Step") -> str:
    assert step.task is not None
    about = "; ".join(f"{name} {value}" for name, value in step.task.key.items())
    return f"{step.done + 1} of {step.total}, {duration(step.seconds_left)} left: {about}"
