"""What a run leaves behind: kept draws, traces of identified quantities, and a history."""

from typing import NamedTuple

import numpy as np

from fillrank.kernels.spectrum import singular_values
from fillrank.run.chains import Step
from fillrank.samplers.state import Data, Options, State, signal_factors

# Kept draws are bounded in number and in memory; when full, every second one is let go.
MOST_DRAWS = 512
MOST_BYTES = 2**31
_PROBES = 200


class Draw(NamedTuple):
    """One draw of the signal, left right^T in standard units, with its noise variance."""

    left: np.ndarray
    right: np.ndarray
    noise_variance: float


def _spectrum(draw: Draw, r: int, options: Options) -> np.ndarray:
    """The singular values of Z, cleared of what the effects could have been.

    The model cannot tell Z + alpha 1^T + 1 beta^T apart from a Z that holds a part of the effects;
    what is left of Z across the all-ones directions does not depend on where that part is.
    """
    left, right = draw.left[:, :r].astype(np.float64), draw.right[:, :r].astype(np.float64)
    if options.column_effects:
        left -= left.mean(axis=0)
    if options.row_effects:
        right -= right.mean(axis=0)
    return singular_values(left, right)


class Recorder:
    """Takes steps of a run; keeps draws after the burn-in, thinned so that they fit.

    The probes are cells chosen once at random: their predictions, in standard units, are what the
    Monte Carlo error is judged by.
    """

    def __init__(self, data: Data, options: Options, burn_in: int, rng: np.random.Generator):
        self.data = data
        self._options = options
        self.burn_in = burn_in
        m, n = data.shape
        self._probe_rows = rng.integers(m, size=_PROBES)
        self._probe_columns = rng.integers(n, size=_PROBES)
        self.thinning = 1
        self._kept: list[tuple[Draw, ...]] = []
        self._probes: list[np.ndarray] = []
        self._spectra: list[np.ndarray] = []
        self._history: list[tuple[list[float], ...]] = []

    def take(self, step: Step) -> None:
        """Record a step."""
        n = self.data.n_entries
        history = (
            [info.residual_square / n for info in step.infos],
            [state.noise_variance for state in step.states],
            [state.a for state in step.states],
            [state.b for state in step.states],
        )
        # All is computed before any of it is kept: Ctrl-C can come at any time.
        if step.number > self.burn_in:
            probes = np.array([self._predict_probes(state) for state in step.states])
            if (step.number - self.burn_in) % self.thinning == 0:
                self.keep(step)
            self._probes.append(probes)
        self._history.append(history)

    def keep(self, step: Step) -> None:
        """Keep the draw of every chain."""
        draws = tuple(Draw(*signal_factors(s), s.noise_variance) for s in step.states)
        r = step.states[0].d.size
        spectra = np.array([_spectrum(draw, r, self._options) for draw in draws])
        self._kept.append(draws)
        self._spectra.append(spectra)
        size = sum(w.left.nbytes + w.right.nbytes for w in draws)
        if len(self._kept) >= max(2, min(MOST_DRAWS // len(draws), MOST_BYTES // size)):
            self._kept, self._spectra = self._kept[1::2], self._spectra[1::2]
            self.thinning *= 2

    def _predict_probes(self, state: State) -> np.ndarray:
        left, right = state.left[self._probe_rows], state.right[self._probe_columns]
        scale = np.append(state.d, [1.0, 1.0])
        return np.einsum("pk,pk,k->p", left, right, scale)

    @property
    def draws(self) -> list[Draw]:
        """The kept draws of all chains."""
        return [draw for draws in self._kept for draw in draws]

    @property
    def n_recorded(self) -> int:
        """Sweeps after the burn-in."""
        return len(self._probes)

    @property
    def probes(self) -> np.ndarray:
        """Predictions of the probes after the burn-in: (chains, sweeps, probes)."""
        if not self._probes:
            return np.empty((len(self._history[0][0]), 0, _PROBES))
        return np.array(self._probes).transpose(1, 0, 2)

    @property
    def spectra(self) -> np.ndarray:
        """Singular values of the kept draws' Z less effects: (chains, draws, r), descending."""
        return np.array(self._spectra).transpose(1, 0, 2)

    def history(self) -> dict[str, np.ndarray]:
        """By name, (chains, sweeps): mean squared residual, noise variance, a and b."""
        names = ("residual_variance", "noise_variance", "a", "b")
        table = np.array(self._history).transpose(1, 2, 0)
        return dict(zip(names, table, strict=True))
