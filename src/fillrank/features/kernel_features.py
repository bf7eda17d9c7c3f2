"""Features that stand for a kernel, such as those of times and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fillrank.features.blocks import Field, TableCode, TimeCode


@dataclass(frozen=True, eq=False, repr=False)
class KernelFeatures:
    """Features whose scales are part of a kernel: they must not be standardised.

    Subclasses have ``names``, those of the terms.

    Attributes
    ----------
    values : ndarray (m, p)
        A line for each row or column, in their order.
    """

    values: np.ndarray
    block_name: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms."""
        raise NotImplementedError

    def code(self, means: np.ndarray, directions: np.ndarray) -> TableCode | TimeCode:
        """How new rows get their values: by a table of the same terms, as they are."""
        fields = tuple(Field(name, "number", 0.0, 1.0, (), False) for name in self.names)
        return TableCode(fields, means, directions)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)
