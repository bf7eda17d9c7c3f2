"""Rows that lie elsewhere: what is asked of them instead of a kernel's run here."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fillrank.kernels.gaussian_rows import Address, Prior
    from fillrank.kernels.products import Fitted


class Remote(ABC):
    """One side of a table whose entries are on other machines; ``pointers`` are those of all rows."""

    pointers: np.ndarray
    dtype: np.dtype

    @property
    def n_entries(self) -> int:
        """How many entries there are."""
        return int(self.pointers[-1])

    @abstractmethod
    def digest(self) -> int:
        """A number by which the entries are known again, in whatever parts they lie."""

    @abstractmethod
    def draw_rows(
        self,
        own: np.ndarray,
        other: np.ndarray,
        prior: "Prior",
        noise_variance: float,
        address: "Address",
    ) -> np.ndarray:
        """Draw all rows' coefficients, in place; the sum of squared residuals of each row."""

    @abstractmethod
    def residual_products(
        self, fitted: "Fitted", block: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.residual_products`; the squares by row."""

    @abstractmethod
    def effect_sums(self, own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.effect_sums`; the squares by row."""
