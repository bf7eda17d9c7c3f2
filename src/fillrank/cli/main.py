"""The command ``fillrank``: its verbs, and how it ends when something goes wrong."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fillrank import __version__
from fillrank.cli import messages
from fillrank.cli.complete import complete
from fillrank.cli.demo import demo
from fillrank.cli.reproduce import reproduce
from fillrank.errors import FillrankError

FAILED = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class Guarded(TyperGroup):
    """Verbs whose expected errors end in one clear line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb that was asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever read the output has left; typer ends quietly
        except (FillrankError, OSError) as error:
            messages.complain(error)
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt as error:
            messages.say("Interrupted. No results were written.")
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=Guarded,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)
app.command()(complete)
app.command()(demo)
app.command()(reproduce)


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
    """Fill in the missing entries of a table, with honest uncertainty and no tuning."""
