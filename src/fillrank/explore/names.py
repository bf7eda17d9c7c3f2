"""Names as text: how they are shown, and how one is found among many by a part of it."""

import heapq
import unicodedata
from typing import NamedTuple

import numpy as np

from fillrank.table.labels import as_text


class Found(NamedTuple):
    """Positions of the best matches, best first, and how many matches there are in all."""

    positions: list[int]
    total: int


class Names:
    """The names of all rows, or of all columns."""

    def __init__(self, labels: np.ndarray):
        self.texts = [as_text(name) for name in labels]
        self._keys = [_key(text) for text in self.texts]
        self._by_text: dict[str, int] | None = None

    def search(self, part: str, most: int) -> Found:
        """Names that have a text in them, whatever its case and accents.

        First comes the name that is this text, then those that begin with it, those in which a word
        does, and all others; among these the shorter ones.

        Parameters
        ----------
        part : str
            Without any text, all names match, in the order of the table.
        most : int
            How many to give.

        Examples
        --------
        >>> names = Names(np.array(["Joanna", "Léa Ann", "ann", "Anna", "Bo"], dtype=object))
        >>> [names.texts[i] for i in names.search("Ann", 3).positions]
        ['ann', 'Anna', 'Léa Ann']
        """
        wanted = _key(part.strip())
        if not wanted:
            return Found(list(range(min(most, len(self.texts)))), len(self.texts))
        matches = [i for i, key in enumerate(self._keys) if wanted in key]
        best = heapq.nsmallest(most, matches, key=lambda i: (*_rank(self._keys[i], wanted), i))
        return Found(best, len(matches))

    def position(self, text: str) -> int | None:
        """Where the name is that is shown as this text."""
        if self._by_text is None:
            backwards = zip(reversed(self.texts), range(len(self.texts) - 1, -1, -1), strict=True)
            self._by_text = dict(backwards)  # of several that look alike, the first one stays
        return self._by_text.get(text)


def _key(text: str) -> str:
    """What a search compares: without case, and without accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def _rank(key: str, wanted: str) -> tuple[int, int]:
    signs = (key == wanted, key.startswith(wanted), f" {wanted}" in key, True)
    return signs.index(True), len(key)
