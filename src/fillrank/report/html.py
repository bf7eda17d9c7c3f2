"""The report: the results of a fit as one HTML file without dependencies.

The file has no scripts and loads nothing from the network; its content security policy enforces both.
The template escapes everything that comes from the table. Row and column labels are text of the page and
never reach the plots.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fillrank.errors import NotSupportedError, Setting
from fillrank.estimators.score_groups import FEWEST_VALUES
from fillrank.features.blocks import MISSINGNESS
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.report import cells, features, held_out, notices, run_plots, summary
from fillrank.report.cells import MAX_BLOCKS, MAX_CELLS, CellIntervals, missing_intervals
from fillrank.report.charts import LOW, SQUARE, Chart, render
from fillrank.report.columns import (
    format_values,
    have_one_unit,
    is_mixed,
    limit_sides,
    list_columns,
)
from fillrank.report.distributions import HEIGHT, WIDTH, distributions_of
from fillrank.report.held_out import GROUP_LEVEL, Groups, HeldOut, predict_held_out, score_groups
from fillrank.report.interface import PYTHON, Interface
from fillrank.report.maps import SvgMap, project, svg_map
from fillrank.report.names import Name, Names
from fillrank.report.probabilities import level_tables
from fillrank.report.style import UNITS, format_label, format_share
from fillrank.storage.atomic_write import write_atomically
from fillrank.table.observations import Observations
from fillrank.table.titles import given_titles
from fillrank.validation import check_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows in a table of the most or least certain cells; not more than twice as many are one table.
_N_LISTED = 10
# Rows in the table by column; a table with more is in a box that scrolls.
_N_COLUMNS = 20
_MAX_TITLE = 200
_EFFECTS_LEVEL = 0.9
# The width of a drawn effect, in units of its view box, and the margin on each side.
_EFFECT_WIDTH, _EFFECT_MARGIN = 320.0, 8.0
_NO_DECIMALS = 10.0  # the width of an interval whose ends have none
_BAR_WIDTH = 60.0  # of a probability of 1


class Cell(NamedTuple):
    """A row of a table of cells."""

    row: Name
    column: Name
    value: str
    interval: str


class Column(NamedTuple):
    """A row of the table by column; ``tone`` is bad if the column is predicted badly."""

    name: Name
    entries: str
    missing: str
    rmse: str
    rmse_in_sd: str
    mean_error: str
    coverage: str
    tone: str


class Effect(NamedTuple):
    """A line of the table of effects: its numbers as text, and their places in the drawing."""

    name: str
    full_name: str
    effect: str
    interval: str
    strength: str
    low: float
    middle: float
    high: float
    band_start: float
    band_width: float


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    test: Any = None,
    title: str | None = None,
    *,
    tested: Any = None,
    row_titles: Any = None,
    column_titles: Any = None,
    interface: Interface = PYTHON,
) -> None:
    """Write a report of a fitted model to an HTML file.

    The file needs no network and no scripts. It shows row and column labels and some values: consider
    that before you share it.

    Parameters
    ----------
    model : fitted estimator
    path : path
        An existing file is replaced when the new one is complete.
    test : Observations or table, optional
        Held-out entries, whose rows and columns the model knows. With them, the report shows the errors
        of predictions and the coverage of intervals.
    title : str, optional
    tested : fitted estimator, optional
        The model that predicts ``test``, if not ``model``. Use it if ``model`` is fitted to all entries:
        ``tested`` must be fitted without the held-out ones.
    row_titles, column_titles : mapping of label to title, optional
        What rows and columns are, as `fillrank.read_titles` returns it. The report shows titles with
        labels beside them.
    interface : Interface
        For programs that write reports: how their users write the settings that the advice refers to.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import fillrank as fr
    >>> data, _ = fr.synthetic(40, 30, rank=2, noise=0.1, missing=0.3, random_state=0)
    >>> train, test = data.split(0.1, random_state=0)
    >>> model = fr.GASR(n_sweeps=200, random_state=0, progress=False).fit(train)
    >>> path = Path(mkdtemp()) / "report.html"
    >>> fr.write_report(model, path, test=test, title="A made-up table")
    >>> "A made-up table" in path.read_text(encoding="utf-8")
    True
    """
    check_fitted(model)
    names = Names(
        given_titles(row_titles, "row_titles"), given_titles(column_titles, "column_titles")
    )
    # The file is opened first, so that an error of the path is reported before the work starts.
    with write_atomically(path) as temporary:
        held = None if test is None else predict_held_out(tested or model, test)
        page = _page(model, held, tested, title, interface, names)
        temporary.write_text(page, encoding="utf-8", newline="\n")


def _page(
    model: Any,
    test: HeldOut | None,
    tested: Any,
    title: str | None,
    interface: Interface,
    names: Names,
) -> str:
    # Imported late: plots need no templates.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fillrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    diagnostics = _diagnostics(model)
    groups = None if test is None else score_groups(tested or model, test.test)
    verdict, mixed = summary.describe_convergence(model, interface), is_mixed(model)
    return environment.get_template("report.html.jinja").render(
        title=format_label(title, _MAX_TITLE) if title else _title(model),
        method=model.completion_.method,
        tiles=summary.list_tiles(model, test, verdict),
        table_text=summary.describe_table(model),
        error_text="" if test is None else summary.describe_error(test),
        rank_text=summary.describe_rank(model),
        noise_text=summary.describe_noise(model),
        warnings=notices.list_warnings(model, test, groups, verdict, interface, names),
        notes=notices.list_notes(model, interface),
        interface=interface,
        kinds_setting=interface.setting(Setting("kinds")),
        verdict=verdict,
        other_tested=tested is not None and tested is not model,
        has_intervals=model.posterior_.has_draws,
        has_entries=len(model.observations_) > 0,
        is_complete=_is_complete(model),
        has_one_unit=have_one_unit(model),
        blocks=max(model.observations_.shape) > MAX_BLOCKS,
        table=_table(model),
        factors=_factors(model),
        features=_features(model),
        convergence=_convergence(model),
        diagnostics=[] if diagnostics is None else summary.list_diagnostics(diagnostics),
        held_out=_held_out(tested or model, test),
        by_column=None if groups is None or mixed else _by_column(model, groups, names),
        plot_size=(WIDTH, HEIGHT),
        # Fifths of predictions in different units have no meaning.
        by_level=_by_level(groups) if groups is not None and have_one_unit(tested or model) else [],
        mixed=_mixed(model, groups, names) if mixed else None,
        certainty=_certainty(model, names),
        maps=_maps(model, names),
        code=summary.reproduction_code(model),
        caveats=summary.reproduction_caveats(model, interface),
    )


def _mixed(model: Any, groups: Groups | None, names: Names) -> dict[str, Any]:
    """Return the sections of a table of mixed kinds: its columns, and probabilities of levels."""
    kinds, data = model.posterior_.column_kinds, model.observations_
    scores = None if groups is None else groups.columns
    lines = list_columns(model, scores, {} if groups is None else groups.problems, names)
    return {
        "columns": lines,
        "distributions": distributions_of(model, range(len(lines))),
        "n_more": data.shape[1] - len(lines),
        "is_long": len(lines) > _N_COLUMNS,
        "has_reasons": any(line.why for line in lines),
        "has_scores": groups is not None,
        "has_categories": "category" in kinds,
        "has_ordered": "ordered" in kinds,
        "has_limits": bool(limit_sides(data).any()),
        "level": f"{100 * GROUP_LEVEL:g}",
        "levels": level_tables(model, names),
        "bar": _BAR_WIDTH,
    }


def _title(model: Any) -> str:
    n_rows, n_columns = model.observations_.shape
    return f"A table of {n_rows:,} by {n_columns:,}, filled in"


def _diagnostics(model: Any) -> Diagnostics | None:
    return None if model.completion_.record.traces is None else model.diagnostics()


def _is_complete(model: Any) -> bool:
    data: Observations = model.observations_
    return len(data) == math.prod(data.shape)


def _table(model: Any) -> list[Chart]:
    images = []
    if len(model.observations_) > 0 and not _is_complete(model):
        images.append(render(cells.matrix, model))
    images.append(render(cells.matrix, model, filled=True))
    return images


def _factors(model: Any) -> list[Chart]:
    images = []
    for draw in (run_plots.spectrum, run_plots.rank):
        try:
            images.append(render(draw, model))
        except NotSupportedError:
            continue
    return images


def _features(model: Any) -> dict[str, Any] | None:
    """Return the section on features; None if the model has none."""
    shares = features.shares_of(model)
    if not shares:
        return None
    names = {name for parts in shares.values() for name in parts}
    return {
        "image": _draw_shares(shares),
        "is_given": bool(names - {MISSINGNESS, "times", features.REST}),
        "has_times": "times" in names,
        "has_pattern": MISSINGNESS in names,
        "effects": [
            _effects(model, side) for side in features.SIDES if features.has_table(model, side)
        ],
    }


def _draw_shares(shares: dict[features.Side, dict[str, float]]) -> Chart:
    """Draw the shares; the title has all of their numbers."""
    chart = render(lambda ax: features.draw_shares(shares, ax), size=LOW)
    texts = [_describe_shares(side, parts) for side, parts in shares.items()]
    return chart._replace(title=" ".join(texts))


def _describe_shares(side: str, shares: dict[str, float]) -> str:
    parts = [f"{features.name_of(name)} {format_share(x)}" for name, x in shares.items()]
    return f"Between {side}: {', '.join(parts)}."


def _effects(model: Any, side: features.Side) -> dict[str, Any]:
    """Return the effects of the strongest features of one side, and how to draw them."""
    found = features.effects_of(model, side, _EFFECTS_LEVEL)
    half = _EFFECT_WIDTH / 2
    scale = (half - _EFFECT_MARGIN) / found.reach
    rows = []
    for name, *numbers in zip(*found[:5], strict=True):
        effect, low, high, strength = map(float, numbers)
        # The same decimals in all lines.
        texts = summary.format_together(effect, low, high, strength, width=found.reach / 5)
        rows.append(
            Effect(
                format_label(name),
                format_label(name, 400),
                texts[0],
                f"{texts[1]} to {texts[2]}",
                texts[3],
                low=round(half + scale * low, 1),
                middle=round(half + scale * effect, 1),
                high=round(half + scale * high, 1),
                band_start=round(half - scale * strength, 1),
                band_width=round(2 * scale * strength, 1),
            )
        )
    return {
        "side": side,
        "one": side.removesuffix("s"),
        "other": "columns" if side == "rows" else "rows",
        "rows": rows,
        "n_all": found.n_all,
        "level": f"{100 * _EFFECTS_LEVEL:g}",
        "units": UNITS if have_one_unit(model) else "in standard deviations of the columns",
        "width": _EFFECT_WIDTH,
    }


def _convergence(model: Any) -> list[Chart]:
    images = []
    if model.completion_.record.traces is not None:
        images.append(render(run_plots.trace, model))
    if model.completion_.record.path:
        images.append(render(run_plots.path, model))
    return images


def _held_out(model: Any, test: HeldOut | None) -> list[Chart]:
    if test is None:
        return []
    plots: list[Callable[..., Axes]] = [held_out.predicted]
    if model.posterior_.has_draws:
        plots.append(held_out.calibration)
    images = []
    for draw in plots:
        # Without a number among the held-out entries there is nothing to show.
        with suppress(NotSupportedError):
            images.append(render(draw, model, test.test, size=SQUARE))
    return images


def _by_column(model: Any, groups: Groups, names: Names) -> dict[str, Any]:
    """Return the section on columns: the worst first, those with enough entries before others."""
    has_few = groups.columns.entries < FEWEST_VALUES
    n, shown = has_few.size, np.argsort(has_few, kind="stable")[:_N_COLUMNS].tolist()
    found = distributions_of(model, groups.columns.group[shown].tolist())
    return {
        "rows": [_column(model.observations_, groups, k, names) for k in shown],
        "distributions": list(found.values()),
        "n_more": max(0, n - _N_COLUMNS),
        "fewest": FEWEST_VALUES if 0 < np.count_nonzero(has_few) < n else None,
        "level": f"{100 * GROUP_LEVEL:g}",
    }


def _column(data: Observations, groups: Groups, k: int, names: Names) -> Column:
    scores = groups.columns
    j, rmse = int(scores.group[k]), float(scores.rmse[k])
    error, mean_error = summary.format_together(rmse, float(scores.mean_error[k]), width=rmse / 10)
    # That of the scores counts held-out entries as missing.
    missing = 1.0 - np.count_nonzero(data.column_index == j) / data.shape[0]
    return Column(
        names.column(data.column_labels[j]),
        f"{scores.entries[k]:,}",
        format_share(missing) if len(data) else "–",
        error,
        _finite(scores.rmse_in_sd[k], ".2f"),
        mean_error,
        _finite(scores.coverage[k], ".0%"),
        "bad" if j in groups.problems else "plain",
    )


def _finite(x: float, form: str) -> str:
    return f"{x:{form}}" if np.isfinite(x) else "–"


def _by_level(groups: Groups) -> list[Chart]:
    images = [render(lambda ax: held_out.draw_error_by_level(groups.levels, ax))]
    if not np.isnan(groups.levels.coverage).any():
        images.append(render(lambda ax: held_out.draw_coverage_by_level(groups.levels, ax)))
    return images


def _certainty(model: Any, names: Names) -> dict[str, Any] | None:
    """Return the section on certain and uncertain cells; None if the method has no intervals."""
    if not model.posterior_.has_draws:
        return None
    intervals = missing_intervals(model)
    n = intervals.rows.size
    are_few = n <= 2 * _N_LISTED
    return {
        "n": n,
        "n_missing": intervals.n_missing,
        "sampled": intervals.n_missing > MAX_CELLS,
        "level": f"{100 * intervals.level:g}",
        "all": [_cell(model, intervals, k, names) for k in range(n)] if are_few else [],
        "most": [_cell(model, intervals, k, names) for k in range(n)[:_N_LISTED]],
        "least": [_cell(model, intervals, k, names) for k in range(n - 1, -1, -1)[:_N_LISTED]],
        "image": None if are_few else render(lambda ax: cells.draw_certainty(intervals, ax)),
    }


def _cell(model: Any, intervals: CellIntervals, k: int, names: Names) -> Cell:
    data = model.observations_
    low, high = float(intervals.low[k]), float(intervals.high[k])
    is_count = model.posterior_.column_kinds[intervals.columns[k]] == "count"
    value, low_text, high_text = summary.format_together(
        float(intervals.values[k]), low, high, width=_NO_DECIMALS if is_count else high - low
    )
    if _is_date(data, int(intervals.columns[k])):
        numbers = np.array([intervals.values[k], low, high])
        value, low_text, high_text = format_values(data, int(intervals.columns[k]), numbers)
    return Cell(
        names.row(data.row_labels[intervals.rows[k]]),
        names.column(data.column_labels[intervals.columns[k]]),
        value,
        f"{low_text} to {high_text}",
    )


def _is_date(data: Observations, column: int) -> bool:
    return data.column_types is not None and data.column_types[column].values == "datetime"


def _maps(model: Any, names: Names) -> list[SvgMap]:
    rows, columns = project(model, "rows"), project(model, "columns")
    shown = ((rows, names.row), (columns, names.column))
    return [svg_map(found, name_of) for found, name_of in shown if not found.empty]
