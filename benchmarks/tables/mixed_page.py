"""The results on tables with several kinds of columns, in Markdown."""

import numpy as np
from mixed_methods import BASELINE, OURS
from mixed_tables import CATEGORY, KINDS, NUMBER, ORDERED, YES_NO
from summary import NONE, markdown

_TITLES = {
    NUMBER: "Numbers: error in standard deviations of the column",
    ORDERED: "Ordered levels: accuracy in per cent (mean absolute error in levels)",
    YES_NO: "Yes or no: accuracy in per cent",
    CATEGORY: "Categories: accuracy in per cent",
}


def page(results):
    """All tables: errors by kind, distributions, times."""
    parts = []
    for kind in KINDS:
        of_kind = results[results["kind"] == kind]
        if len(of_kind):
            parts += [f"## {_TITLES[kind]}", _error_table(of_kind, kind)]
    parts += [
        f"## Coverage of 90% intervals and sets of levels by {OURS} in per cent (what it expects)",
        _by_kind(results, _coverage_cell),
        f"## Log score of {OURS} (of {BASELINE})",
        _by_kind(results, _log_score_cell),
        "## Seconds of a fit with its predictions",
        _seconds_table(results),
    ]
    return "\n\n".join(parts)


def by_mask(results, score):
    """Means over the columns of a table (tables, answers, masks)."""
    return results.groupby(["table", "answer", "mask"], sort=False)[score].mean()


def _error_table(results, kind):
    score = "rmse" if kind == NUMBER else "accuracy"
    factor, digits = (1, 3) if kind == NUMBER else (100, 1)
    masks = factor * by_mask(results, score)
    most = results["mask"].nunique()
    cells = {
        key: _mean_cell(of.to_numpy(), digits, most) for key, of in masks.groupby(level=[0, 1])
    }
    if kind == ORDERED:
        distance = by_mask(results, "mae").groupby(level=[0, 1]).mean()
        cells = {key: f"{text} ({distance[key]:.3f})" for key, text in cells.items()}
    return _table(cells, results)


def _mean_cell(values, digits, n_masks):
    """A mean over masks with its standard error; the number of masks if others have more."""
    text = f"{values.mean():.{digits}f}"
    if len(values) > 1:
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        text = f"{text} ± {error:.{digits}f}"
    return text if len(values) == n_masks else f"{text}, masks: {len(values)}"


def _table(cells, results):
    """A line for each table and a column for each answer, in the order of the results."""
    answers, tables = results["answer"].unique(), results["table"].unique()
    lines = {table: [cells.get((table, answer), NONE) for answer in answers] for table in tables}
    return markdown(answers, lines)


def _by_kind(results, cell):
    """A line for each table and a column for each kind."""
    tables = results["table"].unique()
    lines = {
        table: [
            cell(results[(results["table"] == table) & (results["kind"] == kind)]) for kind in KINDS
        ]
        for table in tables
    }
    return markdown(KINDS, lines)


def _coverage_cell(results):
    ours = results[results["answer"] == OURS]
    if ours.empty:
        return NONE
    share = 100 * np.average(ours[["coverage", "expected"]], axis=0, weights=ours["n_hidden"])
    return f"{share[0]:.1f} ({share[1]:.1f})"


def _log_score_cell(results):
    parts = [results[results["answer"] == answer] for answer in (OURS, BASELINE)]
    if any(part.empty for part in parts):
        return NONE
    ours, baseline = (np.average(part["log_score"], weights=part["n_hidden"]) for part in parts)
    return f"{ours:.3f} ({baseline:.3f})"


def _seconds_table(results):
    times = results.groupby(["table", "answer"], sort=False)["seconds"].median()
    return _table({key: f"{seconds:.3g}" for key, seconds in times.items()}, results)
