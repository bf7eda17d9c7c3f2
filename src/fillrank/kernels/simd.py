"""Explicit SIMD vectors of eight numbers for numba kernels.

numba leaves vectorisation to the compiler, which only vectorises along contiguous memory.
Transposing a block, and loops without a scalar remainder, need explicit vectors. Each of these
functions is a line or two of LLVM's vector instructions, the same for every processor; if its
vectors are shorter or longer than eight numbers, the compiler splits or joins them.

Indices are not checked, and negative indices are not supported.
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


def _index_type(index: Any) -> Any:
    """The type of an index, or of a pair of indices."""
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


def _shuffled(builder: Any, one: Any, other: Any, positions: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INT32, len(positions)), positions)
    return builder.shuffle_vector(one, other, mask)


def _in_all_lanes(builder: Any, x: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, x, _INT32(0))
    return _shuffled(builder, first, undefined, [0] * LANES)


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Eight consecutive numbers from ``array[index]`` on."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(signature.return_type)
        pointer = _pointer(context, builder, array, *arguments)
        loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Vector(array.dtype)(array, _index_type(index)), code


@intrinsic
def store(typing: Any, array: Any, index: Any, vector: Any) -> Any:
    """Store eight numbers from ``array[index]`` on."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *position, numbers = arguments
        pointer = _pointer(context, builder, array, *position)
        stored = builder.store(numbers, builder.bitcast(pointer, numbers.type.as_pointer()))
        stored.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.none(array, _index_type(index), vector), code


@intrinsic
def number(typing: Any, array: Any, index: Any) -> Any:
    """``array[index]``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, array, *arguments))

    return array.dtype(array, _index_type(index)), code


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

    return Vector(array.dtype)(array, _index_type(index)), code


@intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once if the processor supports it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(signature.return_type)
        name = f"llvm.fmuladd.v{LANES}f{a.dtype.bitwidth}"
        function_type = ir.FunctionType(vector, [vector] * 3)
        return builder.call(
            cgutils.get_or_insert_function(builder.module, function_type, name), arguments
        )

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
            undefined = ir.Constant(x.type, ir.Undefined)
            low = _shuffled(builder, x, undefined, list(range(half)))
            high = _shuffled(builder, x, undefined, list(range(half, 2 * half)))
            x, half = builder.fadd(low, high), half // 2
        return builder.extract_element(x, _INT32(0))

    return vector.dtype(vector), code


# How two of the eight vectors are interleaved at each of the three stages: numbers from 8 on are
# lanes of the second vector. Every stage doubles the length of the contiguous runs.
_INTERLEAVINGS = (
    ([0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]),
    ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]),
    ([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
)


@intrinsic
def transpose(typing: Any, block: Any) -> Any:
    """Transpose eight vectors, as a tuple: lane t of vector k becomes lane k of vector t."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def interleave(stage: int, one: Any, other: Any) -> list[Any]:
            return [
                _shuffled(builder, one, other, positions) for positions in _INTERLEAVINGS[stage]
            ]

        a, b, c, d, e, f, g, h = cgutils.unpack_tuple(builder, *arguments)
        pairs = [interleave(0, a, b), interleave(0, c, d), interleave(0, e, f), interleave(0, g, h)]
        (p, q), (r, s), (t, u), (v, w) = pairs
        low = interleave(1, p, r) + interleave(1, q, s)
        high = interleave(1, t, v) + interleave(1, u, w)
        interleaved = [interleave(2, one, other) for one, other in zip(low, high, strict=True)]
        transposed = [first for first, _ in interleaved] + [second for _, second in interleaved]
        return context.make_tuple(builder, signature.return_type, transposed)

    return block(block), code


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of ``array[index]``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        function_type = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
        fetch = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0i8")
        pointer = builder.bitcast(_pointer(context, builder, array, *arguments), byte)
        builder.call(fetch, [pointer, _INT32(0), _INT32(3), _INT32(1)])  # to read, near, data
        return context.get_dummy_value()

    return types.none(array, _index_type(index)), code
