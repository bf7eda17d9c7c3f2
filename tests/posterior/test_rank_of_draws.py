import numpy as np
import pytest

from fillrank.posterior.rank import most_probable, rank_probabilities
from fillrank.solvers.rank import detection_level

SHAPE, N = (100, 81), 2025
LEVEL = detection_level(SHAPE, N, 4.0)


def test_values_above_the_level_are_counted():
    spectra = LEVEL * np.array(
        [[[5, 2, 1.01, 0.5], [5, 2, 0.99, 0.5]], [[5, 2, 0.9, 0], [5, 0, 0, 0]]]
    )
    found = rank_probabilities(spectra, SHAPE, N, 4.0)
    assert found == {1: 0.25, 2: 0.5, 3: 0.25}
    assert list(found) == [1, 2, 3]
    assert most_probable(found) == 2


def test_no_factor():
    assert rank_probabilities(np.zeros((1, 3, 4)), SHAPE, N, 4.0) == {0: 1.0}
    assert rank_probabilities(np.zeros((1, 3, 0)), SHAPE, N, 4.0) == {0: 1.0}


def test_without_noise_rounding_is_no_factor():
    spectra = np.array([[[1000.0, 10.0, 1e-3, 1e-4]]])
    assert rank_probabilities(spectra, SHAPE, N, 0.0) == {2: 1.0}


def test_no_more_than_the_smaller_side():
    assert rank_probabilities(np.full((1, 2, 5), 1e6), (2, 9), 18, 1.0) == {2: 1.0}


def test_the_smaller_of_two_equally_probable_ranks():
    assert most_probable({1: 0.25, 3: 0.375, 4: 0.375}) == 3


def test_level():
    assert detection_level(SHAPE, N, 4.0) == pytest.approx(2 * 8100**0.25 * 2)
