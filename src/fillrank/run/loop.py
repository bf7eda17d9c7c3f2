"""The run: take sweeps until there are enough draws, a limit is reached, or the user stops it."""

from typing import NamedTuple

import numpy as np

from fillrank.run.chains import Chain, Entered, Sampler, Step, run
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


class Outcome(NamedTuple):
    """What came of a run."""

    recorder: Recorder
    n_sweeps: int
    stop_reason: str
    interrupted: bool


def execute(
    chains: list[Chain],
    data: Entered,
    sampler: Sampler,
    plan: Plan,
    rng: np.random.Generator,
    show: bool,
) -> Outcome:
    """Run the chains by the plan. Ctrl-C ends the run and keeps what has been sampled."""
    recorder = Recorder(sampler, data, plan.burn_in, rng)
    last: Step | None = None
    interrupted = False
    reason = f"all {plan.n_sweeps} sweeps done"
    with progress_for(show, "sweep") as tell:
        try:
            for step in run(chains, data, sampler, plan.n_adapt):
                recorder.take(step)
                last = step
                tell(step.number, plan.n_sweeps, _note(recorder, step))
                if plan.until_enough and _is_enough(recorder):
                    reason = (
                        f"the Monte Carlo error enlarges the error of predictions by less than "
                        f"{100 * ENOUGH:g}% after {step.number} sweeps"
                    )
                    break
                if step.number >= plan.n_sweeps:
                    if plan.until_enough:
                        reason = (
                            f"the limit of {plan.n_sweeps} sweeps was reached; the Monte Carlo error "
                            f"enlarges the error of predictions by {_percent(recorder)}"
                        )
                    break
        except KeyboardInterrupt:
            if last is None:
                raise
            interrupted = True
            reason = f"interrupted after {last.number} of at most {plan.n_sweeps} sweeps"
    assert last is not None
    if not recorder.draws:
        recorder.keep(last)
    return Outcome(recorder, last.number, reason, interrupted)


def _is_enough(recorder: Recorder) -> bool:
    n = recorder.n_recorded
    return n >= _FEWEST_DRAWS and n % _ASK_EVERY == 0 and added_error(recorder.probes) < ENOUGH


def _percent(recorder: Recorder) -> str:
    return f"{100 * added_error(recorder.probes):.2g}%"


def _note(recorder: Recorder, step: Step) -> str:
    phase = "burning in" if step.number <= recorder.burn_in else "sampling"
    name, value = next(iter(recorder.last.items()))
    return f"{phase}, {name.replace('_', ' ')} {value:.4f}"
