"""Strict JSON: whatever is decoded is exactly what was encoded.

Python's decoder accepts NaN, numbers too large for a float, and repeated keys, of which it returns the
last; `parse_json` does not. JSON has no numbers that are not finite: these are ``{"float": "nan"}``.
"""

import json
import math
from typing import Any

_NOT_FINITE = (math.nan, math.inf, -math.inf)


def dump_json(tree: Any) -> str:
    """Encode as ASCII text; raise TypeError or ValueError for values that JSON does not have."""
    return json.dumps(tree, allow_nan=False, separators=(",", ":"))


def parse_json(text: str) -> Any:
    """Decode JSON; raise ValueError for anything invalid.

    Examples
    --------
    >>> parse_json('{"a": [1, 1.0, true]}')
    {'a': [1, 1.0, True]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: a key is repeated
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_check_keys,
            parse_constant=_parse_float,
            parse_float=_parse_float,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def encode_float(number: float) -> float | dict[str, str]:
    """Convert a number to a JSON tree."""
    return number if math.isfinite(number) else {"float": repr(number)}


def decode_float(tree: Any) -> float:
    """Convert the tree of `encode_float` to a number; raise ValueError for any other."""
    if type(tree) is float and math.isfinite(tree):
        return tree
    for number in _NOT_FINITE:
        if tree == encode_float(number):
            return number
    raise ValueError("it is not a number with a decimal point")


def _check_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a key is repeated")
    return tree


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number
