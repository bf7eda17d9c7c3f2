"""A table with values of every kind, and a model of it."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

import fillrank as fr

ANSWERS = ["never", "rarely", "often", "always"]
REGIONS = ["north", "south", "<b>west</b>"]
N = 90


def mixed_frame(n=N):
    """Numbers, limits, ordered answers, two values, counts, a category, ratings and dates."""
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, n))
    lead = np.exp(1 + 0.8 * u + 0.1 * rng.normal(size=n))
    answer = np.clip(np.floor(1.2 * u + 0.3 * rng.normal(size=n) + 2), 0, 3).astype(int)
    region = np.where(v > 0.5, 0, np.where(v > -0.5, 1, 2))
    table = pd.DataFrame(
        {
            "weight": 60 + 12 * u + 5 * v,
            "height": 1.7 + 0.1 * v + 0.01 * rng.normal(size=n),
            "lead": [f"{x:.3f}" if 1.2 < x < 9 else ("<1.2" if x <= 1.2 else ">9") for x in lead],
            "answer": pd.Categorical.from_codes(answer, ANSWERS, ordered=True),
            "smoker": np.where(u + 0.2 * rng.normal(size=n) > 0.3, "yes", "no"),
            "visits": rng.poisson(np.exp(1.5 + 1.1 * u)).astype(float),
            "region": np.array(REGIONS, dtype=object)[region],
            "stars": np.clip(np.rint(3 + v + 0.3 * rng.normal(size=n)), 1, 5),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(np.round(900 * u), unit="D"),
        },
        index=pd.Index([f"p{i}" for i in range(n)], name="who"),
    )
    holes = rng.random(table.shape) < 0.25
    return table.mask(holes)


@cache
def mixed_model():
    """(model, held-out entries) of the table of every kind: not to be changed."""
    train, test = fr.Observations.of(mixed_frame()).split(0.2, random_state=0)
    return fit_mixed(train), test


def fit_mixed(data, **settings):
    """A short fit, whatever it says of its length."""
    usual = {"n_sweeps": 60, "n_chains": 2, "random_state": 0, "n_threads": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        return fr.GASR(**usual | settings).fit(data)
