"""The max-margin methods on ratings: MovieLens, one 80/20 split, at most 30 factors or features.

    python benchmarks/ordinal.py ml-1m --data FOLDER
    python benchmarks/ordinal.py ml-100k --data FOLDER --methods M3F IPM3F

The penalty is chosen on a fifth of the training entries; that of the sampler, whose path takes long, is
given: 10 was the best on such entries of MovieLens 1M. NMAE and RMSE are those of the predicted
levels, and the last column is the RMSE of means over draws, where there are draws.
"""

import argparse
import time
import warnings

import numpy as np

import fillrank as fr

METHODS = {
    "M3F": lambda: fr.M3F(random_state=0, progress=False),
    "IPM3F": lambda: fr.IPM3F(random_state=0, progress=False),
    "IPM3F, Gibbs": lambda: fr.IPM3F(
        inference="gibbs", penalty=10.0, random_state=0, progress=False
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("ml-1m", "ml-100k"))
    parser.add_argument("--data", help="folder with the published files")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    ratings = fr.datasets.load(arguments.dataset, path=arguments.data)
    train, test = ratings.split(0.2, random_state=0)
    print("| method | NMAE | RMSE | penalty | rank | seconds | RMSE of means |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.methods:
        model = METHODS[name]()
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fr.ConvergenceWarning)
            model.fit(train)
        seconds = time.perf_counter() - started
        scores, mean = fr.score(test, model), ""
        if getattr(model, "inference", "") == "gibbs":
            error = model.predict_mean(test.rows, test.columns) - test.values
            mean = f"{np.sqrt(np.mean(error**2)):.4f}"
        print(
            f"| {name} | {scores['nmae']:.4f} | {scores['rmse']:.4f} | {model.penalty_:.1f} | "
            f"{model.rank_} | {seconds:.0f} | {mean} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
