"""Features of the nodes of a graph: the leading directions of a kernel on it.

With the weights A, the degrees D and the normalised Laplacian L = I - D^-1/2 A D^-1/2, the kernel is the
mean of (I + s L)^-1 over several s. Its leading directions are the eigenvectors of L with the smallest
eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from fillrank.errors import InputError, Setting
from fillrank.features.kernel_features import KernelFeatures
from fillrank.validation import as_real, check_integer

# On a long path, the kernel with s has a length scale of sqrt(s / 2) edges.
_SMOOTHNESS = (1.0, 10.0, 100.0)
_DENSE = 500  # nodes up to which all eigenvectors are fast
_ASYMMETRY = 1e-8  # allowed by rounding, relative to the largest weight
_TOLERANCE = 1e-8  # of eigenvalues, which are from 0 to 2
# Iterations of the solver, after which its matrix is factorised. That is fast for the graphs that need
# it: long ones with few edges.
_MOST_ITERATIONS = 100
_SHIFT = -1e-3  # below all eigenvalues, so that the matrix to factorise is positive definite


class _Eigenpairs(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors (n, k) of the nodes."""

    nodes: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class GraphFeatures(KernelFeatures):
    """Features of the nodes of a graph, from `graph`.

    Attributes
    ----------
    values : ndarray (m, p)
        The smoothest direction first; nodes without edges have zeros. Their scales are part of the
        kernel: do not standardise them.
    """

    block_name = "graph"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms, such as "direction 1"."""
        return tuple(f"direction {k + 1}" for k in range(self.values.shape[1]))

    def __repr__(self) -> str:
        m, p = self.values.shape
        return f"<GraphFeatures: {m:,} nodes x {p:,} directions>"


def graph(adjacency: Any, n_directions: int = 50) -> GraphFeatures:
    """Features of rows or columns that are nodes of a graph, such as a network of sensors.

    Nodes that are connected get similar factors.

    Parameters
    ----------
    adjacency : array or sparse matrix (m, m)
        The weights of the edges: symmetric, and 0 where there is none. The larger, the more similar.
        Weights of a node with itself are ignored.
    n_directions : int
        The largest number of features.

    Returns
    -------
    GraphFeatures
        For ``row_features`` or ``column_features`` of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> path = np.diag([1, 1, 1], 1) + np.diag([1, 1, 1], -1)
    >>> np.sign(graph(path, 2).values[:, 1])
    array([ 1.,  1., -1., -1.])
    """
    n_directions = check_integer("n_directions", n_directions, 1)
    weights = _checked(adjacency)
    pairs = [_smallest(nodes, block, n_directions) for nodes, block in _components(weights)]
    values = np.concatenate([found.values for found in pairs])
    chosen = np.sort(np.argsort(values, kind="stable")[:n_directions])
    features = _directions(pairs, chosen, weights.shape[0])
    features = features[:, np.argsort(values[chosen], kind="stable")]
    return GraphFeatures(features / np.sqrt(np.sum(features**2) / len(features)))


def _checked(adjacency: Any) -> Any:
    """The weights as a sparse array without a diagonal; anything else than a graph is refused."""
    if not sp.issparse(adjacency):
        adjacency = as_real(adjacency, "adjacency")
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError(
            place=Setting("adjacency"),
            allowed="a square matrix, with a row and a column for each node",
            value=adjacency.shape,
        )
    weights = sp.csr_array(adjacency)
    weights.data = as_real(weights.data, "adjacency")
    if not (np.isfinite(weights.data) & (weights.data >= 0)).all():
        raise InputError(
            place=Setting("adjacency"),
            allowed="weights of at least 0, none missing or infinite",
            value=float(weights.data[~(weights.data >= 0) | np.isinf(weights.data)][0]),
            advice="Use 0 where there is no edge, and similarities instead of distances.",
        )
    weights = sp.csr_array(weights - sp.diags_array(weights.diagonal()))
    weights.eliminate_zeros()
    if not weights.nnz:
        raise InputError(place=Setting("adjacency"), allowed="a graph with at least one edge")
    _check_symmetric(weights)
    return weights


def _check_symmetric(weights: Any) -> None:
    difference = abs(weights - weights.T).tocoo()
    worst = int(np.argmax(difference.data)) if difference.nnz else 0
    if difference.nnz and difference.data[worst] > _ASYMMETRY * weights.max():
        i, j = int(difference.row[worst]), int(difference.col[worst])
        raise InputError(
            f"adjacency must be symmetric; the weight of nodes {i} and {j} is {weights[i, j]:g}, and "
            f"that of {j} and {i} is {weights[j, i]:g}",
            advice="For the mean of both directions, pass (adjacency + adjacency.T) / 2.",
        )


def _components(weights: Any) -> list[tuple[np.ndarray, Any]]:
    """The nodes and D^-1/2 A D^-1/2 of each connected part with edges.

    They are separate because an iterative solver can miss some of several equal eigenvalues, and each
    part has the eigenvalue 0.
    """
    degrees = weights.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1))
    normalised = sp.csr_array(sp.diags_array(1 / roots) @ weights @ sp.diags_array(1 / roots))
    n_parts, part = connected_components(weights, directed=False)
    if n_parts == 1:
        return [(np.arange(len(part)), normalised)]
    groups = np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1])
    return [(nodes, normalised[nodes][:, nodes]) for nodes in groups if len(nodes) > 1]


def _smallest(nodes: np.ndarray, normalised: Any, n_directions: int) -> _Eigenpairs:
    """The smallest eigenvalues of I - ``normalised``, with eigenvectors."""
    n = len(nodes)
    k = min(n_directions, n)
    if n <= _DENSE or 2 * k >= n:
        values, vectors = eigh(np.eye(n) - normalised.toarray(), subset_by_index=[0, k - 1])
    else:
        values, vectors = _smallest_of_many(normalised, k)
    order = np.argsort(values, kind="stable")
    return _Eigenpairs(nodes, np.maximum(values[order], 0), vectors[:, order])


def _smallest_of_many(normalised: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """As `_smallest`, without a dense matrix; the fixed start makes the results repeatable."""
    start = np.random.default_rng(0).standard_normal(normalised.shape[0])
    settings: dict[str, Any] = {"k": k, "v0": start, "tol": _TOLERANCE}
    try:
        values, vectors = eigsh(normalised, which="LA", maxiter=_MOST_ITERATIONS, **settings)
    except ArpackNoConvergence:
        laplacian = sp.csc_array(sp.eye_array(normalised.shape[0]) - normalised)
        return eigsh(laplacian, sigma=_SHIFT, which="LM", **settings)
    return 1 - values, vectors


def _directions(pairs: list[_Eigenpairs], chosen: np.ndarray, m: int) -> np.ndarray:
    """The chosen eigenvectors (m, p) of ``pairs``, times the roots of the kernel's eigenvalues."""
    features = np.zeros((m, len(chosen)))
    column = first = 0
    for nodes, values, vectors in pairs:
        last = first + len(values)
        for k in chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, last)] - first:
            kernel = np.mean([1 / (1 + s * values[k]) for s in _SMOOTHNESS])
            features[nodes, column] = np.sqrt(kernel) * _with_sign(vectors[:, k])
            column += 1
        first = last
    return features


def _with_sign(vector: np.ndarray) -> np.ndarray:
    """The vector or its negative, so that the first of its large elements is positive."""
    magnitude = np.abs(vector)
    return vector * np.sign(vector[np.argmax(magnitude > magnitude.max() / 2)])
