"""What a run leaves behind: kept draws, traces of identified quantities, and a history."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fillrank.run.chains import Chain, Entered, Kept, Sampler, Step

# Kept draws are bounded in number and in memory; when full, every second one is let go.
MOST_DRAWS = 512
MOST_BYTES = 2**31
_PROBES = 200


class Traces(NamedTuple):
    """What a run has seen, as arrays.

    Attributes
    ----------
    history : dict of arrays (chains, sweeps)
        What was traced, by name, in standard units; the quality of the fit first.
    spectra : array (chains, kept draws, r)
        Singular values, descending, with zeros at the end.
    probes : array (chains, sweeps after the burn-in, cells)
        Predictions of some cells, in standard units.
    probe_rows, probe_columns : array
        The positions of those cells.
    burn_in, thinning : int
        Draws are kept after the burn-in: every one, or every second, fourth, ... of them.
    n_entries : int
        The number of observed entries: how much the noise hides depends on it.
    """

    history: dict[str, np.ndarray]
    spectra: np.ndarray
    probes: np.ndarray
    probe_rows: np.ndarray
    probe_columns: np.ndarray
    burn_in: int
    thinning: int
    n_entries: int


class _Kept(NamedTuple):
    """The draws of all chains after a sweep, and their singular values."""

    draws: tuple[Kept, ...]
    spectra: tuple[np.ndarray, ...]


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
        self._kept: dict[int, _Kept] = {}
        self._probes: list[np.ndarray] = []
        self._history: list[list[dict[str, float]]] = []

    def take(self, step: Step) -> None:
        """Record a step."""
        history = [
            self._sampler.history(state, info, self.n_entries)
            for state, info in zip(step.states, step.infos, strict=True)
        ]
        # All is computed before any of it is kept: Ctrl-C can come at any time, and a step that was
        # recorded in part is forgotten, by `forget_after`.
        if step.number > self.burn_in:
            draws = self._draws_of(step.chains)
            probes = np.array([draw.at(self._probe_rows, self._probe_columns) for draw in draws])
            if not self._probes:  # what was kept in need, before more sweeps were asked for, goes
                self._kept = {}
            if (step.number - self.burn_in) % self.thinning == 0:
                self._keep(step.number, draws)
            self._probes.append(probes)
        self._history.append(history)

    def forget_after(self, n_sweeps: int) -> None:
        """Be as after so many sweeps: Ctrl-C may have come while another was being recorded."""
        self._history = self._history[:n_sweeps]
        self._probes = self._probes[: max(n_sweeps - self.burn_in, 0)]
        self._kept = {
            number: kept
            for number, kept in self._kept.items()
            if number <= n_sweeps and (number - self.burn_in) % self.thinning == 0
        }

    def keep_in_need(self, chains: Iterable[Chain]) -> None:
        """Keep the chains as they are, alone: for a run that ended while burning in."""
        self._kept = {}
        self._keep(len(self._history), self._draws_of(chains))

    def _draws_of(self, chains: Iterable[Chain]) -> tuple[Kept, ...]:
        return tuple(self._sampler.draw(chain.state) for chain in chains)

    def _keep(self, number: int, draws: tuple[Kept, ...]) -> None:
        spectra = tuple(self._sampler.spectrum(draw) for draw in draws)
        kept = self._kept | {number: _Kept(draws, spectra)}
        size = sum(draw.nbytes for draw in draws)
        if len(kept) >= max(2, min(MOST_DRAWS // len(draws), MOST_BYTES // max(size, 1))):
            kept = dict(list(kept.items())[1::2])
            self.thinning *= 2
        self._kept = kept

    @property
    def draws(self) -> list[Any]:
        """The kept draws of all chains."""
        return [draw for kept in self._kept.values() for draw in kept.draws]

    def draws_by_sweep(self) -> dict[int, tuple[Any, ...]]:
        """The kept draws of all chains, by the number of the sweep that they come from."""
        return {number: kept.draws for number, kept in self._kept.items()}

    def spread_draws(self, most: int) -> list[Any]:
        """At most so many of the kept draws, spread evenly over the run, alike from every chain."""
        kept = [kept.draws for kept in self._kept.values()]
        n = min(max(most // len(kept[0]), 1), len(kept))
        chosen = np.linspace(0, len(kept) - 1, n).round().astype(int)
        return [draw for number in chosen for draw in kept[number]]

    @property
    def n_chains(self) -> int:
        """How many chains were recorded; 0 before the first sweep."""
        return len(self._history[0]) if self._history else 0

    @property
    def n_recorded(self) -> int:
        """Sweeps after the burn-in."""
        return len(self._probes)

    @property
    def probes(self) -> np.ndarray:
        """Predictions of the probes after the burn-in: (chains, sweeps, probes)."""
        if not self._probes:
            return np.empty((self.n_chains, 0, _PROBES))
        return np.array(self._probes).transpose(1, 0, 2)

    @property
    def spectra(self) -> np.ndarray:
        """Singular values of the kept draws: (chains, draws, r), descending, with zeros at the end."""
        spectra = [kept.spectra for kept in self._kept.values()]
        r = max((s.size for each in spectra for s in each), default=0)
        padded = [[np.pad(s, (0, r - s.size)) for s in each] for each in spectra]
        return np.array(padded).reshape(len(spectra), self.n_chains, r).transpose(1, 0, 2)

    @property
    def last(self) -> dict[str, float]:
        """What was traced in the last sweep, averaged over the chains."""
        names = self._history[-1][0]
        return {name: float(np.mean([h[name] for h in self._history[-1]])) for name in names}

    def history(self) -> dict[str, np.ndarray]:
        """What was traced, by name: (chains, sweeps)."""
        names = self._history[0][0] if self._history else ()
        return {
            name: np.array([[h[name] for h in step] for step in self._history]).T for name in names
        }

    def traces(self) -> Traces:
        """All that was seen."""
        return Traces(
            self.history(),
            self.spectra,
            self.probes,
            self._probe_rows,
            self._probe_columns,
            self.burn_in,
            self.thinning,
            self.n_entries,
        )

    def resume(self, traces: Traces, draws: dict[int, tuple[Any, ...]]) -> None:
        """Be as a recorder with these traces and kept draws, by sweep, was."""
        names = list(traces.history)
        if names:
            self._history = [
                [dict(zip(names, values, strict=True)) for values in step]
                for step in np.array([*traces.history.values()]).transpose(2, 1, 0).tolist()
            ]
        self._probes = [*traces.probes.transpose(1, 0, 2)]
        self._probe_rows, self._probe_columns = traces.probe_rows, traces.probe_columns
        self.burn_in, self.thinning = traces.burn_in, traces.thinning
        self._kept = {
            number: _Kept(each, tuple(spectra))
            for (number, each), spectra in zip(
                draws.items(), traces.spectra.transpose(1, 0, 2), strict=True
            )
        }
