"""What a run leaves behind: kept draws, traces of identified quantities, and a history."""

from typing import Any

import numpy as np

from fillrank.run.chains import Entered, Kept, Sampler, Step

# Kept draws are bounded in number and in memory; when full, every second one is let go.
MOST_DRAWS = 512
MOST_BYTES = 2**31
_PROBES = 200


class Recorder:
    """Takes steps of a run; keeps draws after the burn-in, thinned so that they fit.

    The probes are cells chosen once at random: their predictions, in standard units, are what the
    Monte Carlo error is judged by.
    """

    def __init__(self, sampler: Sampler, data: Entered, burn_in: int, rng: np.random.Generator):
        self._sampler = sampler
        self.n_entries = data.n_entries
        self.burn_in = burn_in
        m, n = data.shape
        self._probe_rows = rng.integers(m, size=_PROBES)
        self._probe_columns = rng.integers(n, size=_PROBES)
        self.thinning = 1
        self._kept: list[tuple[Kept, ...]] = []
        self._probes: list[np.ndarray] = []
        self._spectra: list[tuple[np.ndarray, ...]] = []
        self._history: list[list[dict[str, float]]] = []

    def take(self, step: Step) -> None:
        """Record a step."""
        history = [
            self._sampler.history(state, info, self.n_entries)
            for state, info in zip(step.states, step.infos, strict=True)
        ]
        # All is computed before any of it is kept: Ctrl-C can come at any time.
        if step.number > self.burn_in:
            draws = self._draws_of(step)
            probes = np.array([draw.at(self._probe_rows, self._probe_columns) for draw in draws])
            if (step.number - self.burn_in) % self.thinning == 0:
                self._keep(draws)
            self._probes.append(probes)
        self._history.append(history)

    def keep(self, step: Step) -> None:
        """Keep the draw of every chain."""
        self._keep(self._draws_of(step))

    def _draws_of(self, step: Step) -> tuple[Kept, ...]:
        return tuple(self._sampler.draw(state) for state in step.states)

    def _keep(self, draws: tuple[Kept, ...]) -> None:
        spectra = tuple(self._sampler.spectrum(draw) for draw in draws)
        self._kept.append(draws)
        self._spectra.append(spectra)
        size = sum(draw.nbytes for draw in draws)
        if len(self._kept) >= max(2, min(MOST_DRAWS // len(draws), MOST_BYTES // max(size, 1))):
            self._kept, self._spectra = self._kept[1::2], self._spectra[1::2]
            self.thinning *= 2

    @property
    def draws(self) -> list[Any]:
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
            return np.empty((len(self._history[0]), 0, _PROBES))
        return np.array(self._probes).transpose(1, 0, 2)

    @property
    def spectra(self) -> np.ndarray:
        """Singular values of the kept draws: (chains, draws, r), descending, with zeros at the end."""
        r = max(s.size for spectra in self._spectra for s in spectra)
        padded = [[np.pad(s, (0, r - s.size)) for s in spectra] for spectra in self._spectra]
        return np.array(padded).transpose(1, 0, 2)

    @property
    def last(self) -> dict[str, float]:
        """What was traced in the last sweep, averaged over the chains."""
        names = self._history[-1][0]
        return {name: float(np.mean([h[name] for h in self._history[-1]])) for name in names}

    def history(self) -> dict[str, np.ndarray]:
        """What was traced, by name: (chains, sweeps)."""
        return {
            name: np.array([[h[name] for h in step] for step in self._history]).T
            for name in self._history[0][0]
        }
