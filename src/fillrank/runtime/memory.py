"""Whether something fits in memory, asked before it is made."""

import os
from pathlib import Path
from types import ModuleType

from fillrank.errors import InputError

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

# A container's own limit, what it uses, and how that is made up: in the two forms that Linux has had.
_CONTAINERS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)
_CONTROL = Path("/sys/fs/cgroup")
_MACHINE = Path("/proc/meminfo")
_PROCESS = Path("/proc/self/statm")


def available_memory() -> int | None:
    """The bytes that can still be had, by the machine, the container or the process itself.

    None if none of these has a limit that is known.
    """
    found = [_of_machine(), _of_process(), *(_of_container(*files) for files in _CONTAINERS)]
    return min((n for n in found if n is not None), default=None)


def _of_machine() -> int | None:
    try:
        for line in _MACHINE.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on this system
        return None


def _of_process() -> int | None:
    """What is left of the limit on addresses that `ulimit -v` or a scheduler has set."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        taken = int(_PROCESS.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(limit - taken, 0)


def _of_container(most: str, used: str, parts: str, cache: str) -> int | None:
    try:
        limit = int((_CONTROL / most).read_text())
        taken = int((_CONTROL / used).read_text())
        lines = (line.split() for line in (_CONTROL / parts).read_text().splitlines())
        given_back = int(dict(lines).get(cache, 0))  # copies of files, dropped when need be
    except (OSError, ValueError):  # no container, or one without a limit
        return None
    return max(limit - taken + given_back, 0)


def check_room(n_bytes: int, what: str, instead: str) -> None:
    """Refuse what cannot fit, and name a way that can.

    Parameters
    ----------
    n_bytes : int
    what : str
        What would take them.
    instead : str
        A sentence on what to do.
    """
    available = available_memory()
    if available is not None and n_bytes > available:
        raise InputError(
            f"{what} would take about {in_bytes(n_bytes)} of memory, and {in_bytes(available)} can be "
            f"had. {instead}"
        )


def in_bytes(n_bytes: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> in_bytes(500), in_bytes(3_200_000_000)
    ('500 bytes', '3.2 GB')
    """
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:  # what is above rounds to 1000
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} TB" if size >= 100 else f"{size:.3g} TB"
