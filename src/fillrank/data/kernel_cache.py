"""Compiled kernels are kept in the user's cache folder: a later process compiles nothing.

numba would keep them beside the sources, and looks only at a function's own file to see whether it has
changed: after an edit of what the function calls, the old code is loaded. So the folder here is named
by a hash of all that compiled code is made from, and an edit anywhere in it gives another folder.

Processes may share it: numba puts each file in its place whole, and what is lost is compiled again.
"""

import hashlib
import os
import platform
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import caching

from fillrank.data.cache_folder import cache_folder
from fillrank.version import __version__

PACKAGE = Path(__file__).parents[1]
# The files with compiled functions, with the constants that these have frozen, and with the named tuples
# that they take.
COMPILED = (
    "draws/*.py",
    "kernels/*.py",
    "likelihoods/*.py",
    "samplers/*.py",
    "posterior/fold_in.py",
    "posterior/recommend.py",
    "data/entries.py",
)
_ROOM = 1 << 20  # bytes that must fit: a full disk would only show when kernels are written
_UNUSED = 30 * 24 * 3600  # seconds after which a folder of other sources is removed


def install() -> None:
    """Have numba keep the kernels of this package in the user's cache folder.

    Call it before the first function with ``cache=True``. Functions of other packages stay where numba
    has them, and ``NUMBA_CACHE_DIR`` stays the stronger wish. Where the folder cannot be written, or
    in a numba whose places cannot be chosen like this, the kernels too are left to numba.
    """
    try:
        locators = caching.CacheImpl._locator_classes
    except AttributeError:
        return
    if _KernelLocator not in locators:
        locators.insert(0, _KernelLocator)


def fingerprint(files: Iterable[Path]) -> str:
    """Hash what compiled code depends on: the contents of its source files, and who compiles it.

    numba's own index tells processors apart.
    """
    versions = (__version__, numba.__version__, np.__version__, platform.python_version())
    found = hashlib.sha256(repr(versions).encode())
    for file in files:
        source = file.read_bytes()
        found.update(f"{file.parent.name}/{file.name} {len(source)} ".encode() + source)
    return found.hexdigest()[:16]


def source_files() -> list[Path]:
    """List the files whose contents compiled code depends on."""
    return [file for pattern in COMPILED for file in sorted(PACKAGE.glob(pattern))]


def remove_unused(parent: Path, now: float) -> None:
    """Remove folders of kernels that no process has used for 30 days; what resists stays.

    A folder gets another name first, so that nobody finds half of it. A process that still uses it
    compiles again.
    """
    for folder in parent.glob("kernels-*"):
        with suppress(OSError):
            if now - folder.stat().st_mtime > _UNUSED:
                gone = folder.rename(parent / f"kernels-removed-{secrets.token_hex(8)}")
                shutil.rmtree(gone, ignore_errors=True)


@cache
def _folder() -> Path | None:
    """Make this process's folder and say that it is in use; ``None`` where there can be none."""
    try:
        parent = cache_folder().absolute()
        folder = parent / f"kernels-{fingerprint(source_files())}"
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
    except (OSError, RuntimeError):
        return None
    remove_unused(parent, time.time())
    return folder


class _KernelLocator:
    """Tells numba where a function of this package is kept, by the methods that numba asks for."""

    def __init__(self, folder: Path, py_func: Callable, py_file: str):
        self._stamp = folder.name
        self._folder = folder / Path(py_file).parent.relative_to(PACKAGE)
        self._line = py_func.__code__.co_firstlineno
        self._py_file = py_file  # numba names it in warnings

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> Any:
        if numba.config.CACHE_DIR or PACKAGE not in Path(py_file).parents:
            return None
        folder = _folder()
        return None if folder is None else cls(folder, py_func, py_file)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)
