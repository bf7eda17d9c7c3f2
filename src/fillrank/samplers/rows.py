"""Where the rows of a half-sweep are drawn: the kernel that fits the table and the prior.

The columns of a table are the rows of its transpose, so this serves both sides.
"""

from functools import partial

import numpy as np

from fillrank.kernels.dense_rows import Dense, RowPrior, dense_rows
from fillrank.kernels.gaussian_rows import Address, Prior, gaussian_rows, lined_up
from fillrank.kernels.joint_rows import JointPrior, joint_rows
from fillrank.kernels.remote import Remote
from fillrank.runtime.workers import Workers
from fillrank.table.entries import Entries


def draw_rows(
    side: Entries | Dense | Remote,
    own: np.ndarray,
    other: np.ndarray,
    prior: Prior | JointPrior,
    noise_variance: float,
    address: Address,
    workers: Workers,
) -> float:
    """Draw the coefficients of all rows, in place, given the factors of the other side.

    With entries, a `Prior` has the coefficients of a row drawn one by one, a `JointPrior` all at once;
    a table without holes has them drawn all at once in any case.

    Returns
    -------
    float
        The sum of the squared residuals after the draw.
    """
    if isinstance(side, Dense):
        whole = _row_prior(prior)
        return dense_rows(side, own, other, whole, noise_variance, address, workers)
    if isinstance(side, Remote):
        assert isinstance(prior, Prior)  # of GASR, which alone goes beyond one machine
        return float(side.draw_rows(own, other, prior, noise_variance, address).sum())
    if isinstance(prior, JointPrior):
        return _draw_at_once(side, own, other, prior, noise_variance, address, workers)
    squares = draw_one_by_one(side, own, other, prior, noise_variance, address, workers)
    return float(squares.sum())


def draw_one_by_one(
    entries: Entries,
    own: np.ndarray,
    other: np.ndarray,
    prior: Prior,
    noise_variance: float,
    address: Address,
    workers: Workers,
) -> np.ndarray:
    """Draw the coefficients of all rows, in place; the sum of squared residuals of each row."""
    squares = np.empty(own.shape[0])
    work = partial(
        gaussian_rows, entries, own, lined_up(other), prior, noise_variance, address, squares
    )
    workers.for_rows(work, entries.pointers)
    return squares


def _draw_at_once(
    entries: Entries,
    own: np.ndarray,
    other: np.ndarray,
    prior: JointPrior,
    noise_variance: float,
    address: Address,
    workers: Workers,
) -> float:
    squares = np.empty(own.shape[0])
    weights = np.broadcast_to(own.dtype.type(1.0 / noise_variance), entries.n_entries)
    work = partial(joint_rows, entries, weights, own, other, prior, address, squares)
    workers.for_rows(work, entries.pointers)
    return noise_variance * float(squares.sum())  # the kernel's squares are weighted


def _row_prior(prior: Prior | JointPrior) -> RowPrior:
    if isinstance(prior, JointPrior):
        return RowPrior(np.arange(prior.mean.size), prior.mean, prior.precision)
    return RowPrior(prior.free, prior.mean, np.diag(prior.precision), prior.relaxation)
