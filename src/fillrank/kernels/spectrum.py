"""Singular values of a product of factors, without the product."""

import numpy as np


def singular_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The singular values of left right^T, descending: from the two r x r Gram matrices.

    With right = Q T (QR), they are the singular values of left T^T; a QR of both sides keeps small
    values that the squares in a Gram matrix would lose.

    Examples
    --------
    >>> singular_values(np.array([[3.0], [4.0]]), np.array([[2.0]]))
    array([10.])
    """
    inner = np.linalg.qr(left.astype(np.float64), mode="r") @ (
        np.linalg.qr(right.astype(np.float64), mode="r").T
    )
    values = np.zeros(left.shape[1])
    found = np.linalg.svd(inner, compute_uv=False)
    values[: found.size] = found
    return values
