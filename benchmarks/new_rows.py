"""Draws of new rows of which only levels are known, compared with a long run.

    python benchmarks/new_rows.py [--rows 10] [--steps 2000]

The factors of the columns and the noise are given, so that a new row is a regression whose values are
known by intervals. `fold_in` draws its coefficients; the long run alternates between these and the
values, from the same start for many steps, of which the first half is discarded. Its first ten steps are
shown as well: the standard deviation of a signal after them says how slowly plain alternation moves.

A line has the ratios of the standard deviations of the signal in a missing cell to those of the long
run, as the mean over rows and the range of nine rows out of ten, and the root mean square of the
differences of means, in these standard deviations. The last column is what the long run differs from
itself: the same for its last quarter.
"""

import argparse

import numpy as np
from scipy.special import ndtr, ndtri

from fillrank.posterior.fold_in import empirical_law, fold_in_rows
from fillrank.posterior.mean import mean_draw
from fillrank.runtime.threads import Workers
from fillrank.samplers.model import Draw, Noise
from fillrank.table.entries import Entries
from fillrank.table.latent import FAR

N_COLUMNS, RANK, N_FITTED = 10, 3, 300
THRESHOLDS = {"yes or no": [0.0], "five levels": [-1.5, -0.5, 0.5, 1.5]}
NOISE = (0.5, 1 / 7, 1 / 20)  # in standard deviations of the signal
N_DRAWS, N_CHAINS, PLAIN_STEPS = 2000, 100, 10


def problem(rng, noise, thresholds, n_rows):
    """(draw, levels of new rows): factors with a signal of standard deviation 1, and their noise."""
    right = rng.normal(size=(N_COLUMNS, RANK)) / np.sqrt(RANK)
    limits = np.array([[-FAR, *thresholds], [*thresholds, FAR]])
    left = rng.normal(size=(N_FITTED, RANK))
    draw = Draw(left, right, Noise.equal(noise**2, (N_FITTED, N_COLUMNS)), limits=limits)
    signal = rng.normal(size=(n_rows, RANK)) @ right.T
    y = signal + noise * rng.normal(size=signal.shape)
    return draw, np.searchsorted(thresholds, y)


def middle(ends):
    """The mean of a standard normal variable in each interval: where the alternation starts."""
    low, high = ends
    density = np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)
    return density / np.sqrt(2 * np.pi) / (ndtr(high) - ndtr(low))


def fold_in(draw, levels):
    """Draws (draws, rows) of the signal in the last column, by the package."""
    n_rows, n = levels.shape[0], N_COLUMNS - 1
    cells = levels[:, :n].ravel().astype(np.int32)
    columns = np.tile(np.arange(n, dtype=np.int32), n_rows)
    values = middle(draw.limits[:, cells])
    entries = Entries(np.arange(n_rows + 1) * n, columns, values, np.zeros(0), cells)
    draws = [draw] * N_DRAWS
    folded, _ = fold_in_rows(draws, mean_draw(draws[:2]), entries, Workers(1), limits=draw.limits)
    return np.array([each.left @ draw.right[-1] for each in folded])


def in_intervals(rng, z, noise, ends):
    """Draws of values around z that are in their intervals."""
    low, high = ((end - z) / noise for end in ends)
    flip = low > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    a, b = ndtr(low), ndtr(high)
    y = ndtri(np.clip(a + (b - a) * rng.random(z.shape), 1e-300, 1 - 1e-16))
    y = np.clip(y, low, high)
    return z + noise * np.where(flip, -y, y)


def alternate(rng, draw, levels, n_steps):
    """Signals (steps, chains, rows) in the last column, by plain alternation."""
    ends, F = draw.limits[:, levels[:, :-1]], draw.right[:-1]
    noise = np.sqrt(draw.noise.variance)
    mean, L = empirical_law(draw.left)
    prior = np.linalg.inv(L @ L.T)
    covariance = np.linalg.inv(prior + F.T @ F / noise**2)
    root = np.linalg.cholesky(covariance)
    y = np.tile(middle(ends), (N_CHAINS, 1, 1))
    found = np.empty((n_steps, N_CHAINS, len(levels)))
    for step in range(n_steps):
        c = (prior @ mean + y @ F / noise**2) @ covariance
        c += rng.normal(size=c.shape) @ root.T
        found[step] = c @ draw.right[-1]
        y = in_intervals(rng, c @ F.T, noise, ends)
    return found


def compare(draws, expected):
    """How the standard deviations and the means of draws (draws, rows) differ from those expected."""
    sd = expected.std(axis=0)
    ratios = draws.std(axis=0) / sd
    shifts = (draws.mean(axis=0) - expected.mean(axis=0)) / sd
    low, high = np.quantile(ratios, [0.05, 0.95])
    return f"{ratios.mean():.2f} ({low:.2f} to {high:.2f}); {np.sqrt(np.mean(shifts**2)):.2f}"


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--steps", type=int, default=2000)
    given = parser.parse_args()
    print(
        "| noise | values | ten alternations | `fold_in` | the long run itself |\n|---|---|---|---|---|"
    )
    for noise in NOISE:
        for name, thresholds in THRESHOLDS.items():
            rng = np.random.default_rng(0)
            draw, levels = problem(rng, noise, thresholds, given.rows)
            steps = alternate(rng, draw, levels, given.steps)
            half, quarter = given.steps // 2, 3 * given.steps // 4
            flat = lambda part: part.reshape(-1, given.rows)  # noqa: E731
            expected = flat(steps[half:])
            found = (
                steps[PLAIN_STEPS - 1],
                fold_in(draw, levels),
                flat(steps[quarter:]),
            )
            shown = " | ".join(compare(each, expected) for each in found)
            print(f"| {noise:.2f} | {name} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
