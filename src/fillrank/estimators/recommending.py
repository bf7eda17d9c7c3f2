"""The best columns for a row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fillrank.errors import NotSupportedError, Setting
from fillrank.estimators.checks import check_choice
from fillrank.estimators.filling import Filling
from fillrank.posterior import recommend
from fillrank.posterior.ordinal import OrdinalPosterior
from fillrank.posterior.recommend import LeftOut, Top
from fillrank.runtime.memory import check_memory
from fillrank.runtime.threads import one_blas_thread
from fillrank.table.frames import to_long
from fillrank.table.observations import Observations
from fillrank.table.triplets import Triplets
from fillrank.validation import as_generator, check_integer, check_real

By = Literal["mean", "cautious", "curious"]
# What a line of the answer costs while it is made.
_BYTES_A_LINE = 100


class Recommending(Filling):
    """A method that recommends."""

    def recommend(
        self,
        rows: Any = None,
        n: int = 10,
        by: By = "mean",
        *,
        quantile: float = 0.1,
        leave_out: Any = "seen",
        random_state: Any = None,
    ) -> Any:
        """The n best columns for some rows, or for all: what is observed is left out.

        Parameters
        ----------
        rows : name, array of names, or None
            None means all.
        n : int
            How many for each row. A row with fewer columns left gets these.
        by : {"mean", "cautious", "curious"}
            What makes a column good. "mean": its expected value. "cautious": a value that it will
            hardly fall short of, the quantile of its posterior below. "curious": a random draw of its
            posterior (Thompson sampling), so that now and then columns are tried about which little is
            known. Methods without draws have "mean" alone.
        quantile : float
            For "cautious": above 0 and below 0.5.
        leave_out : "seen", table or None
            Cells that are no answer: those observed at fit, those observed in another table with the
            same names, or none.
        random_state : int, Generator or None
            For "curious".

        Returns
        -------
        table
            Long, of the kind that was fitted: row, column, value; by row in the order asked, best
            first. The value is the mean, quantile or draw that the order is by.

        Examples
        --------
        >>> import fillrank as fr
        >>> data, truth = fr.synthetic(60, 40, rank=2, noise=0.1, missing=0.5, random_state=0)
        >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data)
        >>> len(model.recommend(7, n=3)), len(model.recommend(n=3))
        (3, 180)
        """
        check_is_fitted(self)
        check_integer("n", n, 1)
        check_choice("by", by, ("mean", "cautious", "curious"))
        check_real("quantile", quantile, "above 0 and below 0.5", lambda v: 0 < v < 0.5)
        data = self.observations_
        i = np.arange(data.shape[0]) if rows is None else data.row_positions(rows)
        n = min(n, data.shape[1])
        check_memory(
            _BYTES_A_LINE * i.size * n,
            f"an answer of {i.size * n:,} lines",
            "Ask for fewer rows at a time, or for a smaller n.",
        )
        left_out = self._left_out(leave_out, i)
        top = self._top(i, left_out, n, by, quantile, random_state)
        there = top.columns >= 0
        names = data.row_labels[np.repeat(i, there.sum(axis=1))]
        return to_long(
            data, names, data.column_labels[top.columns[there]], {"value": top.scores[there]}
        )

    def _left_out(self, leave_out: Any, rows: np.ndarray) -> LeftOut:
        if leave_out is None:
            return LeftOut(np.zeros(rows.size + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
        if isinstance(leave_out, str):
            check_choice("leave_out", leave_out, ("seen",))
            self._check_entries(
                "Name the table whose cells to leave out, leave_out=table; or leave_out=None for none."
            )
            return recommend.seen(self.observations_.by_row(), rows)
        table = Observations.of(leave_out)
        data = self.observations_
        known = Observations.from_positions(
            Triplets(
                self._known_rows(table)[table.row_index],
                self._known_columns(table)[table.column_index],
                table.values,
            ),
            data.row_labels,
            data.column_labels,
            data.origin,
        )
        return recommend.seen(known.by_row(), rows)

    def _check_recommends_by(self, by: By) -> None:
        try:
            self._check_draws("draws to recommend by")
        except NotSupportedError as error:
            raise error.with_advice(
                (Setting("by", by), " needs them, ", Setting("by", "mean"), " does not.")
            ) from error

    def _top(
        self,
        rows: np.ndarray,
        left_out: LeftOut,
        n: int,
        by: By,
        quantile: float,
        random_state: Any,
    ) -> Top:
        posterior = self.posterior_
        if by != "mean":
            self._check_recommends_by(by)
        with one_blas_thread(), self._workers() as workers:
            if isinstance(posterior, OrdinalPosterior):
                return recommend.by_level(posterior, rows, left_out, n, workers)
            if by == "cautious":
                return recommend.by_quantile(posterior, rows, left_out, n, quantile, workers)
            if by == "curious":
                rng = as_generator(random_state)
                return recommend.by_draw(posterior, rows, left_out, n, rng, workers)
            return recommend.by_mean(posterior, rows, left_out, n, workers)
