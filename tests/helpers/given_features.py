"""Features of rows and columns as users give them, for fits of small tables."""

import warnings

import numpy as np

import fillrank as fr
from fillrank.features.blocks import Block, Blocks, Field, TableCode
from fillrank.features.given import GivenFeatures

FIELDS = (
    Field("age", "number", 40.0, 10.0, (), True),
    Field("colour", "category", 0.0, 1.0, ("grün", "red"), False),
)
TERMS = ("age", "age is missing", "colour = grün", "colour = red")


def table_block(n, seed=0, fields=FIELDS, terms=TERMS):
    """A block of n rows with random terms."""
    rng = np.random.default_rng(seed)
    coded = rng.standard_normal((n, len(terms)))
    means = coded.mean(axis=0)
    _, s, V = np.linalg.svd(coded - means, full_matrices=False)
    directions = V.T / np.sqrt((s**2).sum() / n)
    code = TableCode(fields, means, directions)
    return Block("features", (coded - means) @ directions, code, terms)


def given_for(shape, seed=0):
    """Features of the rows and of the columns of a table of this shape."""
    rows, columns = (table_block(n, seed + side) for side, n in enumerate(shape))
    return GivenFeatures(Blocks((rows,), (columns,)))


def fit_given(model, X, given):
    """Fit with these features, whatever is said about the length of the run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.ConvergenceWarning)
        model._complete(model._observations(X, reset=True), given)
    return model
