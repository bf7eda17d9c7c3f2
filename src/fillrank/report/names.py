"""Names of rows and columns as they are shown: on one line, not too long, and nothing but text."""

import unicodedata
from typing import Any

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def shown(name: Any, most: int = 40) -> str:
    """A name as text that can be written anywhere: it is not yet escaped for HTML.

    White space becomes a blank, what cannot be shown or encoded a replacement character.

    Examples
    --------
    >>> shown("two\\nlines"), shown("x" * 50, most=5)
    ('two lines', 'xxxx…')
    """
    # Much longer names are cut before each of their characters is looked at.
    text = "".join(_shown(character) for character in str(name)[: 4 * most])
    text = " ".join(text.split()) or "(blank)"
    return text if len(text) <= most else text[: most - 1] + "…"


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return _REPLACEMENT if unicodedata.category(character) in ("Cc", "Cs") else character
