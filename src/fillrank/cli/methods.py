"""The methods by name: made from the options of the command line, and fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import fillrank as fr
from fillrank.cli.options import MethodName
from fillrank.errors import ConvergenceWarning, InputError
from fillrank.table.observations import Observations

SAMPLERS = ("GASR", "BPMF")


class Settings(NamedTuple):
    """How to fit; the options of the verbs explain the fields."""

    method: MethodName = "GASR"
    max_rank: int | Literal["auto"] = "auto"
    sweeps: int | Literal["auto"] = "auto"
    chains: int = 2
    threads: int | None = None
    seed: int = 0
    checkpoint: str | None = None


def check(settings: Settings) -> None:
    """Refuse options that the method does not have."""
    default = Settings()
    if settings.method in SAMPLERS:
        return
    for option in ("sweeps", "chains", "checkpoint"):
        if getattr(settings, option) != getattr(default, option):
            raise InputError(
                f"--{option} is for {' and '.join(SAMPLERS)}, which sample; got it with --method "
                f"{settings.method}. Leave it out."
            )


def make(settings: Settings, progress: bool) -> Any:
    """The method, not yet fitted."""
    check(settings)
    given: dict[str, Any] = {
        "n_threads": settings.threads,
        "random_state": settings.seed,
        "progress": progress,
    }
    if settings.max_rank != "auto":
        given["max_rank"] = settings.max_rank
    if settings.method in SAMPLERS:
        given |= {
            "n_sweeps": settings.sweeps,
            "n_chains": settings.chains,
            "checkpoint": settings.checkpoint,
        }
    return getattr(fr, settings.method)(**given)


class Stopped(KeyboardInterrupt):
    """The user has stopped a fit; ``n_saved`` sweeps are in its checkpoint, None if it has none."""

    def __init__(self, n_saved: int | None):
        super().__init__()
        self.n_saved = n_saved


@contextmanager
def stoppable(model: Any) -> Iterator[None]:
    """Fit a model within; Stopped if the user has stopped it."""
    try:
        yield
        is_stopped = getattr(model, "interrupted_", False)
    except KeyboardInterrupt:
        is_stopped = True
    if is_stopped:
        # The library keeps what it has; at a terminal, Ctrl-C means to end.
        raise Stopped(getattr(model, "checkpoint_sweeps", None))


def fit(settings: Settings, data: Observations, progress: bool, warn: bool = False) -> Any:
    """Fit the method; Stopped if the user has stopped it.

    With ``warn`` it is told if the fit has not converged: for verbs whose results do not say so.
    """
    model = make(settings, progress)
    with stoppable(model), warnings.catch_warnings():
        if not warn:
            warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data)
    return model
