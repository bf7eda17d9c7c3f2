"""Methods that fit numbers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fillrank.errors import NotSupportedError
from fillrank.table.column_types import are_numbers
from fillrank.table.notes import name_columns

if TYPE_CHECKING:
    from fillrank.table.observations import Observations

_METHODS = ("GASR", "BPMF")


def refuse_other_values(observations: Observations, method: str) -> None:
    """Raise NotSupportedError if values are not exact numbers, for a method that needs them."""
    can = f"{' and '.join(_METHODS)} can"
    if observations.cells is not None:
        raise NotSupportedError(
            f"{method} cannot use limits and intervals; {can}",
            advice="Use one of them, or replace these values by numbers.",
        )
    others = [
        label
        for label, kind in observations.types_by_label().items()
        if not are_numbers([kind]) and kind.values != "boolean"
    ]
    if others:
        raise NotSupportedError(
            f"{method} cannot use categories and dates, as in {name_columns(others)}; {can}",
            advice="Use one of them, or leave these columns out.",
        )
