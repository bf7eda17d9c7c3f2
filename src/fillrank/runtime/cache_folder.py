"""Where things are kept that can be had again: data sets from the network, compiled kernels."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fillrank.errors import OutputError


def cache_folder() -> Path:
    """Name fillrank's folder in the user's cache folder; neither need be there yet.

    The user's is ``$XDG_CACHE_HOME`` or ``%LOCALAPPDATA%`` if one is set, else ``~/Library/Caches`` on
    macOS and ``~/.cache`` elsewhere.

    Raises
    ------
    OutputError
        None is set, and this user has no home.

    Examples
    --------
    >>> cache_folder().name
    'fillrank'
    """
    named = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if named:
        return Path(named) / "fillrank"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise OutputError(
            "there is no cache folder, because this user has no home. Set the environment variable "
            "XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return home.joinpath(*_usual_place(sys.platform), "fillrank")


@contextmanager
def some_home() -> Iterator[None]:
    """Let packages that look for the user's home when they are imported find one in any case."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = os.path.abspath(os.sep)
        try:
            yield
        finally:
            del os.environ["HOME"]
    else:
        yield


def _usual_place(platform: str) -> tuple[str, ...]:
    return ("Library", "Caches") if platform == "darwin" else (".cache",)
