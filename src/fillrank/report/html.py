"""The report: what a model has found, as one HTML file that needs nothing else.

The file holds no script and asks no one for anything, which its content security policy tells the
browser to hold it to. Whatever comes from the table is escaped by the template, and names never reach
the plots that are made here: they are text of the page.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from fillrank.errors import NotSupportedError
from fillrank.estimators.sampled import SampledCompleter
from fillrank.posterior.diagnostics import Diagnostics
from fillrank.report import again, held_out_plots, run_plots, table_plots, words
from fillrank.report.cells import MOST_BLOCKS, MOST_CELLS, Sure, sure_of
from fillrank.report.drawing import Map, Picture, map_of, picture
from fillrank.report.held_out import HeldOut, compare
from fillrank.report.names import shown
from fillrank.report.places import Side, places
from fillrank.storage.atomic_write import write_atomically

# Rows in a table of certain or uncertain cells.
_LISTED = 10
_MOST_OF_A_TITLE = 200


class Cell(NamedTuple):
    """A line of a table of cells."""

    row: str
    column: str
    full_row: str
    full_column: str
    value: str
    interval: str


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    test: Any = None,
    title: str | None = None,
    *,
    tested: Any = None,
) -> None:
    """Write what a fitted model has found to an HTML file, for people to look at.

    The file needs nothing else: no network, no scripts. It shows names of rows and columns and some
    values: think of that before you share it.

    Parameters
    ----------
    model : fitted estimator
    path : path
        An existing file is replaced once the new one is whole.
    test : Observations or table, optional
        Entries kept aside, whose rows and columns the model knows: with them, the report has the error
        of predictions, and what intervals hold.
    title : str, optional
    tested : fitted estimator, optional
        The model that is to predict ``test``, if not this one: for a model of all entries, one that was
        fitted without those kept aside.

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
    check_is_fitted(model)
    # The file first: whether it can be written is known before the work begins.
    with write_atomically(path) as temporary:
        page = _page(model, None if test is None else compare(tested or model, test), tested, title)
        temporary.write_text(page, encoding="utf-8", newline="\n")


def _page(model: Any, held_out: HeldOut | None, tested: Any, title: str | None) -> str:
    # Imported late: a plot needs no templates.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fillrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    diagnostics = _diagnostics(model)
    verdict = words.verdict(model, diagnostics)
    return environment.get_template("report.html.jinja").render(
        title=shown(title, _MOST_OF_A_TITLE) if title else _title(model),
        method=type(model).__name__,
        tiles=words.tiles(model, held_out, verdict),
        of_table=words.of_table(model),
        of_error="" if held_out is None else words.of_error(held_out),
        of_rank=words.of_rank(model),
        of_noise=words.of_noise(model),
        verdict=verdict,
        other_tested=tested is not None and tested is not model,
        has_intervals=isinstance(model, SampledCompleter),
        has_entries=len(model.observations_) > 0,
        blocks=max(model.observations_.shape) > MOST_BLOCKS,
        table=_table(model),
        factors=_factors(model),
        convergence=_convergence(model),
        judged=[] if diagnostics is None else words.judged(diagnostics),
        held_out=_held_out(tested or model, held_out),
        certainty=_certainty(model),
        maps=_maps(model),
        code=again.code(model),
        caveats=again.caveats(model),
    )


def _title(model: Any) -> str:
    n_rows, n_columns = model.observations_.shape
    return f"A table of {n_rows:,} by {n_columns:,}, filled in"


def _diagnostics(model: Any) -> Diagnostics | None:
    try:
        return model.diagnostics() if hasattr(model, "diagnostics") else None
    except NotSupportedError:
        return None


def _table(model: Any) -> list[Picture]:
    found = []
    if len(model.observations_) > 0:
        found.append(picture(table_plots.matrix, model))
    found.append(picture(table_plots.matrix, model, filled=True))
    return found


def _factors(model: Any) -> list[Picture]:
    found = []
    for draw in (run_plots.spectrum, run_plots.rank):
        try:
            found.append(picture(draw, model))
        except NotSupportedError:
            continue
    return found


def _convergence(model: Any) -> list[Picture]:
    found = []
    if hasattr(model, "traces_"):
        found.append(picture(run_plots.trace, model))
    if getattr(model, "path_", None):
        found.append(picture(run_plots.path, model))
    return found


def _held_out(model: Any, held_out: HeldOut | None) -> list[Picture]:
    if held_out is None:
        return []
    found = [picture(held_out_plots.predicted, model, held_out.test, square=True)]
    if isinstance(model, SampledCompleter):
        found.append(picture(held_out_plots.calibration, model, held_out.test, square=True))
    return found


def _certainty(model: Any) -> dict[str, Any] | None:
    """The section on certain and uncertain cells; None if the method has no intervals."""
    if not isinstance(model, SampledCompleter):
        return None
    sure = sure_of(model)
    n = sure.rows.size
    lines = [
        _cell(model, sure, k) for k in (*range(min(n, _LISTED)), *range(n - 1, -1, -1)[:_LISTED])
    ]
    return {
        "n": n,
        "n_missing": sure.n_missing,
        "sampled": sure.n_missing > MOST_CELLS,
        "level": f"{100 * sure.level:g}",
        "most": lines[: min(n, _LISTED)],
        "least": lines[min(n, _LISTED) :],
        "picture": picture(lambda ax: table_plots.draw_certainty(sure, ax)) if n else None,
    }


def _cell(model: Any, sure: Sure, k: int) -> Cell:
    data = model.observations_
    row, column = data.row_labels[sure.rows[k]], data.column_labels[sure.columns[k]]
    low, high = float(sure.low[k]), float(sure.high[k])
    value, low_shown, high_shown = words.alike(float(sure.values[k]), low, high, width=high - low)
    return Cell(
        shown(row), shown(column), shown(row, 400), shown(column, 400), value,
        f"{low_shown} to {high_shown}",
    )  # fmt: skip


def _maps(model: Any) -> list[Map]:
    sides: tuple[Side, Side] = ("rows", "columns")
    found = (places(model, side) for side in sides)
    return [map_of(each) for each in found if not each.empty]
