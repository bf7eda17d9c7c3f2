"""The features of new rows (or columns) of a fitted table."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from fillrank.errors import InputError, Setting
from fillrank.features.blocks import Block, Blocks, PatternCode, TableCode, TimeCode
from fillrank.features.directions import project
from fillrank.features.given import named_tables
from fillrank.features.matching import Side
from fillrank.features.pattern import code_pattern
from fillrank.features.table import code_rows
from fillrank.features.times import terms_at
from fillrank.table.entries import Entries
from fillrank.table.frames import as_frame, has_labels, is_data_frame
from fillrank.table.labels import as_labels
from fillrank.table.times import looks_like_times

Axis = Literal["rows", "columns"]
SIDES: dict[Axis, Side] = {"rows": "row", "columns": "column"}


def side_of(blocks: Blocks, axis: Axis) -> tuple[Block, ...]:
    """The blocks of the rows, or of the columns."""
    return blocks.rows if axis == "rows" else blocks.columns


def is_given(block: Block) -> bool:
    """Whether a block comes from what is known beside the entries, and not from their pattern."""
    return not isinstance(block.code, PatternCode)


def takes_features(side: tuple[Block, ...]) -> bool:
    """Whether new rows can have features that are given."""
    return any(map(is_given, side))


def has_terms(side: tuple[Block, ...]) -> bool:
    """Whether there are terms that come from tables of features."""
    return any(isinstance(block.code, TableCode) for block in side)


def code_given(
    side: tuple[Block, ...], given: Any, labels: np.ndarray, axis: Axis
) -> np.ndarray | None:
    """The values (n_new, p_given) of the given blocks for new rows, zeros where they are not known.

    Parameters
    ----------
    side : tuple of Block
        Those of the fit.
    given : table, list of tables, mapping of names to tables, or None
        As at the fit.
    labels : ndarray (n_new,)
        Of the new rows. If they are dates, and those of the fit were, their times are known.
    axis : {"rows", "columns"}

    Returns
    -------
    ndarray or None
        None if nothing is known.
    """
    tables = dict(named_tables(given, SIDES[axis]))
    own = [*filter(is_given, side)]
    names = [block.name for block in own]
    if unknown := tables.keys() - {*names}:
        raise InputError(
            place=Setting(f"{SIDES[axis]}_features"),
            allowed=f"features as at the fit, {', '.join(names)}",
            value=sorted(unknown),
        )
    if not tables and not _have_times(own, labels):
        return None
    return np.hstack([_code(block, tables.get(block.name), labels, axis) for block in own])


def _code(block: Block, table: Any, labels: np.ndarray, axis: Axis) -> np.ndarray:
    code = block.code
    if isinstance(code, TimeCode):
        return _code_times(code, table, labels)
    if table is None or not isinstance(code, TableCode):
        return np.zeros((len(labels), block.values.shape[1]))
    return code_rows(code, table, labels, SIDES[axis])


def _code_times(code: TimeCode, table: Any, labels: np.ndarray) -> np.ndarray:
    """By the labels of given `TimeFeatures`, which have a line for each new row, or by own labels."""
    found = labels if table is None else table.labels
    if len(found) != len(labels):
        raise InputError(
            f"{len(labels):,} new times are needed, in their order; got {len(found):,}."
        )
    if table is None and not looks_like_times(labels):
        return np.zeros((len(labels), code.directions.shape[1]))
    terms = terms_at(found, code.basis)
    return project(terms, code.means, code.directions)


def _have_times(own: list[Block], labels: np.ndarray) -> bool:
    """Whether labels that are dates say something about new rows."""
    codes = (block.code for block in own)
    has_dates = any(isinstance(code, TimeCode) and code.basis.of_dates for code in codes)
    return has_dates and looks_like_times(labels)


def new_values(
    side: tuple[Block, ...], entries: Entries, given: np.ndarray | None
) -> list[np.ndarray]:
    """The values (n_new, p) of each block for new rows.

    ``given`` (n_new, p_given) are those of the given blocks, side by side; None means zeros, as for rows
    whose features are not known. The other blocks follow from the entries of the new rows.
    """
    n_new, start = entries.pointers.size - 1, 0
    values = []
    for block in side:
        width = block.values.shape[1]
        if isinstance(block.code, PatternCode):
            part = code_pattern(block.code, entries)
        else:
            part = np.zeros((n_new, width)) if given is None else given[:, start : start + width]
            start += width
        values.append(np.ascontiguousarray(part, dtype=block.values.dtype))
    return values


def known_blocks(values: list[np.ndarray]) -> np.ndarray:
    """Which blocks (n_new, blocks) of new rows are known: those in which a row has not only zeros.

    Nothing is known of the pattern of a row without entries: it might have any.
    """
    return np.stack([np.any(each, axis=1) for each in values], axis=1)


def with_new_side(blocks: Blocks, axis: Axis, values: list[np.ndarray], n_new: int) -> Blocks:
    """The blocks of a table of new rows, with these values, in the columns that were fitted."""
    new = tuple(
        block._replace(values=each)
        for block, each in zip(side_of(blocks, axis), values, strict=True)
    )
    if axis == "rows":
        return Blocks(new, _without_pattern_code(blocks.columns, n_new))
    return Blocks(_without_pattern_code(blocks.rows, n_new), new)


def _without_pattern_code(side: tuple[Block, ...], n_other: int) -> tuple[Block, ...]:
    """Blocks whose pattern cannot be continued: entries in ``n_other`` new rows say nothing about it."""

    def without(block: Block) -> Block:
        if is_given(block):
            return block
        zeros = np.zeros((n_other, block.values.shape[1]), block.code.directions.dtype)
        return block._replace(code=PatternCode(np.zeros(n_other), zeros))

    return tuple(without(block) for block in side)


def with_values_at(
    side: tuple[Block, ...], positions: np.ndarray, values: list[np.ndarray]
) -> tuple[Block, ...]:
    """The blocks with other values of some rows."""
    replaced = []
    for block, new in zip(side, values, strict=True):
        all_values = block.values.copy()
        all_values[positions] = new
        replaced.append(block._replace(values=all_values))
    return tuple(replaced)


def feature_labels(given: Any, side: tuple[Block, ...], axis: Axis) -> np.ndarray:
    """The labels in the features of new rows: those of the first table.

    Those of a data frame are its pandas index, unless that is a default RangeIndex; else its first
    column that is not a field of the fit; else 0, 1, 2, ..., as those of an array.
    """
    _, table = next(named_tables(given, SIDES[axis]))
    if is_data_frame(table):
        return _frame_labels(table, side)
    if isinstance(labels := getattr(table, "labels", None), np.ndarray):
        return labels
    return np.arange(table.shape[0] if sp.issparse(table) else len(table))


def _frame_labels(table: Any, side: tuple[Block, ...]) -> np.ndarray:
    frame = as_frame(table)
    if frame.implementation.is_pandas_like() and has_labels(frame.to_native().index):
        return as_labels(frame.to_native().index)
    codes = (block.code for block in side)
    fields = {field.name for code in codes if isinstance(code, TableCode) for field in code.fields}
    for column in frame.iter_columns():
        if str(column.name) not in fields:
            return as_labels(column.to_numpy())
    return np.arange(len(frame))
