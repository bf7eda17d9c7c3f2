"""The cache of compiled kernels, in the user's cache folder: a later process compiles nothing.

numba would store them next to the sources, and checks only a function's own file for changes: after an
edit of another function that it calls, it would load old code. So the name of the folder here contains
a hash of all sources of compiled code, and an edit of any of them gives another folder.

Processes can share it: numba writes each file atomically, and compiles again what is lost. If no folder
is writable, kernels are compiled in memory, with one warning.
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
from functools import cache, partial
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numba
import numpy as np
from numba.core import caching

from fillrank.errors import CacheWarning
from fillrank.runtime.cache_folder import cache_folder
from fillrank.runtime.warnings import warn_user
from fillrank.version import __version__

PACKAGE = Path(__file__).parents[1]
# The files with compiled functions, with the constants that are compiled into them, and with the named
# tuples that they take.
COMPILED = (
    "draws/*.py",
    "kernels/*.py",
    "noise/*.py",
    "samplers/*.py",
    "posterior/recommend.py",
    "table/entries.py",
)
_TEST_BYTES = 1 << 20  # written first, to notice a full disk before kernels are compiled
_UNUSED = 30 * 24 * 3600  # seconds after which a folder for other sources is removed


_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


class Kernel(Protocol[_P, _R]):
    """A compiled function: it takes the arguments of the Python function that it was made from."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

    @property
    def __name__(self) -> str: ...

    @property
    def py_func(self) -> Callable[_P, _R]: ...

    @property
    def signatures(self) -> list[Any]: ...

    @property
    def stats(self) -> Any: ...


@overload
def njit(function: Callable[_P, _R], /) -> Kernel[_P, _R]: ...


@overload
def njit(*, cache: bool = ..., **options: Any) -> Callable[[Callable[_P, _R]], Kernel[_P, _R]]: ...


def njit(
    function: Callable[..., Any] | None = None, /, *, cache: bool = False, **options: Any
) -> Any:
    """Compile as ``numba.njit`` does; errors of the cache are ignored.

    ``NUMBA_CACHE_DIR`` takes precedence. Otherwise compiled code is stored in the user's cache folder;
    if that is not writable, next to the sources; and if that is not writable either, only in memory.

    A type checker sees the signature of the Python function: a call of a kernel with a wrong number of
    arguments, or a wrong name, is an error.
    """
    if function is None:
        return partial(njit, cache=cache, **options)
    kernel = numba.njit(**options)(function)
    if cache:
        kernel._cache = _cache_for(function)
    return kernel


def must_compile(kernel: Kernel[..., Any]) -> bool:
    """Whether a cached kernel has yet to be compiled, which takes some seconds.

    If there is no cache the result is False: a ``CacheWarning`` is issued instead.
    """
    folder = kernel.stats.cache_path
    if kernel.signatures or folder is None:
        return False
    module = kernel.py_func.__module__.rpartition(".")[2]
    return not any(Path(folder).glob(f"{module}.{kernel.__name__}-*.nbi"))


def fingerprint(files: Iterable[Path]) -> str:
    """Hash what compiled code depends on: the contents of its source files, and the compiler.

    numba's own index distinguishes processors.
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
    """Remove folders of kernels that no process has used for 30 days; ignore errors.

    A folder is renamed first, so that no process uses an incomplete one. A process that still uses it
    compiles again.
    """
    for folder in parent.glob("kernels-*"):
        with suppress(OSError):
            if now - folder.stat().st_mtime > _UNUSED:
                gone = folder.rename(parent / f"kernels-removed-{secrets.token_hex(8)}")
                shutil.rmtree(gone, ignore_errors=True)


@cache
def _folder() -> Path | None:
    """Make the folder of this process and mark it as used; None if that is not possible."""
    try:
        parent = cache_folder().absolute()
        folder = parent / f"kernels-{fingerprint(source_files())}"
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TEST_BYTES))
    except OSError:
        return None
    remove_unused(parent, time.time())
    return folder


class _KernelLocator:
    """Tells numba where a function of this package is cached; numba calls these methods."""

    def __init__(self, folder: Path, py_func: Callable[..., Any], py_file: str):
        self._stamp = folder.name
        self._folder = folder / Path(py_file).parent.relative_to(PACKAGE)
        self._line = py_func.__code__.co_firstlineno
        self._py_file = py_file  # numba shows it in warnings

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        folder = None if numba.config.CACHE_DIR else _folder()
        return None if folder is None else cls(folder, py_func, py_file)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Places(caching.CompileResultCacheImpl):
    """Where a function can be cached: in our folder, or where numba would cache it."""

    # numba's own cache folder is left out: for a user without a home folder it would be named "~".
    _locator_classes = (
        _KernelLocator,
        *(
            place
            for place in caching.CompileResultCacheImpl._locator_classes
            if "UserWide" not in place.__name__
        ),
    )


class _FileCache(caching.FunctionCache):
    """Files of compiled code. Errors of these files must not stop the computation."""

    _impl_class = _Places

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code; None if it has to be compiled."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can raise anything  # noqa: BLE001
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code if that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            _warn_once(f"{self.cache_path} cannot be written ({error.strerror or error})")


class _MemoryCache(caching.NullCache):
    """No cache: code is compiled once in every process."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Warn, before the compiler runs, that every process will compile again."""
        _warn_once("there is no cache folder that can be written")


def _cache_for(function: Callable[..., Any]) -> Any:
    try:
        return _FileCache(function)
    except RuntimeError:  # numba's error for a function that cannot be cached
        return _MemoryCache()


_has_warned = False


def _warn_once(reason: str) -> None:
    """Warn once that this process cannot cache what it compiles."""
    global _has_warned
    if _has_warned:
        return
    _has_warned = True
    warn_user(
        CacheWarning(
            f"compiled code is not saved, because {reason}: every process compiles again, which takes "
            "some seconds",
            advice="Set the environment variable XDG_CACHE_HOME to a writable folder.",
        )
    )
