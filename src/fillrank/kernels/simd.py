"""Vectors of eight lanes inside numba: what the processor does at once, said in so many words.

numba leaves vectors to the compiler, which finds those along contiguous memory and no others: the
transposition of a block, and loops without a scalar remainder, have to be written. These functions are
a line or two of LLVM's vector language each, the same for every processor; where its vectors are
shorter or longer than eight lanes, the compiler splits or joins them.

Indices are not checked, and do not count from the end.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 8
_INT32 = ir.IntType(32)


class Vector(types.Type):
    """The type of eight numbers in a register."""

    def __init__(self, dtype: Any):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Any):
        scalar = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}[vector.dtype]
        super().__init__(manager, vector, ir.VectorType(scalar, LANES))


def _whole(index: Any) -> Any:
    """The type that an index, or a pair of them, is taken as."""
    is_pair = isinstance(index, types.BaseTuple)  # type: ignore[attr-defined]
    return types.UniTuple(types.intp, 2) if is_pair else types.intp  # type: ignore[attr-defined]


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """The address of ``array[index]``; of ``array[i, j]`` if the index is a pair."""
    is_pair = isinstance(index.type, ir.ArrayType)
    indices = cgutils.unpack_tuple(builder, index) if is_pair else [index]
    return cgutils.get_item_pointer(
        context,
        builder,
        array_type,
        context.make_array(array_type)(context, builder, array),
        indices,
        wraparound=False,
        boundscheck=False,
    )


def _shuffled(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INT32, len(places)), places)
    return builder.shuffle_vector(one, other, mask)


def _in_all_lanes(builder: Any, x: Any, vector: Any) -> Any:
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, x, _INT32(0))
    return _shuffled(builder, first, nothing, [0] * LANES)


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Eight numbers that follow each other, from ``array[index]`` on."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(signature.return_type)
        pointer = _pointer(context, builder, array, *arguments)
        loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Vector(array.dtype)(array, _whole(index)), code


@intrinsic
def store(typing: Any, array: Any, index: Any, vector: Any) -> Any:
    """Put eight numbers into ``array[index]`` and what follows it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *place, numbers = arguments
        pointer = _pointer(context, builder, array, *place)
        stored = builder.store(numbers, builder.bitcast(pointer, numbers.type.as_pointer()))
        stored.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.none(array, _whole(index), vector), code


@intrinsic
def number(typing: Any, array: Any, index: Any) -> Any:
    """``array[index]``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, array, *arguments))

    return array.dtype(array, _whole(index)), code


@intrinsic
def spread(typing: Any, x: Any) -> Any:
    """One number in all lanes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (number,) = arguments
        return _in_all_lanes(builder, number, context.get_value_type(signature.return_type))

    return Vector(x)(x), code


@intrinsic
def spread_from(typing: Any, array: Any, index: Any) -> Any:
    """``array[index]`` in all lanes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x = builder.load(_pointer(context, builder, array, *arguments))
        return _in_all_lanes(builder, x, context.get_value_type(signature.return_type))

    return Vector(array.dtype)(array, _whole(index)), code


@intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once where the processor can."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(signature.return_type)
        name = f"llvm.fmuladd.v{LANES}f{a.dtype.bitwidth}"
        law = ir.FunctionType(vector, [vector] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, law, name), arguments)

    return a(a, b, c), code


@intrinsic
def add(typing: Any, a: Any, b: Any) -> Any:
    """a + b."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return a(a, b), code


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """The sum over the lanes: halves first, then quarters."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        half = LANES // 2
        while half:
            nothing = ir.Constant(x.type, ir.Undefined)
            low = _shuffled(builder, x, nothing, list(range(half)))
            high = _shuffled(builder, x, nothing, list(range(half, 2 * half)))
            x, half = builder.fadd(low, high), half // 2
        return builder.extract_element(x, _INT32(0))

    return vector.dtype(vector), code


# How two of the eight vectors are woven at each of the three stages: numbers from 8 on are lanes of the
# second one. Every stage doubles the length of what has been brought together.
_WEAVES = (
    ([0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]),
    ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]),
    ([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
)


@intrinsic
def transpose(typing: Any, block: Any) -> Any:
    """Turn eight vectors, as a tuple: lane t of vector k becomes lane k of vector t."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def weave(stage: int, one: Any, other: Any) -> list[Any]:
            return [_shuffled(builder, one, other, places) for places in _WEAVES[stage]]

        a, b, c, d, e, f, g, h = cgutils.unpack_tuple(builder, *arguments)
        pairs = [weave(0, a, b), weave(0, c, d), weave(0, e, f), weave(0, g, h)]
        (p, q), (r, s), (t, u), (v, w) = pairs
        low = weave(1, p, r) + weave(1, q, s)
        high = weave(1, t, v) + weave(1, u, w)
        woven = [weave(2, one, other) for one, other in zip(low, high, strict=True)]
        turned = [first for first, _ in woven] + [second for _, second in woven]
        return context.make_tuple(builder, signature.return_type, turned)

    return block(block), code


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]``, which will be read soon."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        law = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
        ask = cgutils.get_or_insert_function(builder.module, law, "llvm.prefetch.p0i8")
        pointer = builder.bitcast(_pointer(context, builder, array, *arguments), byte)
        builder.call(ask, [pointer, _INT32(0), _INT32(3), _INT32(1)])  # to read, near, data
        return context.get_dummy_value()

    return types.none(array, _whole(index)), code
