"""Values that are given by their lower and upper ends."""

import numpy as np
import pytest
import scipy.sparse as sp

from fillrank import Observations
from fillrank.errors import InputError

INF, NAN = np.inf, np.nan
LOW = np.array([[1.0, -INF, NAN], [2.0, 3.0, 7.0]])
HIGH = np.array([[1.0, 0.5, NAN], [2.0, 4.0, INF]])


def ends(observations):
    """The ends of each entry."""
    return [
        [value, value] if cell < 0 else observations.intervals[cell].tolist()
        for value, cell in zip(observations.values.tolist(), observations.cells, strict=True)
    ]


EXPECTED = [[1.0, 1.0], [-INF, 0.5], [2.0, 2.0], [3.0, 4.0], [7.0, INF]]


def test_of_an_array():
    observations = Observations.from_matrix(LOW, upper=HIGH)
    assert ends(observations) == EXPECTED
    # A finite end, or the middle.
    assert observations.values.tolist() == [1.0, 0.5, 2.0, 3.5, 7.0]
    weighted = Observations.from_matrix(LOW, upper=HIGH, weights=np.full(LOW.shape, 2.0))
    assert ends(weighted) == EXPECTED


def test_of_triplets():
    rows, columns = np.nonzero(~np.isnan(LOW))
    given = LOW[rows, columns][::-1], HIGH[rows, columns][::-1]
    observations = Observations.from_triplets(rows[::-1], columns[::-1], given[0], upper=given[1])
    assert sorted(ends(observations)) == sorted(EXPECTED)


def test_of_a_sparse_matrix():
    rows, columns = np.nonzero(~np.isnan(LOW))
    low, high = (
        sp.csr_array((each[rows, columns], (rows, columns)), shape=LOW.shape)
        for each in (LOW, HIGH)
    )
    assert ends(Observations.from_matrix(low, upper=high)) == EXPECTED


def test_equal_ends_are_exact_values():
    observations = Observations.from_matrix(LOW[:, :1], upper=LOW[:, :1])
    assert observations.cells is None
    assert observations.intervals is None


def test_a_value_without_limits_is_missing():
    observations = Observations.from_triplets([0, 1], [0, 0], [-INF, 1.0], upper=[INF, 1.0])
    assert observations.values.tolist() == [1.0]
    assert observations.shape == (2, 1)


def test_ends_that_are_missing_by_a_code():
    observations = Observations.from_matrix([[1.0, -9.0]], upper=[[2.0, -9.0]], missing_values=[-9])
    assert ends(observations) == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (LOW, LOW - 1, r"row 0, column 0: the upper end of a value must be at least the lower"),
        (LOW, np.where(LOW == 3, NAN, HIGH), r"row 1, column 1: .* missing where the value is"),
        (np.where(LOW == 3, NAN, LOW), HIGH, r"row 1, column 1: .* missing where the value is"),
        (LOW, HIGH[:1], r"upper must be an array of the shape of the table, \(2, 3\)"),
        (np.full((1, 1), INF), np.full((1, 1), INF), "values must be finite"),
    ],
)
def test_wrong_ends_are_refused(low, high, message):
    with pytest.raises(InputError, match=message):
        Observations.from_matrix(low, upper=high)


def test_wrong_ends_of_triplets_are_refused():
    with pytest.raises(InputError, match=r"row 'a', column 'x'.*at least the lower.*\(2.0, 1.0\)"):
        Observations.from_triplets(["a"], ["x"], [2.0], upper=[1.0])
    with pytest.raises(InputError, match=r"upper must be an array of shape \(1,\)"):
        Observations.from_triplets(["a"], ["x"], [2.0], upper=[1.0, 3.0])
