"""Tables of features as blocks: of data frames, arrays, sparse matrices and files."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from fillrank.features.blocks import Block, Field, TableCode
from fillrank.features.coding import (
    Coded,
    Terms,
    check_sparse,
    code_sparse,
    code_table,
    fit_sparse,
    fit_table,
    is_sparse_code,
    term_names,
)
from fillrank.features.directions import leading_directions, project, term_means
from fillrank.features.matching import Matched, Side, match, matrix_table
from fillrank.table.labels import as_labels
from fillrank.validation import check_integer


def feature_block(
    table: Any, labels: np.ndarray, side: Side, n_max: int = 200
) -> tuple[Block, tuple[str, ...]]:
    """Convert a table of features of rows, or of columns, to a block.

    Parameters
    ----------
    table : data frame, array, sparse matrix or FeatureTable
        One line for each label, one column for each field. The lines of a data frame are matched by
        labels: those in the index of a pandas table if it has some of ``labels`` and is not a default
        RangeIndex, otherwise those in the column that has the most of ``labels``, usually the first.
        1 and "1" are different labels. Arrays and sparse matrices have a line for each label, in the
        same order, and their fields are "feature 0", "feature 1", ... In a sparse matrix, elements
        that are not stored are 0.
    labels : ndarray (m,)
        The labels of the rows or columns.
    side : {"row", "column"}
        What the labels are; for messages.
    n_max : int
        The largest number of directions.

    Returns
    -------
    block : Block
        Its name is "features", and its values are (m, p) with p of at most ``n_max``.
    notes : tuple of str
        What was left out, as sentences.

    Raises
    ------
    InputError
        No label has features, a label has several lines, a number is infinite, a field has dates, or
        no field can be used.

    Notes
    -----
    A number x becomes one term, (x - mean) / scale, with the mean and the standard deviation of the
    lines that are used. Text, categories and booleans become one term for each level, which is 1 or 0.
    They count as much as one number: their terms are divided by sqrt(1 - sum of the squared shares of
    levels), so that their variances sum to 1. A missing value has the means of the terms of its field.
    If some values of a field are missing, one more term is 1 where they are and 0 elsewhere. It is not
    standardised, because a few missing values would then be far from all others.

    Fields that are the same in all lines are left out. So are categories that have more than 1,000
    levels, a level for each line, or more than 50 levels and half as many as lines.

    The terms are centred by their means over the lines that are used. Labels without features have
    zeros, which are those means, so the values of all m labels also sum to 0: centring them again would
    change nothing. The centred and divided terms are scaled so that the mean squared norm of labels with
    features is 1. With their singular value decomposition P S Q^T, the values are P S, for at most
    ``n_max`` directions with singular values of at least 1e-6 of the largest. The code of the block has
    the divisors and the scale in its directions: the values of any line are (terms - means) times
    directions.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"who": ["Ana", "Ben", "Cid"], "age": [30, 40, 62], "tea": [1, 1, 0]})
    >>> block, notes = feature_block(people, np.array(["Ben", "Ana", "Cid", "Dan"]), "row")
    >>> block.terms, block.values.shape
    (('age', 'tea'), (4, 2))
    >>> notes
    ("Without features, and treated as the mean of the others: 1 of 4 rows, 'Dan'.",)
    """
    n_max = check_integer("n_max", n_max, 1)
    labels = as_labels(labels)
    matched = match(table, labels, side)
    fields, terms, left_out = _fit(matched, labels)
    means = term_means(terms)
    weights = _weights(fields, means)
    found = leading_directions(terms, means, weights, n_max)
    directions = found.scale * weights[:, np.newaxis] * found.vectors
    values = _with_zeros(project(terms, means, directions), matched.has_features)
    names = tuple(name for field in fields for name in term_names(field))
    block = Block("features", values, TableCode(fields, means, directions), names)
    return block, (*matched.notes, *left_out, *_direction_notes(block, found.share, n_max))


def _fit(matched: Matched, labels: np.ndarray) -> Coded:
    if isinstance(matched.features, sp.csc_array):
        return fit_sparse(matched.features, labels)
    return fit_table(matched.features)


def _weights(fields: tuple[Field, ...], means: np.ndarray) -> np.ndarray:
    """What each term is multiplied by, so that a category counts as much as a number."""
    weights = np.ones(len(means))
    start = 0
    for field in fields:
        if len(field.levels) > 1:
            levels = slice(start, start + len(field.levels))
            weights[levels] = 1.0 / np.sqrt(1.0 - np.sum(means[levels] ** 2))
        start += field.n_terms
    return weights


def _with_zeros(values: np.ndarray, has_features: np.ndarray) -> np.ndarray:
    """The values of all labels, with zeros for those without features."""
    full = np.zeros((len(has_features), values.shape[1]))
    full[has_features] = values
    return full


def _direction_notes(block: Block, share: float, n_max: int) -> tuple[str, ...]:
    if block.values.shape[1] < n_max or share > 1.0 - 1e-9:
        return ()
    return (
        f"The {len(block.terms):,} terms of the features are replaced by their {n_max:,} leading "
        f"directions, which have {share:.0%} of their variance.",
    )


def code_rows(code: TableCode, table: Any, labels: np.ndarray, side: Side) -> np.ndarray:
    """The values of new rows or columns in a block of features.

    Parameters
    ----------
    code : TableCode
        That of the block.
    table : data frame, array, sparse matrix or FeatureTable
        As in `feature_block`, with the fields of the fit; others are ignored.
    labels : ndarray (n,)
        The labels of the new rows or columns.
    side : {"row", "column"}
        What the labels are; for messages.

    Returns
    -------
    values : ndarray (n, p)
        Zeros for labels without features. A level that was not there at the fit has the means of the
        levels.

    Raises
    ------
    InputError
        The table lacks a field, or a number is infinite.

    Examples
    --------
    >>> ages = np.array([[30.0], [40.0], [62.0]])
    >>> block, _ = feature_block(ages, np.arange(3), "row")
    >>> new = code_rows(block.code, np.array([[44.0], [62.0]]), np.arange(2), "row")
    >>> bool(abs(new[0, 0]) < 1e-12), bool(np.isclose(new[1, 0], block.values[2, 0]))
    (True, True)
    """
    labels = as_labels(labels)
    names = frozenset(field.name for field in code.fields)
    matched = match(table, labels, side, fitted=names)
    terms = _code(code.fields, matched, labels, side)
    return _with_zeros(project(terms, code.means, code.directions), matched.has_features)


def _code(fields: tuple[Field, ...], matched: Matched, labels: np.ndarray, side: Side) -> Terms:
    features = matched.features
    if isinstance(features, sp.csc_array):
        check_sparse(features, labels)
        if is_sparse_code(fields):
            return code_sparse(fields, features)
        features = matrix_table(features.toarray(), labels, side)
    return code_table(fields, features)
