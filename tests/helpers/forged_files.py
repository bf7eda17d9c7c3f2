"""Forged model files: their checksums are valid."""

import copy

import numpy as np

_STRANGE = (
    *(None, True, -1, 0, 10**30, -0.5, 1e308, "x", "__class__", [], {}),
    *({"float": "nan"}, {"float": "inf"}),
)
_DTYPES = ("bool", "int8", "int32", "int64", "uint64", "float16", "float32", "float64")


def forged(content, only=""):
    """Yield (description, content) with one item of a file changed, for every item.

    With ``only``, for the items whose names contain it.
    """
    for what, about in _forged_abouts(content.about, only):
        yield what, content._replace(about=about)
    for name, array in content.arrays.items():
        if only in name and not _is_one_of_many(name):
            for what, other in other_arrays(array):
                yield f"{name} {what}", content._replace(arrays=content.arrays | {name: other})


def _is_one_of_many(name):
    """Return whether an array belongs to a draw other than the first."""
    parts = name.split("/")
    return parts[1:2] in (["draws"], ["scorers"]) and parts[2] != "0"


def _forged_abouts(about, only):
    """Yield (description, document) with one item of the JSON document changed."""
    for path in paths(about):
        found, name = at(about, path), "/".join(map(str, path)) or "about"
        if only not in name:
            continue
        if path:
            for value in _STRANGE:
                if not (type(value) is type(found) and value == found):
                    yield f"{name} = {value!r}", altered(about, path, value)
            yield f"without {name}", without(about, path)
        if isinstance(found, dict):
            yield f"{name} with more", altered(about, path, found | {"more": 1})
        if isinstance(found, list) and found:
            yield f"{name} twice", altered(about, path, found + found)


def paths(tree, path=(), all_items=False):
    """Yield the path of every item of a tree; of lists only the first item, or ``all_items``."""
    yield path
    items = tree.items() if isinstance(tree, dict) else ()
    if isinstance(tree, list):
        items = list(enumerate(tree))[: None if all_items else 1]
    for key, part in items:
        yield from paths(part, (*path, key), all_items)


def at(tree, path):
    """Return the item of a tree at a path."""
    for key in path:
        tree = tree[key]
    return tree


def altered(tree, path, value):
    """Return a copy of a tree with a value at a path."""
    if not path:
        return value
    tree = copy.deepcopy(tree)
    at(tree, path[:-1])[path[-1]] = value
    return tree


def without(tree, path):
    """Return a copy of a tree without the item at a path."""
    tree = copy.deepcopy(tree)
    del at(tree, path[:-1])[path[-1]]
    return tree


def other_arrays(array):
    """Yield (description, array) with other shapes, types and numbers."""
    yield from _other_shapes(array)
    for dtype in _DTYPES:
        if array.dtype != dtype:
            with np.errstate(over="ignore", invalid="ignore"):
                yield f"as {dtype}", array.astype(dtype)
    yield from _other_values(array)


def _other_shapes(array):
    for axis in range(array.ndim):
        if array.shape[axis]:
            yield f"shorter along {axis}", np.delete(array, -1, axis)
            yield f"longer along {axis}", np.append(array, np.take(array, [0], axis), axis)
            yield f"empty along {axis}", np.take(array, [], axis)
    if array.ndim == 1:
        yield "as a row", array[None]
        yield "as a column", array[:, None]
    elif len(set(array.shape)) > 1:
        yield "transposed", array.T
        yield "flat", array.ravel()
    if array.size:
        yield "as a scalar", array.reshape(-1)[0].reshape(())
    if array.size > 1:
        yield "backwards", array.reshape(-1)[::-1].reshape(array.shape)


def _other_values(array):
    values = {"-1": -1, "0": 0, "1": 1, "huge": 10**9}
    if array.dtype.kind == "f":
        values |= {"nan": np.nan, "inf": np.inf, "1e38": 1e38}
    for what, value in values.items():
        for which, positions in (("all", slice(None)), ("one", slice(-1, None))):
            other = array.copy()
            with np.errstate(over="ignore"):
                other.reshape(-1)[positions] = np.array(value).astype(array.dtype)
            if other.tobytes() != array.tobytes():
                yield f"{which} {what}", other
