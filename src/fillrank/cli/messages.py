"""Text for the terminal: results go to standard output, everything else to standard error.

Text from a table or a path is shown literally: "[red]x" is not markup, and control characters, which a
terminal would execute, are escaped. Lines are not wrapped: a path stays in one piece.
"""

import logging
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from rich import markup
from rich.console import Console
from rich.table import Table

from fillrank.errors import CheckpointWarning, Setting, SmallTableWarning, describe
from fillrank.report.interface import Interface

Results = list[tuple[str, str]]  # titles and texts
# Settings of the library that are options here, with the placeholder of a value that users choose.
_OPTIONS = {
    "by": ("--by", "NAME"),
    "checkpoint": ("--checkpoint", "DIR"),
    "column": ("--column", "NAME"),
    "columns": ("--columns", "NAMES"),
    "column_features": ("--column-features", "FILE"),
    "column_titles": ("--column-titles", "FILE"),
    "decimal": ("--decimal", "MARK"),
    "duplicates": ("--duplicates", "NAME"),
    "encoding": ("--encoding", "NAME"),
    "format": ("--format", "NAME"),
    "ignore": ("--ignore", "NAME"),
    "label": ("--label", "NAME"),
    "layout": ("--layout", "NAME"),
    "level": ("--level", "SHARE"),
    "max_rank": ("--max-rank", "N"),
    "keep_empty_features": ("--keep-empty", ""),
    "kinds": ("--kind", ""),
    "likelihood": ("--likelihood", ""),
    "thresholds": ("--thresholds", ""),
    "bounds": ("--bounds", ""),
    "round": ("--no-round", ""),
    "missing_values": ("--na", "VALUES"),
    "n_chains": ("--chains", "N"),
    "n_splits": ("--folds", "N"),
    "n_sweeps": ("--sweeps", "N"),
    "n_threads": ("--threads", "N"),
    "noise": ("--noise", "NAME"),
    "path": ("--from", "PATH"),
    "random_state": ("--seed", "N"),
    "relevant": ("--relevant", "VALUE"),
    "robust": ("--robust", ""),
    "row": ("--row", "NAME"),
    "row_features": ("--row-features", "FILE"),
    "row_titles": ("--row-titles", "FILE"),
    "sheet": ("--sheet", "NAME"),
    "skip": ("--skip", "N"),
    "standard_error": ("--standard-error", "NAME"),
    "thousands": ("--thousands", "MARK"),
    "units": ("--units", "NAME"),
    "unknown": ("--unknown", "NAME"),
    "value": ("--value", "NAME"),
    "weight": ("--weight", "NAME"),
}


_running: ContextVar[str] = ContextVar("running", default="fillrank")


class _Terminal(Console):
    """Raises an error if the reader of the output has closed the pipe."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def keep_command(words: Sequence[str]) -> None:
    """Keep the words of the command that is running, for `command_line`."""
    _running.set(shlex.join(["fillrank", *words]))


def command_line(to_hold_out: str, notes: tuple[str, ...] = ()) -> Interface:
    """The command line, for reports: its options and the command that is running."""
    return Interface(option, with_option, _running.get(), to_hold_out, notes)


def stdout() -> Console:
    """The console for results."""
    return _Terminal(highlight=False, soft_wrap=True)


def report(markup: str) -> None:
    """Print a message."""
    _Terminal(stderr=True, highlight=False, soft_wrap=True).print(markup)


def report_error(error: Exception) -> None:
    """Print the message of an error."""
    report(f"[bold red]Error:[/] {escape(describe_error(error))}")


def report_note(text: str) -> None:
    """Print a note."""
    report(f"[bold yellow]Note:[/] {escape(text)}")


@contextmanager
def show_warnings(quiet: bool) -> Iterator[None]:
    """Show warnings of the library as notes.

    With ``quiet``, only those about unsaved work and about intervals that are not reliable.
    """

    def show(message: Any, *_: Any, **__: Any) -> None:
        if not quiet or isinstance(message, CheckpointWarning | SmallTableWarning):
            report_note(describe_error(message))

    # Without a cache folder, matplotlib would log a long message about it too.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def describe_error(error: Exception) -> str:
    """The message of an error, with options in place of the library's settings."""
    return describe(error, option)


def option(setting: Setting) -> str | None:
    """Write a setting of the library as an option; None if there is no such option.

    Examples
    --------
    >>> option(Setting("duplicates", "mean")), option(Setting("n_sweeps")), option(Setting("tolerance"))
    ('--duplicates mean', '--sweeps', None)
    >>> option(Setting("missing_values", ["<LOD"])), option(Setting("missing_values", ["n.n."]))
    ("--na '<LOD'", "--na 'n.n.'")
    """
    if setting.name not in _OPTIONS:
        return None
    name, placeholder = _OPTIONS[setting.name]
    if setting.value is None:
        return name
    if setting.value is ...:
        return f"{name} {placeholder}"
    value = setting.value
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value).removesuffix(".0")
    # A shell would take the < of <LOD for a file, and a reader a final point for that of the sentence.
    return f"{name} '{text}'" if re.fullmatch(r"[\w.]*\.", text) else f"{name} {shlex.quote(text)}"


def with_option(note: str) -> str:
    """A note with the option of the command line in place of the argument of the library.

    Examples
    --------
    >>> with_option("If it means a missing value, set missing_values=[-999].")
    'If it means a missing value, add --na -999.'
    """
    note = re.sub(r"set missing_values=\[([^]]*)\]", r"add --na \1", note)
    return note.replace("set skip=0", "add --skip 0")


def escape(text: str) -> str:
    """Escape text so that rich shows it literally, and control characters are visible.

    Examples
    --------
    >>> escape("[red]x"), escape("ring\\a")
    ('\\\\[red]x', 'ring\\\\x07')
    """
    return markup.escape("".join(map(_visible, text)))


def escape_line(text: str) -> str:
    """Escape text for a single line."""
    return escape(text).replace("\n", "\\n")


def _visible(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return repr(character)[1:-1]


def show_results(results: Results, file: TextIO | None = None) -> None:
    """Print titles and texts as two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, text in results:
        grid.add_row(escape(title), escape(text))
    _Terminal(highlight=False, file=file).print(grid)


def show_files(paths: Sequence[Path]) -> None:
    """Print the paths of the results, one per line."""
    for path in paths:
        stdout().print(escape(str(path)))


def format_duration(seconds: float) -> str:
    """Format an approximate duration.

    Examples
    --------
    >>> format_duration(0.3), format_duration(4.2), format_duration(100), format_duration(9000)
    ('about 1 s', 'about 4 s', 'about 2 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"


def flush() -> None:
    """Flush the output, or raise an error if the pipe is closed."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
