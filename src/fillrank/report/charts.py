"""Plots as inline SVG that follows the colours of the page, with values that hovering shows.

matplotlib draws; here its SVG is cleaned. Colours of the style become classes, because a page in dark
colours replaces them, and nothing but shapes and text remains: no styles, no scripts, no addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np
from markupsafe import Markup

from fillrank.report.style import ACCENT, FAINT, INK, MUTED, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Smaller than usual plots, so that their text is readable on a phone.
SIZE, SQUARE, LOW = (4.9, 3.3), (4.6, 4.6), (4.9, 2.2)
_DOTS_PER_INCH = 180  # of images within a plot
_MOST_SHAPES = 600  # points of a plot that are shapes; more are an image
_MOST_TIPS = 200
_COLOURS = {INK: "ink", MUTED: "muted", QUIET: "quiet", FAINT: "faint", ACCENT: "accent"}
_COLOURS |= {"#ffffff": "white", "#000000": "text"}
_DROPPED = ("metadata", "style")
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_TIP = "tip-"  # begins the id of a group of shapes that have tips


class Chart(NamedTuple):
    """A plot and its title; ``kind`` is heat if it shows cells, whose background stays white."""

    svg: Markup
    kind: str = "plot"
    title: str = ""


def render(
    draw: Callable[..., Axes],
    *arguments: Any,
    size: tuple[float, float] = SIZE,
    **options: Any,
) -> Chart:
    """Draw a plot and return it as SVG; its title is text of the page, which breaks into lines."""
    import matplotlib
    from matplotlib.figure import Figure

    # Whatever the user's settings of matplotlib: TeX may not be installed, and takes seconds per plot.
    with matplotlib.rc_context({"text.usetex": False, "svg.fonttype": "none"}):
        figure = Figure(figsize=size, layout="constrained")
        ax = draw(*arguments, ax=figure.subplots(), **options)
        title, description = ax.get_title("left"), _describe(ax)
        ax.set_title("", loc="left")
        figure.patch.set_visible(False)
        _rasterize(ax)
        tips = _mark_tips(ax)
        text = _save(figure, title)
    kind = "heat" if ax.images else "plot"
    return Chart(Markup(_clean(text, description, tips)), kind, title)


def _describe(ax: Axes) -> str:
    """What a plot shows, for people who do not see it: its title says what follows from it."""
    x, y = (" ".join(label.split()) for label in (ax.get_xlabel(), ax.get_ylabel()))
    return f"Plot of {y} against {x}" if x and y else f"Plot of {x or y or 'the table'}"


def _save(figure: Figure, title: str) -> bytes:
    import matplotlib

    out = BytesIO()
    # The salt makes identifiers of one plot differ from those of the others on the page.
    with matplotlib.rc_context({"svg.hashsalt": title}):
        figure.savefig(out, format="svg", dpi=_DOTS_PER_INCH)
    return out.getvalue()


def _rasterize(ax: Axes) -> None:
    """Make an image of shapes that are too many for a page, or in colours that stand for numbers.

    A page in dark colours inverts images: so few and many look different, as they do on white.
    """
    for shapes in ax.collections:
        if shapes.get_array() is not None or np.shape(shapes.get_offsets())[0] > _MOST_SHAPES:
            shapes.set_rasterized(True)


def _mark_tips(ax: Axes) -> dict[str, list[str]]:
    """Mark what has tips; return the tips of each mark, one for a whole shape or one for each point."""
    tips: dict[str, list[str]] = {}
    for bars in ax.containers:
        for bar in bars.get_children():
            mark = f"{_TIP}{len(tips)}"
            bar.set_gid(mark)
            tips[mark] = [_describe_bar(ax, bar, getattr(bars, "orientation", ""))]
    for line in ax.lines:
        marked = str(line.get_marker()) not in ("None", "none", "")
        points = np.column_stack([line.get_xdata(orig=False), line.get_ydata(orig=False)])
        mark = f"{_TIP}{len(tips)}"
        line.set_gid(mark)
        if marked and len(points) <= _MOST_TIPS:
            tips[mark] = [_describe_point(ax, x, y) for x, y in points.tolist()]
        elif not str(line.get_label()).startswith("_"):
            tips[mark] = [str(line.get_label())]
    return tips


def _describe_bar(ax: Axes, bar: Any, orientation: str) -> str:
    x, y, width, height = bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()
    if orientation == "horizontal":
        return f"{_name_place(ax.yaxis, y, y + height)}: {width:.3g}"
    return f"{_name_place(ax.xaxis, x, x + width)}: {y + height:.4g}"


def _name_place(axis: Any, low: float, high: float) -> str:
    """The label of the middle of a bar, or the range of a bar of a histogram."""
    middle = round((low + high) / 2, 9)
    if (label := _tick_labels(axis).get(middle)) or middle.is_integer():
        return label or f"{middle:g}"
    return f"{low:.3g} to {high:.3g}"


def _describe_point(ax: Axes, x: float, y: float) -> str:
    names = [re.split(r"[,\n]", text)[0] for text in (ax.get_xlabel(), ax.get_ylabel())]
    place = _tick_labels(ax.xaxis).get(x) or f"{x:.4g}"
    return f"{names[0]} {place}: {names[1]} {y:.4g}"


def _tick_labels(axis: Any) -> dict[float, str]:
    """The labels of ticks that were given; numbers are written in full."""
    from matplotlib.ticker import FixedLocator

    if not isinstance(axis.get_major_locator(), FixedLocator):
        return {}
    places = axis.get_majorticklocs()
    return dict(zip(places.tolist(), axis.get_major_formatter().format_ticks(places), strict=True))


def _clean(text: bytes, description: str, tips: dict[str, list[str]]) -> str:
    """Return the SVG of matplotlib without what a page does not need."""
    root = Xml.fromstring(text)
    for element in list(root.iter()):
        _drop_children(element)
    # Groups are found by their identifiers, so tips come before the cleaning.
    for element in list(root.iter()):
        if (found := tips.get(element.get("id", ""))) is not None:
            _add_tips(element, found)
    for element in root.iter():
        _clean_element(element)
    root.attrib = {
        "class": "chart", "viewBox": root.get("viewBox", ""), "role": "img",
        "aria-label": description,
    }  # fmt: skip
    return Xml.tostring(root, encoding="unicode")


def _drop_children(element: Xml.Element) -> None:
    for child in list(element):
        if child.tag.removeprefix(_SVG) in _DROPPED:
            element.remove(child)


def _add_tips(group: Xml.Element, tips: list[str]) -> None:
    """Add a tip to each point, or one to the whole group."""
    points = [(parent, use) for parent in group.iter() for use in parent.findall(f"{_SVG}use")]
    if len(tips) == 1 and len(points) != 1:
        points = []
        group.insert(0, _title(tips[0]))
    # Points outside of the plot are not drawn: it is not known which ones.
    for (parent, use), tip in zip(points, tips, strict=False) if len(points) == len(tips) else ():
        place = list(parent).index(use)
        parent.remove(use)
        wrapped = Xml.Element(f"{_SVG}g")
        wrapped.extend([_title(tip), use])
        parent.insert(place, wrapped)


def _title(text: str) -> Xml.Element:
    title = Xml.Element(f"{_SVG}title")
    title.text = text
    return title


def _clean_element(element: Xml.Element) -> None:
    """Turn the style of an element into attributes and classes."""
    element.tag = element.tag.removeprefix(_SVG)
    if element.tag not in ("text", "tspan", "title"):
        element.text = None
    element.tail = None
    if element.tag == "g":
        element.attrib.pop("id", None)
    if (link := element.attrib.pop(_LINK, None)) is not None:
        element.set("href", link.replace("\n", ""))
    if (path := element.get("d")) is not None:
        element.set("d", re.sub(r"-?\d+\.\d+", _shorten, " ".join(path.split())))
    classes = []
    for name, value in _declarations(element.attrib.pop("style", "")):
        if name in ("fill", "stroke") and value in _COLOURS:
            classes.append(f"{name}-{_COLOURS[value]}")
        elif name != "font-family":
            element.set(name, value)
    if classes:
        element.set("class", " ".join(classes))


def _shorten(number: re.Match[str]) -> str:
    return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    for declaration in filter(None, style.split(";")):
        name, _, value = declaration.partition(":")
        yield name.strip(), value.strip()
