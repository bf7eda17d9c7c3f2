from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

import fillrank as fr
from fillrank.errors import InputError
from fillrank.features.graph import graph

# `fillrank.features.graph` is the function.
MODULE = import_module("fillrank.features.graph")


def directions(*arguments):
    """The features of a graph as an array."""
    return graph(*arguments).values


def two_cliques(size=6):
    A = np.zeros((2 * size, 2 * size))
    A[:size, :size] = A[size:, size:] = 1
    A[size - 1, size] = A[size, size - 1] = 0.5
    return A


def random_graph(m=80, seed=0):
    A = np.triu(np.random.default_rng(seed).random((m, m)) ** 8, 1)
    return A + A.T


def path(m):
    return sp.diags_array([np.ones(m - 1)] * 2, offsets=[1, -1])


def exact_kernel(A):
    A = A - np.diag(np.diag(A))
    root = np.sqrt(A.sum(axis=1))
    L = np.eye(len(A)) - A / root / root[:, None]
    K = np.mean([np.linalg.inv(np.eye(len(A)) + s * L) for s in (1, 10, 100)], axis=0)
    return K / np.mean(np.diag(K))


def test_the_second_direction_separates_cliques():
    F = directions(two_cliques(), 2)
    assert np.ptp(np.sign(F[:, 0])) == 0
    assert set(np.sign(F[:6, 1])) == {1}
    assert set(np.sign(F[6:, 1])) == {-1}


def test_all_directions_are_the_kernel():
    A = random_graph(30)
    F = directions(A)
    assert F.shape == (30, 30)
    np.testing.assert_allclose(F @ F.T, exact_kernel(A), atol=1e-10)


def test_directions_are_ordered_and_have_variance_one():
    F = directions(random_graph(), 10)
    assert (np.diff((F**2).sum(axis=0)) <= 0).all()
    np.testing.assert_allclose(np.mean((F**2).sum(axis=1)), 1)


def test_sparse_and_dense_are_the_same():
    A = random_graph()
    for form in (sp.csr_matrix, sp.coo_array, sp.csc_array, sp.lil_array):
        np.testing.assert_allclose(directions(form(A), 8), directions(A, 8), atol=1e-9)


def test_the_iterative_solver_finds_the_same(monkeypatch):
    A = random_graph()
    dense = directions(A, 8)
    monkeypatch.setattr(MODULE, "_DENSE", 0)
    np.testing.assert_allclose(directions(A, 8), dense, atol=1e-6)


def test_a_long_path_is_solved_by_factorisation(monkeypatch):
    dense = directions(path(300), 5)
    monkeypatch.setattr(MODULE, "_DENSE", 0)
    monkeypatch.setattr(MODULE, "_MOST_ITERATIONS", 1)
    np.testing.assert_allclose(directions(path(300), 5), dense, atol=1e-5)


def test_nodes_without_edges_have_zeros():
    A = np.zeros((14, 14))
    A[1:13, 1:13] = two_cliques()
    F = directions(A, 3)
    assert not F[[0, 13]].any()
    scale = np.sqrt(14 / 12)  # the variance is a mean over all nodes
    np.testing.assert_allclose(F[1:13], scale * directions(two_cliques(), 3), atol=1e-12)


def test_each_part_has_a_direction_of_its_own():
    A = sp.block_diag([np.ones((4, 4)), path(3), np.ones((5, 5))])
    F = directions(A, 3)
    assert (np.count_nonzero(np.abs(F) > 1e-9, axis=1) == 1).all()
    assert sorted(np.count_nonzero(np.abs(F) > 1e-9, axis=0)) == [3, 4, 5]
    whole = directions(A)
    np.testing.assert_allclose(whole @ whole.T, exact_kernel(A.toarray()), atol=1e-10)


def test_weights_of_a_node_with_itself_are_ignored():
    A = two_cliques()
    np.testing.assert_allclose(directions(A + 7 * np.eye(12)), directions(A), atol=1e-12)


def test_results_are_repeatable(monkeypatch):
    monkeypatch.setattr(MODULE, "_DENSE", 0)
    np.testing.assert_array_equal(directions(path(200), 4), directions(path(200), 4))
    assert fr.features.graph is graph


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda A: A[:5], r"a square matrix.*\(5, 12\)"),
        (lambda A: A[0], "a square matrix"),
        (lambda A: np.triu(A), r"symmetric; the weight of nodes \d+ and \d+ .*adjacency.T"),
        (lambda A: -A, "at least 0.*-1.0.*similarities"),
        (lambda A: np.where(A == 0.5, np.nan, A), "none missing.*nan"),
        (lambda A: np.where(A == 0.5, np.inf, A), "infinite.*inf"),
        (lambda A: sp.csr_array(np.where(A == 0.5, np.nan, A)), "none missing.*nan"),
        (lambda A: np.eye(12), "at least one edge"),
        (lambda A: A.astype(complex), "real numbers"),
        (lambda A: sp.csr_array(A.astype(complex)), "real numbers"),
        (lambda A: A.astype(str), "real numbers"),
    ],
)
def test_what_is_not_a_graph_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        directions(change(two_cliques()))


def test_the_number_of_directions_is_checked():
    with pytest.raises(InputError, match="n_directions"):
        directions(two_cliques(), 0)
    assert directions(two_cliques(), 100).shape == (12, 12)
