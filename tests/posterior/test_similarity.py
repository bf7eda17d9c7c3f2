"""Similarity of rows, against the completed table."""

import numpy as np
import pytest

from fillrank.posterior.similarity import Similarity, centred_rows


def test_similarity_is_the_cosine_of_centred_rows():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(30, 3)), rng.normal(size=(12, 3))
    left[4] = left.mean(axis=0) + 2 * (left[9] - left.mean(axis=0))
    left[20] = left[9]
    found = Similarity(left, right).nearest(9, 29)
    table = left @ right.T - (left @ right.T).mean(axis=0)
    lengths = np.linalg.norm(table, axis=1)
    cosines = table @ table[9] / lengths / lengths[9]
    assert {found[0][0], found[1][0]} == {4, 20}
    assert len(found) == 29
    assert 9 not in dict(found)
    for i, cosine in found:
        assert cosine == pytest.approx(cosines[i], abs=1e-9)


def test_similarity_does_not_depend_on_the_factorization():
    rng = np.random.default_rng(1)
    left, right, mix = rng.normal(size=(9, 2)), rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
    one = Similarity(left, right).nearest(0, 8)
    other = Similarity(left @ mix, right @ np.linalg.inv(mix).T).nearest(0, 8)
    assert [i for i, _ in one] == [i for i, _ in other]
    assert [c for _, c in one] == pytest.approx([c for _, c in other])


def test_rows_that_do_not_differ_have_no_neighbours():
    assert Similarity(np.ones((4, 2)), np.ones((3, 2))).nearest(0, 3) == []
    assert Similarity(np.ones((1, 2)), np.ones((3, 2))).nearest(0, 3) == []


def test_distances_of_centred_rows_are_those_of_the_signal():
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))  # fewer columns than factors
    points = centred_rows(left, right)
    signal = left @ right.T - (left @ right.T).mean(axis=0)
    assert points @ points.T == pytest.approx(signal @ signal.T)
