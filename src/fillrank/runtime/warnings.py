"""Warnings that point at the line of the user's code."""

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def warn_user(warning: Warning) -> None:
    """Issue a warning for the line that called this package, whatever was called in between."""
    level, found, frame = 1, 1, sys._getframe(0)
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            found = level + 1
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=found)
