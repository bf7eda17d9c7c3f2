"""The methods for tables with several kinds of columns, by name.

Each takes a table with hidden cells and a number of threads, and returns its answers by name: a method
may have several, such as one imputation and the summary of five.
"""

import subprocess
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mixed_tables import CATEGORY, NUMBER, ORDERED, to_frame, to_values
from predictives import FittedModel, Marginals, median_levels
from python_methods import chained_ridge, chained_trees, fill_with_imputer
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

import fillrank as fr

BASELINE, OURS = "most frequent", "GASR"
FOREST_ROUNDS, FOREST_TREES = 5, 50
N_IMPUTATIONS = 5
R_LIMIT = 3600  # seconds


class Answer(NamedTuple):
    """A filled table; median levels where they are not what it has; distributions of the cells."""

    values: np.ndarray
    medians: np.ndarray | None = None
    predictive: Any = None


def fill_with_marginals(table, n_threads):
    """The mean of a column of numbers, otherwise the most frequent level, or the median level."""
    marginals = Marginals(table.values, table.columns)
    filled, medians = (
        np.where(np.isnan(table.values), list(map(of, range(len(table.columns)))), table.values)
        for of in (marginals.guess, marginals.median)
    )
    return {BASELINE: Answer(filled, medians, marginals)}


def fill_with_gasr(table, n_threads):
    """fillrank's GASR on a data frame, as it comes; and with the most probable levels instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        model = fr.GASR(random_state=0, n_threads=n_threads, progress=False)
        filled = to_values(
            model.fit_transform(to_frame(table.values, table.columns)), table.columns
        )
    predictive = FittedModel(model, table.columns)
    modes, medians = filled.copy(), filled.copy()
    for j, column in enumerate(table.columns):
        rows = np.flatnonzero(np.isnan(table.values[:, j]))
        if column.kind != NUMBER and rows.size:
            probabilities = predictive.probabilities(j, rows)
            modes[rows, j] = probabilities.argmax(axis=1)
            medians[rows, j] = median_levels(probabilities)
    return {
        OURS: Answer(filled, None, predictive),
        f"{OURS}, mode and median": Answer(modes, medians),
    }


def gasr_for_numbers(n_threads):
    return fr.GASR(random_state=0, n_threads=n_threads, progress=False)


def fill_codes(table, n_threads, name, make_imputer):
    """An imputer of numbers on codes: see `encode`."""
    coded = encode(table)
    return {name: Answer(decode(fill_with_imputer(coded, n_threads, make_imputer).mean, table))}


def encode(table):
    """Numbers, positions of ordered levels, and 0/1 columns for all but one value of a category."""
    return np.column_stack(
        [
            _indicators(values, column) if column.kind == CATEGORY else values
            for values, column in zip(table.values.T, table.columns, strict=True)
        ]
    )


def _indicators(values, column):
    """Columns for all levels but the first: one more would be a sum of the others."""
    levels = np.arange(1, len(column.levels))
    return np.where(np.isnan(values)[:, None], np.nan, values[:, None] == levels)


def decode(coded, table):
    """The table of filled codes: rounded to levels, and the category with the largest number."""
    filled, start = table.values.copy(), 0
    for j, column in enumerate(table.columns):
        width = len(column.levels) - 1 if column.kind == CATEGORY else 1
        part, start = coded[:, start : start + width], start + width
        missing = np.isnan(filled[:, j])
        filled[missing, j] = _level(part[missing], column)
    return filled


def _level(part, column):
    if column.kind == NUMBER:
        return part[:, 0]
    if column.kind == CATEGORY:
        return np.column_stack([1 - part.sum(axis=1), part]).argmax(axis=1)
    return np.clip(np.rint(part[:, 0]), 0, len(column.levels) - 1)


def fill_with_forests(table, n_threads):
    """Chained extra-trees that classify levels, as missForest does; in a fixed number of rounds."""
    missing = np.isnan(table.values)
    filled = fill_with_marginals(table, n_threads)[BASELINE].values
    medians = filled.copy()
    incomplete = [j for j in np.argsort(missing.sum(axis=0), kind="stable") if missing[:, j].any()]
    for _ in range(FOREST_ROUNDS):
        for j in incomplete:
            is_number = table.columns[j].kind == NUMBER
            make = ExtraTreesRegressor if is_number else ExtraTreesClassifier
            trees = make(n_estimators=FOREST_TREES, n_jobs=n_threads, random_state=0)
            others, unknown = np.delete(filled, j, axis=1), missing[:, j]
            trees.fit(others[~unknown], table.values[~unknown, j])
            filled[unknown, j] = trees.predict(others[unknown])
            if not is_number:
                positions = median_levels(trees.predict_proba(others[unknown]))
                medians[unknown, j] = trees.classes_[positions]
    return {"forests": Answer(filled, medians)}


def fill_with_mice(table, n_threads):
    """R's mice with its default methods: the first of its imputations, and a summary of five."""
    draws = run_mice(table)
    return {"mice, one": Answer(draws[0]), f"mice, {len(draws)}": summarise_draws(draws, table)}


def run_mice(table):
    """Imputed tables by R's mice; a cell that it leaves empty gets the baseline."""
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "values.csv", table.values, delimiter=",")
        described = [(len(c.levels), int(c.kind == ORDERED)) for c in table.columns]
        np.savetxt(Path(folder) / "columns.csv", described, fmt="%d", delimiter=",")
        script = Path(__file__).with_name("impute_kinds.R")
        subprocess.run(
            ["Rscript", script, folder, str(N_IMPUTATIONS)],
            check=True,
            capture_output=True,
            text=True,
            timeout=R_LIMIT,
        )
        paths = [Path(folder) / f"draw-{i + 1}.csv" for i in range(N_IMPUTATIONS)]
        draws = np.array([np.genfromtxt(path, delimiter=",") for path in paths])
    return np.where(np.isnan(draws), fill_with_marginals(table, 1)[BASELINE].values, draws)


def summarise_draws(draws, table):
    """Means of numbers; of levels the most frequent one, the first of equals, and the median."""
    values, medians = draws.mean(axis=0), np.median(draws, axis=0)
    for j, column in enumerate(table.columns):
        if column.kind != NUMBER:
            values[:, j] = _most_frequent(draws[:, :, j])
    return Answer(values, medians)


def _most_frequent(draws):
    """The most frequent of the draws (draws, cells) of each cell; of equals that which came first."""
    counts = (draws[:, np.newaxis] == draws).sum(axis=0)
    return np.take_along_axis(draws, counts.argmax(axis=0)[np.newaxis], axis=0)[0]


_OF_NUMBERS = {
    "IterativeImputer": chained_ridge,
    "extra trees": chained_trees,
    "GASR on codes": gasr_for_numbers,
}
METHODS = {
    BASELINE: fill_with_marginals,
    **{
        name: partial(fill_codes, name=name, make_imputer=make)
        for name, make in _OF_NUMBERS.items()
    },
    "forests": fill_with_forests,
    "mice": fill_with_mice,
    OURS: fill_with_gasr,
}
R_METHODS = ("mice",)


def answer(method, table, n_threads):
    """The answers of a method by name, and its seconds."""
    start = time.perf_counter()
    answers = METHODS[method](table, n_threads)
    return answers, time.perf_counter() - start
