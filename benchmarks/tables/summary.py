"""The results as tables in Markdown: a line per table, a column per method."""

import numpy as np
from masks import MCAR, REAL
from python_methods import BASELINE
from table_results import KEY

# Run, but not reported: five is the default.
NOT_REPORTED = ("KNN 10",)
SHARE = 0.3  # of coverage, times and pictures
NONE = "–"


def reported(results):
    """The results of the methods that are reported."""
    return results[~results["method"].isin(NOT_REPORTED)]


def at_share(results, share=SHARE):
    """The results with this share of the cells hidden completely at random."""
    return results[(results["kind"] == MCAR) & (results["share"] == share)]


def errors(results):
    """The error of every table, mask and method: the root of the mean over the columns."""
    return np.sqrt(results.groupby(KEY, sort=False)["squared_error"].mean())


def mean_errors(results):
    """The mean over the masks (tables, methods), its standard error, and the number of masks."""
    by_mask = errors(results).groupby(["table", "method"], sort=False)
    return tuple(_by_method(each) for each in (by_mask.mean(), by_mask.sem(), by_mask.count()))


def ratios(results):
    """The mean error over that of the column mean (tables, methods)."""
    mean = mean_errors(results)[0]
    return mean.div(mean[BASELINE], axis=0)


def coverage(results):
    """The share of hidden cells in their intervals, and the same in the column with the lowest share."""
    known = results.dropna(subset="coverage")
    inside = known.assign(inside=known["coverage"] * known["n_hidden"])
    overall = inside.groupby(["table", "method"], sort=False)[["inside", "n_hidden"]].sum()
    columns = ["table", "method", "column"]
    each = inside.groupby(columns, sort=False)[["inside", "n_hidden"]].sum()
    lowest = (each["inside"] / each["n_hidden"]).groupby(["table", "method"], sort=False).min()
    return _by_method(overall["inside"] / overall["n_hidden"]), _by_method(lowest)


def seconds(results):
    """The median time of a fit (tables, methods)."""
    return _by_method(results.groupby(["table", "method"], sort=False)["seconds"].median())


def summary(results):
    """All tables in Markdown."""
    results = reported(results)
    parts = []
    for share in sorted(results.loc[results["kind"] == MCAR, "share"].unique()):
        title = f"Error in standard deviations, {100 * share:g}% of the cells hidden"
        parts += [f"## {title}", _error_table(at_share(results, share))]
    real = results[results["kind"] == REAL]
    if len(real):
        title = "Error in standard deviations, cells hidden as values are missing"
        parts += [f"## {title}", _error_table(real)]
    at_30 = at_share(results)
    if at_30["coverage"].notna().any():
        title = "Coverage of 90% intervals in per cent (of the column with the lowest)"
        parts += [f"## {title}, 30% hidden", _coverage_table(at_30)]
    if len(at_30):
        parts += ["## Seconds of a fit, 30% hidden", _seconds_table(at_30)]
    return "\n\n".join(parts)


def _by_method(series):
    return series.unstack("method", sort=False)


def _error_table(results):
    mean, error, n_masks = mean_errors(results)
    lines = {}
    for table in mean.index:
        best, most = mean.loc[table].min(), n_masks.loc[table].max()
        lines[table] = [
            _error_cell(value, spread, value == best, n if n < most else None)
            for value, spread, n in zip(
                mean.loc[table], error.loc[table], n_masks.loc[table], strict=True
            )
        ]
    if BASELINE in mean:
        overall = np.exp(np.log(ratios(results)).mean(skipna=False))
        lines["ratio to the column mean, geometric mean"] = [_number(x, ".3f") for x in overall]
    return markdown(mean.columns, lines)


def _error_cell(mean, error, is_best, fewer_masks):
    """A mean with its standard error; the number of masks if other methods have more."""
    if np.isnan(mean):
        return NONE
    text = f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ± {error:.3f}"
    text = f"**{text}**" if is_best else text
    return f"{text} (masks: {fewer_masks:.0f})" if fewer_masks else text


def _coverage_table(results):
    overall, lowest = coverage(results)
    lines = {
        table: [
            NONE if np.isnan(share) else f"{100 * share:.0f} ({100 * least:.0f})"
            for share, least in zip(overall.loc[table], lowest.loc[table], strict=True)
        ]
        for table in overall.index
    }
    return markdown(overall.columns, lines)


def _seconds_table(results):
    times = seconds(results)
    lines = {table: [_number(x, ".3g") for x in times.loc[table]] for table in times.index}
    return markdown(times.columns, lines)


def _number(value, form):
    return NONE if np.isnan(value) else f"{value:{form}}"


def markdown(methods, lines):
    """A table with a line of cells for each name, and a column for each method."""
    head = ["| table | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    return "\n".join([*head, *(f"| {name} | " + " | ".join(c) + " |" for name, c in lines.items())])
