"""JSON that comes back as it went: nothing is read that was not written so.

Python's own reader takes NaN, numbers too large for a float, and the last of several equal keys. And
JSON has no word for numbers that are not finite: here they are ``{"float": "nan"}``.
"""

import json
import math
from typing import Any

_NOT_FINITE = (math.nan, math.inf, -math.inf)


def dump(tree: Any) -> str:
    """Plain ASCII; raises TypeError or ValueError for what JSON cannot hold."""
    return json.dumps(tree, allow_nan=False, separators=(",", ":"))


def parse(text: str) -> Any:
    """Read JSON; whatever is wrong with it is a ValueError.

    Examples
    --------
    >>> parse('{"a": [1, 1.0, true]}')
    {'a': [1, 1.0, True]}
    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: a key comes twice
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=_finite,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def float_tree(number: float) -> float | dict[str, str]:
    """A number as JSON can hold it."""
    return number if math.isfinite(number) else {"float": repr(number)}


def tree_float(tree: Any) -> float:
    """The number that `float_tree` has written; ValueError if it has not."""
    if type(tree) is float and math.isfinite(tree):
        return tree
    for number in _NOT_FINITE:
        if tree == float_tree(number):
            return number
    raise ValueError("it is no number with a decimal point")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a key comes twice")
    return tree


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no finite number")
    return number
