"""The cache folder, for downloaded data sets and compiled kernels."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fillrank.errors import OutputError


def cache_folder() -> Path:
    """The path of fillrank's folder in the user's cache folder; it may not exist yet.

    The user's cache folder is ``$XDG_CACHE_HOME`` or ``%LOCALAPPDATA%`` if one is set, else
    ``~/Library/Caches`` on macOS and ``~/.cache`` elsewhere.

    Raises
    ------
    OutputError
        None of these is set, and the user has no home folder.

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
            "there is no cache folder, because this user has no home folder",
            advice="Set the environment variable XDG_CACHE_HOME to a folder that can be written.",
        ) from error
    return home.joinpath(*_default_cache(sys.platform), "fillrank")


@contextmanager
def temporary_home() -> Iterator[None]:
    """Set HOME if the user has no home folder, for packages that look for it when imported."""
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


def _default_cache(platform: str) -> tuple[str, ...]:
    return ("Library", "Caches") if platform == "darwin" else (".cache",)
