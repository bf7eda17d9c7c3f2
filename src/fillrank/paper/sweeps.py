"""A sampler watched sweep by sweep: the very run of its estimator, with nothing kept."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fillrank.estimators.checks import check_value_range, seed_from
from fillrank.estimators.sampled import SampledCompleter
from fillrank.posterior.posterior import Units
from fillrank.run.chains import run
from fillrank.runtime.threads import one_blas_thread
from fillrank.samplers.draw import Draw
from fillrank.samplers.state import Data
from fillrank.table.observations import Observations
from fillrank.table.units import standardise


class Sweep(NamedTuple):
    """A chain after one more sweep: ``number`` counts from 1; the spectrum is in standard units."""

    number: int
    state: Any
    draw: Draw
    spectrum: np.ndarray
    units: Units


def sweeps(model: SampledCompleter, data: Observations) -> Iterator[Sweep]:
    """Take the ``n_sweeps`` of an estimator, which has to be a number, and show each."""
    plan, sampler = model._plan(), model._sampler()
    standard = standardise(data, model._centred, np.dtype(model.dtype))
    entries = Data(standard.rows, standard.columns)
    value_range = check_value_range(model.value_range, data)
    units = Units(standard.location, standard.scale, value_range)
    with one_blas_thread(), model._workers() as workers:
        seed = [seed_from(model.random_state), 0]
        chain = model._first_chain(entries, standard.scale, workers, seed)
        for step in run([chain], entries, sampler, plan.n_adapt):
            (state,) = step.states
            draw = sampler.draw(state)
            yield Sweep(step.number, state, draw, sampler.spectrum(draw), units)
            if step.number == plan.n_sweeps:
                return
