"""The runner of myFM's Bayesian factorisation machine on rows and columns alone. See contract.py.

Two groups of features, rows and columns, as its guide has it for MovieLens; as it does by default, it
discards five sweeps. It samples on one thread, however many there are.
"""

import myfm
import numpy as np
import scipy.sparse as sp
from contract import Clock, Curve, Memory, Work, read_problem, write_result

BURN_IN = 5


def features(entries, shape):
    """One line an entry, with a 1 for its row and a 1 for its column."""
    n = len(entries.values)
    indices = np.column_stack([entries.rows, shape[0] + entries.columns]).ravel()
    pointers = np.arange(0, 2 * n + 1, 2)
    return sp.csr_matrix((np.ones(2 * n), indices, pointers), shape=(n, sum(shape)))


def main():
    """Fit, and leave the result."""
    problem = read_problem()
    train, test = (features(e, problem.shape) for e in (problem.train, problem.test))
    values = problem.train.values.astype(np.float64)
    curve, seconds, memory = Curve(problem.test), [], Memory()
    clock = Clock()

    def watch(_, machine, *rest):
        now = clock.seconds
        seconds.append(now)
        if len(seconds) > BURN_IN:
            with clock.paused():
                curve.average(len(seconds), now, machine.predict_score(test, []))
        return False, None

    model = myfm.MyFMRegressor(rank=problem.rank, random_seed=problem.seed)
    model.fit(
        train, values, n_iter=problem.iterations, group_shapes=list(problem.shape), callback=watch
    )
    # The first iteration has the start in it.
    work = Work(np.diff(seconds).tolist(), finish=clock.seconds - seconds[-1])
    write_result(problem, myfm.__version__, curve, work, memory.added())


if __name__ == "__main__":
    main()
