"""Search for labels, and their titles, by a part of their text."""

import heapq
import unicodedata
from typing import Any, NamedTuple

import numpy as np

from fillrank.table.labels import as_text
from fillrank.table.titles import NO_TITLES, Titles, titles_of


class Matches(NamedTuple):
    """Positions of the best matches, best first, and the number of all matches."""

    positions: list[int]
    total: int


class LabelSearch:
    """The labels of all rows, or of all columns, as text, and their titles.

    Parameters
    ----------
    labels : ndarray
    titles : mapping
        Titles by the text of their labels; labels may be without one.
    """

    def __init__(self, labels: np.ndarray, titles: Titles = NO_TITLES):
        self.texts = [as_text(label) for label in labels]
        self._titles = titles_of(titles, self.texts) if titles else self.texts
        pairs = zip(self.texts, self._titles, strict=True)
        self._keys = [tuple(map(_key, dict.fromkeys(pair))) for pair in pairs]
        self._by_text: dict[str, int] | None = None

    def search(self, part: str, n: int) -> Matches:
        """Find labels that contain a text, or whose titles do, ignoring case and accents.

        The label or title that equals the text comes first, then those that start with it, those with a
        word that starts with it, and all others; shorter ones come before longer ones.

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
        ranks = {
            i: min(_rank(key, wanted) for key in keys if wanted in key)
            for i, keys in enumerate(self._keys)
            if any(wanted in key for key in keys)
        }
        return Matches(heapq.nsmallest(n, ranks, key=lambda i: (*ranks[i], i)), len(ranks))

    def describe(self, i: int) -> dict[str, Any]:
        """The label at a position for the page, and its title if it has one."""
        name, title = self.texts[i], self._titles[i]
        return {"name": name} if title == name else {"name": name, "title": title}

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
