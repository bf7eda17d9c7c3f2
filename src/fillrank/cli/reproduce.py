"""``fillrank reproduce``: run the experiments of the paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from fillrank.cli import output
from fillrank.cli.messages import escape, format_duration, report, show_files, stdout
from fillrank.cli.options import Threads
from fillrank.cli.signals import INTERRUPTED

if TYPE_CHECKING:
    from fillrank.paper.study import Experiment, Record, Step

What = Literal["figure1", "table1", "figure2", "table2"]


def reproduce(
    what: Annotated[What, typer.Argument(help="The experiment.", metavar="WHAT")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version on generated data, of a minute or less.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For table2 and figure2: a folder that contains ml-1m, and eachmovie-sample if you "
            "have it. Without the option, MovieLens 1M is downloaded.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the results.",
            show_default="paper-results, paper-quick",
        ),
    ] = None,
    threads: Threads = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start again, without earlier results.")
    ] = False,
) -> None:  # fmt: skip
    """Run an experiment of the paper with every method: figure1, table1, figure2 or table2.

    Results go to a folder of that name in the output folder: tables as .csv and .md, figures as .png
    and .svg. Each result is saved in results.jsonl as soon as it is computed. After an interruption, the
    same command resumes the experiment.

    Examples:

    - fillrank reproduce figure1 --quick
    - fillrank reproduce table2 --data ~/movielens
    """
    # Imported late: the experiments load matplotlib.
    from fillrank.paper import figure1, figure2, table1, table2
    from fillrank.paper.study import Request, open_record, results_of

    experiments = {"figure1": figure1, "table1": table1, "figure2": figure2, "table2": table2}
    root = folder or Path("paper-quick" if quick else "paper-results")
    experiment = experiments[what].experiment(Request(quick, data, root, threads))
    target = root / what
    with output.staged(target, experiment.files, force=True) as stage:
        with output.writing(target):
            record = open_record(target, experiment, fresh)
        _run(experiment, record)
        with output.writing(target):
            lines = experiment.present(results_of(experiment, record), stage)
    if lines:
        stdout().print(escape("\n".join(lines)))
    show_files([target / name for name in experiment.files])


def _run(experiment: "Experiment", record: "Record") -> None:
    """Run the tasks without results, and report the progress."""
    from fillrank.paper.study import advance

    step: Step | None = None
    try:
        with Console(stderr=True, highlight=False).status("") as status:
            for step in advance(experiment, record):
                if step.task is not None:
                    text = escape(_describe(step))
                    report(text)
                    status.update(text)
    except KeyboardInterrupt as error:
        done = 0 if step is None else step.done
        report(
            f"Interrupted. {done} of {len(experiment.tasks)} results are saved in "
            f"{escape(str(record.path))}: the same command resumes the experiment."
        )
        raise typer.Exit(INTERRUPTED) from error


def _describe(step: "Step") -> str:
    assert step.task is not None
    about = "; ".join(f"{name} {value}" for name, value in step.task.key.items())
    return f"{step.done + 1} of {step.total}, {format_duration(step.seconds_left)} left: {about}"
