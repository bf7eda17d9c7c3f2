"""Progress of a long run: a bar in a terminal, lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_SECONDS_BETWEEN_LINES = 10.0
# Lines that are printed once: a command may fit the same table twice.
_reported: set[str] = set()


class Progress(Protocol):
    """A function that is called with the progress of a run."""

    def __call__(self, done: int, total: int, note: str) -> None: ...


class _Lines:
    """Prints a line every ten seconds, so nothing in short runs."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._last = time.monotonic()

    def __call__(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            print(  # noqa: T201
                f"fillrank: {self._unit} {done} of at most {total}, {note}",
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


def report_progress(text: str, enabled: bool) -> None:
    """Print a line to standard error, if enabled."""
    if enabled:
        print(f"fillrank: {text}", file=sys.stderr, flush=True)  # noqa: T201


def report_once(text: str, enabled: bool) -> None:
    """Print a line to standard error, if enabled and if this process has not printed it before."""
    if enabled and text not in _reported:
        _reported.add(text)
        report_progress(text, enabled)


@contextmanager
def make_progress(enabled: bool, unit: str) -> Iterator[Progress]:
    """Progress in the form that suits standard error; nothing if not enabled."""
    if not enabled:
        yield lambda done, total, note: None
    elif sys.stderr.isatty():
        bar = _Bar(unit)
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield _Lines(unit)
