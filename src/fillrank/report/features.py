"""Plots of features: what they change in predictions, and which differences they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from fillrank.errors import NotSupportedError
from fillrank.features.blocks import MISSINGNESS, Block, Blocks, TableCode
from fillrank.posterior.feature_effects import variance_shares as posterior_shares
from fillrank.report.columns import units_of_table
from fillrank.report.style import (
    FAINT,
    INK,
    MUTED,
    finish_axes,
    format_label,
    get_axes,
)
from fillrank.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Literal["rows", "columns"]
SIDES: tuple[Side, Side] = ("rows", "columns")
MOST_TERMS = 12
REST = "rest"
_MAX_NAME = 40
_NAMES = {
    "features": "given features",
    "times": "times",
    "graph": "graph",
    MISSINGNESS: "pattern of missing values",
    REST: "the rest",
}
# The colours of the usual blocks, and of others in their order.
_COLOURS = {
    "features": INK,
    "times": "#4fa3a5",
    "graph": "#a3c585",
    MISSINGNESS: "#e0a03f",
    REST: FAINT,
}
_OTHER_COLOURS = ("#5b7fa6", "#7d6aa5", "#a4303f", "#8a6d3b")
_BAND = "#e4e9ee"  # lighter than what is in front of it
# Shares below this have no number in their part of the bar, which is too narrow.
_NARROWEST = 0.06
_BELOW = 42.0  # points from the axes to the legend, with the label of the axis in between


class Effects(NamedTuple):
    """The effects of terms of features, strongest first, and the number of all terms.

    ``strength`` is the root mean square of the change over the other side.
    """

    names: list[str]
    effect: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    strength: np.ndarray
    n_all: int

    @property
    def reach(self) -> float:
        """The largest number that a plot has to show, in either direction."""
        ends = np.abs([self.lower, self.upper, self.strength])
        return float(ends.max(initial=0.0)) or 1.0


def has_features(model: Any) -> bool:
    """Whether a model has features of rows or of columns, given or not."""
    return any(model.posterior_.blocks)


def side_blocks(model: Any, side: Side) -> tuple[Block, ...]:
    """The blocks of features of the rows, or of the columns."""
    blocks: Blocks = model.posterior_.blocks
    return blocks.rows if side == "rows" else blocks.columns


def has_block(model: Any, name: str) -> bool:
    """Whether rows or columns have a block of this name."""
    return any(block.name == name for side in SIDES for block in side_blocks(model, side))


def has_table(model: Any, side: Side) -> bool:
    """Whether the rows, or columns, have features from a table, whose terms have names."""
    return any(isinstance(block.code, TableCode) for block in side_blocks(model, side))


def effects_of(model: Any, side: Side, level: float = 0.9, most: int = MOST_TERMS) -> Effects:
    """The effects of the strongest terms: `Completion.feature_effects` as arrays."""
    table = model.feature_effects(side=side, level=level)
    if not isinstance(table, dict):
        table = nw.from_native(table, eager_only=True).to_dict(as_series=False)
    names = list(table["name"])
    order = np.argsort(-np.asarray(table["strength"]), kind="stable")[:most]
    effect, lower, upper, strength = (
        np.asarray(table[name])[order] for name in ("effect", "lower", "upper", "strength")
    )
    return Effects([names[k] for k in order], effect, lower, upper, strength, len(names))


def shares_of(model: Any) -> dict[Side, dict[str, float]]:
    """Shares of the differences between rows, and between columns, by the names of blocks and "rest"."""
    if not has_features(model):
        return {}
    found = posterior_shares(model.posterior_.signal.low_rank)
    return {side: found[side] for side in SIDES if side_blocks(model, side)}


def name_of(block: str) -> str:
    """The name of a block in plain words.

    Examples
    --------
    >>> name_of("missingness"), name_of("features_2"), name_of("people")
    ('pattern of missing values', 'given features 2', 'people')
    """
    usual, _, number = block.rpartition("_")
    if usual in _NAMES and number.isdigit():
        return f"{_NAMES[usual]} {number}"
    return _NAMES.get(block) or format_label(block, _MAX_NAME)


def feature_effects(
    model: Any, side: Side = "rows", level: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Plot what the given features of rows, or columns, change in the predictions.

    There is a line for each term: a number, or a level of a category. At most 12 are shown, the
    strongest first. The dot is the effect on the mean over the columns (or rows) of one standard
    deviation of the number, or of that level instead of an average row, with its credible interval. The
    grey bar is the typical change of a single cell, up or down. An effect is what the feature predicts,
    not what it causes.

    Parameters
    ----------
    model : fitted GASR or BPMF
        Fitted with ``row_features``, or ``column_features``.
    side : {"rows", "columns"}
        Of which the features are.
    level : float
        Of the intervals.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, truth = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data, row_features=truth[:, :3])
    >>> fr.plot.feature_effects(model).get_title(loc="left")
    'Features of rows: change of predictions'
    """
    check_choice("side", side, SIDES)
    if not has_table(model, side):
        raise NotSupportedError(_no_features(model, side))
    ax = get_axes(ax)
    found = effects_of(model, side, level)
    positions = np.arange(len(found.names))
    other = "columns" if side == "rows" else "rows"
    ax.barh(
        positions, 2 * found.strength, left=-found.strength, height=0.62, color=_BAND,
        label="typical change of a single cell, up or down",
    )  # fmt: skip
    ax.axvline(0.0, color=MUTED, linewidth=0.8)
    ax.hlines(positions, found.lower, found.upper, color=INK, linewidth=1.6)
    ax.plot(
        found.effect, positions, "o", color=INK,
        label=f"change of the mean over the {other}, with {100 * level:g}% interval",
    )  # fmt: skip
    # Names are plain text: no mathematics, no TeX.
    names = [format_label(name, _MAX_NAME) for name in found.names]
    ax.set_yticks(positions, names, parse_math=False, usetex=False)
    ax.set_ylim(len(positions) - 0.4, -0.6)
    ax.set_xlim(-1.06 * found.reach, 1.06 * found.reach)
    _add_legend(ax, 1)
    title = f"Features of {side}: change of predictions"
    if found.n_all > len(names):
        title = f"Features of {side}: the {len(names)} strongest of {found.n_all:,} terms"
    finish_axes(ax, title, f"change of predictions, {units_of_table(model)}", "")
    ax.tick_params(axis="y", length=0)
    return ax


def _no_features(model: Any, side: Side) -> str:
    other: Side = "columns" if side == "rows" else "rows"
    if has_table(model, other):
        return f'this model has features of {other}, and none of {side}: set side="{other}".'
    setting = "row_features" if side == "rows" else "column_features"
    return (
        f"this plot shows given features of {side}: this model has none. Fit GASR or BPMF with "
        f"{setting}=..."
    )


def variance_shares(model: Any, ax: Axes | None = None) -> Axes:
    """Plot which share of the differences between rows, and between columns, features explain.

    The differences are those of the values without noise. Beside given features there can be times, the
    pattern of missing values, and the rest, which no feature explains.

    Parameters
    ----------
    model : fitted GASR or BPMF
        With features, or with ``missingness=True`` and missing values.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import fillrank as fr
    >>> data, truth = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0).fit(data, row_features=truth[:, :3])
    >>> fr.plot.variance_shares(model).get_title(loc="left")
    'What explains the differences'
    """
    shares = shares_of(model)
    if not shares:
        raise NotSupportedError(
            "this plot shows features: this model has none, also not of missing values. Fit GASR or "
            "BPMF with row_features, column_features or missingness=True."
        )
    return draw_shares(shares, get_axes(ax))


def draw_shares(shares: dict[Side, dict[str, float]], ax: Axes) -> Axes:
    """Draw the shares of `shares_of`."""
    colours = _colours([name for side in shares.values() for name in side])
    handles = {}
    for position, parts in enumerate(shares.values()):
        start = 0.0
        for name, share in parts.items():
            handles[name] = ax.barh(
                position, 100 * share, left=100 * start, height=0.6, color=colours[name],
                edgecolor="white", linewidth=0.8,
            )  # fmt: skip
            if share >= _NARROWEST:
                light = name in (MISSINGNESS, "graph", REST)
                ax.text(
                    100 * (start + share / 2), position, f"{100 * share:.0f}%", ha="center",
                    va="center", fontsize="small", color="black" if light else "white",
                )  # fmt: skip
            start += share
    ax.set_yticks(range(len(shares)), [f"between {side}" for side in shares])
    ax.set_ylim(len(shares) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    # What only one side has is before the rest.
    ordered = [*(name for name in handles if name != REST), REST]
    names = [name_of(name) for name in ordered]
    _add_legend(ax, 2, [handles[name] for name in ordered], names)
    finish_axes(ax, "What explains the differences", "share of the differences, %", "")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax


def _colours(names: list[str]) -> dict[str, str]:
    others = dict.fromkeys(name for name in names if name not in _COLOURS)
    more = {name: _OTHER_COLOURS[k % len(_OTHER_COLOURS)] for k, name in enumerate(others)}
    return _COLOURS | more


def _add_legend(ax: Axes, n_columns: int, *entries: Any) -> None:
    """Add a legend below the label of the horizontal axis."""
    from matplotlib.transforms import ScaledTranslation

    figure = ax.get_figure(root=True)
    assert figure is not None
    shift = ScaledTranslation(0.0, -_BELOW / 72, figure.dpi_scale_trans)
    legend = ax.legend(
        *entries, loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=ax.transAxes + shift,
        ncols=n_columns, frameon=False, fontsize="small", borderaxespad=0.0, borderpad=0.0,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_usetex(False)
