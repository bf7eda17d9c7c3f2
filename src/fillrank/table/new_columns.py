"""New columns of a table of mixed kinds: how their values are coded, and their latent entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.table.entries import Entries, some_rows, transpose
from fillrank.table.kinds import choose_kinds
from fillrank.table.labels import format_labels
from fillrank.table.latent import Coding, code_table, encode
from fillrank.table.observations import Observations


class LatentColumns(NamedTuple):
    """The entries of some latent columns, which are lines of ``entries``.

    ``limits`` (2, k) are the ends of the intervals of which entries have numbers, those of the levels of
    the coding first. ``positions`` are those of the latent columns in the coding; ``first`` (n,) is the
    line of the first latent column of the same column, whose pattern of missing values they share, and
    ``fixed`` (n,) says whether their noise is fixed.
    """

    entries: Entries
    limits: np.ndarray
    positions: np.ndarray
    first: np.ndarray
    fixed: np.ndarray

    def after(self, n_intervals: int) -> LatentColumns:
        """The same, where so many intervals of others come first."""
        cells = self.entries.cells
        moved = np.where(cells < 0, cells, cells + n_intervals).astype(cells.dtype)
        limits = np.hstack([np.zeros((2, n_intervals)), self.limits])
        return self._replace(entries=self.entries._replace(cells=moved), limits=limits)


def code_new_columns(new: Observations, kinds: Literal["auto"] | Mapping[Any, str]) -> Coding:
    """The coding of new columns, by their own values.

    Raises
    ------
    InputError
        If a column has fewer than two different values: then nothing is known of its unit or its levels.
    """
    columns = new.by_column()
    for j, (start, stop) in enumerate(
        zip(columns.pointers[:-1], columns.pointers[1:], strict=True)
    ):
        n_different = np.unique(columns.values[start:stop]).size
        if n_different < 2:
            raise InputError(
                "a new column needs at least two different values, because the columns of this model "
                f"have their own kinds and units; column {format_labels([new.column_labels[j]])} has "
                f"{n_different}."
            )
    return code_table(new, choose_kinds(new, kinds, alone=True), {})


def encode_columns(
    coding: Coding,
    entries: Entries,
    positions: np.ndarray,
    n_rows: int,
    intervals: np.ndarray | None,
) -> LatentColumns:
    """The latent entries of some columns of a coding.

    Parameters
    ----------
    coding : Coding
    entries : Entries
        A line for each of the columns, in the units of the data; the indices are rows.
    positions : ndarray
        Of the columns in the coding.
    n_rows : int
    intervals : ndarray (n, 2) or None
        The ends of the intervals of censored values.
    """
    rows = transpose(entries, n_rows)
    rows = rows._replace(indices=positions[rows.indices].astype(rows.indices.dtype))
    coded, limits = encode(coding, rows, intervals)
    sizes = np.diff(coding.first_latent)[positions]
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    latent = np.repeat(coding.first_latent[positions], sizes) + np.arange(first.size) - first
    return LatentColumns(
        some_rows(transpose(coded, coding.n_latent), latent),
        limits,
        latent,
        first,
        np.isin(latent, coding.fixed_columns()),
    )
