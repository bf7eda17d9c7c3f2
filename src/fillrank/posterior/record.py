"""What a fit reports beside its posterior: the rank, the history, why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from fillrank.noise.laws import LAWS, LawName
from fillrank.run.recorder import Traces
from fillrank.solvers.fit import PathPoint

# The losses of a solver beside squares.
LossName = Literal["laplace", "logistic", "ordered"]


@dataclass(frozen=True)
class Record:
    """What a fit reports. A field is None if the method has no such quantity.

    All is in the units of the data, except for ``traces``.

    Parameters
    ----------
    rank : int
        The number of factors.
    history : mapping of name to array
        What was traced: (chains, sweeps) for samplers, (iterations,) for solvers.
    stop_reason : str
        Why the fit ended.
    rank_probabilities : mapping of rank to share of draws
    noise_variance : float
        The average over all cells. In standard units if columns have their own units, as are
        ``singular_values`` and ``history``.
    row_noise : ndarray
        The posterior mean of the noise standard deviation of each row in an average column: in the
        units of the data, or in standard units if columns have their own.
    column_noise : ndarray
        That of each column in an average row, in the unit of the column.
    singular_values : ndarray
        Descending.
    n_sweeps : int
        Sweeps of a sampler.
    interrupted : bool
        Whether Ctrl-C ended the run.
    reached_limit : bool
        Whether the run reached its limit before there were enough draws.
    traces : Traces
        The run of a sampler. None for new rows or columns, which have no run.
    penalty, beta : float
        The settings of a solver.
    path : list of PathPoint
        What was tried to choose them.
    violation : float
        The certificate of a solver.
    converged : bool
        Whether a solver has converged; a run of a sampler is judged by its diagnostics.
    units, noise : str
        What a sampler has chosen: "table" or "columns"; "one", "rows", "columns" or "both".
    law : str
        The distribution of the noise of an entry of a sampler, if it is not Gaussian or Student-t:
        "laplace", "logistic" or "hinge".
    loss : str
        The loss of a solver, if it is not that of squares: "laplace", "logistic" or "ordered".
    notes : list of str
        What was chosen about the table and why, and what to know about its columns.
    sticks : ndarray
        The stick-breaking parameters of the variational iPM3F.
    """

    rank: int
    history: Mapping[str, np.ndarray]
    stop_reason: str
    rank_probabilities: Mapping[int, float] | None = None
    noise_variance: float | None = None
    row_noise: np.ndarray | None = None
    column_noise: np.ndarray | None = None
    singular_values: np.ndarray | None = None
    n_sweeps: int | None = None
    interrupted: bool | None = None
    reached_limit: bool | None = None
    traces: Traces | None = None
    penalty: float | None = None
    beta: float | None = None
    path: list[PathPoint] | None = None
    violation: float | None = None
    converged: bool | None = None
    sticks: np.ndarray | None = None
    units: str | None = None
    noise: str | None = None
    notes: list[str] | None = None
    law: LawName | None = None
    loss: LossName | None = None

    @property
    def likelihood(self) -> str | None:
        """The law or the loss, by the name that the setting has; None if it is the usual one."""
        return self.law or self.loss

    @property
    def has_own_units(self) -> bool:
        """Whether each column has its own unit."""
        return self.units == "columns"

    def fitted_attributes(self) -> dict[str, Any]:
        """What the method has, under the names of fitted attributes: with an underscore."""
        names = {field.name for field in fields(self)} - {"law", "loss"} | {"likelihood"}
        values = {f"{name}_": getattr(self, name) for name in sorted(names)}
        return {name: value for name, value in values.items() if value is not None}


def not_sampled(method: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Names in the history of a sampler that are estimated or given, not sampled.

    Files of layout 1, whose settings have no noise, are of a GASR that estimated them. With a likelihood
    of levels the noise is given.
    """
    law = LAWS.get(settings.get("likelihood", "gaussian"))
    if law is not None and law.of_levels:
        return ("noise_variance",)
    if method == "GASR":
        is_estimated = settings.get("sampler") == "published" or "noise" not in settings
        return ("noise_variance", "a", "b") if is_estimated else ()
    return () if settings.get("noise_precision") == "sampled" else ("noise_variance",)
