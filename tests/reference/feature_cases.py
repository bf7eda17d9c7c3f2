"""Features of small tables, for checks of the samplers."""

import numpy as np

from fillrank.samplers.feature_steps import WITHOUT_FEATURES, BothFeatures, join_blocks


class Sides:
    """The features of both sides; each object is a key of its own."""

    def __init__(self, both=WITHOUT_FEATURES):
        self.both = both


NONE = Sides()


def centred_block(rng, n, p):
    """Values (n, p) of a block: centred, with orthogonal columns, rows of mean squared norm 1."""
    raw = rng.standard_normal((n, p))
    P, s, _ = np.linalg.svd(raw - raw.mean(axis=0), full_matrices=False)
    values = P * s
    return values * np.sqrt(n) / np.linalg.norm(values)


def make_features(n, sizes, seed, dtype=np.float64):
    """Features of n rows in blocks of these sizes, which are not orthogonal to each other."""
    rng = np.random.default_rng(seed)
    blocks = {f"block{g}": centred_block(rng, n, p) for g, p in enumerate(sizes)}
    return join_blocks(blocks, np.dtype(dtype))


def make_sides(shape, row_sizes, column_sizes, seed=0, dtype=np.float64):
    """Features of both sides of a table."""
    return Sides(
        BothFeatures(
            make_features(shape[0], row_sizes, [seed, 0], dtype),
            make_features(shape[1], column_sizes, [seed, 1], dtype),
        )
    )


def zero_features(shape, row_size, column_size, dtype=np.float64):
    """Features that are all 0."""
    sides = (
        join_blocks({"zeros": np.zeros((n, p))}, np.dtype(dtype))
        for n, p in zip(shape, (row_size, column_size), strict=True)
    )
    return Sides(BothFeatures(*sides))
