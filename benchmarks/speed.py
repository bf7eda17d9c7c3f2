"""How near a half-sweep is to the arithmetic that it cannot do without, and what threads bring.

    python benchmarks/speed.py [--data FOLDER]

On MovieLens 1M (or, without --data, on random entries of its shape) at rank 30, with row and column
effects. Everything is measured in turns in one run and printed as ratios of medians:

- bare: the gathers and multiply-adds of the half-sweep, with a fixed step in place of a draw;
- plain: the same arithmetic as the compiler makes it, without the layout and vectors of the kernel;
- component by component: the same conditionals the usual way, one pass over all entries for each
  component with the residuals kept in memory;
- one thread against two: of a sweep, of the bare loops, and of work that touches no memory, which shows
  what the machine itself gives at that moment.
"""

import argparse
import math
import time

import numpy as np
from numba import njit

import fillrank as fr
from fillrank.draws.normal import normal
from fillrank.draws.streams import ROW_ENTRIES, Address, chain_key, seek, start_stream
from fillrank.kernels.gaussian_rows import (
    Prior,
    RowNoise,
    RowSums,
    _gather,
    _last_pass,
    _pass,
    align_rows,
    gaussian_rows,
)
from fillrank.kernels.simd import LANES
from fillrank.kernels.tiles import (
    REASSOCIATE,
    add_multiple,
    gather,
    longest_row,
    square_and_product,
)
from fillrank.runtime.threads import Workers
from standard_data import standard_data

RANK = 30
WIDTH = RANK + 2
NOISE = 0.5
IN_A_ROW = 5


@njit(nogil=True)
def bare_rows(entries, own, other, free, squares, start, stop):
    """The half-sweep without draws: the same gathers and multiply-adds, and a fixed step."""
    room = (longest_row(entries.pointers, start, stop) // LANES + 2) * LANES
    tile = np.empty(room * other.shape[1], dtype=own.dtype)
    residual = np.zeros(room, dtype=own.dtype)
    minus = np.zeros(other.shape[1], dtype=own.dtype)
    small, one = own.dtype.type(-1e-3), own.dtype.type(1.0)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = -(-(last - first) // LANES) * LANES
        stride = n | LANES
        for k in range(own.shape[1]):
            minus[k] = -own[i, k]
        for t in range(last - first):
            residual[t] = entries.values[first + t]
        for t in range(last - first, n):
            residual[t] = own.dtype.type(0)
        _gather(entries.indices, first, last, minus, other, tile, stride, residual)
        before, steps = (0, 0), (own.dtype.type(0), own.dtype.type(0))
        for p in range(0, free, 2):
            q = min(p + 1, free - 1)
            now = (p * stride, q * stride)
            s_0, s_1, c_00, c_01, c_11 = _pass(tile, residual, n, before, steps, now)
            step = small * s_0 / (c_00 + one)
            steps = (step, small * (s_1 + step * c_01) / (c_11 + one))
            before = now
        squares[i] = _last_pass(tile, residual, n, before, steps)


@njit(nogil=True)
def plain_rows(entries, own, other, free, squares, start, stop):
    """The same without vectors by hand: factors gathered one by one, a component at a time."""
    longest = longest_row(entries.pointers, start, stop)
    tile = np.empty((own.shape[1], longest), dtype=own.dtype)
    residual = np.empty(longest, dtype=own.dtype)
    for i in range(start, stop):
        first, last = entries.pointers[i], entries.pointers[i + 1]
        n = last - first
        gather(
            entries.indices[first:last], entries.values[first:last], own[i], other, tile, residual
        )
        for k in range(free):
            c, s = square_and_product(tile[k], residual, n)
            step = own.dtype.type(1e-3) * s / (c + own.dtype.type(1.0))
            own[i, k] += step
            add_multiple(residual, -step, tile[k], n)
        squares[i] = square_and_product(residual, residual, n)[0]


@njit(nogil=True, fastmath=REASSOCIATE)
def by_component(entries, own, other, prior, noise_variance, address, residual):
    """The yardstick: component by component over all entries, residuals in memory."""
    stream = start_stream(address.key, address.sweep, address.purpose)
    for p in range(prior.free.size):
        k = prior.free[p]
        for i in range(own.shape[0]):
            first, last = entries.pointers[i], entries.pointers[i + 1]
            c = own.dtype.type(0)
            s = own.dtype.type(0)
            for t in range(first, last):
                f = other[entries.indices[t], k]
                c += f * f
                s += f * residual[t]
            shrink = noise_variance * prior.precision[p]
            P = c + shrink
            old = own[i, k]
            seek(stream, i, p)
            mean = (s + c * old + shrink * prior.mean[p]) / P
            own[i, k] = mean + math.sqrt(noise_variance / P) * normal(stream)
            step = old - own[i, k]
            for t in range(first, last):
                residual[t] += step * other[entries.indices[t], k]


@njit(nogil=True)
def add_up(n):
    """Work that touches no memory: what a second thread of this machine brings just now."""
    total = 0.0
    for i in range(n * 1_000_000):
        total += 1.0 / (i + 1.0)
    return total


def random_ratings():
    """Random entries of the shape of MovieLens 1M, with rows of very different lengths."""
    rng = np.random.default_rng(0)
    rows = (6040 * rng.random(1_000_000) ** 2).astype(np.int64)
    columns = (3706 * rng.random(1_000_000) ** 2).astype(np.int64)
    cells = np.unique(rows * 3706 + columns)
    return fr.Observations.from_triplets(
        cells // 3706, cells % 3706, rng.standard_normal(cells.size)
    )


def jobs(data):
    """The functions to time, each a sweep of both sides."""
    sides = standard_data(data, np.dtype(np.float32))
    rng = np.random.default_rng(0)
    blocks = [
        0.1 * rng.standard_normal((side.pointers.size - 1, WIDTH)).astype(np.float32)
        for side in sides
    ]
    prior = Prior(np.arange(RANK + 1), np.zeros(RANK + 1), np.full(RANK + 1, 10.0))
    address = Address(chain_key(0, 0), 1, 0)
    squares = [np.empty(len(block)) for block in blocks]
    none = np.zeros(0)
    noise = [RowNoise(np.full(len(block), NOISE), none, np.inf, ROW_ENTRIES) for block in blocks]
    residuals = [side.values.copy() for side in sides]
    one, two = Workers(1), Workers(2)

    def half_sweeps(workers):
        for side, own, other, equal, out in zip(
            sides, blocks, blocks[::-1], noise, squares, strict=True
        ):
            copy, lines, sums = own.copy(), align_rows(other, none), RowSums(out, none, none)

            def work(start, stop, side=side, copy=copy, lines=lines, equal=equal, sums=sums):
                gaussian_rows(side, copy, lines, prior, equal, address, sums, start, stop)

            workers.for_rows(work, side.pointers)

    def bare(workers):
        for side, own, other, out in zip(sides, blocks, blocks[::-1], squares, strict=True):
            copy, lines = own.copy(), align_rows(other, none)

            def work(start, stop, side=side, copy=copy, lines=lines, out=out):
                bare_rows(side, copy, lines, RANK + 1, out, start, stop)

            workers.for_rows(work, side.pointers)

    def plain():
        for side, own, other, out in zip(sides, blocks, blocks[::-1], squares, strict=True):
            plain_rows(side, own.copy(), other, RANK + 1, out, 0, len(own))

    def registers(workers):
        workers.for_rows(lambda start, stop: add_up(stop - start), np.arange(17) * 10**6)

    def components():
        for side, own, other, e in zip(sides, blocks, blocks[::-1], residuals, strict=True):
            by_component(side, own.copy(), other, prior, NOISE, address, e.copy())

    return {
        "sweep, one thread": lambda: half_sweeps(one),
        "bare, one thread": lambda: bare(one),
        "plain, one thread": plain,
        "component by component, one thread": components,
        "sweep, two threads": lambda: half_sweeps(two),
        "bare, two threads": lambda: bare(two),
        "registers, one thread": lambda: registers(one),
        "registers, two threads": lambda: registers(two),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with ratings.dat of MovieLens 1M")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.data:
        data, _ = fr.datasets.load("ml-1m", path=arguments.data).split(0.2, random_state=0)
    else:
        data = random_ratings()
    print(data)
    work = jobs(data)
    for job in work.values():
        job()
    times = {name: [] for name in work}
    for _ in range(arguments.repeats):
        for name, job in work.items():
            job()  # so that caches and processors are as awake as within a run
            started = time.perf_counter()
            for _ in range(IN_A_ROW):
                job()
            times[name].append((time.perf_counter() - started) / IN_A_ROW)
    median = {name: float(np.median(each)) for name, each in times.items()}
    for name, each in times.items():
        low, high = np.quantile(each, [0.1, 0.9])
        print(f"{name:<36} {1e3 * median[name]:7.1f} ms  ({1e3 * low:.1f} to {1e3 * high:.1f})")

    def ratio(text, slow, fast):
        print(f"{text:<36} {median[slow] / median[fast]:.2f}")

    ratio("sweep / bare", "sweep, one thread", "bare, one thread")
    ratio("plain / bare", "plain, one thread", "bare, one thread")
    ratio(
        "component by component / sweep", "component by component, one thread", "sweep, one thread"
    )
    ratio("two threads: sweep", "sweep, one thread", "sweep, two threads")
    ratio("two threads: bare", "bare, one thread", "bare, two threads")
    ratio("two threads: no memory at all", "registers, one thread", "registers, two threads")


if __name__ == "__main__":
    main()
