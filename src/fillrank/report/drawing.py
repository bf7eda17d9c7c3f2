"""Pictures for the report: plots as data URIs, maps as points for an inline SVG."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.report.names import shown
from fillrank.report.places import Places, outermost, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Smaller than plots usually are, so that their words can be read on a phone.
_SIZE, _SQUARE, _DOTS_PER_INCH = (5.6, 3.7), (5.0, 5.0), 180
# Points on a map of the report: each has its name to hover over, so this bounds the file.
_MOST_POINTS = 1000
_WIDTH, _MARGIN, _LETTER, _LINE = 640.0, 24.0, 9.5, 19.0
_LOWEST, _HIGHEST = 280.0, 560.0
_MOST_OF_A_LABEL = 24


class Picture(NamedTuple):
    """A plot as a PNG in a data URI, and its title for those who cannot see it."""

    uri: str
    alt: str


def picture(
    draw: Callable[..., Axes], *arguments: Any, square: bool = False, **options: Any
) -> Picture:
    """The picture that a function of `fillrank.plot` draws."""
    import matplotlib
    from matplotlib.figure import Figure

    # Whatever the user's matplotlib is set to: TeX may not be there, and takes seconds a plot.
    with matplotlib.rc_context({"text.usetex": False}):
        figure = Figure(figsize=_SQUARE if square else _SIZE, layout="constrained")
        ax = draw(*arguments, ax=figure.subplots(), **options)
        out = BytesIO()
        figure.savefig(out, format="png", dpi=_DOTS_PER_INCH, facecolor="white")
    return Picture(
        f"data:image/png;base64,{b64encode(out.getvalue()).decode()}", ax.get_title("left")
    )


class Point(NamedTuple):
    """A point on a map, in units of its view box, with the name of what it stands for."""

    x: float
    y: float
    name: str


class Label(NamedTuple):
    """A name on a map; ``anchor`` says which end of the text is at (x, y)."""

    x: float
    y: float
    anchor: str
    name: str


class Map(NamedTuple):
    """A map as an inline SVG has it."""

    width: float
    height: float
    points: list[Point]
    labels: list[Label]
    n_all: int
    share: float
    side: str


def map_of(found: Places) -> Map:
    """Points and labels of a map: at most 1,000 points, and names that do not cover each other."""
    kept = thinned(found.points, _MOST_POINTS)
    xy, height = _in_view(found.points[kept])
    points = [
        Point(round(x, 1), round(y, 1), shown(name, 80))
        for (x, y), name in zip(xy.tolist(), found.names[kept], strict=True)
    ]
    far = outermost(found.points[kept])
    labels = _labels(xy[far], found.names[kept][far])
    return Map(_WIDTH, height, points, labels, len(found.points), found.share, found.side)


def _in_view(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Points within the view box, with one scale for both directions, and its height."""
    low, ranges = points.min(axis=0), np.ptp(points, axis=0)
    wide, high = _WIDTH - 2 * _MARGIN, _HIGHEST - 2 * _MARGIN
    scale = min(wide / max(ranges[0], 1e-300), high / max(ranges[1], 1e-300))
    height = float(max(_LOWEST, scale * ranges[1] + 2 * _MARGIN))
    middle = low + 0.5 * ranges
    xy = (points - middle) * scale
    # The vertical axis of a screen points down.
    return np.column_stack([_WIDTH / 2 + xy[:, 0], height / 2 - xy[:, 1]]), height


def _labels(xy: np.ndarray, names: np.ndarray) -> list[Label]:
    found: list[Label] = []
    taken: list[tuple[float, float, float]] = []
    for (x, y), name in zip(xy.tolist(), names, strict=True):
        text = shown(name, _MOST_OF_A_LABEL)
        length = _LETTER * len(text)
        to_right = x + length + _MARGIN < _WIDTH
        start = x + 7 if to_right else x - 7 - length
        stop = start + length
        free = all(abs(y - b) > _LINE or stop < left or start > right for left, right, b in taken)
        if free:
            taken.append((start, stop, y))
            anchor = "start" if to_right else "end"
            found.append(
                Label(round(x + (7 if to_right else -7), 1), round(y + 4, 1), anchor, text)
            )
    return found
