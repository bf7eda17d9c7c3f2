"""The door of the command ``fillrank``: Ctrl-C ends it quietly even while its parts are loaded."""

import sys

from fillrank.cli.exits import INTERRUPTED


def main() -> None:
    """Load the verbs, and run the one that was asked for."""
    try:
        from fillrank.cli.main import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    app()
