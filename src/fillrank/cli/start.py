"""The entry point of the command ``fillrank``: a signal ends it quietly even while it is loaded."""

from fillrank.cli.signals import end_at_once


def main() -> None:
    """Load the verbs, and run the one that was asked for."""
    end_at_once()
    from fillrank.cli.main import app

    app()
