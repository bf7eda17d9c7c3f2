import numpy as np
import pytest

from fillrank import synthetic
from fillrank.errors import InputError
from helpers.same_entries import assert_same


def test_without_noise_the_entries_are_the_truth():
    observations, truth = synthetic(30, 20, rank=3, noise=0, missing=0.4, random_state=0)
    assert truth.shape == observations.shape == (30, 20)
    assert len(observations) == round(0.6 * 600)
    assert np.linalg.matrix_rank(truth) == 3
    np.testing.assert_array_equal(
        observations.values, truth[observations.row_index, observations.column_index]
    )


def test_noise_and_signal_have_the_variances_of_the_paper():
    observations, truth = synthetic(400, 300, rank=5, noise=2.0, missing=0.5, random_state=1)
    noise = observations.values - truth[observations.row_index, observations.column_index]
    # 60,000 draws: the standard deviation of the sample's is 2 / sqrt(2 * 60,000) = 0.0058.
    assert abs(noise.std() - 2.0) < 5 * 0.0058
    assert abs(noise.mean()) < 5 * 2 / np.sqrt(60_000)
    # An entry of Z has variance 5; those of one row share a factor, so the mean is far looser.
    assert abs((truth**2).mean() - 5) < 1


def test_every_cell_may_be_observed():
    seen = np.zeros((4, 5))
    for seed in range(2000):
        observations, _ = synthetic(4, 5, rank=1, missing=0.5, random_state=seed)
        seen[observations.row_index, observations.column_index] += 1
    # Binomial(2000, 1/2): standard deviation 22.4.
    assert np.abs(seen - 1000).max() < 5 * 22.4


def test_nothing_missing():
    observations, _ = synthetic(6, 5, rank=2, missing=0, random_state=0)
    assert observations.density == 1


def test_same_seed_same_data():
    first, again, other = (synthetic(10, 10, 2, random_state=seed) for seed in (3, 3, 4))
    assert_same(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[1], other[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rows": 0}, "n_rows must be a whole number at least 1, got 0"),
        ({"n_columns": 2.0}, "n_columns must be a whole number at least 1, got 2.0"),
        ({"rank": 0}, "rank must be a whole number from 1 to 500, got 0"),
        ({"rank": 6, "n_columns": 5}, "rank must be a whole number from 1 to 5, got 6"),
        ({"rank": True}, "rank must be a whole number from 1 to 500, got True"),
        ({"noise": -1}, "noise must be finite and 0 or more, got -1"),
        ({"noise": np.inf}, "noise must be finite and 0 or more, got inf"),
        ({"missing": 1}, "missing must be 0 or more and below 1, got 1"),
        ({"missing": -0.1}, "missing must be 0 or more and below 1, got -0.1"),
        ({"n_rows": 2, "n_columns": 2, "rank": 1, "missing": 0.9}, "leaves none of the 4 cells"),
        ({"random_state": "x"}, "random_state must be None"),
    ],
)
def test_other_arguments_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        synthetic(**arguments)
