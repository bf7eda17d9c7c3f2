import numpy as np
import pytest

import fillrank as fr
from fillrank.errors import InputError
from fillrank.table.levels import Levels, find_levels


def ratings(values):
    """A row of values."""
    return fr.Observations.from_triplets(np.zeros(len(values)), np.arange(len(values)), values)


@pytest.mark.parametrize(
    "values", [[1, 2, 3, 4, 5], [5, 1, 3], [0, 1], [0.5, 1.0, 2.0, 1.5], [-1, 1], [3, 3, 3]]
)
def test_levels_are_the_values_that_occur(values):
    np.testing.assert_array_equal(
        find_levels(np.array(values, dtype=float), "auto").values, np.unique(values)
    )


def test_codes_count_from_one():
    observations = ratings([3.0, 1.0, 2.0, 3.0])
    codes = find_levels(observations.values, "auto").encode(observations.by_row()).values
    assert codes.tolist() == [3, 1, 2, 3]
    assert codes.dtype == np.int8


def test_rounding_makes_no_level():
    observations = ratings([0.1, 0.2, 0.1 + 0.2, 0.3])
    for levels in ("auto", [0.1, 0.2, 0.3]):
        found = find_levels(observations.values, levels)
        assert found.size == 3
        assert found.encode(observations.by_row()).values.tolist() == [1, 2, 3, 3]


def test_given_levels_need_no_even_steps():
    levels = find_levels(np.array([1.0, 10.0, 2.0]), [10, 2, 1])
    assert levels.values.tolist() == [1, 2, 10]
    assert levels.size == 3


@pytest.mark.parametrize(
    ("values", "levels", "message"),
    [
        ([1, 2, 4], "auto", r"evenly spaced.*got \[1, 2, 4\].*pass levels=\[1.0, 2.0, 4.0\]"),
        (np.random.default_rng(0).random(50), "auto", r"at most 20 levels; got 50.*GASR"),
        ([1, 2], [2], r"got also \[1\]"),
        ([1, 2], [], r"at least one number"),
        ([1, 2], [1, 2, 3], r"\[3\] never does. Remove it"),
        ([1, 2, 7], [1, 2], r"got also \[7\]"),
        ([1, 2], ["a", "b"], 'levels must be "auto" or numbers'),
        ([1, 2], None, 'levels must be "auto" or numbers, got None'),
        ([1, 2], [1, np.nan], "NaN or infinity"),
        ([1, 2], np.arange(200), "at most 127"),
    ],
)
def test_invalid_scales_are_refused(values, levels, message):
    with pytest.raises(InputError, match=message):
        find_levels(np.array(values, dtype=float), levels)


@pytest.mark.parametrize("unknown", [0.0, 2.5, 9.0])
def test_a_new_value_is_no_level(unknown):
    levels = Levels(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(InputError, match=r"among the levels \[1, 2, 3\]; got"):
        levels.encode(ratings([1.0, unknown]).by_row())
