"""Signals and exit codes.

Ctrl-C and SIGTERM end a command in the same way. While it is imported nothing has been written, and the
process ends immediately (see `start`). While it runs, a signal raises KeyboardInterrupt, so that
unfinished files are removed. During an import the signal is sent again later: packages with compiled
parts convert the exception into an ImportError, or lose it. If Python has to drop the exception, as in a
callback of the compiler, the signal is sent again as well.
"""

import _thread
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

FAILED = 2
INTERRUPTED = 130  # 128 + SIGINT, as in shells
BROKEN_PIPE = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PAUSE = 0.02  # seconds until a signal is sent again


def _handle(number: int, handler: Any) -> Any:
    """Set a handler and return the previous one; signals that the parent ignores stay ignored."""
    previous = signal.getsignal(number)
    if previous is not signal.SIG_IGN:
        signal.signal(number, handler)
    return previous


class Interruptible:
    """A context in which a signal raises KeyboardInterrupt, as soon as no import is under way."""

    def __init__(self) -> None:
        self.received: set[int] = set()

    def __enter__(self) -> "Interruptible":
        self._outer_frame = sys._getframe(1)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        self._previous: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():  # others cannot set handlers
            self._previous = {number: _handle(number, self._interrupt) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def exit_code(self, code: int) -> int:
        """The exit code in place of ``code``: programs that send SIGTERM expect its own."""
        return TERMINATED if signal.SIGTERM in self.received else code

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.received.add(number)
        if self._is_importing(frame):
            _send_later(number)
        else:
            raise KeyboardInterrupt

    def _dropped(self, unraisable: Any) -> None:
        """Handle exceptions that cannot be caught."""
        if self.received and issubclass(unraisable.exc_type, KeyboardInterrupt):
            _send_later(max(self.received))
        else:
            self._hook(unraisable)

    def _is_importing(self, frame: FrameType | None) -> bool:
        while frame is not None and frame is not self._outer_frame:
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
