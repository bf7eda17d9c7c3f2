"""The record of a run: stored draws, traces of identified quantities, and a history."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fillrank.run.chains import Chain, ObservedData, Sampler, Step, StoredDraw

# Limits of stored draws, in number and in memory; at the limit every second one is discarded.
MOST_DRAWS = 512
MOST_BYTES = 2**31
_PROBES = 200


class Traces(NamedTuple):
    """The traces of a run, as arrays.

    Attributes
    ----------
    history : dict of arrays (chains, sweeps)
        What was traced, by name, in standard units; the quality of the fit first.
    spectra : array (chains, stored draws, r)
        Singular values, descending, with zeros at the end.
    probes : array (chains, sweeps after the burn-in, cells)
        Predictions of some cells, in standard units.
    probe_rows, probe_columns : array
        The positions of those cells.
    burn_in, thinning : int
        Draws are stored after the burn-in: every one, or every second, fourth, ... of them.
    n_entries : int
        The number of observed entries; the detection level depends on it.
    """

    history: dict[str, np.ndarray]
    spectra: np.ndarray
    probes: np.ndarray
    probe_rows: np.ndarray
    probe_columns: np.ndarray
    burn_in: int
    thinning: int
    n_entries: int


class _Stored(NamedTuple):
    """The draws of all chains after a sweep, and their singular values."""

    draws: tuple[StoredDraw, ...]
    spectra: tuple[np.ndarray, ...]


class Recorder:
    """Records the steps of a run; stores draws after the burn-in, thinned to fit the limits.

    The probes are cells chosen at random when the run starts. The Monte Carlo error is estimated from
    their predictions, in standard units.
    """

    def __init__(
        self, sampler: Sampler, data: ObservedData, burn_in: int, rng: np.random.Generator
    ):
        self._sampler = sampler
        self.n_entries = data.n_entries
        self.burn_in = burn_in
        m, n = data.shape
        self._probe_rows = rng.integers(m, size=_PROBES)
        self._probe_columns = rng.integers(n, size=_PROBES)
        self.thinning = 1
        self._stored: dict[int, _Stored] = {}
        self._probes: list[np.ndarray] = []
        self._history: list[list[dict[str, float]]] = []

    def take(self, step: Step) -> None:
        """Record a step."""
        history = [
            self._sampler.history(state, info, self.n_entries)
            for state, info in zip(step.states, step.infos, strict=True)
        ]
        # Everything is computed before any of it is stored: Ctrl-C can come at any time. A step that was
        # recorded in part is removed by `discard_after`.
        if step.number > self.burn_in:
            draws = self._draws_of(step.chains)
            probes = np.array([draw.at(self._probe_rows, self._probe_columns) for draw in draws])
            if not self._probes:  # discard what `store_last` stored before the run continued
                self._stored = {}
            if (step.number - self.burn_in) % self.thinning == 0:
                self._store(step.number, draws)
            self._probes.append(probes)
        self._history.append(history)

    def discard_after(self, n_sweeps: int) -> None:
        """Discard what was recorded after so many sweeps: Ctrl-C may have interrupted a recording."""
        self._history = self._history[:n_sweeps]
        self._probes = self._probes[: max(n_sweeps - self.burn_in, 0)]
        self._stored = {
            number: stored
            for number, stored in self._stored.items()
            if number <= n_sweeps and (number - self.burn_in) % self.thinning == 0
        }

    def store_last(self, chains: Iterable[Chain]) -> None:
        """Store the present chains as the only draws, for a run that ended during the burn-in."""
        self._stored = {}
        self._store(len(self._history), self._draws_of(chains))

    def _draws_of(self, chains: Iterable[Chain]) -> tuple[StoredDraw, ...]:
        return tuple(self._sampler.draw(chain.state) for chain in chains)

    def _store(self, number: int, draws: tuple[StoredDraw, ...]) -> None:
        spectra = tuple(self._sampler.spectrum(draw) for draw in draws)
        stored = self._stored | {number: _Stored(draws, spectra)}
        size = sum(draw.nbytes for draw in draws)
        if len(stored) >= max(2, min(MOST_DRAWS // len(draws), MOST_BYTES // max(size, 1))):
            stored = dict(list(stored.items())[1::2])
            self.thinning *= 2
        self._stored = stored

    @property
    def draws(self) -> list[Any]:
        """The stored draws of all chains."""
        return [draw for stored in self._stored.values() for draw in stored.draws]

    def draws_by_sweep(self) -> dict[int, tuple[Any, ...]]:
        """The stored draws of all chains, by the number of their sweep."""
        return {number: stored.draws for number, stored in self._stored.items()}

    def spread_draws(self, most: int) -> list[Any]:
        """At most so many of the stored draws, spread evenly over the run, equally from every chain."""
        stored = [stored.draws for stored in self._stored.values()]
        n = min(max(most // len(stored[0]), 1), len(stored))
        chosen = np.linspace(0, len(stored) - 1, n).round().astype(int)
        return [draw for number in chosen for draw in stored[number]]

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
        """Singular values of the stored draws: (chains, draws, r), descending, with zeros at the end."""
        spectra = [stored.spectra for stored in self._stored.values()]
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
        """The traces as arrays."""
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
        """Restore the record with these traces, and these stored draws by sweep."""
        names = list(traces.history)
        if names:
            self._history = [
                [dict(zip(names, values, strict=True)) for values in step]
                for step in np.array([*traces.history.values()]).transpose(2, 1, 0).tolist()
            ]
        self._probes = [*traces.probes.transpose(1, 0, 2)]
        self._probe_rows, self._probe_columns = traces.probe_rows, traces.probe_columns
        self.burn_in, self.thinning = traces.burn_in, traces.thinning
        self._stored = {
            number: _Stored(each, tuple(spectra))
            for (number, each), spectra in zip(
                draws.items(), traces.spectra.transpose(1, 0, 2), strict=True
            )
        }
