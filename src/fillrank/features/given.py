"""The features that users give with a table, checked and coded."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fillrank.errors import InputError, Setting
from fillrank.features.blocks import (
    MISSINGNESS,
    NO_BLOCKS,
    Block,
    Blocks,
)
from fillrank.features.directions import leading_directions, project, term_means
from fillrank.features.kernel_features import KernelFeatures
from fillrank.features.matching import Side
from fillrank.features.table import feature_block
from fillrank.features.times import times
from fillrank.table.feature_table import FeatureTable
from fillrank.table.observations import Observations
from fillrank.table.times import looks_like_times

# The largest number of directions of a kernel.
_MOST_DIRECTIONS = 200


class GivenFeatures(NamedTuple):
    """The blocks of features that were given, and notes about them for the user."""

    blocks: Blocks = NO_BLOCKS
    notes: tuple[str, ...] = ()

    def identity(self) -> dict[str, str | int]:
        """What a run in a checkpoint must have in common with this one; empty without features."""
        sides = zip(("rows", "columns"), self.blocks, strict=True)
        blocks = [(side, block) for side, of_side in sides for block in of_side]
        if not blocks:
            return {}
        digest = hashlib.sha256()
        for side, block in blocks:
            # The shape separates the numbers of one block from those of the next.
            digest.update(repr((side, block.name, block.values.shape)).encode())
            digest.update(block.values.tobytes())
        return {"features": digest.hexdigest()}


NOT_GIVEN = GivenFeatures()


def given_features(
    observations: Observations, row_features: Any, column_features: Any
) -> GivenFeatures:
    """The features of rows and columns that users have given, and those of labels that are dates.

    Parameters
    ----------
    observations : Observations
    row_features, column_features : table, list of tables, or mapping of names to tables, or None
        A table is a data frame, array, sparse matrix, or what `fillrank.features` returns. Each one of
        several tables is a block, with a strength of its own.
    """
    rows, row_notes = _side(row_features, observations.row_labels, "row")
    columns, column_notes = _side(column_features, observations.column_labels, "column")
    return GivenFeatures(Blocks(rows, columns), (*row_notes, *column_notes))


def _side(given: Any, labels: np.ndarray, side: Side) -> tuple[tuple[Block, ...], list[str]]:
    """The blocks of one side, and notes."""
    blocks: list[Block] = []
    notes: list[str] = []
    if len(labels) < 2:
        return (), [f"Features of a single {side} are not used."] if given is not None else notes
    for name, table in named_tables(given, side):
        block, found = _block(name, table, labels, side)
        blocks.append(block)
        notes += found
    if "times" not in (block.name for block in blocks) and _are_times(labels):
        blocks.append(_kernel_block("times", times(labels)))
        notes.append(
            f"The {side} labels are dates: {side}s that are near in time, on the same weekday or in the "
            "same season share information."
        )
    return tuple(blocks), notes


def _are_times(labels: np.ndarray) -> bool:
    return len(labels) > 2 and looks_like_times(labels) and len(np.unique(labels.astype(str))) > 2


def named_tables(given: Any, side: Side) -> Iterator[tuple[str, Any]]:
    """The name and the table of each block that was given."""
    if given is None:
        return
    if isinstance(given, Mapping):
        named = [(str(name), table) for name, table in given.items()]
    else:
        # A table from a file is a named tuple.
        several = isinstance(given, list | tuple) and not isinstance(given, FeatureTable)
        tables = given if several else [given]
        named = []
        for k, table in enumerate(tables):
            name = table.block_name if isinstance(table, KernelFeatures) else "features"
            named.append((f"{name}_{k + 1}" if name in dict(named) else name, table))
    if MISSINGNESS in dict(named):
        raise InputError(
            place=Setting(f"{side}_features"),
            allowed=f"blocks with other names than {MISSINGNESS!r}, which is that of missing values",
        )
    yield from named


def _block(name: str, table: Any, labels: np.ndarray, side: Side) -> tuple[Block, tuple[str, ...]]:
    if not isinstance(table, KernelFeatures):
        block, notes = feature_block(table, labels, side)
        return block._replace(name=name), notes
    if len(table) != len(labels):
        raise InputError(
            place=Setting(f"{side}_features"),
            allowed=f"features of {len(labels):,} {side}s, in their order",
            value=len(table),
        )
    return _kernel_block(name, table), ()


def _kernel_block(name: str, features: KernelFeatures) -> Block:
    """A block of features that are not standardised."""
    terms, means = features.values, term_means(features.values)
    found = leading_directions(terms, means, np.ones(means.size), _MOST_DIRECTIONS)
    directions = found.scale * found.vectors
    values = project(terms, means, directions)
    return Block(name, values, features.code(means, directions), features.names)
