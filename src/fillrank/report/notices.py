"""The warnings and the notes at the top of the report: what to check, and what was understood."""

from __future__ import annotations

from typing import Any, NamedTuple

from fillrank.completions.convergence import few_draws
from fillrank.completions.extrapolation import describe_extrapolations
from fillrank.errors import describe
from fillrank.estimators.checks import FEWEST_ENTRIES, few_entries
from fillrank.report.columns import is_mixed
from fillrank.report.held_out import Groups, HeldOut
from fillrank.report.interface import Interface
from fillrank.report.names import Name, Names
from fillrank.report.summary import Verdict, count_entries

# Columns that are named at the top, and notes that are shown without a click.
_N_NAMED, _N_OPEN = 5, 8


class Notice(NamedTuple):
    """A warning; ``column`` is the one that it is about, ``section`` the part with more about it."""

    text: str
    section: str
    column: Name | None = None


class Notes(NamedTuple):
    """What was understood of the table; ``is_open`` unless there are many notes."""

    texts: list[str]
    is_open: bool


def list_warnings(
    model: Any,
    test: HeldOut | None,
    groups: Groups | None,
    verdict: Verdict,
    interface: Interface,
    names: Names,
) -> list[Notice]:
    """Return everything that makes results less reliable, with what to do about it."""
    found = [Notice(verdict.long, "convergence")] if verdict.tone == "bad" else []
    if verdict.tone != "bad" and (few := few_draws(model)) is not None:
        found.append(Notice(describe(few, interface.setting), "certainty"))
    if text := warn_of_few_entries(model):
        found.append(Notice(text, "certainty"))
    if test is not None and test.n_fitted:
        found.append(
            Notice(
                f"{test.n_fitted:,} of the held-out entries were also fitted, so the error is "
                "underestimated: fit without them.",
                "held-out",
            )
        )
    return (
        found + _warn_of_columns(model, groups, names) + _warn_of_extrapolations(model, interface)
    )


def _warn_of_columns(model: Any, groups: Groups | None, names: Names) -> list[Notice]:
    """Return a warning for each of the first columns that are predicted badly."""
    if groups is None or not groups.problems:
        return []
    section = "columns" if is_mixed(model) else "held-out"
    labels, problems = model.observations_.column_labels, list(groups.problems.items())
    found = [
        Notice(
            f"{text}. Check it before you use what is filled in.",
            section,
            names.column(labels[k]),
        )
        for k, text in problems[:_N_NAMED]
    ]
    if n_more := len(problems) - len(found):
        what = "1 more column is" if n_more == 1 else f"{n_more:,} more columns are"
        found.append(Notice(f"{what} predicted as badly.", section))
    return found


def _warn_of_extrapolations(model: Any, interface: Interface) -> list[Notice]:
    """Return a warning for each column with predictions far outside its observed values."""
    texts = describe_extrapolations(model.completion_, interface.setting)
    section = "columns" if is_mixed(model) else "table"
    return [Notice(text[:1].upper() + text[1:], section) for text in texts]


def warn_of_few_entries(model: Any) -> str:
    """Return a warning if there are too few entries for intervals; else an empty text."""
    n = count_entries(model)
    if n is None or not model.posterior_.has_draws:
        return ""
    text = few_entries(n, FEWEST_ENTRIES.get(model.completion_.method, 0))
    return text[:1].upper() + text[1:]


def list_notes(model: Any, interface: Interface) -> Notes:
    """Return what was understood of the table, and how to correct it."""
    texts = [*interface.notes, *map(interface.note, model.completion_.record.notes or [])]
    texts = list(dict.fromkeys(texts))
    return Notes(texts, len(texts) <= _N_OPEN)
