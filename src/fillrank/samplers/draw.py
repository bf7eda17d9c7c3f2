"""What is kept of a state: one draw of the signal."""

from typing import NamedTuple

import numpy as np


class Draw(NamedTuple):
    """One draw of the signal, left right^T in standard units, with its noise variance."""

    left: np.ndarray
    right: np.ndarray
    noise_variance: float

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.left.nbytes + self.right.nbytes

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The signal of the cells (rows_p, columns_p)."""
        left, right = self.left[rows], self.right[columns]
        return np.einsum("pk,pk->p", left.astype(np.float64), right)
