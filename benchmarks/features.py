"""What each part of the model contributes: noise, the pattern of missing values, given features.

    python benchmarks/features.py ml-100k --data FOLDER
    python benchmarks/features.py ml-1m-90 --data FOLDER --variants all,both --splits 1
    python benchmarks/features.py ml-100k --data FOLDER --validation

FOLDER has the folders ml-100k, ml-1m, eachmovie-sample, dream7 and tables, as published. With
--validation, a fifth of the training entries takes the place of the test entries: for choosing defaults.
"""

import argparse
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.io

import fillrank as fr
from fillrank.estimators import sampled
from fillrank.features.blocks import Blocks
from fillrank.features.pattern import pattern_blocks

_SHOWN = ("rmse", "mae", "log_score", "coverage")


class Problem(NamedTuple):
    """Training and test entries, and features of the rows and of the columns."""

    train: Any
    test: Any
    row_features: Any = None
    column_features: Any = None


class Variant(NamedTuple):
    """Settings of GASR, the sides on which the pattern is used, and whether given features are."""

    settings: dict
    sides: tuple = ()
    given: bool = False


_BOTH = ("rows", "columns")
VARIANTS = {
    "nothing": Variant({"noise": "one"}),
    "noise": Variant({}),
    "rows": Variant({}, ("rows",)),
    "columns": Variant({}, ("columns",)),
    "both": Variant({}, _BOTH),
    "given": Variant({}, (), True),
    "all": Variant({}, _BOTH, True),
}


def people_and_films(folder):
    """Features of the people and the films of MovieLens 100K."""
    people = pd.read_csv(
        folder / "u.user", sep="|", names=["user", "age", "sex", "occupation", "zip"]
    )
    films = pd.read_csv(folder / "u.item", sep="|", encoding="latin-1", header=None)
    genres = films.iloc[:, 5:].astype(float)
    genres.columns = [f"genre {k}" for k in range(genres.shape[1])]
    genres["year"] = pd.to_numeric(films[2].str[-4:], errors="coerce")
    genres.index = films[0]
    return people.drop(columns="zip").set_index("user"), genres


def people_and_films_1m(folder):
    """Features of the people and the films of MovieLens 1M; codes of ages are categories."""
    names = ["user", "sex", "age", "occupation", "zip"]
    people = pd.read_csv(folder / "users.dat", sep="::", engine="python", names=names, dtype=str)
    people.index = people.pop("user").astype(int)
    films = pd.read_csv(
        folder / "movies.dat",
        sep="::",
        engine="python",
        names=["film", "title", "genres"],
        encoding="latin-1",
    )
    genres = films.genres.str.get_dummies("|").astype(float)
    genres["year"] = pd.to_numeric(films.title.str[-5:-1], errors="coerce")
    genres.index = films.film
    return people.drop(columns="zip"), genres


def random_splits(ratings, test_fraction, features=(None, None)):
    """Splits at random, by number."""

    def split(number):
        train, test = ratings.split(test_fraction=test_fraction, random_state=number)
        return Problem(train, test, *features)

    return split


def published_folds(folder):
    """The folds u1 to u5 of MovieLens 100K."""
    features = people_and_films(folder)

    def split(number):
        parts = (
            pd.read_csv(
                folder / f"u{number + 1}.{part}", sep="\t", names=["user", "item", "rating", "time"]
            ).drop(columns="time")
            for part in ("base", "test")
        )
        return Problem(*map(fr.Observations.of, parts), *features)

    return split


def dream7(folder):
    """Cell lines by drugs, with four blocks of features of the cell lines."""
    values = fr.Observations.of(scipy.io.mmread(folder / "dss.mm").tocsr())
    blocks = {}
    for name in ("ge", "met", "exome", "rppa"):
        matrix = scipy.io.mmread(folder / f"{name}.mm")
        blocks[name] = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    return random_splits(values, 0.2, (blocks, None))


def boys(folder):
    """Growth data of boys, in standard deviations: their age is a feature of the rows."""
    table = pd.read_csv(folder / "boys.csv").select_dtypes("number")
    measured = table.drop(columns="age")
    values = fr.Observations.of(measured / measured.std())
    return random_splits(values, 0.3, (table[["age"]], None))


def eachmovie(folder):
    """Random splits of the training part; the people and films have no features."""
    return random_splits(fr.Observations.of(pd.read_csv(folder / "train.csv")), 0.2)


def ratings_of(name, folder):
    """The ratings of a MovieLens set."""
    return fr.datasets.load(name, path=folder)


PROBLEMS = {
    "ml-100k": lambda data: random_splits(
        ratings_of("ml-100k", data / "ml-100k"), 0.2, people_and_films(data / "ml-100k")
    ),
    "ml-100k-folds": lambda data: published_folds(data / "ml-100k"),
    "ml-1m": lambda data: random_splits(
        ratings_of("ml-1m", data / "ml-1m"), 0.2, people_and_films_1m(data / "ml-1m")
    ),
    "ml-1m-90": lambda data: random_splits(
        ratings_of("ml-1m", data / "ml-1m"), 0.1, people_and_films_1m(data / "ml-1m")
    ),
    "eachmovie": lambda data: eachmovie(data / "eachmovie-sample"),
    "dream7": lambda data: dream7(data / "dream7"),
    "boys": lambda data: boys(data / "tables"),
}


def validation_of(problem, number):
    """The problem with a fifth of its training entries in place of the test entries."""
    train, test = problem.train.split(test_fraction=0.2, random_state=100 + number)
    return problem._replace(train=train, test=test)


@contextmanager
def pattern_on(sides):
    """Fits use the pattern of missing values on these sides only."""

    def blocks(masks):
        found = pattern_blocks(masks)
        return Blocks(*(getattr(found, side) if side in sides else () for side in _BOTH))

    usual, sampled.pattern_blocks = sampled.pattern_blocks, blocks
    try:
        yield
    finally:
        sampled.pattern_blocks = usual


def run(problem, variant, seed):
    """The scores of a fit, its sweeps and its seconds."""
    given = (
        {"row_features": problem.row_features, "column_features": problem.column_features}
        if variant.given
        else {}
    )
    started = time.perf_counter()
    with pattern_on(variant.sides):
        model = fr.GASR(
            random_state=seed, progress=False, missingness=bool(variant.sides), **variant.settings
        ).fit(problem.train, **given)
    seconds = time.perf_counter() - started
    scores = fr.score(problem.test, model, unknown="prior")
    return [*(scores[name] for name in _SHOWN), model.n_sweeps_, seconds]


def coverage_by_fifth(problem, variant, seed):
    """The coverage of 90% intervals by fifths of people, by their ratings, and of predictions."""
    model = fr.GASR(random_state=seed, progress=False, **variant.settings).fit(problem.train)
    test = problem.test
    rows, columns = test.row_labels[test.row_index], test.column_labels[test.column_index]
    low, high = model.predict_interval(rows, columns, unknown="prior")
    covered = (low <= test.values) & (test.values <= high)
    counts = pd.Series(problem.train.row_labels[problem.train.row_index]).value_counts()
    groups = {
        "people": counts.reindex(rows).fillna(0).to_numpy(),
        "predictions": model.predict(rows, columns, unknown="prior"),
    }
    return {
        name: [covered[part].mean() for part in np.array_split(np.argsort(by, kind="stable"), 5)]
        for name, by in groups.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=tuple(PROBLEMS))
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the number of the first split")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--fifths", action="store_true", help="coverage of intervals by fifths")
    arguments = parser.parse_args()
    split = PROBLEMS[arguments.problem](arguments.data)
    if arguments.fifths:
        found = coverage_by_fifth(split(arguments.first), VARIANTS["both"], arguments.first)
        for name, shares in found.items():
            print(f"| {name} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")
        return
    figures = {name: [] for name in arguments.variants.split(",")}
    print(f"| variant | split | {' | '.join(_SHOWN)} | sweeps | seconds |")
    print("|---" * (len(_SHOWN) + 4) + "|")
    for number in range(arguments.first, arguments.first + arguments.splits):
        problem = split(number)
        if arguments.validation:
            problem = validation_of(problem, number)
        for name, found in figures.items():
            if VARIANTS[name].given and problem.row_features is None:
                continue
            found.append(run(problem, VARIANTS[name], number))
            _show(name, str(number), found[-1])
    for name, found in figures.items():
        if found:
            _show(name, "mean", np.mean(found, axis=0))
            _show(name, "sd", np.std(found, axis=0))


def _show(name, split, values):
    *scores, sweeps, seconds = values
    shown = " | ".join(f"{value:.4f}" for value in scores)
    print(f"| {name} | {split} | {shown} | {sweeps:.0f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
