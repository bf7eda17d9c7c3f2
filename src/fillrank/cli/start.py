"""The entry point of the command ``fillrank``: a signal ends it quietly even while it is loaded.

Until the handlers are set, Ctrl-C prints a traceback. So nothing is imported here but what Python has
loaded already: `signal` would bring enum along, which takes longer than all the rest.
"""

import _signal  # type: ignore[import-not-found]
import os


def main() -> None:
    """Load the verbs, and run the one that was asked for."""
    end_at_once()
    from fillrank.cli.main import app

    app()


def end_at_once() -> None:
    """From here on, have a signal end the process without a word."""
    for number in (_signal.SIGINT, _signal.SIGTERM):
        if _signal.getsignal(number) != _signal.SIG_IGN:  # what the parent ignores stays ignored
            _signal.signal(number, _end)


def _end(number: int, frame: object) -> None:
    os._exit(128 + number)
