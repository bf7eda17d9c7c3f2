"""The run: take sweeps until there are enough draws, a limit is reached, or the user stops it."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from fillrank.errors import NumericalError
from fillrank.run.chains import Chain, Entered, Sampler, Step
from fillrank.run.chains import run as sweeps
from fillrank.run.progress import progress_for
from fillrank.run.recorder import Recorder
from fillrank.run.stopping import ENOUGH, added_error

# The burn-in unless the user says otherwise. It is also how long Monte Carlo EM goes on, and on ratings
# a longer one is worse: EM slowly lowers sigma^2 as spare components fill with noise (docs/defaults.md).
AUTO_BURN_IN = 50
# With n_sweeps="auto": the most sweeps in all, how often to ask whether it is enough, and the fewest
# draws on which that question makes sense.
AUTO_MOST_SWEEPS = 2000
_ASK_EVERY = 25
_FEWEST_DRAWS = 100


class Plan(NamedTuple):
    """How long a run goes: sweeps in all, those discarded, those that estimate hyperparameters.

    With ``until_enough`` it may end earlier.
    """

    n_sweeps: int
    burn_in: int
    n_adapt: int
    until_enough: bool


class Run(NamedTuple):
    """A run as far as it has come: it can go on from here."""

    chains: tuple[Chain, ...]
    recorder: Recorder
    n_sweeps: int


class Keep(Protocol):
    """Something that saves a run when it is time to, or ``at_once``."""

    def __call__(self, run: Run, at_once: bool = False) -> None: ...


class Outcome(NamedTuple):
    """What came of a run, and why it ended."""

    run: Run
    stop_reason: str
    interrupted: bool


def begin(
    chains: Sequence[Chain], data: Entered, sampler: Sampler, plan: Plan, rng: np.random.Generator
) -> Run:
    """A run that has not taken a sweep yet."""
    return Run(tuple(chains), Recorder(sampler, data, plan.burn_in, rng), 0)


def execute(
    run: Run, data: Entered, sampler: Sampler, plan: Plan, show: bool, keep: Keep | None = None
) -> Outcome:
    """Go on with a run by the plan. Ctrl-C ends it and keeps what has been sampled.

    ``keep(run)``, if given, is called after every sweep, and ``keep(run, at_once=True)`` at the
    beginning and at the end.
    """
    recorder = run.recorder
    interrupted = False
    steps = sweeps(run.chains, data, sampler, plan.n_adapt, run.n_sweeps)
    with progress_for(show, "sweep") as tell:
        try:
            if keep is not None:
                keep(run, at_once=True)
            while not (reason := _reason_to_stop(run, plan)):
                step = _next(steps, run.n_sweeps + 1)
                recorder.take(step)
                _check_numbers(recorder.last.values(), step.number)
                run = Run(step.chains, recorder, step.number)
                tell(step.number, plan.n_sweeps, _note(recorder, step))
                if keep is not None:
                    keep(run)
        except KeyboardInterrupt:
            if run.n_sweeps == 0:
                raise
            interrupted = True
            recorder.forget_after(run.n_sweeps)
            reason = f"interrupted after {run.n_sweeps} of at most {plan.n_sweeps} sweeps"
    if keep is not None:
        keep(run, at_once=True)
    if recorder.n_recorded == 0:
        recorder.keep_in_need(run.chains)
    return Outcome(run, reason, interrupted)


def _next(steps: Iterator[Step], number: int) -> Step:
    try:
        return next(steps)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise _failed(number, str(error)) from error


def _check_numbers(traced: Iterable[float], number: int) -> None:
    if not all(map(math.isfinite, traced)):
        raise _failed(number, "its numbers are not finite")


def _failed(number: int, cause: str) -> NumericalError:
    return NumericalError(
        f"sweep {number} of the sampler failed: {cause}. Look for values of extreme size in the table; "
        "if the run was resumed from a checkpoint, delete that to start again."
    )


def _reason_to_stop(run: Run, plan: Plan) -> str:
    """Why a run should end here, in words; empty if it should go on."""
    if plan.until_enough and _is_enough(run.recorder):
        return (
            f"the Monte Carlo error enlarges the error of predictions by less than "
            f"{100 * ENOUGH:g}% after {run.n_sweeps} sweeps"
        )
    if run.n_sweeps < plan.n_sweeps:
        return ""
    if plan.until_enough:
        return (
            f"the limit of {plan.n_sweeps} sweeps was reached; the Monte Carlo error "
            f"enlarges the error of predictions by {_percent(run.recorder)}"
        )
    return f"all {run.n_sweeps} sweeps done"


def _is_enough(recorder: Recorder) -> bool:
    n = recorder.n_recorded
    return n >= _FEWEST_DRAWS and n % _ASK_EVERY == 0 and added_error(recorder.probes) < ENOUGH


def _percent(recorder: Recorder) -> str:
    return f"{100 * added_error(recorder.probes):.2g}%"


def _note(recorder: Recorder, step: Step) -> str:
    phase = "burning in" if step.number <= recorder.burn_in else "sampling"
    name, value = next(iter(recorder.last.items()))
    return f"{phase}, {name.replace('_', ' ')} {value:.4f}"
