"""Warnings that point at the user's own line."""

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, whatever was called in between."""
    level, found, frame = 1, 1, sys._getframe(0)
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            found = level + 1
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=found)
