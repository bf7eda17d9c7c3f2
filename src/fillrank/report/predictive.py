"""The plot of a posterior predictive check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fillrank.completions.predictive_check import STATISTICS
from fillrank.errors import NotSupportedError
from fillrank.features.new_rows import Axis
from fillrank.report.style import ACCENT, FAINT, INK, finish_axes, format_label, get_axes
from fillrank.validation import check_choice, check_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Groups that are shown: those that differ most.
_MOST_SHOWN = 30
_BAND = 2.0


def predictive_check(
    model: Any, by: Axis = "columns", statistic: str = "mean", ax: Axes | None = None
) -> Axes:
    """How far the columns (or rows) of the table are from those that the model replicates.

    Each point is the observed statistic less the mean of the replicated ones, in standard deviations of
    these; those that differ most come first. The model explains what is within the band.

    Parameters
    ----------
    model : fitted estimator or Completion
    by : {"columns", "rows"}
    statistic : {"mean", "sd", "min", "max", "lowest", "highest", "usual"}
        As in `Completion.predictive_check`.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    >>> fr.plot.predictive_check(model, statistic="sd").get_xlabel()
    'observed less replicated, in standard deviations of the replicated'
    """
    check_fitted(model)
    check_choice("statistic", statistic, STATISTICS)
    frame = nw.from_native(model.completion_.predictive_check(by=by), eager_only=True)
    frame = frame.filter((nw.col("statistic") == statistic) & (nw.col("sd") > 0))
    if len(frame) == 0:
        raise NotSupportedError(f"no {by} of this table have the statistic {statistic!r}.")
    observed, replicated, sd = (
        frame.get_column(name).to_numpy() for name in ("observed", "replicated", "sd")
    )
    distance = (observed - replicated) / sd
    order = np.argsort(-np.abs(distance), kind="stable")[:_MOST_SHOWN]
    labels = frame.get_column(frame.columns[0]).to_list()
    ax = get_axes(ax)
    ax.axvspan(-_BAND, _BAND, color=FAINT, alpha=0.5, linewidth=0)
    ax.axvline(0.0, color=FAINT, linewidth=1)
    places = np.arange(order.size)
    is_outside = np.abs(distance[order]) > _BAND
    ax.scatter(distance[order], places, s=22, color=np.where(is_outside, ACCENT, INK), zorder=3)
    ax.set_yticks(places, [format_label(labels[k], 24) for k in order], fontsize="small")
    ax.invert_yaxis()
    shown = f" ({order.size} of {distance.size})" if distance.size > order.size else ""
    finish_axes(
        ax,
        f"{statistic} of {by}: observed and replicated{shown}",
        "observed less replicated, in standard deviations of the replicated",
        "",
    )
    return ax
