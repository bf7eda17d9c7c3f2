"""Available memory, checked before large arrays are made."""

import os
from pathlib import Path
from types import ModuleType

from fillrank.errors import InputError, Text
from fillrank.runtime.progress import report_progress

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

# Files with a container's limit, its use and its statistics, in versions 2 and 1 of cgroups, and the
# field of the statistics for memory that the system frees when needed.
_CGROUPS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)
_CGROUP_FOLDER = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
# Memory in bytes of a cell of a complete table while it is made, with temporary copies; levels are
# predicted cell by cell, which takes more.
_BYTES_PER_CELL, _BYTES_PER_LEVEL_CELL = 24, 40
# The memory that a table takes is reported from this size on.
_MUCH_MEMORY = 2**30


def available_memory() -> int | None:
    """The bytes that are available, within the limits of the machine, the container and the process.

    None if none of these limits is known.
    """
    found = [_of_machine(), _of_process(), *(_of_container(*files) for files in _CGROUPS)]
    return min((n for n in found if n is not None), default=None)


def _of_machine() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on this system
        return None


def _of_process() -> int | None:
    """What remains of the limit on address space that `ulimit -v` or a scheduler has set."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(limit - used, 0)


def _of_container(limit_file: str, usage_file: str, stat_file: str, cache_field: str) -> int | None:
    try:
        limit = int((_CGROUP_FOLDER / limit_file).read_text())
        used = int((_CGROUP_FOLDER / usage_file).read_text())
        lines = (line.split() for line in (_CGROUP_FOLDER / stat_file).read_text().splitlines())
        reclaimable = int(dict(lines).get(cache_field, 0))  # cached files, dropped when needed
    except (OSError, ValueError):  # no container, or one without a limit
        return None
    return max(limit - used + reclaimable, 0)


def check_memory(n_bytes: int, what: str, advice: Text) -> None:
    """Raise InputError if ``n_bytes`` are more than the available memory.

    Parameters
    ----------
    n_bytes : int
    what : str
        What takes this memory, for the message.
    advice : Text
        A sentence on what to do instead.
    """
    available = available_memory()
    if available is not None and n_bytes > available:
        raise InputError(
            f"{what} would take about {format_bytes(n_bytes)} of memory, and "
            f"{format_bytes(available)} are available",
            advice=advice,
        )


def format_bytes(n_bytes: float) -> str:
    """Format a number of bytes in a suitable unit.

    Examples
    --------
    >>> format_bytes(500), format_bytes(3_200_000_000)
    ('500 bytes', '3.2 GB')
    """
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:  # larger sizes would round to 1000
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.0f} TB" if size >= 100 else f"{size:.3g} TB"


def check_table_memory(n_cells: int, advice: str, is_level: bool, show: bool) -> None:
    """Report the memory of a large complete table; raise InputError if it does not fit."""
    n_bytes = (_BYTES_PER_LEVEL_CELL if is_level else _BYTES_PER_CELL) * n_cells
    check_memory(n_bytes, f"a table of {n_cells:,} cells", advice)
    report_progress(
        f"a table of {n_cells:,} cells takes {format_bytes(n_bytes)} while it is made.",
        show and n_bytes >= _MUCH_MEMORY,
    )
