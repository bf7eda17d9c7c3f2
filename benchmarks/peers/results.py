"""What came of the runs, as ratios over GASR's of the same round."""

from typing import NamedTuple

import numpy as np
from contract import first_as_good
from methods import OURS


class Times(NamedTuple):
    """A quantity of one method in every round, and whether it is a lower bound in any of them."""

    values: list
    at_least: bool = False


class Wait(NamedTuple):
    """Seconds until the target was reached, or until the run ended without."""

    seconds: float
    reached: bool


def wait_for(result):
    """How long the user waits for the target, with what a fit does after its last sweep."""
    point = first_as_good(result["curve"])
    last = point or result["curve"][-1]
    return Wait(last["seconds"] + result["finish_seconds"], point is not None)


def per_iteration(result):
    """Seconds of one iteration."""
    return result["seconds_per_iteration"]["median"]


def iteration_ratios(rounds, name, base=OURS):
    """Seconds of an iteration over those of a sweep of GASR."""
    return Times([per_iteration(r[name]) / per_iteration(r[base]) for r in rounds])


def wait_ratios(rounds, name, base=OURS):
    """The wait for the target over GASR's; None if GASR did not reach it every time."""
    ours = [wait_for(r[base]) for r in rounds]
    theirs = [wait_for(r[name]) for r in rounds]
    if not all(wait.reached for wait in ours):
        return None
    ratios = [b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True)]
    return Times(ratios, at_least=not all(wait.reached for wait in theirs))


def over_rounds(rounds, name, quantity):
    """A quantity of one method in every round."""
    return Times([quantity(r[name]) for r in rounds])


def middle(times):
    """The median over the rounds."""
    return float(np.median(times.values))


def last_rmse(result):
    """The test RMSE at the end."""
    return result["curve"][-1]["test_rmse"]
