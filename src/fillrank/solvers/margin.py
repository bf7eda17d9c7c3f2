"""What the solvers of the max-margin methods share: a scorer with its history and certificate."""

from typing import NamedTuple

from fillrank.kernels.ordinal import Scorer


class MarginFit(NamedTuple):
    """A solution, the objective after each iteration, and how far from stationary it is.

    ``violation`` is relative; with ``converged`` it is below the tolerance that was asked for.
    """

    scorer: Scorer
    objectives: tuple[float, ...]
    violation: float
    converged: bool
    reason: str
