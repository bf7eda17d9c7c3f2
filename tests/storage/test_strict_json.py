import math
import sys

import numpy as np
import pytest

from fillrank.storage.strict_json import decode_float, dump_json, encode_float, parse_json

NUMBERS = [0.0, -0.0, 0.1, 1 / 3, 1e22, 5e-324, sys.float_info.max, 2.0**53, -1.0]


@pytest.mark.parametrize("number", [*NUMBERS, math.inf, -math.inf, math.nan])
def test_every_float_is_restored(number):
    decoded = decode_float(parse_json(dump_json(encode_float(number))))
    assert type(decoded) is float
    np.testing.assert_array_equal(
        np.float64(decoded).view(np.uint64), np.float64(number).view(np.uint64)
    )


@pytest.mark.parametrize(
    "tree",
    [1, True, None, "nan", "1.0", [1.0], {}, {"float": "1.0"}, {"float": 1.0}, {"float": ["nan"]},
     {"float": "nan", "x": 1}, math.inf, math.nan],
    ids=str,
)  # fmt: skip
def test_trees_that_are_not_floats(tree):
    with pytest.raises(ValueError, match="not a number with a decimal point"):
        decode_float(tree)


@pytest.mark.parametrize(
    "text",
    ["", "{", "nul", "NaN", "Infinity", "[-Infinity]", "1e999", "-1e999", "9" * 5000, "[" * 100_000,
     '{"a":' * 100_000, '{"a": 1, "a": 1}', '[{"b": {"a": 1, "a": 1}}]', "[1,]", "[1] 2", "'a'"],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_text_that_is_not_strict_json(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_values_that_json_does_not_have():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json([math.nan])
    with pytest.raises(TypeError):
        dump_json({1, 2})
