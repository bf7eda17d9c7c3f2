"""A run as ArviZ' own data structure, for its summaries and plots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from fillrank.errors import NotSupportedError
from fillrank.run.recorder import Traces
from fillrank.runtime.cache_folder import temporary_home
from fillrank.table.observations import Observations
from fillrank.table.units import Units
from fillrank.version import __version__

_ALL_UNITS = "those of the data"
_OWN_UNITS = "predictions in those of their columns, the rest in standard units"


def to_arviz(
    traces: Traces,
    history: Mapping[str, np.ndarray],
    not_drawn: Collection[str],
    observations: Observations,
    units: Units,
    method: str,
) -> Any:
    """Return what was drawn after the burn-in, in the data's units, as an xarray DataTree.

    If columns have their own units, only ``prediction`` is in them, and the rest in standard units.

    Singular values are known only for stored draws, which may be every second, fourth, ... sweep. So
    they have their own group, and the other quantities are not thinned. In both groups ``draw`` is the
    number of the sweep, so that xarray can align them:
    ``tree["posterior"].sel(draw=tree["spectrum"]["draw"])``.

    Parameters
    ----------
    traces : Traces
        Of the run, in standard units.
    history : mapping of name to array (chains, sweeps)
        ``traces.history`` in the data's units.
    not_drawn : collection of str
        Names in ``history`` of quantities that were given or estimated, not drawn from a posterior.
    observations : Observations
        The table that was fitted, which has the labels of the cells.
    units : Units
    method : str
        The name of the method, stored as an attribute.

    Returns
    -------
    DataTree
        Group ``posterior`` has what was traced of the draws (chain, draw) and ``prediction`` (chain,
        draw, cell): the signal in some cells chosen at random, not clipped to a rating scale, with
        their labels as the coordinates ``cell_row`` and ``cell_column``. Group ``spectrum`` has
        ``singular_values`` (chain, draw, factor). Of the quantities that were not drawn, group
        ``constant_data`` has those that are constant over the draws (chain), and group ``sample_stats``
        those that changed (chain, draw). Empty groups are left out.
    """
    to_dataset, tree_of = _makers()
    # Ctrl-C may have interrupted the recording of the last sweep.
    n = min(
        traces.probes.shape[1], *(trace.shape[1] - traces.burn_in for trace in history.values())
    )
    if n < 1:
        raise NotSupportedError(
            "the run ended during the burn-in, so it has no draws. Fit again with more "
            f"sweeps than the {traces.burn_in} of the burn-in."
        )
    sweeps = traces.burn_in + 1 + np.arange(n)
    cells = _cells_in_table(traces, observations)
    after = {name: trace[:, sweeps - 1] for name, trace in history.items()}
    drawn = {name: trace for name, trace in after.items() if name not in not_drawn}
    signal = units._replace(value_range=None)
    probe_columns = traces.probe_columns[cells]
    drawn["prediction"] = signal.restore(traces.probes[:, :n, cells], probe_columns)
    posterior = to_dataset(
        drawn,
        dims={"prediction": ["cell"]},
        coords={"draw": sweeps},
    ).assign_coords(
        cell_row=("cell", observations.row_labels[traces.probe_rows[cells]]),
        cell_column=("cell", observations.column_labels[probe_columns]),
    )
    kept = sweeps[traces.thinning - 1 :: traces.thinning]
    spectrum = to_dataset(
        {"singular_values": units.shared_scale * traces.spectra[:, : kept.size]},
        dims={"singular_values": ["factor"]},
        coords={"draw": kept, "factor": 1 + np.arange(traces.spectra.shape[2])},
    )
    others = {name: trace for name, trace in after.items() if name in not_drawn}
    groups = {"posterior": posterior, "spectrum": spectrum}
    if constant := {name: trace[:, 0] for name, trace in others.items() if _is_constant(trace)}:
        groups["constant_data"] = to_dataset(constant, sample_dims=["chain"])
    if moving := {name: trace for name, trace in others.items() if not _is_constant(trace)}:
        groups["sample_stats"] = to_dataset(moving, coords={"draw": sweeps})
    tree = tree_of(groups)
    for node in (tree, *tree.children.values()):
        node.attrs |= {
            "inference_library": "fillrank",
            "inference_library_version": __version__,
            "method": method,
            "units": _ALL_UNITS if units.are_shared else _OWN_UNITS,
        }
    return tree


def _is_constant(trace: np.ndarray) -> bool:
    """Whether every chain of a trace (chains, draws) is constant."""
    return bool((trace == trace[:, :1]).all())


def _cells_in_table(traces: Traces, observations: Observations) -> np.ndarray:
    """The probes in the table: during the fit, a single row or column has an empty second one."""
    n_rows, n_columns = observations.shape
    return np.flatnonzero((traces.probe_rows < n_rows) & (traces.probe_columns < n_columns))


def _makers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions that make a group of arrays (chain, draw, ...), and a tree of groups."""
    try:
        # Imported late: they are an extra.
        with temporary_home():
            from arviz_base import dict_to_dataset
            from xarray import DataTree
    except ImportError as error:
        raise NotSupportedError(
            'ArviZ needs arviz-base, which is not installed. Run: pip install "fillrank[arviz]"'
        ) from error
    return dict_to_dataset, DataTree.from_dict
