"""A sampler's chain, sweep by sweep, and the quantities that the paper's figures show of it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from fillrank.estimators.checks import seed_from
from fillrank.estimators.sampled import SamplerEstimator
from fillrank.features.given import NOT_GIVEN
from fillrank.run.chains import run
from fillrank.runtime.threads import one_blas_thread
from fillrank.samplers.model import Draw
from fillrank.table.observations import Observations
from fillrank.table.units import Units


class Sweep(NamedTuple):
    """A chain after one more sweep: ``number`` counts from 1; the spectrum is in standard units."""

    number: int
    state: Any
    draw: Draw
    spectrum: np.ndarray
    units: Units


def sweeps(model: SamplerEstimator, data: Observations) -> Iterator[Sweep]:
    """Run the first chain of an estimator, whose ``n_sweeps`` is a number, and yield each sweep."""
    plan, table_model = model._plan(len(data)), model._table_model(data)
    units, entries = table_model.units, model._standard(data, table_model)
    with one_blas_thread(), model._workers() as workers:
        table_model = model._with_features(entries, table_model, NOT_GIVEN, workers)
        sampler = model._sampler(table_model)
        seed = [seed_from(model.random_state), 0]
        chain = model._first_chain(entries, table_model, plan, workers, seed)
        for step in run([chain], entries, sampler, plan.n_adapt):
            (state,) = step.states
            draw = sampler.draw(state)
            yield Sweep(step.number, state, draw, sampler.spectrum(draw), units)
            if step.number == plan.n_sweeps:
                return


class Shape(NamedTuple):
    """The mean norm of a set of vectors, and the mean absolute inner product of pairs of them."""

    norm: float
    inner: float


def shape_of(vectors: np.ndarray) -> Shape:
    """Return the shape of the columns of a matrix.

    Examples
    --------
    >>> shape_of(np.array([[1.0, 0.6], [0.0, 0.8]]))
    Shape(norm=1.0, inner=0.6)
    """
    gram = vectors.astype(np.float64).T @ vectors
    between = np.abs(gram[np.triu_indices(len(gram), 1)])
    return Shape(float(np.sqrt(np.diag(gram)).mean()), float(between.mean()))


def shape_in_ball(n: int) -> Shape:
    """Return the expected shape of vectors that are uniform in the unit ball of R^n: the prior's.

    E ||u|| = n/(n + 1). A direction has E |t_1| = Gamma(n/2) / (sqrt(pi) Gamma((n + 1)/2), and
    E |u . v| = E ||u|| E ||v|| E |t_1|.
    """
    norm = n / (n + 1)
    along = np.exp(gammaln(n / 2) - gammaln((n + 1) / 2)) / np.sqrt(np.pi)
    return Shape(norm, float(norm**2 * along))


def rank_by_ratio(d: np.ndarray) -> int:
    """Return the rank by the paper's rule: cut the sorted d at the largest ratio of neighbours.

    Examples
    --------
    >>> rank_by_ratio(np.array([0.1, 40.0, 0.2, 50.0, 0.3]))
    2
    """
    ascending = np.sort(d)
    w = 1 + int(np.argmax(ascending[1:] / ascending[:-1]))
    return d.size - w
