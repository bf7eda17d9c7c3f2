"""The runner of SMURFF's BPMF; the variant is its model of the noise. See contract.py.

The overall mean is taken off, as its authors do. SMURFF's default, noise of a fixed precision of 5, is
not among the variants: it overfits ratings (test RMSE about 0.91). Its own clock leaves out the
prediction of test entries, and so does the curve.
"""

import importlib.metadata

import numpy as np
import scipy.sparse as sp
import smurff
from contract import Clock, Curve, Memory, Work, read_problem, write_result

BURN_IN = 10
NOISE = {"sampled": lambda: smurff.SampledNoise(1.0), "adaptive": smurff.AdaptiveNoise}


def matrix(entries, mean, shape):
    """Entries less the mean, as SMURFF takes them: what is not stored is unknown."""
    return sp.csr_matrix((entries.values - mean, (entries.rows, entries.columns)), shape=shape)


def session(problem, n_sweeps, train, test=None):
    """A session that is ready to sample."""
    burn_in = min(BURN_IN, n_sweeps - 1)
    made = smurff.TrainSession(
        num_latent=problem.rank,
        num_threads=problem.threads,
        burnin=burn_in,
        nsamples=n_sweeps - burn_in,
        seed=problem.seed,
        verbose=0,
    )
    made.addTrainAndTest(train, test, noise=NOISE[problem.variant]())
    made.init()
    return made


def memory_of(problem, train):
    """What a few sweeps take; without test entries, of which SMURFF keeps every prediction."""
    memory = Memory()
    running = session(problem, 3, train)
    while running.step() is not None:
        pass
    return memory.added()


def positions(session, problem):
    """For each test entry, the place of its prediction among SMURFF's."""
    n_columns = problem.shape[1]
    theirs = np.array([p.coords[0] * n_columns + p.coords[1] for p in session.getTestPredictions()])
    ours = problem.test.rows.astype(np.int64) * n_columns + problem.test.columns
    order = np.argsort(theirs)
    return order[np.searchsorted(theirs, ours, sorter=order)]


def main():
    """Fit, and leave the result."""
    problem = read_problem()
    mean = problem.train.values.mean()
    train, test = (matrix(e, mean, problem.shape) for e in (problem.train, problem.test))
    memory = memory_of(problem, train)
    clock, curve, seconds = Clock(), Curve(problem.test), []
    running = session(problem, problem.iterations, train, test)
    start, places = clock.seconds, None
    while (status := running.step()) is not None:
        seconds.append(status.elapsed_iter)
        if status.phase != "Sample":
            continue
        if places is None:
            places = positions(running, problem)
        averages = np.array([p.pred_avg for p in running.getTestPredictions()])[places]
        curve.point(len(seconds), start + sum(seconds), mean + averages)
    write_result(problem, importlib.metadata.version("smurff"), curve, Work(seconds, start), memory)


if __name__ == "__main__":
    main()
