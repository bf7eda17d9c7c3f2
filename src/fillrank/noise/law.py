"""What the library knows of the noise of an entry: its distribution, and the law in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_Function = Callable[[np.ndarray], np.ndarray]


class Law(NamedTuple):
    """The distribution of the noise of scale 1, which is symmetric around 0.

    ``compiled`` is the law in kernels (`fillrank.kernels.entry_laws`). ``variance`` is that of the
    noise, and ``resolved`` the variance of Gaussian noise that would hide a small signal as much: the
    inverse of the information about it in one entry. ``cumulative`` is the distribution function,
    ``quantile`` its inverse. ``log_density`` is None if values are levels, and for normal noise, which
    may be Student-t.
    """

    compiled: Any
    variance: float
    resolved: float
    cumulative: _Function
    quantile: _Function
    log_density: _Function | None = None

    @property
    def of_levels(self) -> bool:
        """Whether values are one of two levels. Then the noise has a given scale, which is 1."""
        return bool(self.compiled.of_levels)
