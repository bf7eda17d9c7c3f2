"""Wide tables from CSV files: numeric columns as an array, and notes on what was left out."""

from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

MAX_ROWS = 2000
INDEX_NAMES = ("rownames", "", "Unnamed: 0")


class WideTable(NamedTuple):
    """Values (rows, columns) with NaN for missing values, and what was left out, in words."""

    name: str
    columns: list
    values: np.ndarray
    notes: list

    @property
    def scales(self):
        """The standard deviation of the observed values of each column."""
        return np.nanstd(self.values, axis=0)


def read_tables(folder, names=None):
    """All tables of a folder in the order of their names, or those that are named."""
    names = names or sorted(path.stem for path in Path(folder).glob("*.csv"))
    return [read_table(Path(folder) / f"{name}.csv") for name in names]


def read_table(path):
    """The numeric columns of a CSV file, without row numbers, constant columns and empty rows."""
    frame, notes = pd.read_csv(path), []
    if _is_row_number(frame.iloc[:, 0]):
        frame = frame.iloc[:, 1:]
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    if text:
        notes.append(f"text columns left out: {', '.join(text)}")
    frame = frame.drop(columns=text).dropna(how="all")
    if len(frame) > MAX_ROWS:
        notes.append(f"{MAX_ROWS:,} of {len(frame):,} rows, chosen at random")
        kept = random_generator(path.stem).choice(len(frame), MAX_ROWS, replace=False)
        frame = frame.iloc[np.sort(kept)]
    constant = [name for name in frame if frame[name].nunique() < 2]
    if constant:
        notes.append(f"constant columns left out: {', '.join(constant)}")
    frame = frame.drop(columns=constant)
    return WideTable(path.stem, list(map(str, frame)), frame.to_numpy(float), notes)


def random_generator(name, *numbers):
    """A generator whose seed depends on the name of a table and on these numbers alone."""
    return np.random.default_rng([crc32(name.encode()), *numbers])


def _is_row_number(column):
    if column.name in INDEX_NAMES:
        return True
    return np.array_equal(column.to_numpy(), np.arange(1, len(column) + 1))
