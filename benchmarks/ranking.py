"""Measures of ranking on MovieLens: ten films for every user, random 80/20 splits.

    python benchmarks/ranking.py ml-100k --data FOLDER

GASR and BPMF with their default settings, and the films with the most ratings. A held-out rating is
relevant above the mean of the user's fitted ratings, or with at least 4 stars. Means over the splits,
and standard deviations between them. FOLDER holds the published files (u.data, ratings.dat). Without
--data they are downloaded.
"""

import argparse
from collections import defaultdict

import numpy as np

import fillrank as fr

_MEASURES = ("precision", "recall", "ndcg", "mrr", "hit_rate", "catalogue_coverage")
_ORDERS = {"GASR": ("mean", "cautious"), "BPMF": ("mean", "cautious")}


def _score(test, model, name, relevant, found):
    """Add the scores of all orders of a model, and of the most popular films."""
    for by in _ORDERS[name]:
        scores = fr.score_ranking(test, model, 10, relevant=relevant, by=by)
        found[relevant, f"{name}, by {by}"].append(scores)
    if name == "GASR":
        scores = fr.score_ranking(test, model, 10, relevant=relevant, by="popular")
        found[relevant, "most popular"].append(scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("ml-1m", "ml-100k"))
    parser.add_argument("--data", help="folder with the published files")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    ratings = fr.datasets.load(arguments.dataset, path=arguments.data)
    found = defaultdict(list)
    for split in range(arguments.splits):
        train, test = ratings.split(test_fraction=0.2, random_state=split)
        for name in _ORDERS:
            method = getattr(fr, name)
            model = method(random_state=split, n_threads=arguments.threads, progress=False)
            model.fit(train)
            for relevant in ("above_mean", 4):
                _score(test, model, name, relevant, found)
    print(f"| relevant | order | {' | '.join(_MEASURES)} | rows | left out |")
    print("|---|---|" + "---|" * (len(_MEASURES) + 2))
    for (relevant, order), scores in sorted(found.items(), key=lambda item: str(item[0][0])):
        cells = []
        for measure in _MEASURES:
            values = np.array([each[measure] for each in scores])
            cells.append(f"{values.mean():.4f} +- {values.std():.4f}")
        counts = [f"{np.mean([each[n] for each in scores]):.0f}" for n in ("rows", "rows_left_out")]
        print(f"| {relevant} | {order} | {' | '.join(cells + counts)} |")


if __name__ == "__main__":
    main()
