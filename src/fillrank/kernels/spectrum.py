"""Singular values of a product of factors, without the product."""

import numpy as np


def singular_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The singular values of left right^T, descending.

    With QR decompositions of both sides, left = P R and right = Q T, they are those of R T^T, which is
    r x r. Gram matrices would be cheaper, but their squares lose small values.

    Examples
    --------
    >>> singular_values(np.array([[3.0], [4.0]]), np.array([[2.0]]))
    array([10.])
    """
    R = np.linalg.qr(left.astype(np.float64)).R
    T = np.linalg.qr(right.astype(np.float64)).R
    values = np.zeros(left.shape[1])
    found = np.linalg.svd(R @ T.T, compute_uv=False)
    values[: found.size] = found
    return values
