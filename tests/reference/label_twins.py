"""Positions of names by a dict of Python objects: the slow twin of NameIndex."""

from contextlib import suppress

from fillrank.table.labels import as_labels


def positions_by_dict(labels, names):
    """The position of each name, or None; of a label that came twice, its last."""
    known = {key: position for position, key in enumerate(_keys(labels, labels))}
    return [known.get(key) for key in _keys(labels, as_labels(names))]


def _keys(labels, names):
    """Dates as numpy's objects in the unit of the labels, all else as Python's."""
    if labels.dtype.kind not in "mM":
        return names.tolist()
    if names.dtype.kind in "OmM":
        with suppress(TypeError, ValueError, OverflowError):
            names = names.astype(labels.dtype)
    return list(names)
