"""Search for labels by a part of their text."""

import heapq
import unicodedata
from typing import NamedTuple

import numpy as np

from fillrank.table.labels import as_text


class Matches(NamedTuple):
    """Positions of the best matches, best first, and the number of all matches."""

    positions: list[int]
    total: int


class LabelSearch:
    """The labels of all rows, or of all columns, as text."""

    def __init__(self, labels: np.ndarray):
        self.texts = [as_text(label) for label in labels]
        self._keys = [_key(text) for text in self.texts]
        self._by_text: dict[str, int] | None = None

    def search(self, part: str, n: int) -> Matches:
        """Find labels that contain a text, ignoring case and accents.

        The label that equals the text comes first, then labels that start with it, labels with a word
        that starts with it, and all others; shorter labels come before longer ones.

        Parameters
        ----------
        part : str
            If it is empty, all labels match, in the order of the table.
        n : int
            How many to return.

        Examples
        --------
        >>> labels = LabelSearch(np.array(["Joanna", "Léa Ann", "ann", "Anna", "Bo"], dtype=object))
        >>> [labels.texts[i] for i in labels.search("Ann", 3).positions]
        ['ann', 'Anna', 'Léa Ann']
        """
        wanted = _key(part.strip())
        if not wanted:
            return Matches(list(range(min(n, len(self.texts)))), len(self.texts))
        matches = [i for i, key in enumerate(self._keys) if wanted in key]
        best = heapq.nsmallest(n, matches, key=lambda i: (*_rank(self._keys[i], wanted), i))
        return Matches(best, len(matches))

    def position(self, text: str) -> int | None:
        """The position of the label with this text, the first of several."""
        if self._by_text is None:
            backwards = zip(reversed(self.texts), range(len(self.texts) - 1, -1, -1), strict=True)
            self._by_text = dict(backwards)
        return self._by_text.get(text)


def _key(text: str) -> str:
    """The text without case and accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _rank(key: str, wanted: str) -> tuple[int, int]:
    matches = (key == wanted, key.startswith(wanted), f" {wanted}" in key, True)
    return matches.index(True), len(key)
