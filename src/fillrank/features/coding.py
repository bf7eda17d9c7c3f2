"""Coding of the fields of a table of features as terms: columns of numbers."""

from collections.abc import Container
from datetime import date, time, timedelta
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError
from fillrank.features.blocks import Field
from fillrank.runtime.memory import check_memory
from fillrank.table.feature_table import FeatureTable
from fillrank.table.labels import format_label, format_labels

Terms: TypeAlias = np.ndarray | sp.csr_array

# A category with more levels than this is left out; and one with more than a few, if they are also
# more than half as many as lines.
MOST_LEVELS, _FEW_LEVELS = 1000, 50
LARGEST = 1e150  # its square is still a number
# Numbers that differ by less than this share of their size cannot be standardised.
_CONSTANT = 1e-10
# Memory of a coded term with its temporary copies.
_BYTES_PER_TERM = 24


class Coded(NamedTuple):
    """The coded terms of a table of features.

    Attributes
    ----------
    fields : tuple of Field
        The fields that are used.
    terms : array or sparse array (n, q)
        NaN where the value of a field is missing.
    notes : tuple of str
        Which fields are left out, and why.
    """

    fields: tuple[Field, ...]
    terms: Terms
    notes: tuple[str, ...]


def term_names(field: Field) -> list[str]:
    """The names of the terms of a field.

    Examples
    --------
    >>> term_names(Field("sex", "category", 0.0, 1.0, ("F", "M"), True))
    ['sex = F', 'sex = M', 'sex is missing']
    """
    names = [field.name]
    if field.kind == "category":
        names = [f"{field.name} = {level}" for level in field.levels]
    return names + [f"{field.name} is missing"] * field.has_missing


# Tables with fields.


def fit_table(table: FeatureTable) -> Coded:
    """Determine how each field of a table is coded, and code it.

    Fields that are the same in all lines, and categories with too many levels, are left out.
    """
    fields, notes, constant = [], [], []
    for name, values in table.fields.items():
        if values.dtype.kind == "f":
            field = _fit_numbers(name, values, table.labels)
        else:
            _check_levels(name, values)
            field = _fit_levels(name, values)
        if field is None:
            constant.append(name)
        elif _has_many_levels(field, values):
            notes.append(
                f"Field {name!r} is left out: it has {len(field.levels):,} levels in "
                f"{_n_present(values):,} lines."
            )
        else:
            fields.append(field)
    if constant:
        notes.append(constant_note(constant))
    check_not_empty(fields, notes)
    return Coded(tuple(fields), code_table(tuple(fields), table), tuple(notes))


def constant_note(names: list[str]) -> str:
    """A note on the fields that are left out because they are constant."""
    fields = "1 field is" if len(names) == 1 else f"{len(names):,} fields are"
    return f"{fields} left out, because all lines have the same value: {format_labels(names)}."


def check_not_empty(fields: list[Field], notes: list[str]) -> None:
    """Raise InputError if no field is left."""
    if not fields:
        raise InputError(
            "a table of features must have a field that differs between its lines; this one has none",
            advice=" ".join(notes) or "Add a column next to the labels.",
        )


def code_table(fields: tuple[Field, ...], table: FeatureTable) -> np.ndarray:
    """The terms (n, q) of a table that has the fields; NaN where a value is missing."""
    _check_fields(fields, table.fields)
    n, q = len(table.labels), sum(field.n_terms for field in fields)
    check_memory(
        _BYTES_PER_TERM * n * q,
        f"{q:,} terms of features for {n:,} labels",
        "Leave fields out, or merge levels of categories with many of them.",
    )
    terms = np.empty((n, q))
    start = 0
    for field in fields:
        stop = start + field.n_terms
        terms[:, start:stop] = _code_field(field, table.fields[field.name], table.labels)
        start = stop
    return terms


def _check_fields(fields: tuple[Field, ...], given: Container[str]) -> None:
    """Raise InputError if a table does not have one of the fields."""
    missing = [field.name for field in fields if field.name not in given]
    if missing:
        raise InputError(
            f"the table of features must have the {len(fields):,} fields of the fit; it lacks "
            f"{len(missing):,} of them: {format_labels(missing)}",
            advice="Add them; their values may be missing.",
        )


def _code_field(field: Field, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    if field.kind == "category":
        texts = _as_levels(field.name, values)
        is_missing = np.array([text is None for text in texts], dtype=bool)
        coded = _one_hot(field.levels, texts)
    else:
        check_numbers(field.name, values, labels)
        is_missing = np.isnan(values)
        coded = ((values - field.mean) / field.scale)[:, np.newaxis]
    return np.column_stack([coded, is_missing]) if field.has_missing else coded


def _one_hot(levels: tuple[str, ...], texts: np.ndarray) -> np.ndarray:
    """1 where a text is a level, else 0; NaN for all levels where it is none of them."""
    positions = {level: k for k, level in enumerate(levels)}
    found = np.array([positions.get(text, -1) for text in texts], dtype=np.int64)
    coded = np.zeros((len(texts), len(levels)))
    coded[found < 0] = np.nan
    known = np.flatnonzero(found >= 0)
    coded[known, found[known]] = 1.0
    return coded


# Numbers.


def _fit_numbers(name: str, values: np.ndarray, labels: np.ndarray) -> Field | None:
    """How numbers are coded; None if they are constant."""
    check_numbers(name, values, labels)
    is_missing = np.isnan(values)
    present = values[~is_missing]
    if not present.size:
        return None
    has_missing = bool(is_missing.any())
    mean, scale = _mean_and_scale(present)
    if scale == 0.0 and not has_missing:
        return None
    return Field(name, "number", mean, scale or 1.0, (), has_missing)


def _mean_and_scale(values: np.ndarray) -> tuple[float, float]:
    """The mean and the standard deviation, which is 0 if rounding dominates it."""
    largest = float(np.abs(values).max())
    if largest == 0.0:
        return 0.0, 0.0
    shares = values / largest  # squares of very small numbers would be 0
    share = float(shares.std())
    return largest * float(shares.mean()), largest * share if share > _CONSTANT else 0.0


def check_numbers(name: str, values: np.ndarray, labels: np.ndarray) -> None:
    """Raise InputError if a field is not numeric, or has a number that is infinite or too large."""
    if values.dtype.kind != "f":
        found = next(value for value in values if value is not None)
        raise InputError(
            place=f"field {name!r} of the features",
            allowed="numbers, as at the fit",
            value=found,
            advice="Convert it.",
        )
    large = np.flatnonzero(np.abs(values) > LARGEST)
    if large.size:
        raise too_large(name, values[large[0]], labels[large[0]])


def too_large(name: str, value: float, label: Any) -> InputError:
    """The error for a number that is infinite or too large."""
    return InputError(
        place=f"field {name!r} of the features, label {format_label(label)}",
        allowed=f"a finite number of at most {LARGEST:g} in size",
        value=float(value),
        advice="Correct it, or leave it empty if it is not known.",
    )


# Categories.


def _check_levels(name: str, values: np.ndarray) -> None:
    """Raise InputError if a field has anything but text."""
    other = next((v for v in values if v is not None and not isinstance(v, str)), None)
    if other is None:
        return
    place = f"field {name!r} of the features"
    if isinstance(other, (date, time, timedelta)):
        raise InputError(
            "dates and times are neither numbers nor categories",
            place=place,
            value=other,
            advice="Convert them to numbers, such as years, or use fr.features.times.",
        )
    raise InputError(
        place=place,
        allowed="numbers, text or booleans",
        value=other,
        advice="Convert or remove it.",
    )


def _fit_levels(name: str, values: np.ndarray) -> Field | None:
    """How a category is coded; None if it has a single level and no missing values."""
    levels = sorted({text for text in values if text is not None})
    has_missing = bool(levels) and _n_present(values) < len(values)
    if not levels or (len(levels) == 1 and not has_missing):
        return None
    return Field(name, "category", 0.0, 1.0, tuple(levels), has_missing)


def _n_present(values: np.ndarray) -> int:
    return sum(value is not None for value in values)


def _has_many_levels(field: Field, values: np.ndarray) -> bool:
    """Whether a category has too many levels, or is an identifier: a level for nearly each line."""
    n_levels, n_lines = len(field.levels), _n_present(values)
    if n_levels > _FEW_LEVELS:
        return n_levels > min(MOST_LEVELS, n_lines / 2)
    return n_levels > 1 and n_levels == n_lines


def _as_levels(name: str, values: np.ndarray) -> np.ndarray:
    """Values as text; a file or a table whose levels are all numbers has them as numbers."""
    if values.dtype.kind != "f":
        _check_levels(name, values)
        return values
    texts = (None if np.isnan(value) else _number_as_level(value) for value in values.tolist())
    return np.fromiter(texts, dtype=object, count=len(values))


def _number_as_level(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


# Sparse matrices, in which every column is a field of numbers.


def feature_name(position: int) -> str:
    """The name of a column of an array or a sparse matrix."""
    return f"feature {position}"


def fit_sparse(matrix: sp.csc_array, labels: np.ndarray) -> Coded:
    """Determine how the columns of a sparse matrix are coded, and code them, sparse.

    The mean of a field is 0, and so zeros stay zeros; the terms are centred when they are used.
    """
    check_sparse(matrix, labels)
    scales = _sparse_scales(matrix)
    used = np.flatnonzero(scales)
    fields = [
        Field(feature_name(j), "number", 0.0, scale, (), False)
        for j, scale in zip(used.tolist(), scales[used].tolist(), strict=True)
    ]
    constant = [feature_name(j) for j in np.flatnonzero(scales == 0.0).tolist()]
    notes = [constant_note(constant)] if constant else []
    check_not_empty(fields, notes)
    return Coded(tuple(fields), code_sparse(tuple(fields), matrix), tuple(notes))


def check_sparse(matrix: sp.csc_array, labels: np.ndarray) -> None:
    """Raise InputError if a stored element is NaN, infinite or too large."""
    wrong = np.flatnonzero(~(np.abs(matrix.data) <= LARGEST))
    if wrong.size:
        column = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        value, label = matrix.data[wrong[0]], labels[matrix.indices[wrong[0]]]
        raise too_large(feature_name(column), value, label)


def _sparse_scales(matrix: sp.csc_array) -> np.ndarray:
    """The standard deviation of each column, 0 for constant ones."""
    n, q = matrix.shape
    counts = np.diff(matrix.indptr)
    columns = np.repeat(np.arange(q), counts)
    largest = np.zeros(q)
    np.maximum.at(largest, columns, np.abs(matrix.data))
    largest[largest == 0.0] = 1.0
    shares = matrix.data / largest[columns]
    means = np.bincount(columns, shares, minlength=q) / n
    squares = np.bincount(columns, (shares - means[columns]) ** 2, minlength=q)
    deviations = np.sqrt((squares + (n - counts) * means**2) / n)
    return np.where(deviations > _CONSTANT, largest * deviations, 0.0)


def is_sparse_code(fields: tuple[Field, ...]) -> bool:
    """Whether zeros of the fields are coded as zeros."""
    return all(
        field.kind == "number" and field.mean == 0.0 and not field.has_missing for field in fields
    )


def code_sparse(fields: tuple[Field, ...], matrix: sp.csc_array) -> sp.csr_array:
    """The terms (n, q) of a sparse matrix, for fields of a sparse code."""
    columns = {feature_name(j): j for j in range(matrix.shape[1])}
    _check_fields(fields, columns)
    used = [columns[field.name] for field in fields]
    scales = np.array([field.scale for field in fields])
    return sp.csr_array(matrix[:, used] @ sp.diags_array(1.0 / scales))
