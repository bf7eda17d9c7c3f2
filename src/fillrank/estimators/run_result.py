"""The result of a run in the units of the data: the posterior, and the record of the fit."""

import numpy as np

from fillrank.estimators.table_model import TableModel
from fillrank.noise.laws import LAWS, LawName
from fillrank.posterior.diagnostics import diagnose_run
from fillrank.posterior.halves import halved
from fillrank.posterior.kinds import KindPosterior
from fillrank.posterior.low_rank import MOST_DRAWS, LowRankPosterior
from fillrank.posterior.mean import mean_draw
from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.posterior.record import Record
from fillrank.run.loop import Outcome
from fillrank.run.recorder import Recorder, Traces
from fillrank.samplers.model import Draw

# The unit of a traced quantity, as a power of the data's unit.
_UNIT_POWERS = {"residual_variance": 2, "noise_variance": 2, "b": 1}


def run_result(
    outcome: Outcome, model: TableModel, shape: tuple[int, int]
) -> tuple[LowRankPosterior | KindPosterior, Record]:
    """The posterior and the record of a run, in the units of the data.

    If columns have their own units, what describes the complete table is in standard units.
    """
    units, law = model.units, model.noise.law
    recorder = outcome.run.recorder
    mean = mean_draw(within_table(recorder.draws, shape))
    draws = within_table(recorder.spread_draws(MOST_DRAWS), shape)
    traces = recorder.traces()
    draws = halved(draws, traces.probe_rows % shape[0], traces.probe_columns % shape[1])
    probabilities = _rank_probabilities(recorder, traces, shape, law)
    scale = units.shared_scale
    posterior: LowRankPosterior | KindPosterior = LowRankPosterior(
        _with_level_limits(draws, model), units, mean, blocks=model.blocks, law=law
    )
    if model.coding is not None:
        posterior = KindPosterior(posterior.low_rank, model.coding)
    row_noise, column_noise = posterior.noise_scales()
    record = Record(
        rank=most_probable(probabilities),
        history={
            name: trace * scale ** _UNIT_POWERS.get(name, 0)
            for name, trace in traces.history.items()
        },
        stop_reason=outcome.stop_reason,
        rank_probabilities=probabilities,
        noise_variance=LAWS[law].variance * mean.noise.average() * scale**2,
        row_noise=row_noise,
        column_noise=column_noise,
        singular_values=scale * traces.spectra.mean(axis=(0, 1)),
        n_sweeps=outcome.run.n_sweeps,
        interrupted=outcome.interrupted,
        reached_limit=outcome.reached_limit,
        traces=traces,
        units=model.units_name,
        noise=model.noise_name,
        law=None if law == "gaussian" else law,
        notes=[*model.notes, *_rank_notes(probabilities, traces, shape)],
    )
    return posterior, record


def _with_level_limits(draws: list[Draw], model: TableModel) -> list[Draw]:
    """The draws with the intervals of levels; those of single values do not change in a run."""
    if model.coding is None:
        return draws
    n = model.coding.n_level_intervals
    return [draw._replace(limits=draw.limits[:, :n].copy()) for draw in draws]


def _rank_notes(
    probabilities: dict[int, float], traces: Traces, shape: tuple[int, int]
) -> list[str]:
    """A note if all factors that were allowed stand above the noise, so that there may be more."""
    n_components = traces.spectra.shape[2]
    if most_probable(probabilities) < min(n_components, *shape) or n_components >= min(shape) - 1:
        return []
    return [
        f"All {n_components} factors that max_rank allows are stronger than the noise: raise it."
    ]


def _rank_probabilities(
    recorder: Recorder, traces: Traces, shape: tuple[int, int], law: LawName
) -> dict[int, float]:
    noise = float(np.mean([draw.noise.average() for draw in recorder.draws]))
    noise *= LAWS[law].resolved
    return rank_probabilities(traces.spectra, shape, traces.n_entries, noise)


def reason_to_continue(
    recorder: Recorder, shape: tuple[int, int], law: LawName = "gaussian"
) -> str:
    """Why a run has not converged so far; empty if it has."""
    traces = recorder.traces()
    rank = most_probable(_rank_probabilities(recorder, traces, shape, law))
    return diagnose_run(traces, rank).reason


def within_table(draws: list[Draw], shape: tuple[int, int]) -> list[Draw]:
    """The draws without the empty second row or column that a single one gets during the fit."""
    m, n = shape
    return [
        draw._replace(
            left=draw.left[:m],
            right=draw.right[:n],
            noise=draw.noise._replace(rows=draw.noise.rows[:m], columns=draw.noise.columns[:n]),
            row_thresholds=draw.row_thresholds[:m],
        )
        for draw in draws
    ]
