"""The law of the noise of an entry: what kernels need of it, one compiled version for each law.

Given its auxiliary variables, an entry is a Gaussian observation of its signal z,

    log p(x | z) = -(w / 2) (y - z)^2 + constant,

with a weight w and a working response y. A law says how these are drawn. In kernels it is a NamedTuple,
by whose class numba compiles: `draw_weight`, `draw_working` and `distribution` call the function that is
registered for the class. All numbers are in units of the noise.
"""

from typing import Any, NamedTuple

from numba.extending import overload

from fillrank.draws.gamma import gamma
from fillrank.runtime.kernel_cache import Kernel, njit


class Normal(NamedTuple):
    """Normal noise; Student-t noise if its degrees of freedom are finite.

    Every law has these fields. With ``is_mixture`` the noise of a number is normal with a random weight.
    With ``of_levels`` values are one of two levels, known by an interval of the latent number.
    """

    is_mixture: bool = False
    of_levels: bool = False


NORMAL = Normal()


def draw_weight(law: Any, degrees: float, square: float, stream: Any) -> float:
    """The weight of a number, given the square of its residual."""
    raise NotImplementedError  # kernels call what is registered


def draw_working(law: Any, margin: float, stream: Any) -> tuple[float, float]:
    """(w, x (y - z)) of a level x of -1 or 1, given the margin x (z - threshold)."""
    raise NotImplementedError


def distribution(law: Any, t: float) -> tuple[float, float]:
    """The distribution function and the density of the noise."""
    raise NotImplementedError


@njit
def _student_weight(_law, degrees, square, stream):
    """l ~ Gamma((nu + 1)/2, rate (nu + e^2)/2)."""
    return gamma(stream, 0.5 * (degrees + 1.0), 0.5 * (degrees + square))


@njit
def _no_working(_law, _margin, _stream):
    """Of a law of numbers; it is compiled, and never called."""
    return 1.0, 0.0


@njit
def _no_distribution(_law, _t):
    """Of a law that has functions of its own for this, or of levels; never called."""
    return 0.0, 0.0


# The functions of each law, by its class.
_WEIGHTS: dict[type, Kernel[..., Any]] = {}
_WORKING: dict[type, Kernel[..., Any]] = {}
_DISTRIBUTIONS: dict[type, Kernel[..., Any]] = {}


def register_numbers(law: type, weight: Kernel[..., Any], distribution: Kernel[..., Any]) -> None:
    """Register `draw_weight` and `distribution` of a law of numbers."""
    _WEIGHTS[law], _DISTRIBUTIONS[law] = weight, distribution


def register_levels(law: type, working: Kernel[..., Any]) -> None:
    """Register `draw_working` of a law of levels."""
    _WORKING[law] = working


@overload(draw_weight)
def _weight_of(law, _degrees, _square, _stream):
    kernel = _WEIGHTS.get(law.instance_class, _student_weight)
    return lambda law, _degrees, _square, _stream: kernel(law, _degrees, _square, _stream)


@overload(draw_working)
def _working_of(law, _margin, _stream):
    kernel = _WORKING.get(law.instance_class, _no_working)
    return lambda law, _margin, _stream: kernel(law, _margin, _stream)


@overload(distribution)
def _distribution_of(law, _t):
    kernel = _DISTRIBUTIONS.get(law.instance_class, _no_distribution)
    return lambda law, _t: kernel(law, _t)
