"""The program ``fillrank``: its commands, and the messages and exit codes of failures."""

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fillrank import __version__
from fillrank.cli import messages
from fillrank.cli.compare import compare
from fillrank.cli.complete import complete
from fillrank.cli.datasets import datasets
from fillrank.cli.demo import demo
from fillrank.cli.evaluate import evaluate
from fillrank.cli.explore import explore
from fillrank.cli.fit import fit
from fillrank.cli.fold_in import fold_in
from fillrank.cli.predict import predict
from fillrank.cli.recommend import recommend
from fillrank.cli.report import report
from fillrank.cli.reproduce import reproduce
from fillrank.cli.signals import BROKEN_PIPE, FAILED, INTERRUPTED, Interruptible
from fillrank.cli.update import update
from fillrank.errors import FillrankError


class Verb(TyperCommand):
    """A command; warnings of the library are shown as notes while it runs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for reports."""
        messages.keep_command([ctx.info_name, *args])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        with messages.show_warnings(ctx.params.get("quiet", False)):
            return super().invoke(ctx)


class Verbs(TyperGroup):
    """The commands; expected errors end in a message instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the requested command."""
        signals = Interruptible()
        try:
            with signals:
                result = super().invoke(ctx)
                messages.flush()
        except typer.Exit as ended:
            raise typer.Exit(signals.exit_code(ended.exit_code)) from ended
        except (Exception, KeyboardInterrupt) as error:
            # Code in between may have converted an interruption into another error.
            code = _report_failure(KeyboardInterrupt() if signals.received else error)
            if code is None:
                raise
            raise typer.Exit(signals.exit_code(code)) from error
        if code := signals.exit_code(0):
            raise typer.Exit(code)
        return result


def _report_failure(error: BaseException) -> int | None:
    """Print the message of an expected error and return the exit code; None for other errors."""
    if isinstance(error, KeyboardInterrupt):
        messages.report("Interrupted. Unfinished results were removed.")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return BROKEN_PIPE
    if isinstance(error, MemoryError):
        messages.report(
            "[bold red]Error:[/] out of memory. Use a machine with more memory, or less data."
        )
        return FAILED
    if isinstance(error, (FillrankError, OSError)):
        messages.report_error(error)
        return FAILED
    return None


def _discard_output() -> None:
    """Send buffered output to the null device: Python would fail to flush it to a closed pipe."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
for verb in (
    complete, fit, predict, recommend, fold_in, update, explore, report, evaluate, compare, demo,
    datasets, reproduce,
):  # fmt: skip
    app.command(cls=Verb)(verb)


def _show_version(requested: bool) -> None:
    if requested:
        messages.stdout().print(f"fillrank {__version__}")
        raise typer.Exit


@app.callback()
def fillrank(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Fill in the missing values of a table, with an interval or probabilities for each.

    Start with `fillrank demo` or `fillrank complete TABLE`. `fillrank COMMAND --help` explains each.

    Exit codes:

    - 0: success, also if a run has not converged, which is reported.
    - 1: a bug in fillrank.
    - 2: the input or an option is invalid, or the work failed.
    - 130: interrupted by Ctrl-C.
    - 141: the reader of the output has closed the pipe.
    - 143: terminated by SIGTERM.
    """
