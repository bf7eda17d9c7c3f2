"""What a table without holes gains from matrix products: a sweep of it against one of the same entries.

    python benchmarks/dense.py

Rank 30, GASR with effects and centres, BPMF with both ways to draw rows. The two forms of the data take
sweeps in turns, and a ratio is that of two neighbours: its median, and the middle half.
"""

import argparse
import time

import numpy as np

import fillrank as fr
from fillrank.draws.streams import chain_key
from fillrank.runtime.threads import Workers, one_blas_thread
from fillrank.samplers import bpmf, gasr
from fillrank.samplers.gasr import Context, Options, init
from fillrank.samplers.model import Effect, Start, detect_complete
from standard_data import standard_data

RANK = 30
SHAPES = [(500, 500), (2000, 1000), (5000, 2000)]
OPTIONS = Options(row_effects=True, column_effects=True, centres=True)
PRIOR = bpmf.Hyperprior(2.0, float(RANK), 0.1)
DTYPE = np.dtype("float32")


def entries_of(shape):
    """A table of rank 10 with as much noise as signal."""
    observations, _ = fr.synthetic(*shape, 10, np.sqrt(10.0), 0.0, random_state=0)
    return standard_data(observations, DTYPE)


def chains(shape, workers):
    """(name, sweep, first state, context) of each method."""
    rng, key, law = np.random.default_rng(0), chain_key(0, 0), Effect(0.0, 0.1)
    U, V = (np.linalg.qr(rng.standard_normal((n, RANK)))[0] for n in shape)
    s = np.full(RANK, np.sqrt(max(shape)))
    start = Start(
        np.zeros(shape[0]), np.zeros(shape[1]), law, law, U, s, V, 0.5, np.ones(shape[1]), RANK
    )
    yield (
        "GASR",
        gasr.sweep,
        init(start, DTYPE, rng),
        Context(OPTIONS, key, workers, relaxed_from=0),
    )
    first = bpmf.init(shape, RANK, 0.5, DTYPE, rng)
    for joint, name in ((False, "BPMF, entries"), (True, "BPMF, joint")):
        yield name, bpmf.sweep, first, bpmf.Context(PRIOR, joint, key, workers)


def seconds_of(sweep, state, data, context):
    """(state, seconds) of one sweep."""
    started = time.perf_counter()
    state, _ = sweep(state, data, context)
    return state, time.perf_counter() - started


def compare(sweep, state, data, context, turns):
    """Seconds (turns, 2) of sweeps by entries and by products, in turns; the first compile."""
    forms = (data, detect_complete(data))
    states, seconds = [state, state], []
    for _ in range(turns + 2):
        pair = [seconds_of(sweep, states[i], forms[i], context) for i in (0, 1)]
        states = [after for after, _ in pair]
        seconds.append([spent for _, spent in pair])
    return np.array(seconds[2:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=15)
    arguments = parser.parse_args()
    print("| table | method | ms a sweep, entries | ms, products | times faster (middle half) |")
    print("|---|---|---|---|---|")
    with one_blas_thread(), Workers(arguments.threads) as workers:
        for shape in SHAPES:
            data = entries_of(shape)
            for name, sweep, state, context in chains(shape, workers):
                seconds = compare(sweep, state, data, context, arguments.turns)
                sparse, dense = 1e3 * np.median(seconds, axis=0)
                low, middle, high = np.percentile(seconds[:, 0] / seconds[:, 1], [25, 50, 75])
                print(
                    f"| {shape[0]} x {shape[1]} | {name} | {sparse:.1f} | {dense:.1f} | "
                    f"{middle:.1f} ({low:.1f} to {high:.1f}) |",
                    flush=True,
                )
