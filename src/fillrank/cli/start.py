"""The entry point of the command ``fillrank``: signals end it quietly even while it is imported.

Until the handlers are set, Ctrl-C prints a traceback. So nothing is imported here but what Python has
loaded already: `signal` would import enum, which takes longer than all the rest.
"""

import _signal  # type: ignore[import-not-found]
import os


def main() -> None:
    """Import the commands, and run the requested one."""
    exit_on_signals()
    from fillrank.cli.main import app

    app()


def exit_on_signals() -> None:
    """Let signals end the process immediately, without a message."""
    for number in (_signal.SIGINT, _signal.SIGTERM):
        if _signal.getsignal(number) != _signal.SIG_IGN:  # what the parent ignores stays ignored
            _signal.signal(number, _exit)


def _exit(number: int, _frame: object) -> None:
    os._exit(128 + number)
