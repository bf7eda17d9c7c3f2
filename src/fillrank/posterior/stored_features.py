"""The features of one side of a table in a model file.

Text is in arrays, and not in the description of a file, which must be short: there can be many terms.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from fillrank.errors import ReadError
from fillrank.features.blocks import Block, Field, PatternCode, TableCode, TimeBasis, TimeCode
from fillrank.samplers.model import NO_WEIGHTS
from fillrank.storage.serialization import Labels


class _StoredFields(NamedTuple):
    """The fields of a table of features, with an item for each of them in every array but ``levels``.

    ``levels`` has those of all fields, one after the other; ``numbers`` are mean and scale.
    """

    names: Labels
    is_category: np.ndarray
    numbers: np.ndarray
    n_levels: np.ndarray
    levels: Labels
    has_missing: np.ndarray


class _StoredBasis(NamedTuple):
    """A `TimeBasis`: the frequencies, phases and weights of its terms are (3, q) ``waves``."""

    of_dates: bool
    origin: float
    reach: float
    n_trend: int
    waves: np.ndarray


class _StoredBlock(NamedTuple):
    """A block: ``fields`` is for one from a table, ``basis`` for one from times.

    Both are None for one that comes from the pattern of missing values.
    """

    name: str
    values: np.ndarray
    means: np.ndarray
    directions: np.ndarray
    terms: Labels
    fields: _StoredFields | None
    basis: _StoredBasis | None


class StoredSide(NamedTuple):
    """The blocks of one side, and their weights in every draw: (draws, features, factors)."""

    blocks: list[_StoredBlock]
    weights: np.ndarray


def stored_side(blocks: tuple[Block, ...], weights: list[np.ndarray]) -> StoredSide | None:
    """The features of a side as a file has them; None without any."""
    if not blocks:
        return None
    return StoredSide([_stored_block(block) for block in blocks], np.stack(weights))


def restored_blocks(side: StoredSide | None) -> tuple[Block, ...]:
    """The blocks of a side from a file. Their numbers have not been checked."""
    return () if side is None else tuple(_restored_block(block) for block in side.blocks)


def restored_weights(side: StoredSide | None, n_draws: int) -> list[np.ndarray]:
    """The weights of a side in every draw, from a file. They have not been checked."""
    if side is None:
        return [NO_WEIGHTS] * n_draws
    if side.weights.ndim != 3 or len(side.weights) != n_draws:
        raise ReadError("its features must have weights in every draw.")
    return [*side.weights]


def _stored_block(block: Block) -> _StoredBlock:
    code = block.code
    fields = _stored_fields(code.fields) if isinstance(code, TableCode) else None
    basis = _stored_basis(code.basis) if isinstance(code, TimeCode) else None
    terms = _texts(block.terms)
    return _StoredBlock(block.name, block.values, code.means, code.directions, terms, fields, basis)


def _stored_basis(basis: TimeBasis) -> _StoredBasis:
    waves = np.array([basis.frequencies, basis.phases, basis.weights])
    return _StoredBasis(basis.of_dates, basis.origin, basis.reach, basis.n_trend, waves)


def _stored_fields(fields: tuple[Field, ...]) -> _StoredFields:
    return _StoredFields(
        _texts(tuple(field.name for field in fields)),
        np.array([field.kind == "category" for field in fields], dtype=bool),
        np.array([(field.mean, field.scale) for field in fields], dtype=float).reshape(-1, 2),
        np.array([len(field.levels) for field in fields], dtype=np.int64),
        _texts(tuple(level for field in fields for level in field.levels)),
        np.array([field.has_missing for field in fields], dtype=bool),
    )


def _texts(texts: tuple[str, ...]) -> np.ndarray:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _restored_block(block: _StoredBlock) -> Block:
    code: TableCode | PatternCode | TimeCode = PatternCode(block.means, block.directions)
    terms = _restored_texts(block.terms)
    if block.fields is not None:
        code = TableCode(_restored_fields(block.fields), block.means, block.directions)
    elif block.basis is not None:
        code = TimeCode(_restored_basis(block.basis, terms), block.means, block.directions)
    return Block(block.name, block.values, code, terms)


def _restored_basis(basis: _StoredBasis, terms: tuple[str, ...]) -> TimeBasis:
    if basis.waves.dtype != np.float64 or basis.waves.shape != (3, len(terms)):
        raise ReadError("the terms of its times do not match.")
    frequencies, phases, weights = basis.waves
    return TimeBasis(
        basis.of_dates,
        basis.origin,
        basis.reach,
        basis.n_trend,
        frequencies,
        phases,
        weights,
        terms,
    )


def _restored_fields(fields: _StoredFields) -> tuple[Field, ...]:
    names, levels = _restored_texts(fields.names), _restored_texts(fields.levels)
    n = len(names)
    parts = (
        (fields.is_category, np.bool_, (n,)),
        (fields.numbers, np.float64, (n, 2)),
        (fields.n_levels, np.int64, (n,)),
        (fields.has_missing, np.bool_, (n,)),
    )
    if not all(part.dtype == dtype and part.shape == shape for part, dtype, shape in parts):
        raise ReadError("the fields of its features do not match.")
    sizes = fields.n_levels.tolist()
    if min(sizes, default=0) < 0 or sum(sizes) != len(levels):
        raise ReadError("the levels of its features do not match.")
    restored, start = [], 0
    for i, (mean, scale) in enumerate(fields.numbers.tolist()):
        stop = start + sizes[i]
        kind: Literal["number", "category"] = "category" if fields.is_category[i] else "number"
        has_missing = bool(fields.has_missing[i])
        restored.append(Field(names[i], kind, mean, scale, levels[start:stop], has_missing))
        start = stop
    return tuple(restored)


def _restored_texts(labels: np.ndarray) -> tuple[str, ...]:
    texts = tuple(labels.tolist())
    if not all(isinstance(text, str) for text in texts):
        raise ReadError("the names of its features must be text.")
    return texts
