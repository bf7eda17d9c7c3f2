"""Words for the terminal: results to standard output, all else to standard error.

Whatever comes from a table or a path is escaped, so that a name like "[red]x" shows as it is. Lines
are not broken: a path must stay in one piece, and the terminal can wrap by itself.
"""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["Lines", "complain", "escape", "out", "say", "show_files", "show_results"]

Lines = list[tuple[str, str]]  # what, and the text on it


def out() -> Console:
    """Where results go."""
    return Console(highlight=False, soft_wrap=True)


def say(markup: str) -> None:
    """Tell the user what happens."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(markup)


def complain(error: Exception) -> None:
    """Tell the user what went wrong: what was allowed, what came, what to do."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    # The library's messages name its arguments; here they are options.
    message = message.replace('duplicates="mean"', "--duplicates mean")
    say(f"[bold red]Error:[/] {escape(message)}")


def show_results(results: Lines) -> None:
    """Print results as two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for what, text in results:
        grid.add_row(what, escape(text))
    Console(highlight=False).print(grid)


def show_files(paths: Sequence[Path]) -> None:
    """Print where the results are, a line for each."""
    for path in paths:
        out().print(escape(str(path)))
