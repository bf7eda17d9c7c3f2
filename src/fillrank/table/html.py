"""Tables of text as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Notebooks centre or right-align cells by default, and wrap none.
_LEFT = "text-align: left; vertical-align: top; white-space: normal"
_RIGHT = "text-align: right; vertical-align: top"


def html_table(
    lines: Iterable[Sequence[str]],
    header: Sequence[str] = (),
    caption: str = "",
    numbers: bool = False,
) -> str:
    """A table of text; everything is escaped. The first cell of a line is its header.

    Parameters
    ----------
    lines : iterable of sequences of str
    header : sequence of str
    caption : str
        A line below the table.
    numbers : bool
        Whether the other cells are numbers, which are aligned to the right.

    Examples
    --------
    >>> html_table([("a<b", "1")]).count("a&lt;b")
    1
    """
    style = _RIGHT if numbers else _LEFT
    parts = ["<table>"]
    if caption:
        parts.append(f'<caption style="caption-side: bottom; {_LEFT}">{escape(caption)}</caption>')
    if header:
        first, *others = map(escape, header)
        cells = "".join(f'<th style="{style}">{cell}</th>' for cell in others)
        parts.append(f'<thead><tr><th style="{_LEFT}">{first}</th>{cells}</tr></thead>')
    parts.append("<tbody>")
    for line in lines:
        first, *others = map(escape, line)
        cells = "".join(f'<td style="{style}">{cell}</td>' for cell in others)
        parts.append(f'<tr><th style="{_LEFT}">{first}</th>{cells}</tr>')
    return "".join([*parts, "</tbody></table>"])
