r"""Maps of rows and columns: similar ones are near each other.

With the signal Z = L R^T and its mean row z, the map of the rows shows the two leading left singular
vectors of Z - 1 z^T, multiplied by their singular values and divided by the square root of the number
of columns. So the distance between two points is the root mean square difference of the two rows, as far
as two dimensions can show it. No m x n matrix is made: short vectors with the same inner products
(posterior/similarity.py) have the same left singular vectors and singular values, which follow from
their small Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fillrank.errors import InputError
from fillrank.posterior.similarity import centred_rows, signal_factors
from fillrank.report.columns import columns_of_kinds, is_mixed, units_of_table
from fillrank.report.names import Name
from fillrank.report.style import (
    INK,
    QUIET,
    count_noun,
    finish_axes,
    format_label,
    get_axes,
)
from fillrank.runtime.threads import one_blas_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Literal["rows", "columns"]
# Directions in which the outermost point is labelled.
_N_DIRECTIONS = 12
_MAX_LABEL, _MAX_TOOLTIP = 24, 80
# Points of a map in the report. Each has its label as a tooltip, so this bounds the file size.
_MAX_POINTS = 1000
# The size of a map in the report, in units of its view box.
_WIDTH, _MARGIN, _LETTER, _LINE = 460.0, 20.0, 8.2, 17.0
_MIN_HEIGHT, _MAX_HEIGHT = 200.0, 420.0
_DOT, _GAP = 4.0, 7.0  # the radius of a point, and from its middle to its label
# Of so few points, others than the outermost ones have labels too, where there is room.
_FEW_POINTS = 40


class Projection(NamedTuple):
    """Points (n, 2) with their labels, and the share of all differences that they show."""

    points: np.ndarray
    labels: np.ndarray
    share: float
    side: Side

    @property
    def empty(self) -> bool:
        """Whether a map would show nothing: all points are equal, or there are fewer than three."""
        return len(self.points) < 3 or not np.ptp(self.points) > 0


def project(model: Any, side: Side) -> Projection:
    """Return the points of all rows, or of all columns."""
    if side not in ("rows", "columns"):
        raise InputError(f"side must be 'rows' or 'columns', got {side!r} instead.")
    data = model.observations_
    if is_mixed(model):
        return _project_mixed(model, side)
    left, right, labels = *signal_factors(model.posterior_), data.row_labels
    if side == "columns":
        left, right, labels = right, left, data.column_labels
    points, share = _leading(left, right)
    scale = model.posterior_.units.shared_scale / np.sqrt(len(right))
    return Projection(scale * points, labels, share, side)


def _project_mixed(model: Any, side: Side) -> Projection:
    """Return the points of a table of mixed kinds, in standard units.

    Rows are compared by the latent numbers of all columns. Categories, which have no direction, are
    not among the points of columns.
    """
    data, posterior = model.observations_, model.posterior_
    if side == "rows":
        left, right = (each.astype(np.float64) for each in posterior.signal.low_rank.factors())
        labels = data.row_labels
    else:
        right, left = signal_factors(posterior)
        has_order = ~columns_of_kinds(model, "category")
        left, labels = left[has_order], data.column_labels[has_order]
    points, share = _leading(left, right)
    return Projection(points / np.sqrt(len(right)), labels, share, side)


def _leading(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the two leading columns of U S and their share of sum S^2.

    U S V^T is left right^T with centred rows.
    """
    points = np.zeros((len(left), 2))
    if left.shape[1] == 0:
        return points, 1.0
    with one_blas_thread():  # these products are too small for several threads
        product = centred_rows(left, right)
        squares, rotation = np.linalg.eigh(product.T @ product)
        squares = np.maximum(squares[::-1], 0.0)
        k = min(2, squares.size)
        found = product @ rotation[:, ::-1][:, :k]
    # The sign of a singular vector is arbitrary: the outermost point is put on the positive side.
    extreme = found[np.abs(found).argmax(axis=0), np.arange(k)]
    points[:, :k] = found * np.where(extreme < 0, -1.0, 1.0)
    total = float(squares.sum())
    return points, float(squares[:k].sum()) / total if total > 0 else 1.0


def outermost(points: np.ndarray) -> np.ndarray:
    """Return the positions of the outermost points, each once."""
    angles = 2 * np.pi * np.arange(_N_DIRECTIONS) / _N_DIRECTIONS
    directions = np.array([np.cos(angles), np.sin(angles)])
    return np.unique((points @ directions).argmax(axis=0))


def select_points(points: np.ndarray, n_max: int) -> np.ndarray:
    """Return the positions of at most ``n_max`` points: the outermost, and a random sample."""
    if len(points) <= n_max:
        return np.arange(len(points))
    far = outermost(points)
    others = np.setdiff1d(np.arange(len(points)), far)
    some = np.random.default_rng(0).choice(others, n_max - far.size, replace=False)
    return np.sort(np.concatenate([far, some]))


def map(model: Any, side: Side = "rows", ax: Axes | None = None) -> Axes:
    """Plot rows, or columns, as points: similar ones are near each other.

    The distance between two points is the typical difference of their completed values, as far as two
    dimensions can show it. The outermost points are labelled. The map of columns has no categories.

    Parameters
    ----------
    model : fitted estimator
    side : {"rows", "columns"}
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.SoftImpute(penalty=1.0, progress=False).fit(data)
    >>> fr.plot.map(model, "columns").get_title(loc="left")
    '30 columns: similar ones are near each other'
    """
    ax = get_axes(ax)
    projection = project(model, side)
    x, y = projection.points.T
    size = float(np.clip(4000 / len(x), 3, 24))
    ax.scatter(x, y, s=size, color=INK, alpha=0.45, linewidths=0)
    middle = 0.5 * (x.min() + x.max())
    for k in outermost(projection.points):
        # Labels point towards the middle. They are plain text: no mathematics, no TeX.
        alignment, offset = ("right", -4) if x[k] > middle else ("left", 4)
        ax.annotate(
            format_label(projection.labels[k], _MAX_LABEL), (x[k], y[k]), xytext=(offset, 4),
            ha=alignment, textcoords="offset points", fontsize="small", color=QUIET,
            parse_math=False, usetex=False,
        )  # fmt: skip
    ax.set_aspect("equal", adjustable="datalim")
    title = f"{count_noun(len(x), side.removesuffix('s'))}: similar ones are near each other"
    units = "" if model.posterior_.levels is not None else f", {units_of_table(model)}"
    share = f"(the map shows {100 * projection.share:.0f}% of all differences)"
    finish_axes(ax, title, f"main difference{units}\n{share}", f"second difference{units}")
    return ax


class Point(NamedTuple):
    """A point of a map in the report, in units of its view box."""

    x: float
    y: float
    label: str


class TextLabel(NamedTuple):
    """A label beside a point; ``anchor`` says which end of the text is at (x, y)."""

    x: float
    y: float
    anchor: str
    text: str


class SvgMap(NamedTuple):
    """A map as the template draws it, as inline SVG."""

    width: float
    height: float
    points: list[Point]
    labels: list[TextLabel]
    n_all: int
    share: float
    side: str


def svg_map(projection: Projection, name_of: Callable[[Any], Name]) -> SvgMap:
    """Return a map of at most 1,000 points, with names that do not overlap.

    ``name_of`` returns how the row or column with a label is shown.
    """
    chosen = select_points(projection.points, _MAX_POINTS)
    xy, height = _fit_in_view(projection.points[chosen])
    names = [name_of(label) for label in projection.labels[chosen]]
    points = [
        Point(round(x, 1), round(y, 1), format_label(name.full, _MAX_TOOLTIP))
        for (x, y), name in zip(xy.tolist(), names, strict=True)
    ]
    far = outermost(projection.points[chosen])
    if len(names) <= _FEW_POINTS:
        far = np.concatenate([far, np.setdiff1d(np.arange(len(names)), far)])
    texts = _place_labels(xy, [name.text for name in names], far)
    n_all = len(projection.points)
    return SvgMap(_WIDTH, height, points, texts, n_all, projection.share, projection.side)


def _fit_in_view(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Return points within the view box, with the same scale for both axes, and its height."""
    low, ranges = points.min(axis=0), np.ptp(points, axis=0)
    wide, high = _WIDTH - 2 * _MARGIN, _MAX_HEIGHT - 2 * _MARGIN
    scale = min(wide / max(ranges[0], 1e-300), high / max(ranges[1], 1e-300))
    height = float(max(_MIN_HEIGHT, scale * ranges[1] + 2 * _MARGIN))
    middle = low + 0.5 * ranges
    xy = (points - middle) * scale
    # The vertical axis of a screen points down.
    return np.column_stack([_WIDTH / 2 + xy[:, 0], height / 2 - xy[:, 1]]), height


def _place_labels(xy: np.ndarray, names: Sequence[str], order: np.ndarray) -> list[TextLabel]:
    """Place names beside their points in this order, on the first side that is free."""
    placed: list[TextLabel] = []
    taken = [(x - _DOT, x + _DOT, y) for x, y in xy.tolist()] if len(xy) <= _FEW_POINTS else []
    for k in order.tolist():
        x, y = xy[k].tolist()
        text = format_label(names[k], _MAX_LABEL)
        length = _LETTER * len(text)
        for anchor, start in (("start", x + _GAP), ("end", x - _GAP - length)):
            stop = start + length
            free = all(
                abs(y - b) > _LINE or stop < left or start > right for left, right, b in taken
            )
            if free and start >= 0 and stop <= _WIDTH:
                taken.append((start, stop, y))
                at = x + _GAP if anchor == "start" else x - _GAP
                placed.append(TextLabel(round(at, 1), round(y + 4, 1), anchor, text))
                break
    return placed
