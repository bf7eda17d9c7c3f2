"""The figures on ratings: random 80/20 splits of MovieLens.

    python benchmarks/ratings.py ml-100k --data FOLDER              GASR with its default settings
    python benchmarks/ratings.py ml-1m --data FOLDER --published    GASR as the paper has it

FOLDER holds the published files (u.data, ratings.dat). Without --data they are downloaded. With
--unclipped, predictions are not kept within the rating scale.
"""

import argparse
import time

import numpy as np

import fillrank as fr

_SHOWN = ("rmse", "mae", "nmae", "rmse_rounded", "nmae_rounded", "coverage")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("ml-1m", "ml-100k"))
    parser.add_argument("--data", help="folder with the published files")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--unclipped", action="store_true")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    ratings = fr.datasets.load(arguments.dataset, path=arguments.data)
    make = fr.GASR.as_published if arguments.published else fr.GASR
    settings = {"value_range": None} if arguments.unclipped else {}
    settings |= {"n_threads": arguments.threads, "progress": False}

    print("| split | " + " | ".join(_SHOWN) + " | rank | sweeps | seconds |")
    print("|---|" + "---|" * (len(_SHOWN) + 3))
    rows = []
    for split in range(arguments.splits):
        train, test = ratings.split(test_fraction=0.2, random_state=split)
        started = time.perf_counter()
        model = make(random_state=split, **settings).fit(train)
        seconds = time.perf_counter() - started
        scores = fr.score(test, model)
        rows.append([scores[name] for name in _SHOWN])
        figures = " | ".join(f"{value:.4f}" for value in rows[-1])
        print(
            f"| {split} | {figures} | {model.rank_} | {model.n_sweeps_} | {seconds:.1f} |",
            flush=True,
        )
    for name, summary in (("mean", np.mean), ("sd", np.std)):
        print(f"| {name} | " + " | ".join(f"{v:.4f}" for v in summary(rows, axis=0)) + " | | | |")


if __name__ == "__main__":
    main()
