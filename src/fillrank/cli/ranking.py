"""Scores of recommendations, beside those of the most popular columns: options, scores and tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table

import fillrank as fr
from fillrank.cli.messages import Results
from fillrank.errors import InputError, NotSupportedError
from fillrank.table.observations import Observations

# The measures of `score_ranking`, and how tables name them.
TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "ndcg": "NDCG",
    "mrr": "MRR",
    "hit_rate": "Hit rate",
    "catalogue_coverage": "Catalogue\ncoverage",
}
POPULAR = "most popular"
_RELEVANT = ("above_mean", "all")


def _parse_relevant(text: str) -> Any:
    """Parse which held-out entries are relevant."""
    if text in _RELEVANT:
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise typer.BadParameter(f"{text!r} is neither 'above_mean' nor 'all' nor a number.")
    return value


Top = Annotated[
    int | None,
    typer.Option(
        "--top", metavar="K", min=1, rich_help_panel="Recommendations",
        help="Also score lists of K recommended columns for each row, beside the most popular columns: "
        "precision, recall, NDCG, MRR, hit rate and catalogue coverage.",
    ),
]  # fmt: skip
Relevant = Annotated[
    Any,
    typer.Option(
        "--relevant", metavar="VALUE|above_mean|all", parser=_parse_relevant,
        rich_help_panel="Recommendations", show_default="above_mean",
        help="Which held-out entries a list should have: those of at least this value, those above the "
        "mean of their row, or all.",
    ),
]  # fmt: skip


class Lists(NamedTuple):
    """The recommendations to score: their number for each row, and which entries are relevant."""

    top: int
    relevant: Any

    def summary(self) -> dict[str, Any]:
        """The options, for JSON."""
        return {"top": self.top, "relevant": self.relevant}


class Scoring(NamedTuple):
    """What to score: intervals of a level, and recommendations, if any."""

    level: float
    lists: Lists | None = None


def read_options(top: int | None, relevant: Any) -> Lists | None:
    """The recommendations to score; None without ``--top``."""
    if top is None and relevant is not None:
        raise InputError("--relevant is for recommendations: add --top K.")
    return None if top is None else Lists(top, _RELEVANT[0] if relevant is None else relevant)


def score_lists(model: Any, test: Observations, lists: Lists) -> dict[str, float]:
    """The measures of a model and, with the prefix ``popular_``, of the most popular columns."""
    try:
        own = fr.score_ranking(test, model, lists.top, relevant=lists.relevant)
    except NotSupportedError as error:
        raise error.with_advice("Leave out --top.") from error
    popular = fr.score_ranking(test, model, lists.top, relevant=lists.relevant, by="popular")
    return {
        **{name: own[name] for name in TITLES},
        **{f"popular_{name}": popular[name] for name in TITLES},
        "ranked_rows": own["rows"],
        "ranked_rows_left_out": own["rows_left_out"],
    }


def describe_lists(lists: Lists, figure: Callable[[str], Any]) -> Results:
    """The measures as lines; ``figure`` gives the mean and the spread of a score."""
    lines = [
        (
            f"{title.replace(chr(10), ' ')} at {lists.top}",
            f"{figure(name)}; {figure(f'popular_{name}')} by the {POPULAR} columns",
        )
        for name, title in TITLES.items()
    ]
    return [*lines, ("Ranked rows", _describe_rows(figure))]


def _describe_rows(figure: Callable[[str], Any]) -> str:
    n, n_left_out = (figure(name).mean for name in ("ranked_rows", "ranked_rows_left_out"))
    return f"{n:,.0f} rows; {n_left_out:,.0f} others have no relevant held-out entry"


def lists_table(lists: Lists, methods: dict[str, Callable[[str], Any]]) -> Table:
    """The measures of all methods, which are not empty, and of the most popular columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"Top {lists.top}", vertical="bottom", no_wrap=True)
    for title in TITLES.values():
        table.add_column(title, justify="right", vertical="bottom", no_wrap=True)
    for name, figure in methods.items():
        table.add_row(name, *(f"{figure(measure).mean:.4f}" for measure in TITLES))
    figure = next(iter(methods.values()))
    table.add_row(POPULAR, *(f"{figure(f'popular_{measure}').mean:.4f}" for measure in TITLES))
    table.caption = f"Means over {_describe_rows(figure)}."
    table.caption_justify = "left"
    return table
