"""Progress of a long run: a bar in a terminal or a notebook, lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

_SECONDS_BETWEEN_LINES = 10.0
# Lines that are printed once: a command may fit the same table twice.
_reported: set[str] = set()


class Progress(Protocol):
    """A function that is called with the progress of a run; the total may change."""

    def __call__(self, done: int, total: int, note: str) -> None: ...


class _Lines:
    """Prints a line every ten seconds, so nothing in short runs."""

    def __init__(self, unit: str, before_total: str) -> None:
        self._unit = unit
        self._before_total = before_total
        self._last = time.monotonic()

    def __call__(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            print(  # noqa: T201
                f"fillrank: {self._unit} {done} of {self._before_total} {total}, {note}",
                file=sys.stderr,
                flush=True,
            )


class _Bar:
    """The progress bar of tqdm."""

    def __init__(self, unit: str) -> None:
        from tqdm import tqdm

        self._bar = tqdm(unit=unit, leave=False, dynamic_ncols=True)

    def __call__(self, done: int, total: int, note: str) -> None:
        self._bar.total = total
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _NotebookBar(_Bar):
    """The same as a widget. ImportError without ipywidgets."""

    def __init__(self, unit: str) -> None:
        from tqdm.notebook import tqdm

        # A widget whose total is not known at first does not show it later.
        self._bar = tqdm(unit=unit, leave=False, total=1)

    def __call__(self, done: int, total: int, note: str) -> None:
        if total != self._bar.total:
            self._bar.container.children[1].max = total
        super().__call__(done, total, note)


def report_progress(text: str, enabled: bool) -> None:
    """Print a line to standard error, if enabled."""
    if enabled:
        print(f"fillrank: {text}", file=sys.stderr, flush=True)  # noqa: T201


def report_once(text: str, enabled: bool) -> None:
    """Print a line to standard error, if enabled and if this process has not printed it before."""
    if enabled and not is_reported(text):
        mark_reported([text])
        report_progress(text, enabled)


def mark_reported(texts: Iterable[str]) -> None:
    """Do not report these texts again: a program has shown them in its own form."""
    _reported.update(texts)


def is_reported(text: str) -> bool:
    """Whether this process has reported a text."""
    return text in _reported


def _is_notebook() -> bool:
    """Whether the program runs in a kernel of Jupyter."""
    if "IPython" not in sys.modules:
        return False
    shell: Any = sys.modules["IPython"].get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _make_bar(unit: str) -> _Bar | None:
    """A bar where there is a place for it; None elsewhere."""
    if _is_notebook():
        try:
            return _NotebookBar(unit)
        except ImportError:
            return _Bar(unit)  # as text, which notebooks can show too
    return _Bar(unit) if sys.stderr.isatty() else None


@contextmanager
def make_progress(enabled: bool, unit: str, about: bool = False) -> Iterator[Progress]:
    """Progress in the form that suits standard error; nothing if not enabled.

    ``about`` says that the total is an estimate, and not the largest possible one.
    """
    if not enabled:
        yield lambda done, total, note: None
    elif (bar := _make_bar(unit)) is not None:
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield _Lines(unit, "about" if about else "at most")
