"""Recommendations on MovieLens 1M: the seconds they take, and what the held-out ratings say of them.

    python benchmarks/recommend.py --data FOLDER

GASR with its default settings on 80% of the ratings; then ten films for every user, each way. Of the
recommended films, those count that the user has rated in the held-out 20%. FOLDER holds ratings.dat.
"""

import argparse
import os
import time

import numpy as np

import fillrank as fr

# A film with at most so many stars is a disappointment.
_DISAPPOINTING = 2
_REPEATS = 3


def _timed(recommend):
    """(answer, seconds, processor seconds): medians of some runs, after one that may compile."""
    recommend()
    seconds, processor = [], []
    for _ in range(_REPEATS):
        before, started = os.times(), time.perf_counter()
        answer = recommend()
        after = os.times()
        seconds.append(time.perf_counter() - started)
        processor.append(after.user + after.system - before.user - before.system)
    return answer, np.median(seconds), np.median(processor)


def _held_out(test, answer):
    """The held-out ratings of the recommended cells, where there are any."""
    n_columns = test.shape[1]
    cells = n_columns * test.row_index.astype(np.int64) + test.column_index
    rows = test.row_positions(answer["row"])
    asked = n_columns * rows.astype(np.int64) + test.column_positions(answer["column"])
    return test.values[np.isin(cells, asked)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with ratings.dat")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    ratings = fr.datasets.load("ml-1m", path=arguments.data)
    train, test = ratings.split(0.2, random_state=0)
    model = fr.GASR(random_state=0, n_threads=arguments.threads, progress=False).fit(train)
    print(
        f"all held-out ratings: mean {test.values.mean():.3f}, "
        f"{np.mean(test.values <= _DISAPPOINTING):.1%} disappointing\n"
    )
    print("| by | seconds | processor seconds | rated | mean rating | disappointing |")
    print("|---|---|---|---|---|---|")
    for by in ("mean", "cautious", "curious"):
        answer, seconds, processor = _timed(lambda by=by: model.recommend(by=by, random_state=0))
        stars = _held_out(test, answer)
        print(
            f"| {by} | {seconds:.2f} | {processor:.2f} | {stars.size} | {stars.mean():.3f} | "
            f"{np.mean(stars <= _DISAPPOINTING):.2%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
