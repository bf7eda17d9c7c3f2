"""The run: take sweeps until there are enough draws, a limit is reached, or the user stops it.

**Enough draws.** The mean squared error of a prediction is its posterior variance v plus the variance e
of the Monte Carlo mean. So a finite number of draws enlarges the error by the factor sqrt(1 + e/v).
``added_error`` is that factor less 1, with e and v averaged over the probes. e comes from batch means:
with k batches, the mean of all draws has the variance (variance of the batch means) / k.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from fillrank.errors import NumericalError
from fillrank.run.chains import Chain, Entered, Sampler, Step
from fillrank.run.chains import run as sweeps
from fillrank.run.recorder import Recorder
from fillrank.runtime.progress import progress_for

# The burn-in unless the user says otherwise. It is also how long Monte Carlo EM goes on, and on ratings
# a longer one is worse: EM slowly lowers sigma^2 as spare components fill with noise (docs/defaults.md).
AUTO_BURN_IN = 50
# With n_sweeps="auto": the most sweeps in all, how often to ask whether it is enough (every so many
# sweeps, and from some number of draws on more rarely), and the fewest draws on which that makes sense.
AUTO_MOST_SWEEPS = 2000
_ASK_EVERY = 25
_ASK_RARELY_FROM, _ASK_RARELY_EVERY = 400, 100
_FEWEST_DRAWS = 100
# By default a run ends when the draws enlarge the error by less than this.
ENOUGH = 0.0025
_BATCHES = 10


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
    """Something that saves a run when it is time to, or with ``force``."""

    def __call__(self, run: Run, force: bool = False) -> None: ...


# Why the draws so far are not enough; empty if they are.
Judge = Callable[[Recorder], str]


class Outcome(NamedTuple):
    """What came of a run, and why it ended.

    ``reached_limit`` says that it should have gone on until there were enough draws, and could not.
    """

    run: Run
    stop_reason: str
    interrupted: bool = False
    reached_limit: bool = False


def begin(
    chains: Sequence[Chain], data: Entered, sampler: Sampler, plan: Plan, rng: np.random.Generator
) -> Run:
    """A run that has not taken a sweep yet."""
    return Run(tuple(chains), Recorder(sampler, data, plan.burn_in, rng), 0)


def execute(
    run: Run,
    data: Entered,
    sampler: Sampler,
    plan: Plan,
    show: bool,
    keep: Keep | None = None,
    judge: Judge = lambda recorder: "",
) -> Outcome:
    """Go on with a run by the plan. Ctrl-C ends it and keeps what has been sampled.

    A plan with ``until_enough`` ends when the Monte Carlo error is small and ``judge`` has no objection.
    ``keep(run)``, if given, is called after every sweep, and ``keep(run, force=True)`` at the
    beginning and at the end.
    """
    recorder = run.recorder
    interrupted = False
    steps = sweeps(run.chains, data, sampler, plan.n_adapt, run.n_sweeps)
    with progress_for(show, "sweep") as tell:
        try:
            if keep is not None:
                keep(run, force=True)
            while not (reason := _reason_to_stop(run, plan, judge)):
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
        keep(run, force=True)
    if recorder.n_recorded == 0:
        recorder.keep_in_need(run.chains)
    reached_limit = plan.until_enough and not interrupted and run.n_sweeps >= plan.n_sweeps
    return Outcome(run, reason, interrupted, reached_limit and not _is_enough(recorder, judge))


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


def _reason_to_stop(run: Run, plan: Plan, judge: Judge) -> str:
    """Why a run should end here, in words; empty if it should go on."""
    at_limit = run.n_sweeps >= plan.n_sweeps
    if not plan.until_enough:
        return f"all {run.n_sweeps} sweeps done" if at_limit else ""
    if (at_limit or _is_time_to_ask(run.recorder.n_recorded)) and _is_enough(run.recorder, judge):
        return (
            f"the Monte Carlo error enlarges the error of predictions by less than "
            f"{100 * ENOUGH:g}% after {run.n_sweeps} sweeps"
        )
    if at_limit:
        return (
            f"the limit of {plan.n_sweeps} sweeps was reached; the Monte Carlo error "
            f"enlarges the error of predictions by {_percent(run.recorder)}"
        )
    return ""


def _is_time_to_ask(n: int) -> bool:
    every = _ASK_EVERY if n < _ASK_RARELY_FROM else _ASK_RARELY_EVERY
    return n >= _FEWEST_DRAWS and n % every == 0


def _is_enough(recorder: Recorder, judge: Judge) -> bool:
    return added_error(recorder.probes) < ENOUGH and not judge(recorder)


def _percent(recorder: Recorder) -> str:
    return f"{100 * added_error(recorder.probes):.2g}%"


def _note(recorder: Recorder, step: Step) -> str:
    phase = "burning in" if step.number <= recorder.burn_in else "sampling"
    name, value = next(iter(recorder.last.items()))
    return f"{phase}, {name.replace('_', ' ')} {value:.4f}"


def added_error(probes: np.ndarray) -> float:
    """The share by which Monte Carlo error enlarges the error of predictions.

    Parameters
    ----------
    probes : array (chains, draws, probes)
    """
    chains, n, p = probes.shape
    per_chain = max(2, _BATCHES // chains)
    length = n // per_chain
    if length == 0:
        return math.inf
    batches = (
        probes[:, n - per_chain * length :].reshape(chains * per_chain, length, p).mean(axis=1)
    )
    e = batches.var(axis=0, ddof=1).mean() / len(batches)
    v = probes.var(axis=(0, 1)).mean()
    return math.sqrt(1.0 + e / v) - 1.0 if v > 0 else 0.0
