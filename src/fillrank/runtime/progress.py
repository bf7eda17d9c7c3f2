"""Progress of a long run: a bar in a terminal, plain lines elsewhere, silence when asked."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    """Something that is told how far a run is."""

    def __call__(self, done: int, total: int, note: str) -> None: ...


class _Lines:
    """A line every ten seconds: short runs say nothing."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._last = time.monotonic()

    def __call__(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            print(
                f"fillrank: {self._unit} {done} of at most {total}, {note}",
                file=sys.stderr,
                flush=True,
            )


class _Bar:
    """tqdm's bar, made at the first sweep."""

    def __init__(self, unit: str) -> None:
        from tqdm import tqdm

        self._bar = tqdm(unit=unit, leave=False, dynamic_ncols=True)

    def __call__(self, done: int, total: int, note: str) -> None:
        self._bar.total = total
        self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def say(text: str, wanted: bool) -> None:
    """A line to standard error, if progress is wanted."""
    if wanted:
        print(f"fillrank: {text}", file=sys.stderr, flush=True)


@contextmanager
def progress_for(wanted: bool, unit: str) -> Iterator[Progress]:
    """The kind of progress that fits where standard error goes."""
    if not wanted:
        yield lambda done, total, note: None
    elif sys.stderr.isatty():
        bar = _Bar(unit)
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield _Lines(unit)
