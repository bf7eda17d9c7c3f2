"""Normal variables in an interval from one uniform number: by the inverse of the distribution function.

A draw of N(0, 1) in [a, b] is

    x = Phi^-1(Phi(a) + u (Phi(b) - Phi(a))),    u uniform,

computed in the lower half, where Phi has all its digits. It takes about half the time of rejection
(`fillrank.draws.truncated_normal`), which remains for the tails and for intervals so narrow that digits
would cancel. The quantile is that of M. J. Wichura, "Algorithm AS 241: the percentage points of the
normal distribution", Applied Statistics 37 (1988) 477-484, with a relative error of about 1e-16.
"""

import math

import numpy as np

from fillrank.draws.streams import seek, to_unit
from fillrank.draws.truncated_normal import truncated_normal
from fillrank.runtime.kernel_cache import njit

# Wichura's coefficients, of the centre, of the tail, and of the far tail.
_A = (
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3,
)  # fmt: skip
_B = (
    1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
    5.2264952788528545610e3,
)  # fmt: skip
_C = (
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
    3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4,
)  # fmt: skip
_D = (
    1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)  # fmt: skip
_E = (
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7,
)  # fmt: skip
_F = (
    1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)  # fmt: skip
_CENTRE, _TAIL, _FAR_TAIL = 0.425, 1.6, 5.0
# The approximation holds for larger probabilities, and the interval must have such a share of the
# probability below its upper end.
_SMALLEST, _SHARE = 1e-300, 1e-6
# 1 - p would be 0 beyond this.
_LARGEST = 1.0 - 1e-15
# Below this, Phi is 0 in double precision.
_NOTHING_BELOW = -39.0
_ROOT = math.sqrt(0.5)


@njit(inline="always")
def _polynomial(c, x):  # type: ignore[no-untyped-def]
    return (
        ((((((c[7] * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x + c[1]) * x
    ) + c[0]


@njit
def normal_quantile(p: float) -> float:
    """Phi^-1(p), for p from 1e-300 to 1 - 1e-15."""
    q = p - 0.5
    if abs(q) <= _CENTRE:
        r = _CENTRE * _CENTRE - q * q
        return q * _polynomial(_A, r) / _polynomial(_B, r)
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    if r <= _FAR_TAIL:
        x = _polynomial(_C, r - _TAIL) / _polynomial(_D, r - _TAIL)
    else:
        x = _polynomial(_E, r - _FAR_TAIL) / _polynomial(_F, r - _FAR_TAIL)
    return -x if q < 0.0 else x


@njit
def normal_in_interval(
    bits: np.uint64, a: float, b: float, stream: np.ndarray, row: int, component: int
) -> float:
    """A draw of N(0, 1) in [a, b], from 64 bits; where these do not suffice, from a stream.

    The stream is used at this row and component.
    """
    low, high = (-b, -a) if a + b > 0.0 else (a, b)
    below = 0.5 * math.erfc(-_ROOT * low) if low > _NOTHING_BELOW else 0.0
    above = 0.5 * math.erfc(-_ROOT * high) if high < -_NOTHING_BELOW else 1.0
    width = above - below
    if above < _SMALLEST or width < _SHARE * above:
        seek(stream, row, component)
        return truncated_normal(stream, 0.0, 1.0, a, b)
    p = min(max(below + to_unit(bits) * width, _SMALLEST), _LARGEST)
    x = normal_quantile(p)
    x = min(max(x, low), high)
    return -x if a + b > 0.0 else x
