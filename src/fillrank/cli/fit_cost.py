"""The estimated cost of a fit.

It is estimated from measured constants. A sweep of a sampler has a cost of its own, one per entry and
factor, and one per entry of a column of levels or counts; recording it has one per row or column and
pair of factors. A run ends when it has enough draws: after about 500 sweeps of ratings, and after more
in other tables, up to the limit of sweeps. The other methods try about twenty penalties: they have a
cost per entry and factor for the complete fit. The constants are from MovieLens 1M and 100K
(docs/figures.md); a busy machine can take several times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fillrank.cli.messages import format_duration, report
from fillrank.cli.models import Settings, own_kinds
from fillrank.runtime.memory import available_memory, format_bytes
from fillrank.runtime.threads import available_threads
from fillrank.table.observations import Observations

_USUAL_RANK = 30
_USUAL_SWEEPS = 500  # what "auto" takes on ratings
_START_SECONDS = 1.5  # imports, with cached kernels
# Seconds on one thread, per entry and factor of a sweep or of a complete fit.
_SWEEP_SECONDS = 2.5e-9
# Seconds of a sweep of any table, and per entry of a column of levels or counts.
_SWEEP_START_SECONDS, _LEVEL_SECONDS = 6e-4, 3e-7
_FIT_SECONDS = {
    "SoftImpute": 9e-6,
    "SoftImputeALS": 9e-6,
    "HASI": 3e-5,
    "RelaxedSpectral": 3e-5,
    "M3F": 5e-6,
    "IPM3F": 1e-5,
}
# Seconds per row or column and pair of factors, to record a sweep; this runs on one thread.
_RECORD_SECONDS = 2.7e-9
# Bytes of the program, of an entry (by row, by column, in standard units) and of a number of a draw.
_PROGRAM_BYTES, _ENTRY_BYTES, _NUMBER_BYTES = 250e6, 64, 4


class Cost(NamedTuple):
    """Seconds and bytes, and the seconds if a run needs as many sweeps as it may have."""

    seconds: float
    n_bytes: float
    most_seconds: float


def estimate_cost(
    settings: Settings, data: Observations, n_threads: int, n_levels: int = 0
) -> Cost:
    """Estimate the cost of a fit of a table with so many entries that are levels or counts."""
    from fillrank.run.loop import auto_most_sweeps  # imported late: it loads numba
    from fillrank.run.recorder import MOST_BYTES, MOST_DRAWS

    n_labels = sum(data.shape)
    rank = _USUAL_RANK if settings.max_rank == "auto" else settings.max_rank
    rank = min(rank, *data.shape)
    work = data.n_entries * rank / n_threads
    n_bytes = _PROGRAM_BYTES + _ENTRY_BYTES * data.n_entries
    if settings.method in _FIT_SECONDS:
        seconds = _START_SECONDS + _FIT_SECONDS[settings.method] * work
        return Cost(seconds, n_bytes + 8 * _NUMBER_BYTES * n_labels * rank, seconds)
    if settings.sweeps == "auto":
        n_sweeps, most_sweeps = _USUAL_SWEEPS, auto_most_sweeps(data.n_entries)
    else:
        n_sweeps = most_sweeps = settings.sweeps
    recording = _RECORD_SECONDS * n_labels * rank**2
    own = _SWEEP_START_SECONDS + _LEVEL_SECONDS * n_levels
    sweep = settings.chains * (_SWEEP_SECONDS * work + recording + own)
    n_draws = min(n_sweeps * settings.chains, MOST_DRAWS)
    stored = min(n_draws * _NUMBER_BYTES * n_labels * (rank + 2), MOST_BYTES)
    seconds, most = (_START_SECONDS + n * sweep for n in (n_sweeps, most_sweeps))
    return Cost(seconds, n_bytes + stored, most)


def report_cost(
    settings: Settings | Sequence[Settings], data: Observations, times: int = 1
) -> None:
    """Report the estimated cost of fits with these settings, each run ``times`` times."""
    each = [settings] if isinstance(settings, Settings) else settings
    costs = [
        estimate_cost(one, data, available_threads(one.threads), _count_levels(one, data))
        for one in each
    ]
    n_fits, n_bytes = times * len(costs), max(cost.n_bytes for cost in costs)
    duration = format_duration(times * sum(cost.seconds for cost in costs))
    most = format_duration(times * sum(cost.most_seconds for cost in costs))
    fits, need = ("The fit", "it needs") if n_fits == 1 else (f"{n_fits} fits", "they need")
    if most != duration:
        most = most.removeprefix("about ")
        duration += f", or up to {most} if {need} more sweeps,"
    text = f"{fits} will take {duration} and {format_bytes(_round_up(n_bytes))} of memory."
    available = available_memory()
    if available is not None and n_bytes > available:
        text += f" [bold yellow]Only {format_bytes(available)} are available.[/]"
    report(text)


def _count_levels(settings: Settings, data: Observations) -> int:
    """How many entries are in columns whose kind is not a number."""
    kinds = own_kinds(settings, data) or []
    others = [j for j, each in enumerate(kinds) if each.kind not in ("number", "positive")]
    return int(np.isin(data.column_index, others).sum()) if others else 0


def _round_up(n_bytes: float) -> float:
    """Round up to one digit: the estimate is not more precise."""
    unit: float = 10 ** math.floor(math.log10(n_bytes))
    return math.ceil(n_bytes / unit) * unit
