"""Tables with several kinds of columns: numbers, ordered answers, yes or no, and categories."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

NUMBER, ORDERED, YES_NO, CATEGORY = KINDS = ("number", "ordered", "yes_no", "category")


class Column(NamedTuple):
    """A column and its levels, in their order if they have one; a number has none."""

    name: str
    kind: str
    levels: tuple = ()


class MixedTable(NamedTuple):
    """Values (rows, columns) with NaN for missing values: numbers, and positions of levels."""

    name: str
    columns: list
    values: np.ndarray


_NO_YES = {0: False, 1: True}
_HOW_OFTEN = {3: "no", 2: "Sometimes", 1: "Frequently", 0: "Always"}
_TRANSPORT = ("Automobile", "Bike", "Motorbike", "Public_Transportation", "Walking")
_WEIGHTS = (
    "Insufficient_Weight",
    "Normal_Weight",
    "Obesity_Type_I",
    "Obesity_Type_II",
    "Obesity_Type_III",
    "Overweight_Level_I",
    "Overweight_Level_II",
)


def _same(levels):
    return {level: level for level in levels}


# The kind of each column that is no number, and the level of each value in the file. The files of
# obesity and bfi have codes.
_LEVELS = {
    "obesity": {
        "Gender": (YES_NO, {0: "Female", 1: "Male"}),
        "family_history_with_overweight": (YES_NO, _NO_YES),
        "FAVC": (YES_NO, _NO_YES),
        "CAEC": (ORDERED, _HOW_OFTEN),
        "SMOKE": (YES_NO, _NO_YES),
        "SCC": (YES_NO, _NO_YES),
        "CALC": (ORDERED, _HOW_OFTEN),
        "MTRANS": (CATEGORY, dict(enumerate(_TRANSPORT))),
        "NObeyesdad": (CATEGORY, dict(enumerate(_WEIGHTS))),
    },
    "boys": {
        "gen": (ORDERED, _same(f"G{k}" for k in range(1, 6))),
        "phb": (ORDERED, _same(f"P{k}" for k in range(1, 7))),
        "reg": (CATEGORY, _same(["north", "east", "west", "south", "city"])),
    },
    "bfi": {
        **{f"{trait}{k}": (ORDERED, _same(range(1, 7))) for trait in "ACENO" for k in range(1, 6)},
        "gender": (YES_NO, {1: "male", 2: "female"}),
        "education": (ORDERED, _same(range(1, 6))),
    },
}
TABLES = tuple(_LEVELS)
_ROW_NUMBERS = ("rownames", "Unnamed: 0")


def read_mixed_table(folder, name):
    """A table of the folder, with its kinds of columns."""
    frame = pd.read_csv(Path(folder) / f"{name}.csv")
    frame = frame.drop(columns=frame.columns.intersection(_ROW_NUMBERS))
    columns, values = [], []
    for label in frame:
        kind, level_of = _LEVELS[name].get(label, (NUMBER, {}))
        code_of = {value: code for code, value in enumerate(level_of)}
        columns.append(Column(label, kind, tuple(level_of.values())))
        values.append(frame[label].map(code_of) if level_of else frame[label])
    return MixedTable(name, columns, np.column_stack(values).astype(float))


def to_frame(values, columns):
    """The table as its owner would have it: booleans, ordered and unordered categories."""
    return pd.DataFrame(
        {column.name: _series(of, column) for of, column in zip(values.T, columns, strict=True)}
    )


def _series(values, column):
    if column.kind == NUMBER:
        return values
    codes = np.where(np.isnan(values), -1, values).astype(int)
    if column.levels == (False, True):
        return pd.array([None if code < 0 else bool(code) for code in codes], dtype="boolean")
    dtype = pd.CategoricalDtype(column.levels, ordered=column.kind == ORDERED)
    return pd.Categorical.from_codes(codes, dtype=dtype)


def to_values(frame, columns):
    """Numbers and positions of levels (rows, columns) of a data frame."""
    return np.column_stack([_numbers(frame[column.name], column) for column in columns])


def _numbers(series, column):
    if column.kind == NUMBER:
        return series.to_numpy(float)
    code_of = {level: code for code, level in enumerate(column.levels)}
    return np.array([code_of.get(level, np.nan) for level in series.astype(object)], float)
