"""What workers do for parts of a table. What they are given stays as it is: they may be asked again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fillrank.cluster.laid_out import Part
from fillrank.draws.streams import Address
from fillrank.kernels.gaussian_rows import Prior
from fillrank.kernels.products import Fitted, add_products, effect_sums
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import draw_one_by_one
from fillrank.table.entries import iter_blocks

# Multipliers of splitmix64 (Steele, Lea and Flood 2014), and its increment.
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROWS = 4096  # at a time


class HalfSweep(NamedTuple):
    """What every worker needs for the draws of a half-sweep."""

    other: np.ndarray
    prior: Prior
    noise_variance: float
    address: Address


class Pass(NamedTuple):
    """What every worker needs for a pass over the entries: see `residual_products`."""

    right: np.ndarray
    scales: np.ndarray
    block: np.ndarray


class PassRows(NamedTuple):
    """What it needs of its own rows."""

    left: np.ndarray
    out: np.ndarray


class Piece(NamedTuple):
    """Rows of a part that belong to one share: which, counted from the part's first, and theirs."""

    rows: slice
    given: PassRows


class PieceDone(NamedTuple):
    """What a piece has come to: see `add_products`."""

    back: np.ndarray
    out: np.ndarray
    squares: np.ndarray


def itself(given: NamedTuple) -> NamedTuple:
    """What has come, for others to take."""
    return given


def draw_rows_of_part(
    part: Part, own: np.ndarray, half_sweep: HalfSweep
) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of a part's rows, drawn; and each row's sum of squared residuals."""
    other, prior, noise_variance, address = half_sweep
    own, entries = own.copy(), part.as_kernels_take_it().entries
    address = address._replace(first_row=part.first_row)
    with Workers(_threads()) as workers:
        squares = draw_one_by_one(entries, own, other, prior, noise_variance, address, workers)
    return own, squares


def effect_sums_of_part(
    part: Part, own: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and squares of a part's rows, as `effect_sums` returns them."""
    with Workers(_threads()) as workers:
        return effect_sums(part.as_kernels_take_it().entries, own, other, workers)


def products_of_piece(
    part: Part, piece: Piece, everywhere: Pass, before: np.ndarray | None
) -> PieceDone:
    """What `add_products` makes of a piece.

    ``before`` is what the share's pieces in the parts before have come to: sums go on from there, in
    the order of one machine.
    """
    (rows, given), block = piece, everywhere.block
    entries = part.as_kernels_take_it().entries
    entries = entries._replace(pointers=entries.pointers[rows.start : rows.stop + 1])
    back = np.zeros_like(block) if before is None else before.copy()
    out = given.out.copy()
    fitted = Fitted(given.left, everywhere.right, everywhere.scales)
    squares = add_products(entries, fitted, block, out, back)
    return PieceDone(back, out, squares)


def back_of_piece(done: PieceDone) -> np.ndarray:
    """What the next piece of a share goes on from, or the sum over shares takes."""
    return done.back


def rows_of_piece(done: PieceDone) -> tuple[np.ndarray, np.ndarray]:
    """What goes back to the client."""
    return done.out, done.squares


def sum_of_shares(backs: list[np.ndarray], which: list[int], n_shares: int) -> np.ndarray:
    """The sum over all shares, those without rows too, as one machine takes it."""
    whole = np.zeros((n_shares, *backs[0].shape), dtype=backs[0].dtype)
    for share, back in zip(which, backs, strict=True):
        whole[share] = back
    return whole.sum(axis=0)


def digest_of_part(part: Part) -> int:
    """A number that the entries and their places give, and which can be added up over parts.

    The sum of a hash of each entry: in whatever parts a table lies, the sum over all is the same.
    """
    total = 0
    pointers, indices, values = part.entries
    for rows in iter_blocks(pointers.size - 1, size=_ROWS):
        some = slice(*pointers[[rows.start, rows.stop]])
        row = np.arange(rows.start, rows.stop, dtype=np.uint64) + np.uint64(part.first_row)
        row = np.repeat(row, np.diff(pointers[rows.start : rows.stop + 1]))
        hashed = _mixed(values[some].astype(np.float64).view(np.uint64))
        hashed = _mixed(hashed + indices[some].astype(np.uint64))
        total += int(_mixed(hashed + row).sum(dtype=np.uint64))
    return total % 2**64


def _mixed(x: np.ndarray) -> np.ndarray:
    x = x + _STEP
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))


def _threads() -> int:
    """How many threads the worker has."""
    from distributed import get_worker

    return get_worker().state.nthreads
