"""How well single entries and cells are known: leave-one-out densities, and Monte Carlo errors."""

from __future__ import annotations

import numpy as np

from fillrank.completions.fitted_table import FittedTable
from fillrank.errors import NotSupportedError
from fillrank.posterior.diagnostics import as_two_chains
from fillrank.posterior.effective_size import rhat_and_ess
from fillrank.posterior.loo import Loo, good_k, leave_one_out
from fillrank.table.frames import to_long
from fillrank.table.observations import Observations

# Cells whose draws are in memory together.
_BLOCK = 4096
_FEWEST_DRAWS = 8


def leave_one_out_of(model: FittedTable, n_entries: int | None, seed: int) -> Loo:
    """See `Completion.loo`."""
    data = model.observations
    chosen = _exact_entries(data)
    if n_entries is not None and n_entries < chosen.size:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(chosen, n_entries, replace=False))
    rows, columns, values = data.row_index[chosen], data.column_index[chosen], data.values[chosen]
    weights = None if data.weights is None else data.weights[chosen]

    def log_likelihood(part: slice) -> np.ndarray:
        own = None if weights is None else weights[part]
        return model.posterior.signal.log_likelihood(rows[part], columns[part], values[part], own)

    elpd, k, p_loo = leave_one_out(log_likelihood, chosen.size)
    order = np.argsort(-np.nan_to_num(k, nan=np.inf), kind="stable")
    fields = {"elpd": elpd[order], "pareto_k": k[order], "p_loo": p_loo[order]}
    labels = data.row_labels[rows[order]], data.column_labels[columns[order]]
    entries = to_long(data, *labels, fields)
    return Loo(elpd, k, p_loo, good_k(model.posterior.n_draws), entries)


def _exact_entries(data: Observations) -> np.ndarray:
    return np.arange(len(data)) if data.cells is None else np.flatnonzero(data.cells < 0)


def prediction_diagnostics(
    model: FittedTable, rows: np.ndarray, columns: np.ndarray
) -> dict[str, np.ndarray]:
    """R-hat, effective sample size and Monte Carlo error of the signal in cells, by position."""
    n_chains = model.check_run("diagnostics of predictions").probes.shape[0]
    signal = model.posterior.signal.low_rank
    n_draws = signal.n_draws // n_chains
    if n_draws < _FEWEST_DRAWS:
        raise NotSupportedError(
            f"{n_draws} draws in a chain are too few to judge predictions by; {_FEWEST_DRAWS} are "
            "needed. Run more sweeps."
        )
    # The first latent column of each column: of numbers, it is the column itself.
    latent = np.searchsorted(model.posterior.latent_columns, columns)
    scale = signal.units.scale[latent]
    sd, ess, rhat = np.empty((3, len(rows)))
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        # Draws are stored sweep by sweep, those of all chains together.
        values = signal.signals(rows[block], latent[block])[: n_draws * n_chains]
        chains = values.reshape(n_draws, n_chains, -1).transpose(1, 0, 2)
        rhat[block], ess[block] = rhat_and_ess(as_two_chains(chains) if n_chains == 1 else chains)
        sd[block] = values.std(axis=0, ddof=1)
    return {"sd": scale * sd, "mcse": scale * sd / np.sqrt(ess), "ess": ess, "r_hat": rhat}
