"""A sampler's fit on the workers of a Dask cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fillrank.estimators.checks import check_value_range, warn_of_units
from fillrank.estimators.sampled import Going, SampledCompleter
from fillrank.posterior.posterior import Units
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.observations import fingerprint

if TYPE_CHECKING:
    from fillrank.cluster.place import Placed

# Factors of which memory is judged by, if the table itself will say how many there are.
_RANK_TO_EXPECT = 30


class ClusterCompleter(SampledCompleter):
    """A sampler whose rows can be drawn by the workers of a cluster.

    The chains stay here, as on one machine. Subclasses refuse in `_check_for_cluster` what they can
    do on one machine alone.
    """

    def _check_for_cluster(self) -> None:
        raise NotImplementedError

    def _fit_on_cluster(self, X: Any, client: Any) -> None:
        from fillrank.cluster.place import check_client
        from fillrank.cluster.watch import large_arguments

        check_client(client)
        self._checked_plan()
        self._check_for_cluster()
        with large_arguments():
            self._fit_checked(X, client)

    def _fit_checked(self, X: Any, client: Any) -> None:
        table = self._placed(X, client)
        observations, data = table.observations, table.data
        units = Units(table.location, table.scale, self._range_of(table))
        # Entries that are here too are known as on one machine: a checkpoint serves both.
        known_by = partial(fingerprint, observations) if len(observations) else table.fingerprint
        self._forget_fold_in()
        with (
            self._begun(known_by) as begun,
            one_blas_thread(),
            self._workers() as workers,
        ):
            chains = self._first_chains(data, units.scale, workers, begun.seed)
            run = self._begin(chains, data, begun)
            self.observations_ = observations
            self.n_features_in_ = observations.shape[1]
            self._go_on(Going(run, begun.plan, units), data, begun.checkpoint)

    def _placed(self, X: Any, client: Any) -> Placed:
        from fillrank.cluster.lines import is_partitioned
        from fillrank.cluster.place import Form, place

        rank = _RANK_TO_EXPECT if self.max_rank == "auto" else self.max_rank
        form = Form(self._centred, np.dtype(self.dtype), rank + 2)
        if is_partitioned(X):
            return place(X, client, form)
        observations = self._judge(X, reset=True)
        warn_of_units(observations)
        return place(observations, client, form)

    def _range_of(self, table: Placed) -> tuple[float, float] | None:
        if isinstance(self.value_range, str):
            return table.value_range
        return check_value_range(self.value_range, table.observations)
