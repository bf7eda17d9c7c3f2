"""Whether the kernels are there yet: numba compiles them at first use and keeps them on disk."""

from pathlib import Path

from fillrank.kernels.gaussian_rows import gaussian_rows


def must_compile() -> bool:
    """Whether this is the first use on this machine, which takes some seconds more."""
    if gaussian_rows.signatures:
        return False
    kept = Path(gaussian_rows.stats.cache_path)
    return not any(kept.glob("gaussian_rows.gaussian_rows-*.nbi"))
