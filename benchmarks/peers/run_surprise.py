"""The runner of Surprise's SVD: stochastic gradients, with its default rates. See contract.py.

It has no way to watch a fit, so that it is fitted anew for each number of epochs; and one thread.
"""

from collections import defaultdict

import numpy as np
import surprise
from contract import HIGH, LOW, Memory, fit_again_and_again, read_problem, write_result


def trainset(entries, shape):
    """The entries as Surprise takes them; positions are names."""
    by_row, by_column = defaultdict(list), defaultdict(list)
    for i, j, value in zip(*(column.tolist() for column in entries), strict=True):
        by_row[i].append((j, value))
        by_column[j].append((i, value))
    names = ({i: i for i in range(size)} for size in shape)
    return surprise.Trainset(by_row, by_column, *shape, len(entries.values), (LOW, HIGH), *names)


def main():
    """Fit, and leave the result."""
    problem = read_problem()
    train = trainset(problem.train, problem.shape)
    rows, columns, _ = problem.test

    def fit(n):
        model = surprise.SVD(n_factors=problem.rank, n_epochs=n, random_state=problem.seed)
        return model.fit(train)

    def predict(model):
        product = np.einsum("pk,pk->p", model.pu[rows], model.qi[columns])
        return train.global_mean + model.bu[rows] + model.bi[columns] + product

    memory = Memory()
    curve, work = fit_again_and_again(problem, fit, predict)
    write_result(problem, surprise.__version__, curve, work, memory.added())


if __name__ == "__main__":
    main()
