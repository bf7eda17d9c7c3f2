"""The runner of myFM's Bayesian factorisation machine. See contract.py.

Two groups of features, rows and columns, as its guide has it for MovieLens; as it does by default, it
discards five sweeps. It samples on one thread, however many there are. The variant "pattern" has two
more groups, in relation blocks, as its guide has them for implicit feedback: the columns that a row has,
and the rows that a column has, each divided by the root of their number.
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


def pattern(rows, columns, shape):
    """A relation block's table: a 1 for each row, and the columns that it has."""
    counts = np.bincount(rows, minlength=shape[0])
    values = 1.0 / np.sqrt(counts[rows])
    mask = sp.csr_matrix((values, (rows, columns)), shape=shape)
    return sp.hstack([sp.identity(shape[0], format="csr"), mask], format="csr")


def inputs(problem):
    """(features of the training entries, of the test entries, sizes of the groups), with relations."""
    (m, n), train = problem.shape, problem.train
    if problem.variant != "pattern":
        parts = (features(e, problem.shape) for e in (problem.train, problem.test))
        return *((X, []) for X in parts), [m, n]
    tables = pattern(train.rows, train.columns, (m, n)), pattern(train.columns, train.rows, (n, m))

    def related(entries):
        places = zip((entries.rows, entries.columns), tables, strict=True)
        blocks = [myfm.RelationBlock(np.asarray(at, np.int64), table) for at, table in places]
        return sp.csr_matrix((len(entries.values), 0)), blocks

    return related(train), related(problem.test), [m, n, n, m]


def main():
    """Fit, and leave the result."""
    problem = read_problem()
    train, test, groups = inputs(problem)
    values = problem.train.values.astype(np.float64)
    curve, seconds, memory = Curve(problem.test), [], Memory()
    clock = Clock()

    def watch(_, machine, *rest):
        now = clock.seconds
        seconds.append(now)
        if len(seconds) > BURN_IN:
            with clock.paused():
                curve.average(len(seconds), now, machine.predict_score(*test))
        return False, None

    model = myfm.MyFMRegressor(rank=problem.rank, random_seed=problem.seed)
    X, relations = train
    model.fit(X, values, relations, n_iter=problem.iterations, group_shapes=groups, callback=watch)
    # The first iteration has the start in it.
    work = Work(np.diff(seconds).tolist(), finish=clock.seconds - seconds[-1])
    write_result(problem, myfm.__version__, curve, work, memory.added())


if __name__ == "__main__":
    main()
