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
from fillrank.run.chains import Chain, ObservedData, Sampler, Step
from fillrank.run.chains import run as sweeps
from fillrank.run.recorder import Recorder
from fillrank.runtime.progress import make_progress

# The default burn-in: sweeps over so many entries, within these bounds. Sweeps of small tables take
# little time, and their hyperparameters need more of them (docs/defaults.md).
_BURN_IN_ENTRIES = 2_000_000
_BURN_IN_BOUNDS = (50, 200)
# With n_sweeps="auto": the largest number of sweeps, how often to check for convergence (every so many
# sweeps, less often from some number of draws on), and the smallest number of draws to check.
_MOST_SWEEPS, _MOST_SWEEP_ENTRIES = (2000, 4000), 40_000_000
_CHECK_EVERY = 25
_CHECK_RARELY_FROM, _CHECK_RARELY_EVERY = 400, 100
_FEWEST_DRAWS = 100
# How many draws a run is expected to need, until there are enough of them to estimate it.
_USUAL_DRAWS, _FEWEST_TO_ESTIMATE = 400, 50
# By default a run ends when the draws enlarge the error by less than this.
ENOUGH = 0.0025
_BATCHES = 10


def auto_burn_in(n_entries: int) -> int:
    """The default burn-in of a table with so many entries.

    Examples
    --------
    >>> auto_burn_in(1000), auto_burn_in(20_000), auto_burn_in(1_000_000)
    (200, 100, 50)
    """
    low, high = _BURN_IN_BOUNDS
    return min(max(_BURN_IN_ENTRIES // max(n_entries, 1), low), high)


def auto_most_sweeps(n_entries: int) -> int:
    """The default limit of sweeps: more for small tables, in which they take little time.

    Examples
    --------
    >>> auto_most_sweeps(1000), auto_most_sweeps(15_000), auto_most_sweeps(1_000_000)
    (4000, 2666, 2000)
    """
    low, high = _MOST_SWEEPS
    return min(max(_MOST_SWEEP_ENTRIES // max(n_entries, 1), low), high)


class Plan(NamedTuple):
    """The length of a run: all sweeps, the discarded ones, those that estimate hyperparameters.

    With ``until_enough`` the run may end earlier.
    """

    n_sweeps: int
    burn_in: int
    n_adapt: int
    until_enough: bool


class Run(NamedTuple):
    """The state of a run, from which it can continue."""

    chains: tuple[Chain, ...]
    recorder: Recorder
    n_sweeps: int


class SaveRun(Protocol):
    """Saves a run if the last time was a while ago, or in any case with ``force``."""

    def __call__(self, run: Run, force: bool = False) -> None: ...


# Returns why the chains have not converged; an empty string if they have.
CheckConvergence = Callable[[Recorder], str]


class Outcome(NamedTuple):
    """The result of a run, and why it ended.

    ``reached_limit`` means that the limit of sweeps ended the run before there were enough draws.
    """

    run: Run
    stop_reason: str
    interrupted: bool = False
    reached_limit: bool = False


def start_run(
    chains: Sequence[Chain],
    data: ObservedData,
    sampler: Sampler,
    plan: Plan,
    rng: np.random.Generator,
) -> Run:
    """A run before its first sweep."""
    return Run(tuple(chains), Recorder(sampler, data, plan.burn_in, rng), 0)


def execute(
    run: Run,
    data: ObservedData,
    sampler: Sampler,
    plan: Plan,
    show: bool,
    save: SaveRun | None = None,
    check_convergence: CheckConvergence = lambda recorder: "",
) -> Outcome:
    """Continue a run according to the plan. Ctrl-C ends it; what was sampled remains.

    With ``until_enough`` in the plan, the run ends when the Monte Carlo error is small and
    ``check_convergence`` returns an empty string. ``save(run)``, if given, is called after every sweep,
    and ``save(run, force=True)`` at the start and at the end.
    """
    recorder = run.recorder
    interrupted = False
    steps = sweeps(run.chains, data, sampler, plan.n_adapt, run.n_sweeps)
    likely = likely_sweeps(recorder, plan) if show else plan.n_sweeps
    with make_progress(show, "sweep", about=plan.until_enough) as report_progress:
        try:
            if save is not None:
                save(run, force=True)
            while not (reason := _reason_to_stop(run, plan, check_convergence)):
                step = _next(steps, run.n_sweeps + 1)
                recorder.take(step)
                _check_numbers(recorder.last.values(), step.number)
                run = Run(step.chains, recorder, step.number)
                if show and recorder.n_recorded % _CHECK_EVERY == 0:
                    likely = likely_sweeps(recorder, plan)
                report_progress(step.number, max(likely, step.number), _note(recorder, step))
                if save is not None:
                    save(run)
        except KeyboardInterrupt:
            if run.n_sweeps == 0:
                raise
            interrupted = True
            recorder.discard_after(run.n_sweeps)
            reason = f"interrupted after {run.n_sweeps} of at most {plan.n_sweeps} sweeps"
    if save is not None:
        save(run, force=True)
    if recorder.n_recorded == 0:
        recorder.store_last(run.chains)
    reached_limit = plan.until_enough and not interrupted and run.n_sweeps >= plan.n_sweeps
    return Outcome(
        run, reason, interrupted, reached_limit and not _is_enough(recorder, check_convergence)
    )


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


def _reason_to_stop(run: Run, plan: Plan, check_convergence: CheckConvergence) -> str:
    """Why a run should end here; empty if it should continue."""
    at_limit = run.n_sweeps >= plan.n_sweeps
    if not plan.until_enough:
        return f"all {run.n_sweeps} sweeps done" if at_limit else ""
    if (at_limit or _is_time_to_check(run.recorder.n_recorded)) and _is_enough(
        run.recorder, check_convergence
    ):
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


def _is_time_to_check(n: int) -> bool:
    every = _CHECK_EVERY if n < _CHECK_RARELY_FROM else _CHECK_RARELY_EVERY
    return n >= _FEWEST_DRAWS and n % every == 0


def likely_sweeps(recorder: Recorder, plan: Plan) -> int:
    """How many sweeps the run will likely have, by what the draws so far say.

    The added error falls as 1 / draws. A run ends at the first check at which it is small enough, if
    the chains have converged; if they have not, the next check is the best guess.
    """
    if not plan.until_enough:
        return plan.n_sweeps
    n: int = recorder.n_recorded
    needed: float = _USUAL_DRAWS
    if n >= _FEWEST_TO_ESTIMATE:
        needed = n * added_error(recorder.probes) / ENOUGH
    most = plan.n_sweeps - recorder.burn_in
    check = math.ceil(min(max(needed, n + 1), most))
    while check < most and not _is_time_to_check(check):
        check += 1
    return recorder.burn_in + check


def _is_enough(recorder: Recorder, check_convergence: CheckConvergence) -> bool:
    return added_error(recorder.probes) < ENOUGH and not check_convergence(recorder)


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
