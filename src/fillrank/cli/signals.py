"""Ctrl-C and SIGTERM: both end a verb in the same way.

While modules are loaded nothing has been written, and the process can end at once. While a verb runs, a
signal raises KeyboardInterrupt, so that unfinished files are removed. It waits for the end of an import:
packages with compiled parts turn the exception into an ImportError, or lose it. Where Python itself has
to drop the exception, as in a callback of the compiler, it is raised again a little later.
"""

import _thread
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from fillrank.cli.exits import TERMINATED

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PAUSE = 0.02  # seconds until a signal that came at a bad moment is sent again


def _handle(number: int, handler: Any) -> Any:
    """Set a handler and return the one before it; what the parent process ignores stays ignored."""
    before = signal.getsignal(number)
    if before is not signal.SIG_IGN:
        signal.signal(number, handler)
    return before


class Interruptible:
    """A context in which a signal raises KeyboardInterrupt, as soon as no import is under way."""

    def __init__(self) -> None:
        self.received: set[int] = set()

    def __enter__(self) -> "Interruptible":
        self._outside = sys._getframe(1)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():  # others cannot set handlers
            self._before = {number: _handle(number, self._interrupt) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def exit_code(self, code: int) -> int:
        """The code to end with in place of this one: programs that send SIGTERM look for its own."""
        return TERMINATED if signal.SIGTERM in self.received else code

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.received.add(number)
        if self._is_importing(frame):
            _send_later(number)
        else:
            raise KeyboardInterrupt

    def _dropped(self, unraisable: Any) -> None:
        """Called with exceptions that nobody can catch."""
        if self.received and issubclass(unraisable.exc_type, KeyboardInterrupt):
            _send_later(max(self.received))
        else:
            self._hook(unraisable)

    def _is_importing(self, frame: FrameType | None) -> bool:
        while frame is not None and frame is not self._outside:
            if frame.f_code.co_filename.startswith("<frozen importlib."):
                return True
            frame = frame.f_back
        return False


def _send_later(number: int) -> None:
    _thread.start_new_thread(_send, (signal.Signals(number),))


def _send(number: signal.Signals) -> None:
    time.sleep(_PAUSE)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(number)
