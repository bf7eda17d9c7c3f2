"""Whether the kernels are there yet: numba compiles them at first use and keeps them on disk."""

from pathlib import Path

from fillrank.kernels.gaussian_rows import gaussian_rows


def must_compile() -> bool:
    """Whether this is the first use on this machine, which takes some seconds more.

    Where nothing can be kept every use is a first one, and a ``CacheWarning`` says so instead.
    """
    kept = gaussian_rows.stats.cache_path
    if gaussian_rows.signatures or kept is None:
        return False
    return not any(Path(kept).glob("gaussian_rows.gaussian_rows-*.nbi"))
