"""The runner of fillrank's own methods: GASR, also without the pattern, and BPMF. See contract.py.

The fit is the public one, `fit()`, with the first ten sweeps discarded. A subclass looks over its
shoulder: at each sweep, for its time, and at each draw that is recorded, for the curve.
"""

import time
import warnings

import numpy as np
import scipy.sparse as sp
from contract import Clock, Curve, Entries, Memory, Work, first_as_good, read_problem, write_result

import fillrank as fr

BURN_IN = 10
# Test entries that are predicted at once: scoring should not be what takes most memory.
_AT_ONCE = 20_000


class _Watched:
    """A sampled method whose fit is timed and scored."""

    def watch(self, test):
        """Begin to count."""
        self.curve, self.sweeps, self.clock = Curve(test), [], Clock()
        self._cells = test.rows, test.columns
        return self

    def _sampler(self, model):
        self._units = model.units._replace(value_range=None)
        sampler = super()._sampler(model)

        def sweep(*arguments):
            if not self.sweeps:
                self.start_seconds = self.clock.seconds
            began = time.perf_counter()
            moved = sampler.sweep(*arguments)
            self.sweeps.append(time.perf_counter() - began)
            return moved

        def draw(state):
            drawn = sampler.draw(state)
            seconds = self.clock.seconds
            with self.clock.paused():
                self.curve.average(len(self.sweeps), seconds, self._predictions(drawn))
            return drawn

        return sampler._replace(sweep=sweep, draw=draw)

    def _predictions(self, drawn):
        rows, columns = self._cells
        parts = [slice(p, p + _AT_ONCE) for p in range(0, len(rows), _AT_ONCE)]
        signal = np.concatenate([drawn.at(rows[part], columns[part]) for part in parts])
        return self._units.restore(signal, columns)


class _WatchedGASR(_Watched, fr.GASR):
    pass


class _WatchedBPMF(_Watched, fr.BPMF):
    pass


METHODS = {"GASR": _WatchedGASR, "GASR-plain": _WatchedGASR, "BPMF": _WatchedBPMF}


def model_for(problem):
    """The method with the settings of this benchmark."""
    return METHODS[problem.variant](
        max_rank=problem.rank,
        burn_in=min(BURN_IN, problem.iterations - 1),
        n_sweeps=problem.iterations,
        n_chains=1,  # the other programs have one
        missingness=problem.variant != "GASR-plain",
        n_threads=problem.threads,
        random_state=problem.seed,
        progress=False,
    )


def observations_of(entries, shape):
    """The entries as fillrank takes them; positions are names."""
    return fr.Observations.from_matrix(
        sp.coo_array((entries.values, (entries.rows, entries.columns)), shape=shape)
    )


def first_use(problem):
    """Seconds of a fit of a tiny table, most of them compilation if nothing is cached."""
    tiny, _ = fr.synthetic(60, 40, rank=2, noise=0.5, missing=0.5, random_state=0)
    clock = Clock()
    own = Entries(tiny.row_index, tiny.column_index, tiny.values)
    model_for(problem._replace(rank=4, iterations=20)).watch(own).fit(tiny)
    return clock.seconds


def finish_at_target(problem, model, train):
    """Seconds after the last sweep of a fit that is asked for no more sweeps than the target needs."""
    if reached := first_as_good(model.curve.points):
        shorter = problem._replace(iterations=reached["iteration"])
        model = model_for(shorter).watch(problem.test).fit(train)
    return model.clock.seconds - model.curve.points[-1]["seconds"]


def main(arguments=None):
    """Fit, and leave the result."""
    problem = read_problem(arguments)
    train = observations_of(problem.train, problem.shape)
    warnings.simplefilter("ignore", fr.ConvergenceWarning)  # a run of 100 sweeps is short
    first = first_use(problem)
    model, memory = model_for(problem), Memory()
    model.watch(problem.test).fit(train)
    added, finish = memory.added(), finish_at_target(problem, model, train)
    work = Work(model.sweeps, model.start_seconds, finish, first)
    write_result(problem, fr.__version__, model.curve, work, added)


if __name__ == "__main__":
    main()
