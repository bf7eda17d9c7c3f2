"""Ratings as ordered levels: GASR with Gaussian noise beside GASR with an ordered likelihood.

    python benchmarks/ordered.py ml-100k --data FOLDER
    python benchmarks/ordered.py ml-1m-90 --data FOLDER --models ordered --features given --splits 1
    python benchmarks/ordered.py ml-100k --data FOLDER --features none --validation

FOLDER has the folders ml-100k and ml-1m, as published. The problems are those of features.py: random
splits, and the folds u1 to u5 of MovieLens 100K. All models are fitted to each split, in this order and
at the next split in the opposite one, without and with features of people and films. With --validation,
a fifth of the training entries takes the place of the test entries.

The level probabilities of the Gaussian model are those of half a level on each side, over their sum; or,
with "open ends", the lowest and the highest level have all that is beyond them. Its median and its most
probable level are those of these probabilities. "rmse" is that of the mean, "nmae" that of the median,
"accuracy" that of the most probable level; "log score" is the mean logarithm of the probability of the
level, and "levels" the mean number of levels in a 90% interval.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

import fillrank as fr
from features import PROBLEMS, validation_of
from fillrank.completions.unknown_labels import find_cells, query_cells
from fillrank.posterior.metrics import coverage, nmae, rmse

LEVEL = 0.9
NAMES = ("ml-100k", "ml-100k-folds", "ml-1m", "ml-1m-90")
_SHOWN = ("rmse", "nmae", "accuracy", "log score", "coverage", "levels")
_LEAST_PROBABILITY = 1e-9
# Cells whose draws are computed together.
_BLOCK = 4096


class Answers(NamedTuple):
    """What a model says about held-out entries."""

    mean: np.ndarray
    median: np.ndarray
    mode: np.ndarray
    log_probability: np.ndarray
    interval: tuple[np.ndarray, np.ndarray]


def answer_by_levels(model, test, levels):
    """The answers of a model with an ordered likelihood."""
    cells = test.rows, test.columns
    statistics = (
        model.predict(*cells, statistic=name, unknown="prior")
        for name in ("mean", "median", "mode")
    )
    return Answers(
        *statistics,
        model.log_density(*cells, test.values, unknown="prior"),
        model.predict_interval(*cells, LEVEL, unknown="prior"),
    )


def half_levels(levels):
    """The edges between levels, and half a level beyond the lowest and the highest."""
    return np.concatenate([levels[:1] - 0.5, (levels[1:] + levels[:-1]) / 2, levels[-1:] + 0.5])


def open_ends(levels):
    """The edges between levels; the lowest and the highest level have no other."""
    return np.concatenate([[-np.inf], half_levels(levels)[1:-1], [np.inf]])


def answer_by_numbers(model, test, levels, edges=half_levels):
    """The answers of a model with Gaussian noise, through probabilities of the levels."""
    cells = test.rows, test.columns
    found = level_probabilities(model, *cells, edges(levels))
    at_level = found[np.searchsorted(levels, test.values), np.arange(len(test))]
    return Answers(
        model.predict(*cells, unknown="prior"),
        levels[(np.cumsum(found, axis=0) < 0.5).sum(axis=0)],
        levels[found.argmax(axis=0)],
        np.log(np.maximum(at_level, _LEAST_PROBABILITY)),
        model.predict_interval(*cells, LEVEL, unknown="prior"),
    )


def level_probabilities(model, rows, columns, edges):
    """The probabilities (levels, cells) of a Gaussian model, by labels; they sum to 1 in each cell."""
    completion = model.completion_
    cells = find_cells(completion, rows, columns, "prior")

    def shares(posterior, i, j):
        blocks = np.array_split(np.arange(len(i)), len(i) // _BLOCK + 1)
        return np.hstack([shares_between(posterior, i[b], j[b], edges) for b in blocks])

    found = query_cells(completion, cells, shares)
    return found / found.sum(axis=0)


def shares_between(posterior, rows, columns, edges):
    """The probabilities (intervals, cells) of new observations between edges: means over the draws."""
    location, scale = posterior.units.location[columns], posterior.units.scale[columns]
    standard = (edges[:, np.newaxis] - location) / scale
    total = np.zeros((len(edges) - 1, len(rows)))
    for draw in posterior.draws:
        signal = np.einsum("pk,pk->p", draw.left[rows], draw.right[columns])
        below = ndtr((standard - signal) / np.sqrt(draw.noise.at(rows, columns)))
        total += np.diff(below, axis=0)
    return total / len(posterior.draws)


class Model(NamedTuple):
    """Settings of GASR, and the ways in which such a model answers, by name."""

    settings: dict
    answers: dict


MODELS = {
    "gaussian": Model(
        {},
        {
            "gaussian": answer_by_numbers,
            "gaussian, open ends": partial(answer_by_numbers, edges=open_ends),
        },
    ),
    "ordered": Model({"likelihood": "ordered"}, {"ordered": answer_by_levels}),
    "common": Model(
        {"likelihood": "ordered", "thresholds": "table"},
        {"ordered, common thresholds": answer_by_levels},
    ),
}
FEATURES = ("none", "given")


def with_noise(name, noise):
    """The model of this name; those of ordered levels with this noise."""
    model = MODELS[name]
    if name == "gaussian":
        return model
    return model._replace(settings=model.settings | {"noise": noise})


def score_answers(answers, values, levels):
    """The scores of `_SHOWN`."""
    low, high = (limit[:, np.newaxis] for limit in answers.interval)
    return [
        rmse(values, answers.mean),
        nmae(values, answers.median, (levels[0], levels[-1])),
        np.mean(answers.mode == values),
        np.mean(answers.log_probability),
        coverage(values, *answers.interval),
        np.mean(((low <= levels) & (levels <= high)).sum(axis=1)),
    ]


def run(problem, model, with_features, seed):
    """The scores of a fit in all ways of answering, each with its sweeps and its seconds."""
    given = {}
    if with_features:
        given = {
            "row_features": problem.row_features,
            "column_features": problem.column_features,
        }
    started = time.perf_counter()
    fitted = fr.GASR(random_state=seed, progress=False, **model.settings)
    fitted.fit(problem.train, **given)
    seconds = time.perf_counter() - started
    test, levels = problem.test, np.unique(problem.train.values)
    return {
        name: [
            *score_answers(answer(fitted, test, levels), test.values, levels),
            fitted.n_sweeps_,
            seconds,
        ]
        for name, answer in model.answers.items()
    }


def problem_of(problem, number, validation):
    """The problem, or the same with validation entries."""
    return validation_of(problem, number) if validation else problem


def compile_kernels(models):
    """Fit a tiny table first: compilation is not counted."""
    data = fr.Observations.from_matrix(np.random.default_rng(0).integers(1, 6, (30, 20)) * 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models.values():
            fr.GASR(progress=False, **model.settings).fit(data)


def compare(split, models, features, numbers):
    """Fit all models to the splits in alternation; print their scores, then means and spreads."""
    fits = [(model, given) for given in features for model in models.values()]
    figures = {(name, given): [] for model, given in fits for name in model.answers}
    _show_head()
    for number in numbers:
        problem = split(number)
        for model, given in fits[:: -1 if number % 2 else 1]:
            for name, found in run(problem, model, given == "given", number).items():
                figures[name, given].append(found)
                _show(name, given, number, found)
    for summary in (np.mean, np.std):
        for (name, given), found in figures.items():
            _show(name, given, summary.__name__, summary(found, axis=0))


def _show_head():
    print(f"| model | features | split | {' | '.join(_SHOWN)} | sweeps | seconds |")
    print("|---" * (len(_SHOWN) + 5) + "|")


def _show(name, given, split, values):
    *scores, sweeps, seconds = values
    shown = " | ".join(f"{value:.4f}" for value in scores)
    print(f"| {name} | {given} | {split} | {shown} | {sweeps:.0f} | {seconds:.1f} |", flush=True)


def main(arguments=None):
    """Compare on one problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", choices=NAMES)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=tuple(MODELS))
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=FEATURES)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the number of the first split")
    parser.add_argument("--noise", default="auto", help="the noise of models of ordered levels")
    parser.add_argument("--validation", action="store_true", help="do not use the test entries")
    given = parser.parse_args(arguments)
    models = {name: with_noise(name, given.noise) for name in given.models}
    compile_kernels(models)
    split = PROBLEMS[given.problem](given.data)
    numbers = range(given.first, given.first + given.splits)
    compare(lambda n: problem_of(split(n), n, given.validation), models, given.features, numbers)


if __name__ == "__main__":
    main()
