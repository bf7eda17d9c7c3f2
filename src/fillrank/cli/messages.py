"""Words for the terminal: results to standard output, all else to standard error.

Whatever comes from a table or a path is shown as it is: "[red]x" is no markup, and a control
character is written out, for a terminal would obey it. Lines are not broken: a path must stay in one
piece, and the terminal can wrap by itself.
"""

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import markup
from rich.console import Console
from rich.table import Table

from fillrank.errors import CheckpointWarning, Setting, SmallTableWarning, describe

__all__ = [
    "Lines",
    "complain",
    "duration",
    "escape",
    "flush",
    "in_words",
    "notes",
    "on_one_line",
    "out",
    "say",
    "show_files",
    "show_results",
]

Lines = list[tuple[str, str]]  # what, and the text on it
# Settings of the library that are options here, with the placeholder of a value that users choose.
_OPTIONS = {
    "by": ("--by", "NAME"),
    "checkpoint": ("--checkpoint", "DIR"),
    "column": ("--column", "NAME"),
    "duplicates": ("--duplicates", "NAME"),
    "format": ("--format", "NAME"),
    "layout": ("--layout", "NAME"),
    "level": ("--level", "SHARE"),
    "max_rank": ("--max-rank", "N"),
    "n_chains": ("--chains", "N"),
    "n_sweeps": ("--sweeps", "N"),
    "n_threads": ("--threads", "N"),
    "path": ("--from", "PATH"),
    "random_state": ("--seed", "N"),
    "row": ("--row", "NAME"),
    "unknown": ("--unknown", "NAME"),
    "value": ("--value", "NAME"),
}


class _Terminal(Console):
    """Leaves it to the verbs' guard to end when whoever reads the output has left."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Console:
    """Where results go."""
    return _Terminal(highlight=False, soft_wrap=True)


def say(markup: str) -> None:
    """Tell the user what happens."""
    _Terminal(stderr=True, highlight=False, soft_wrap=True).print(markup)


def escape(text: str) -> str:
    """Text of a user as rich shows it unchanged; control characters are written out.

    Examples
    --------
    >>> escape("[red]x"), escape("ring\\a")
    ('\\\\[red]x', 'ring\\\\x07')
    """
    return markup.escape("".join(map(_visible, text)))


def on_one_line(text: str) -> str:
    """The same, for a place that has a single line."""
    return escape(text).replace("\n", "\\n")


def _visible(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return repr(character)[1:-1]


def complain(error: Exception) -> None:
    """Tell the user what went wrong: what was allowed, what came, what to do."""
    say(f"[bold red]Error:[/] {escape(in_words(error))}")


@contextmanager
def notes(quiet: bool) -> Iterator[None]:
    """Show warnings of the library as notes.

    If silence was asked for, only those of lost work, and of intervals that are not to be relied on.
    """

    def show(message: Any, *_: Any, **__: Any) -> None:
        if not quiet or isinstance(message, CheckpointWarning | SmallTableWarning):
            say(f"[bold yellow]Note:[/] {escape(in_words(message))}")

    # Where there is no cache folder, matplotlib would say so too, at length.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def in_words(error: Exception) -> str:
    """The message of an error, with options in place of the library's settings."""
    return describe(error, option)


def option(setting: Setting) -> str | None:
    """Write a setting of the library as an option; None if there is no such option.

    Examples
    --------
    >>> option(Setting("duplicates", "mean")), option(Setting("n_sweeps")), option(Setting("tolerance"))
    ('--duplicates mean', '--sweeps', None)
    """
    if setting.name not in _OPTIONS:
        return None
    name, placeholder = _OPTIONS[setting.name]
    if setting.value is None:
        return name
    return f"{name} {placeholder if setting.value is ... else setting.value}"


def show_results(results: Lines, file: Any = None) -> None:
    """Print results as two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for what, text in results:
        grid.add_row(escape(what), escape(text))
    _Terminal(highlight=False, file=file).print(grid)


def show_files(paths: Sequence[Path]) -> None:
    """Print where the results are, a line for each."""
    for path in paths:
        out().print(escape(str(path)))


def duration(seconds: float) -> str:
    """A time for humans.

    Examples
    --------
    >>> duration(0.3), duration(4.2), duration(100), duration(9000)
    ('about 1 s', 'about 4 s', 'about 2 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"


def flush() -> None:
    """Have all that was printed arrive, or know that no one reads it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
