"""The runner of cmfrec's CMF by alternating least squares. See contract.py.

The penalty is the best of 10, 14, 17, 20 and 24 on a fifth of the training entries of MovieLens 1M: its
documentation says that it needs tuning, and the time of that is not counted. It has no way
to watch a fit, so that it is fitted anew for each number of iterations.
"""

import importlib.metadata

import cmfrec
import scipy.sparse as sp
from contract import Memory, fit_again_and_again, read_problem, write_result

PENALTY = 20.0


def main():
    """Fit, and leave the result."""
    problem = read_problem()
    rows, columns, values = problem.train
    train = sp.coo_matrix((values, (rows, columns)), shape=problem.shape)

    def fit(n):
        model = cmfrec.CMF(
            k=problem.rank,
            lambda_=PENALTY,
            niter=n,
            nthreads=problem.threads,
            random_state=problem.seed,
            precompute_for_predictions=False,
            verbose=False,
        )
        return model.fit(train)

    def predict(model):
        return model.predict(problem.test.rows, problem.test.columns)

    memory = Memory()
    curve, work = fit_again_and_again(problem, fit, predict)
    version = importlib.metadata.version("cmfrec")
    write_result(problem, version, curve, work, memory.added())


if __name__ == "__main__":
    main()
