"""The laws of the noise of an entry, by the names that model files have.

To add one, write a file such as `fillrank.noise.laplace` and add it here.
"""

from typing import Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri

from fillrank.kernels.entry_laws import NORMAL
from fillrank.noise.laplace import LAPLACE
from fillrank.noise.law import Law
from fillrank.noise.logistic import LOGISTIC
from fillrank.noise.two_level_hinge import HINGE

LawName = Literal["gaussian", "laplace", "logistic", "hinge"]


def _cumulative(t: np.ndarray) -> np.ndarray:
    return np.asarray(ndtr(t))


def _quantile(p: np.ndarray) -> np.ndarray:
    return np.asarray(ndtri(p))


GAUSSIAN = Law(NORMAL, 1.0, 1.0, _cumulative, _quantile)
LAWS: dict[LawName, Law] = dict(
    zip(get_args(LawName), (GAUSSIAN, LAPLACE, LOGISTIC, HINGE), strict=True)
)
