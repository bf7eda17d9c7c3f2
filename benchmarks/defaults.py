"""The evidence behind the default settings, on validation entries alone.

    python benchmarks/defaults.py --data FOLDER

The test entries of benchmarks/ratings.py (20% of MovieLens 100K) are put aside; the rest is split once
more, 80/20, and each setting is judged on the smaller part. FOLDER holds u.data.
"""

import argparse

import numpy as np

import fillrank as fr

# One chain unless a setting says otherwise, so that a sweep is a sweep in all rows.
COMMON = {"n_sweeps": 450, "n_chains": 1, "progress": False}
SETTINGS = {
    "the defaults, but one chain of 450 sweeps": {},
    'noise "one"': {"noise": "one"},
    'noise "rows"': {"noise": "rows"},
    'noise "columns"': {"noise": "columns"},
    "robust": {"robust": True},
    "no effects, no centres": {"effects": "mean", "centres": False},
    "effects, no centres": {"centres": False},
    "centres, no effects": {"effects": "mean"},
    "max_rank 10": {"max_rank": 10},
    "max_rank 20": {"max_rank": 20},
    "max_rank 60": {"max_rank": 60},
    "burn-in 25": {"n_sweeps": 425, "burn_in": 25},
    "burn-in 200": {"n_sweeps": 600, "burn_in": 200},
    "one chain, 250 sweeps": {"n_sweeps": 250},
    "one chain, 850 sweeps": {"n_sweeps": 850},
    "two chains, 250 sweeps": {"n_sweeps": 250, "n_chains": 2},
    "random start": {"start": "random"},
    "soft_impute start": {"start": "soft_impute"},
    "hasi start": {"start": "hasi"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with u.data")
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    ratings = fr.datasets.load("ml-100k", path=arguments.data)
    print("| setting | validation RMSE | log score | noise variance |")
    print("|---|---|---|---|")
    for name, changes in SETTINGS.items():
        errors, logs, noise = [], [], []
        for split in range(arguments.splits):
            rest, _ = ratings.split(0.2, random_state=split)
            train, validation = rest.split(0.2, random_state=100 + split)
            settings = COMMON | {"random_state": split} | changes
            model = fr.GASR(**settings).fit(train)
            scores = fr.score(validation, model)
            errors.append(scores["rmse"])
            logs.append(scores["log_score"])
            noise.append(model.noise_variance_)
        means = f"{np.mean(errors):.4f} | {np.mean(logs):.4f} | {np.mean(noise):.3f}"
        print(f"| {name} | {means} |", flush=True)


if __name__ == "__main__":
    main()
