"""Labels that users type: those of a table, found by their text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fillrank.table.labels import as_text


class Labels:
    """The labels of rows or of columns, found by their text.

    The text of a number or a date is the one that fillrank writes.
    """

    def __init__(self, labels: np.ndarray):
        self._labels = {as_text(label): label for label in labels.tolist()}
        if labels.dtype.kind == "M":  # lists have dates without their unit, or as integers
            self._labels = {as_text(label): label for label in labels}

    def __contains__(self, text: str) -> bool:
        return text in self._labels

    def unknown(self, labels: Iterable[Any]) -> list[Any]:
        """Those labels that are not among these, as `find` returns them."""
        return [label for label in labels if as_text(label) not in self._labels]

    def find(self, texts: Iterable[str]) -> list[Any]:
        """The labels with these texts; an unknown text stays as it is, for the model to refuse."""
        return [self._labels.get(text, text) for text in texts]
