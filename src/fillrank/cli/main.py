"""The command ``fillrank``: its verbs, and how it ends when something goes wrong."""

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
from fillrank.cli.exits import FAILED, INTERRUPTED, UNREAD
from fillrank.cli.explore import explore
from fillrank.cli.fit import fit
from fillrank.cli.predict import predict
from fillrank.cli.recommend import recommend
from fillrank.cli.report import report
from fillrank.cli.reproduce import reproduce
from fillrank.cli.signals import Interruptible
from fillrank.errors import FillrankError


class Verb(TyperCommand):
    """A verb; what the library warns of while it runs is shown as notes."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        with messages.notes(ctx.params.get("quiet", False)):
            return super().invoke(ctx)


class Guarded(TyperGroup):
    """Verbs whose expected errors end in one clear line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb that was asked for."""
        signals = Interruptible()
        try:
            with signals:
                result = super().invoke(ctx)
                messages.flush()
        except typer.Exit as ended:
            raise typer.Exit(signals.exit_code(ended.exit_code)) from ended
        except (Exception, KeyboardInterrupt) as error:
            # Some code in between may have made another error of an interruption.
            code = _explain(KeyboardInterrupt() if signals.received else error)
            if code is None:
                raise
            raise typer.Exit(signals.exit_code(code)) from error
        if code := signals.exit_code(0):
            raise typer.Exit(code)
        return result


def _explain(error: BaseException) -> int | None:
    """Say what went wrong, if that was to be expected, and return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        messages.say("Interrupted. Unfinished results were removed.")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _let_go()  # whoever read the output has left: there is no one to tell
        return UNREAD
    if isinstance(error, MemoryError):
        messages.say(
            "[bold red]Error:[/] the memory is full. Use a machine with more, or less data."
        )
        return FAILED
    if isinstance(error, (FillrankError, OSError)):
        messages.complain(error)
        return FAILED
    return None


def _let_go() -> None:
    """Have what is still to be written go nowhere, so that the end is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


app = typer.Typer(
    cls=Guarded,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
for verb in (
    complete, fit, predict, recommend, explore, report, evaluate, compare, demo, datasets, reproduce,
):  # fmt: skip
    app.command(cls=Verb)(verb)


def _show_version(wanted: bool) -> None:
    if wanted:
        messages.out().print(f"fillrank {__version__}")
        raise typer.Exit


@app.callback()
def fillrank(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Fill in the missing entries of a table, with honest uncertainty and no tuning.

    Begin with `fillrank demo`, or with `fillrank complete TABLE`. `fillrank VERB --help` explains each.

    It ends with

    - 0: all is done. That a run should have been longer is said, and is no failure.
    - 1: fillrank itself is at fault.
    - 2: the input or an option is no good, or the work failed.
    - 130: stopped by Ctrl-C.
    - 141: whoever read the output has left.
    - 143: stopped by SIGTERM, as by Ctrl-C.
    """
