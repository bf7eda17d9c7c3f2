"""Plots of a table's cells: observed and completed values, and the widths of intervals.

Large tables are shown in blocks and by a sample of missing cells; no array of all cells is made.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.completions.unknown_labels import find_cells
from fillrank.errors import InputError, NotSupportedError
from fillrank.report.columns import (
    NUMBER_KINDS,
    columns_of_kinds,
    have_one_unit,
    is_mixed,
    standard_of,
)
from fillrank.report.style import (
    FAINT,
    INK,
    MUTED,
    REFERENCE,
    UNITS,
    density_colours,
    finish_axes,
    get_axes,
    use_integer_ticks,
    value_colours,
)
from fillrank.table.observations import Observations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

# Intervals of this many cells take some seconds.
MAX_CELLS = 200_000
COLUMN_SD = "SD of the column"
# The most rows and columns of an image: about one for each pixel.
MAX_BLOCKS = 300
# Colours end at these quantiles: an outlier must not make all other values look equal.
_COLOUR_QUANTILES = (0.01, 0.99)
# The histogram ends at this quantile: a few very wide intervals must not make all others one bar.
_WIDTH_QUANTILE = 0.999
_MOST_BINS = 50


class CellIntervals(NamedTuple):
    """Missing cells by position, from the narrowest interval to the widest.

    ``widths`` are those of the intervals, in ``units``.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float
    n_missing: int
    widths: np.ndarray
    units: str


class Blocks(NamedTuple):
    """An image of a table: ``cells`` (at most 300 x 300); ``exact`` if each is one cell of the table."""

    cells: np.ndarray
    exact: bool


def missing_cells(data: Observations, n_max: int = MAX_CELLS) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of missing cells, in order: all, or a random sample of ``n_max``.

    Before the t-th entry, at position o_t among all cells, there are o_t - t missing ones. So the k-th
    missing cell is at position k + t if t entries have at most k missing cells before them.

    Examples
    --------
    >>> data = Observations.from_matrix([[1.0, np.nan], [np.nan, 4.0]])
    >>> missing_cells(data)
    (array([0, 1]), array([1, 0]))
    """
    n_columns = data.shape[1]
    observed = data.row_index.astype(np.int64) * n_columns + data.column_index
    n_missing = math.prod(data.shape) - observed.size
    if n_missing <= n_max:
        k = np.arange(n_missing)
    else:
        rng = np.random.default_rng(0)
        k = np.sort(rng.choice(n_missing, n_max, replace=False, shuffle=False))
    before = observed - np.arange(observed.size)
    return np.divmod(k + np.searchsorted(before, k, side="right"), n_columns)


def missing_intervals(model: Any, level: float = 0.9) -> CellIntervals:
    """Return the credible intervals of missing cells: all, or a random sample of 200,000.

    The intervals are those of the value without noise. In a table of mixed kinds, the cells are those
    of numbers. If columns have different units, widths are in standard deviations of the column. If a
    model was saved without its entries, all cells count as missing.
    """
    data, completion = model.observations_, model.completion_
    completion.check_draws("intervals")
    i, j = missing_cells(data)
    n_missing = math.prod(data.shape) - len(data)
    if is_mixed(model):
        chosen = columns_of_kinds(model, *NUMBER_KINDS)[j]
        i, j = i[chosen], j[chosen]
        n_missing = round(n_missing * chosen.mean()) if chosen.size else 0
    cells = find_cells(completion, data.row_labels[i], data.column_labels[j])
    low, high = completion.predict_cell_intervals(cells, level, "signal")
    values, widths = completion.predict_cells(cells), high - low
    units = UNITS
    if not have_one_unit(model):
        widths, units = widths / standard_of(model).sd[j], COLUMN_SD
    order = np.argsort(widths, kind="stable")
    i, j, values, low, high, widths = (each[order] for each in (i, j, values, low, high, widths))
    return CellIntervals(i, j, values, low, high, level, n_missing, widths, units)


def observed_blocks(data: Observations) -> Blocks:
    """Return the entries, with NaN for missing values; for a large table, shares of observed cells."""
    shape = _image_shape(data.shape)
    if shape == data.shape:
        cells = np.full(shape, np.nan)
        cells[data.row_index, data.column_index] = data.values
        return Blocks(cells, exact=True)
    rows, columns = (_block_of(n, size) for n, size in zip(data.shape, shape, strict=True))
    block = rows[data.row_index] * shape[1] + columns[data.column_index]
    counts = np.bincount(block, minlength=math.prod(shape)).reshape(shape)
    return Blocks(counts / np.outer(np.bincount(rows), np.bincount(columns)), exact=False)


def filled_blocks(model: Any) -> Blocks:
    """Return the completed table; for a large table, the mean prediction in each block of cells.

    The mean of a block of L R^T is the product of means of rows of L and R. For methods that predict
    levels, and for tables of mixed kinds, one cell in each block is predicted instead.
    """
    data, posterior = model.observations_, model.posterior_
    shape = _image_shape(data.shape)
    if shape == data.shape:
        cells = posterior.block(np.arange(shape[0]), np.arange(shape[1]))
        cells[data.row_index, data.column_index] = data.values
        return Blocks(cells, exact=True)
    rows, columns = (_block_of(n, size) for n, size in zip(data.shape, shape, strict=True))
    if posterior.levels is not None or posterior.level_columns.any() or is_mixed(model):
        firsts = (np.unique(blocks, return_index=True)[1] for blocks in (rows, columns))
        return Blocks(posterior.block(*firsts), exact=False)
    location, scale, value_range = posterior.units
    left, right = posterior.factors()
    means = _block_means(left, rows) @ _block_means(scale[:, None] * right, columns).T
    means += _block_means(location[:, None], columns)[:, 0]
    return Blocks(means if value_range is None else means.clip(*value_range), exact=False)


def _image_shape(shape: tuple[int, int]) -> tuple[int, int]:
    return min(shape[0], MAX_BLOCKS), min(shape[1], MAX_BLOCKS)


def _block_of(n: int, n_blocks: int) -> np.ndarray:
    """Return the block of each of n positions; block sizes differ by at most one."""
    return np.arange(n) * n_blocks // n


def _block_means(factors: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    counts = np.bincount(blocks)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sums: np.ndarray = np.add.reduceat(factors.astype(np.float64), starts, axis=0)
    return sums / counts[:, None]


def matrix(model: Any, ax: Axes | None = None, *, filled: bool = False) -> Axes:
    """Plot the table as an image, as observed or completed; rows and columns in the table's order.

    Tables of more than 300 rows or columns are shown in blocks of cells: the share of observed cells in
    each block, or the mean of its predictions. If columns have values of different kinds, colours show
    the deviation from the mean of the column, and cells of categories are grey.

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib axes, optional
    filled : bool
        Whether missing values are filled in with predictions.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.SoftImpute(penalty=1.0, progress=False).fit(data)
    >>> fr.plot.matrix(model, filled=True).get_title(loc="left")
    'Completed table'
    """
    data = model.observations_
    if not filled and len(data) == 0:
        raise NotSupportedError(
            "this model was saved without the entries that it was fitted to, so it cannot show them. "
            "Save it with save(path, with_data=True), or use filled=True."
        )
    ax = get_axes(ax)
    blocks = filled_blocks(model) if filled else observed_blocks(data)
    if is_mixed(model) and (filled or blocks.exact):
        _draw_mixed(ax, model, blocks)
    elif filled or blocks.exact:
        label, values = f"value, {UNITS}", data.values
        units = model.posterior_.units
        if not units.are_shared and blocks.cells.shape[1] == data.shape[1]:
            label = "SD from the mean of the column"
            blocks = blocks._replace(cells=(blocks.cells - units.location) / units.scale)
            values = blocks.cells
        # Means of blocks have a smaller range than the values.
        shown = values if blocks.exact and len(data) else blocks.cells
        low, high = np.nanquantile(shown, _COLOUR_QUANTILES)
        _draw_cells(ax, blocks, data.shape, (value_colours(), low, high), label)
    else:
        percent = blocks._replace(cells=100 * blocks.cells)
        most = max(float(np.quantile(percent.cells, 0.995)), 1e-9)
        percent.cells[percent.cells == 0] = np.nan
        _draw_cells(ax, percent, data.shape, (density_colours(), 0.0, most), "cells observed, %")
    finish_axes(
        ax,
        _matrix_title(model, blocks, filled),
        "columns, in the table's order",
        "rows, in the table's order",
    )
    ax.spines[["top", "right"]].set_visible(True)
    ax.spines[:].set_color(MUTED)
    return ax


def _draw_mixed(ax: Axes, model: Any, blocks: Blocks) -> None:
    """Draw the cells of a table of mixed kinds, in standard deviations of their columns."""
    n_columns = model.observations_.shape[1]
    columns = np.unique(_block_of(n_columns, blocks.cells.shape[1]), return_index=True)[1]
    is_category = columns_of_kinds(model, "category")[columns]
    standard = standard_of(model).of(columns, blocks.cells)
    unordered = np.where(is_category & ~np.isnan(standard), 1.0, np.nan)
    standard[:, is_category] = np.nan
    low, high = -2.0, 2.0
    if not np.isnan(standard).all():
        low, high = np.nanquantile(standard, _COLOUR_QUANTILES)
    scale = (value_colours(), low, high)
    label = "SD from the mean of the column"
    _draw_cells(ax, blocks._replace(cells=standard), model.observations_.shape, scale, label)
    _draw_unordered(ax, unordered, model.observations_.shape)


def _draw_unordered(ax: Axes, cells: np.ndarray, shape: tuple[int, int]) -> None:
    """Draw the cells of categories, which are 1, in one colour."""
    from matplotlib.colors import ListedColormap

    if np.isnan(cells).all():
        return
    ax.imshow(
        cells, aspect="auto", interpolation="nearest", cmap=ListedColormap([FAINT]),
        extent=(0.5, shape[1] + 0.5, shape[0] + 0.5, 0.5),
    )  # fmt: skip


def _draw_cells(
    ax: Axes,
    blocks: Blocks,
    shape: tuple[int, int],
    scale: tuple[Colormap, float, float],
    label: str,
) -> None:
    """Draw cells with a colour bar; ``scale`` is the colours and the values at their ends."""
    n_rows, n_columns = shape
    colours, low, high = scale
    image = ax.imshow(
        blocks.cells, aspect="auto", interpolation="nearest", cmap=colours, vmin=low,
        vmax=high if high > low else low + 1.0, extent=(0.5, n_columns + 0.5, n_rows + 0.5, 0.5),
    )  # fmt: skip
    for axis, n in ((ax.xaxis, n_columns), (ax.yaxis, n_rows)):
        ends = sorted({1, n})
        axis.set_ticks(ends, [f"{end:,}" for end in ends])
    figure: Any = ax.get_figure(root=True)
    figure.colorbar(image, ax=ax, label=label, pad=0.02).outline.set_visible(False)


def _matrix_title(model: Any, blocks: Blocks, filled: bool) -> str:
    data = model.observations_
    if filled and is_mixed(model):
        return "Completed table" if blocks.exact else "Completed table: a cell of each block"
    if filled:
        return "Completed table" if blocks.exact else "Completed table: mean of each block"
    share = f"{100 * data.density:.3g}% of the cells are observed"
    return share if blocks.exact else f"{share}, most of them in dark blocks"


def certainty(model: Any, ax: Axes | None = None) -> Axes:
    """Plot how certain the predictions of missing cells are: half-widths of their 90% intervals.

    The intervals are those of the value without noise. If there are more than 200,000 missing cells,
    the plot shows a random sample of that size. If columns have different units, widths are in standard
    deviations of the column. In a table of mixed kinds the plot shows the numbers only:
    `Completion.predict_proba` says how certain levels are.

    Parameters
    ----------
    model : fitted GASR or BPMF
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(data)
    >>> fr.plot.certainty(model).get_xlabel()
    "half-width of the 90% interval, in the table's units"
    """
    intervals = missing_intervals(model)
    if intervals.rows.size == 0:
        what = "missing number" if is_mixed(model) else "missing cell"
        raise InputError(f"the table has no {what}, so there are no intervals to show.")
    return draw_certainty(intervals, get_axes(ax))


def draw_certainty(intervals: CellIntervals, ax: Axes) -> Axes:
    """Draw the plot of `certainty` from intervals that are already computed."""
    half = 0.5 * intervals.widths
    typical = float(np.median(half))
    top = float(np.quantile(half, _WIDTH_QUANTILE))
    # The last bar also has what is beyond.
    n_bins = int(np.clip(2 * math.sqrt(half.size), 5, _MOST_BINS))
    ax.hist(np.minimum(half, top), bins=n_bins, range=(0.0, top if top > 0 else 1.0), color=INK)
    ax.axvline(typical, **REFERENCE)
    ax.set_xlim(left=0.0)
    use_integer_ticks(ax.yaxis)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    level = f"{100 * intervals.level:g}%"
    unit = " SD" if intervals.units == COLUMN_SD else ""
    title = f"Half of the {level} intervals are narrower than ±{typical:.3g}{unit}"
    finish_axes(
        ax, title, f"half-width of the {level} interval, {intervals.units}", "missing cells"
    )
    return ax
