"""One side of a table whose rows lie with workers: what samplers and starts ask of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from fillrank.cluster.laid_out import SideParts
from fillrank.cluster.monitor import REFIT, Monitor
from fillrank.cluster.tasks import (
    HalfSweep,
    Pass,
    PassRows,
    Piece,
    back_of_piece,
    digest_of_part,
    draw_rows_of_part,
    effect_sums_of_part,
    itself,
    products_of_piece,
    rows_of_piece,
    sum_of_shares,
)
from fillrank.draws.streams import Address
from fillrank.errors import ClusterError
from fillrank.kernels.gaussian_rows import Prior
from fillrank.kernels.products import Fitted, share_bounds
from fillrank.samplers.model import Remote


class RemoteSide(Remote):
    """Rows in parts, each on a worker of a cluster.

    Parameters
    ----------
    monitor : Monitor
    side : SideParts
    dtype : dtype
        Of the values.
    """

    def __init__(self, monitor: Monitor, side: SideParts, dtype: np.dtype):
        self.pointers = side.pointers
        self.dtype = dtype
        self._monitor = monitor
        self._client = monitor.client
        # A part without rows has nothing to do.
        self._parts = [
            (slice(start, stop), part)
            for (start, stop), part in zip(pairwise(side.bounds.tolist()), side.parts, strict=True)
            if start < stop
        ]

    def draw_rows(
        self,
        own: np.ndarray,
        other: np.ndarray,
        prior: Prior,
        noise_variance: float,
        address: Address,
    ) -> np.ndarray:
        """Draw all rows' coefficients, in place; the sum of squared residuals of each row."""
        given = HalfSweep(other, prior, noise_variance, address)
        drawn = self._each(draw_rows_of_part, lambda rows: own[rows], given)
        np.concatenate([lines for lines, _ in drawn], out=own)
        return np.concatenate([squares for _, squares in drawn])

    def effect_sums(self, own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.effect_sums`."""
        found = self._each(effect_sums_of_part, lambda rows: own[rows], other)
        sums, squares = zip(*found, strict=True)
        return np.concatenate(sums), np.concatenate(squares)

    def residual_products(
        self, fitted: Fitted, block: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `fillrank.kernels.products.residual_products`."""
        given = Pass(fitted.right, fitted.scales, block)
        bounds = share_bounds(self.pointers, block.shape[0])

        def work() -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
            self._mend()
            everywhere = self._everywhere(given)
            own = [PassRows(fitted.left[rows], out[rows]) for rows, _ in self._parts]
            return self._gather(self._products(own, everywhere, bounds))

        back, found = self._monitor.retry(work)
        np.concatenate([lines for lines, _ in found], out=out)
        return back, np.concatenate([squares for _, squares in found])

    def digest(self) -> int:
        """A number by which the entries are known again, in whatever parts they lie."""

        def work() -> list[int]:
            self._mend()
            return self._gather([self._submit(digest_of_part, part) for _, part in self._parts])

        return sum(self._monitor.retry(work)) % 2**64

    def _products(self, own: list[PassRows], everywhere: Any, bounds: np.ndarray) -> Any:
        """Futures of the sum over shares, and of (lines, squares) of all pieces in order.

        A share that goes over the end of a part is summed on in the next one: the same order of
        additions, and so the same bits, for any parts.
        """
        backs, which, found = [], [], []
        for share, (start, stop) in enumerate(pairwise(bounds.tolist())):
            back = None
            for (rows, part), given in zip(self._parts, own, strict=True):
                first, last = max(start, rows.start), min(stop, rows.stop)
                if first >= last:
                    continue
                mine = slice(first - rows.start, last - rows.start)
                piece = Piece(mine, PassRows(given.left[mine], given.out[mine]))
                both = self._submit(products_of_piece, part, piece, everywhere, back)
                back = self._submit(back_of_piece, both)
                found.append(self._submit(rows_of_piece, both))
            if back is not None:
                backs.append(back)
                which.append(share)
        return self._submit(sum_of_shares, backs, which, bounds.size - 1), found

    def _each(self, task: Callable[..., Any], own: Callable[[slice], Any], given: Any) -> list[Any]:
        """``task(part, own(rows of the part), given)`` of all parts."""

        def work() -> list[Any]:
            self._mend()
            everywhere = self._everywhere(given)
            return self._gather(
                [self._submit(task, part, own(rows), everywhere) for rows, part in self._parts]
            )

        return self._monitor.retry(work)

    def _everywhere(self, given: Any) -> Any:
        """Something that workers take from each other as they need it.

        It is what a task comes to, and so made again if it is lost with a worker. (Dask's own way to
        bring something to all workers can wait for ever for one that dies meanwhile.)
        """
        return self._submit(itself, given)

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(task, *arguments, pure=False)

    def _gather(self, futures: Any) -> Any:
        return self._monitor.wait_for(lambda: self._client.gather(futures, asynchronous=True))

    def _mend(self) -> None:
        """Have parts made again that were given up because of the deaths of workers."""
        for _, part in self._parts:
            if part.status == "cancelled":
                raise ClusterError(
                    "the scheduler was lost, and with it the locations of the table's partitions",
                    advice=REFIT,
                )
            if part.status == "error":
                self._make_again(part)

    def _make_again(self, part: Any) -> None:
        import distributed

        error = self._monitor.wait_for(part._exception)
        if not isinstance(error, distributed.KilledWorker):
            raise ClusterError(f"a part of the table cannot be made again: {error}") from error
        self._monitor.wait_for(lambda: self._client.retry([part], asynchronous=True))
