"""Chains that begin at a solver's answer, as the paper's conclusion suggests.

The penalty is the universal threshold of ``spectral_start``, whose factors the solver begins with; so
there is nothing to choose.
"""

import math

import numpy as np

from fillrank.runtime.workers import Workers
from fillrank.samplers.state import Data, Options, Start
from fillrank.solvers.effects import without
from fillrank.solvers.fit import Factors, Fit, Limits
from fillrank.solvers.hasi import hasi
from fillrank.solvers.soft_impute import soft_impute
from fillrank.solvers.spectral_start import noise_edge, spectral_start
from fillrank.table.entries import Entries

# A start need not be exact.
_ITERATIONS, _TOLERANCE = 50, 1e-3
# HASI's beta, as a share of the largest singular value: factors well below it are shrunk hardest.
_BETA = 0.1


def soft_impute_start(
    data: Data, max_rank: int | None, options: Options, workers: Workers, rng: np.random.Generator
) -> Start:
    """Begin at SoftImpute's solution."""
    guess = spectral_start(data, max_rank, options, workers, rng)
    return _at(guess, _solve(guess, data, workers))


def hasi_start(
    data: Data, max_rank: int | None, options: Options, workers: Workers, rng: np.random.Generator
) -> Start:
    """Begin at HASI's solution, which shrinks large singular values less."""
    guess = soft_impute_start(data, max_rank, options, workers, rng)
    return _at(guess, _solve(guess, data, workers, adaptive=True))


def _solve(guess: Start, data: Data, workers: Workers, adaptive: bool = False) -> Fit:
    rest = without(Data(*map(_double, data)), (guess.row_effects, guess.column_effects))
    penalty = math.sqrt(guess.noise_variance) * noise_edge(data)
    limits = Limits(guess.max_rank, _ITERATIONS, _TOLERANCE)
    first = Factors(guess.U.astype(np.float64), guess.s, guess.V.astype(np.float64))
    if adaptive and first.s.size:
        return hasi(rest, penalty, _BETA * float(first.s[0]), limits, workers, first)
    return soft_impute(rest, penalty, limits, workers, first)


def _double(entries: Entries) -> Entries:
    return entries._replace(values=entries.values.astype(np.float64))


def _at(guess: Start, fit: Fit) -> Start:
    U, s, V = fit.factors
    return guess._replace(U=U, s=s, V=V)
