"""Compiled kernels are kept in the user's cache folder: a later process compiles nothing.

numba would keep them beside the sources, and looks only at a function's own file to see whether it has
changed: after an edit of what the function calls, the old code is loaded. So the folder here is named
by a hash of all that compiled code is made from, and an edit anywhere in it gives another folder.

Processes may share it: numba writes each file completely or not at all, and what is lost is compiled
again. Where nothing can be written, kernels are compiled in memory, and a warning says so once.
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
# The files with compiled functions, with the constants that these have frozen, and with the named tuples
# that they take.
COMPILED = (
    "draws/*.py",
    "kernels/*.py",
    "noise/*.py",
    "samplers/*.py",
    "posterior/fold_in.py",
    "posterior/recommend.py",
    "table/entries.py",
)
_ROOM = 1 << 20  # bytes that must fit: a full disk would only show when kernels are written
_UNUSED = 30 * 24 * 3600  # seconds after which a folder of other sources is removed


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
    """Compile as ``numba.njit`` does, with a cache that cannot make it fail.

    ``NUMBA_CACHE_DIR`` takes precedence. Otherwise compiled code goes to the user's cache folder; if
    that cannot be written, beside the sources; and if that cannot be either, it stays in memory.

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

    Where nothing can be cached the result is False: a ``CacheWarning`` is issued instead.
    """
    folder = kernel.stats.cache_path
    if kernel.signatures or folder is None:
        return False
    module = kernel.py_func.__module__.rpartition(".")[2]
    return not any(Path(folder).glob(f"{module}.{kernel.__name__}-*.nbi"))


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
    except OSError:
        return None
    remove_unused(parent, time.time())
    return folder


class _KernelLocator:
    """Tells numba where a function of this package is kept, by the methods that numba asks for."""

    def __init__(self, folder: Path, py_func: Callable[..., Any], py_file: str):
        self._stamp = folder.name
        self._folder = folder / Path(py_file).parent.relative_to(PACKAGE)
        self._line = py_func.__code__.co_firstlineno
        self._py_file = py_file  # numba names it in warnings

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
    """Where a function may be kept: in our folder, or where numba would keep it."""

    # numba's own cache folder is left out: for a user without a home it is a folder named "~" here.
    _locator_classes = (
        _KernelLocator,
        *(
            place
            for place in caching.CompileResultCacheImpl._locator_classes
            if "UserWide" not in place.__name__
        ),
    )


class _FileCache(caching.FunctionCache):
    """Files of compiled code. What goes wrong with them must not stop the computation."""

    _impl_class = _Places

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code, or ``None`` where it has to be compiled."""
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
        """Say, before the compiler runs, that it will run again next time."""
        _warn_once("there is no cache folder that can be written")


def _cache_for(function: Callable[..., Any]) -> Any:
    try:
        return _FileCache(function)
    except RuntimeError:  # numba's error for a function without a place
        return _MemoryCache()


_has_warned = False


def _warn_once(reason: str) -> None:
    """Warn that this process cannot keep what it compiles, the first time that it is noticed."""
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
