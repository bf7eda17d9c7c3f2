"""SMURFF with Macau's prior on a table whose rows have features, for ../macau.py.

    python run_macau.py PROBLEM.npz RESULT.npy --seed 0

PROBLEM.npz has rows, columns, values and shape of the training entries, test_rows and test_columns, and
the features of the rows, standardised, in one array. RESULT.npy gets the predictions of the test cells.
"""

import argparse

import numpy as np
import scipy.sparse as sp
import smurff

RANK, BURN_IN, SAMPLES = 10, 500, 1500


def main():
    """Sample, and write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("result")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--plain", action="store_true", help="without the features")
    arguments = parser.parse_args()
    problem = np.load(arguments.problem)
    shape, mean = tuple(problem["shape"]), problem["values"].mean()
    train = sp.coo_matrix(
        (problem["values"] - mean, (problem["rows"], problem["columns"])), shape=shape
    )
    places = problem["test_rows"], problem["test_columns"]
    test = sp.coo_matrix((np.ones(places[0].size), places), shape=shape)
    session = smurff.TrainSession(
        priors=["normal" if arguments.plain else "macau", "normal"],
        num_latent=RANK,
        burnin=BURN_IN,
        nsamples=SAMPLES,
        seed=arguments.seed,
        verbose=0,
    )
    session.addTrainAndTest(train, test, noise=smurff.SampledNoise(1.0))
    if not arguments.plain:
        session.addSideInfo(0, problem["features"], direct=True)
    predictions = session.run()
    found = {p.coords: p.pred_avg for p in predictions}
    np.save(arguments.result, [mean + found[cell] for cell in zip(*places, strict=True)])


if __name__ == "__main__":
    main()
