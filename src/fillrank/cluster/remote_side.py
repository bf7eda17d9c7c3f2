"""One side of a table whose entries are on workers: methods for samplers and starts, and their tasks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from fillrank.cluster.memory import MASK_COLUMNS
from fillrank.cluster.monitor import REFIT, Monitor
from fillrank.cluster.partitions import Partition, SidePartitions, as_writable, worker_threads
from fillrank.cluster.remote_levels import RemoteLikelihood
from fillrank.draws.streams import Address
from fillrank.errors import ClusterError
from fillrank.kernels.gaussian_rows import NO_SHIFTS, Prior, RowNoise, RowSums
from fillrank.kernels.mask import mask_product
from fillrank.kernels.products import Fitted, add_products, effect_sums, share_bounds
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Remote, draw_one_by_one
from fillrank.table.entries import iter_blocks

if TYPE_CHECKING:
    from distributed import Future

_T = TypeVar("_T")

# Multipliers and increment of splitmix64 (Steele, Lea and Flood 2014).
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_BLOCK_ROWS = 4096


class RemoteSide(Remote):
    """Rows in partitions, each on a worker of a cluster.

    Parameters
    ----------
    monitor : Monitor
    side : SidePartitions
    dtype : dtype
        Of the values.
    """

    def __init__(self, monitor: Monitor, side: SidePartitions, dtype: np.dtype):
        self.pointers = side.pointers
        self.dtype = dtype
        self._monitor = monitor
        self._client = monitor.client
        # Partitions without rows need no tasks.
        self.partitions = [
            (slice(start, stop), partition)
            for (start, stop), partition in zip(
                pairwise(side.bounds.tolist()), side.partitions, strict=True
            )
            if start < stop
        ]

    def draw_rows(
        self,
        own: np.ndarray,
        other: np.ndarray,
        prior: Prior,
        noise: RowNoise,
        address: Address,
    ) -> RowSums:
        """Draw the coefficients of all rows, in place."""
        by_row = own, prior.shifts, noise.variances
        prior, noise = prior._replace(shifts=NO_SHIFTS), noise._replace(variances=np.zeros(0))
        results = self._map(draw_partition, by_row, HalfSweep(other, prior, noise, address))
        np.concatenate([coefficients for coefficients, _ in results], out=own)
        return RowSums(*map(np.concatenate, zip(*(sums for _, sums in results), strict=True)))

    def effect_sums(self, own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.effect_sums`."""
        sums, squares = zip(*self._map(effect_sums_of_partition, (own,), other), strict=True)
        return np.concatenate(sums), np.concatenate(squares)

    def mask_product(self, block: np.ndarray) -> np.ndarray:
        """As `fillrank.kernels.mask.mask_product`."""
        out = np.empty((self.pointers.size - 1, block.shape[1]), dtype=block.dtype)
        # A few columns at a time, because every worker receives them for all rows of the block.
        for columns in iter_blocks(block.shape[1], size=MASK_COLUMNS):
            some = np.ascontiguousarray(block[:, columns])
            np.concatenate(self._map(mask_product_of_partition, (), some), out=out[:, columns])
        return out

    def level_likelihood(
        self, factors: tuple[np.ndarray, np.ndarray], noise: RowNoise, n_intervals: int
    ) -> RemoteLikelihood:
        """The likelihood of the levels of entries, for the intervals before ``n_intervals``."""
        return RemoteLikelihood(self, factors, noise, n_intervals)

    def residual_products(
        self, fitted: Fitted, block: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.residual_products`."""
        shared = ProductFactors(fitted.right, fitted.scales, block)
        bounds = share_bounds(self.pointers, block.shape[0])
        back, results = self.run(
            lambda future: self._submit_products(fitted.left, out, future, bounds), shared
        )
        np.concatenate([lines for lines, _ in results], out=out)
        return back, np.concatenate([squares for _, squares in results])

    def digest(self) -> int:
        """A digest of the entries that does not depend on how they are partitioned."""
        hashes = self.run(lambda: [self.submit(hash_partition, p) for _, p in self.partitions])
        return sum(hashes) % 2**64

    def _submit_products(
        self, left: np.ndarray, out: np.ndarray, shared: Future, bounds: np.ndarray
    ) -> tuple[Future, list[Future]]:
        """Futures of the sum over shares, and of (lines, squares) of all pieces in order.

        A piece is the rows of a share that are in one partition. The sum of a share continues in the
        next partition: the order of additions, and so the bits, are the same for all partitions.
        """
        backs, shares, results = [], [], []
        for share, (start, stop) in enumerate(pairwise(bounds.tolist())):
            back = None
            for rows, partition in self.partitions:
                first, last = max(start, rows.start), min(stop, rows.stop)
                if first >= last:
                    continue
                piece = Piece(first - rows.start, left[first:last], out[first:last])
                products = self.submit(products_of_piece, partition, piece, shared, back)
                back = self.submit(get_back, products)
                results.append(self.submit(get_rows, products))
            if back is not None:
                backs.append(back)
                shares.append(share)
        return self.submit(sum_shares, backs, shares, bounds.size - 1), results

    def _map(
        self, task: Callable[..., _T], by_row: tuple[np.ndarray, ...], shared: Any
    ) -> list[_T]:
        """``task(partition, *arrays, shared)`` for all partitions.

        The arrays are those of ``by_row`` for the rows of the partition; empty ones stay empty.
        """

        def submit(future: Future) -> list[Future]:
            return [
                self.submit(task, partition, *(array[rows] for array in by_row), future)
                for rows, partition in self.partitions
            ]

        results: list[_T] = self.run(submit, shared)
        return results

    def run(self, submit: Callable[..., Any], *shared: Any) -> Any:
        """Gather the results of the tasks that ``submit`` submits; again if a worker is lost meanwhile.

        It is called with futures of the shared arguments.
        """

        def work() -> Any:
            self._recover()
            futures = [self.share(argument) for argument in shared]
            return self._gather(submit(*futures))

        return self._monitor.retry(work)

    def share(self, argument: Any) -> Future:
        """A future of an argument of several tasks, which workers copy from each other.

        It is the result of a task, so Dask computes it again if it is lost with a worker. (With Dask's
        scatter, the client can wait forever for a worker that dies meanwhile.)
        """
        return self.submit(identity, argument)

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future:
        """Submit a task."""
        return self._client.submit(task, *arguments, pure=False)

    def _gather(self, futures: Any) -> Any:
        return self._monitor.wait_for(lambda: self._client.gather(futures, asynchronous=True))

    def _recover(self) -> None:
        """Retry partitions that failed because workers died."""
        for _, partition in self.partitions:
            if partition.status == "cancelled":
                raise ClusterError(
                    "the scheduler was lost, and with it the locations of the table's partitions",
                    advice=REFIT,
                )
            if partition.status == "error":
                self._retry(partition)

    def _retry(self, partition: Future) -> None:
        import distributed

        error = self._monitor.wait_for(partition._exception)
        if not isinstance(error, distributed.KilledWorker):
            raise ClusterError(
                f"a partition of the table cannot be computed again: {error}"
            ) from error
        self._monitor.wait_for(lambda: self._client.retry([partition], asynchronous=True))


# Tasks. They do not change their arguments, because Dask may run them again.


class HalfSweep(NamedTuple):
    """The arguments of a half-sweep that all partitions share.

    Partitions get the shifts of the prior and the noise variances for their own rows only.
    """

    other: np.ndarray
    prior: Prior
    noise: RowNoise
    address: Address


class ProductFactors(NamedTuple):
    """The arguments of `residual_products` that all partitions share."""

    right: np.ndarray
    scales: np.ndarray
    block: np.ndarray


class Piece(NamedTuple):
    """Rows of a partition from ``start`` on: their factors, and the array that products are added to."""

    start: int
    left: np.ndarray
    out: np.ndarray


class PieceProducts(NamedTuple):
    """The result of `add_products` for a piece."""

    back: np.ndarray
    out: np.ndarray
    squares: np.ndarray


def identity(argument: Any) -> Any:
    """The argument, as the result of a task."""
    return argument


def draw_partition(
    partition: Partition,
    own: np.ndarray,
    shifts: np.ndarray,
    variances: np.ndarray,
    shared: HalfSweep,
) -> tuple[np.ndarray, RowSums]:
    """Draw the coefficients of the rows of a partition; with the sums of each row."""
    other, prior, noise, address = shared
    own, entries = own.copy(), partition.as_writable().entries
    address = address._replace(first_row=partition.first_row)
    prior = prior._replace(shifts=as_writable(shifts))
    noise = noise._replace(variances=as_writable(variances))
    with Workers(worker_threads()) as workers:
        sums = draw_one_by_one(entries, own, other, prior, noise, address, workers)
    return own, sums


def effect_sums_of_partition(
    partition: Partition, own: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`effect_sums` for the rows of a partition."""
    with Workers(worker_threads()) as workers:
        return effect_sums(partition.as_writable().entries, own, other, workers)


def mask_product_of_partition(partition: Partition, block: np.ndarray) -> np.ndarray:
    """`mask_product` for the rows of a partition."""
    entries = partition.as_writable().entries
    with Workers(worker_threads()) as workers:
        return mask_product(entries.pointers, entries.indices, as_writable(block), workers)


def products_of_piece(
    partition: Partition, piece: Piece, shared: ProductFactors, previous: np.ndarray | None
) -> PieceProducts:
    """`add_products` for a piece.

    ``previous`` is the sum over the pieces of the same share in earlier partitions, to which those of
    this piece are added: the order of one machine.
    """
    right, scales, block = shared
    entries = partition.as_writable().entries
    stop = piece.start + piece.out.shape[0]
    entries = entries._replace(pointers=entries.pointers[piece.start : stop + 1])
    back = np.zeros_like(block) if previous is None else previous.copy()
    out = piece.out.copy()
    squares = add_products(entries, Fitted(piece.left, right, scales), block, out, back)
    return PieceProducts(back, out, squares)


def get_back(products: PieceProducts) -> np.ndarray:
    """The sum by column, for the next piece of a share or the sum over shares."""
    return products.back


def get_rows(products: PieceProducts) -> tuple[np.ndarray, np.ndarray]:
    """The results by row, for the client."""
    return products.out, products.squares


def sum_shares(backs: list[np.ndarray], shares: list[int], n_shares: int) -> np.ndarray:
    """The sum over all shares, including those without rows, in the order of one machine."""
    by_share = np.zeros((n_shares, *backs[0].shape), dtype=backs[0].dtype)
    for share, back in zip(shares, backs, strict=True):
        by_share[share] = back
    return by_share.sum(axis=0)


def hash_partition(partition: Partition) -> int:
    """The sum of hashes of the entries, each of its row, column and value.

    The sum over all partitions does not depend on how a table is partitioned.
    """
    total = 0
    pointers, indices, values, _, cells = partition.entries
    values = cells if cells.size else values  # the levels, whatever chains start at
    for rows in iter_blocks(pointers.size - 1, size=_BLOCK_ROWS):
        block = slice(*pointers[[rows.start, rows.stop]])
        row = np.arange(rows.start, rows.stop, dtype=np.uint64) + np.uint64(partition.first_row)
        row = np.repeat(row, np.diff(pointers[rows.start : rows.stop + 1]))
        hashes = _mix(values[block].astype(np.float64).view(np.uint64))
        hashes = _mix(hashes + indices[block].astype(np.uint64))
        total += int(_mix(hashes + row).sum(dtype=np.uint64))
    return total % 2**64


def _mix(x: np.ndarray) -> np.ndarray:
    x = x + _INCREMENT
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLIERS[0]
    x = (x ^ (x >> np.uint64(27))) * _MULTIPLIERS[1]
    return x ^ (x >> np.uint64(31))
