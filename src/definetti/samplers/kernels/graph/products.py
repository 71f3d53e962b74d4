"""What the kernel of polynomials says to LLVM directly: 32 lanes' bytes are one vector.

Numba vectorises loops, not neighbouring statements: it would gather words of several products where one product's 32
bytes lie side by side.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 32  # bytes of a vector
BYTE, HALF, WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(BYTE, LANES)
ANY, FIRST = ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.VectorType(HALF, LANES), [0] * LANES)


@intrinsic
def vector_counts(typingctx, state, product, first, end, count):
    """`count_products` of `polynomial.py`, for C-contiguous arrays with rows of a multiple of 32 bytes."""

    def codegen(context, builder, signature, args):
        arrays = [context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 1, 4)]
        values, numbers, counts = (array.data for array in arrays)
        width, total = builder.extract_value(arrays[0].shape, 1), cgutils.alloca_once(builder, VECTOR)

        def lanes_at(data, place):
            return builder.bitcast(builder.gep(data, [place]), VECTOR.as_pointer())

        def literal(place, lane):
            """The values of a variable in a product, and its highest bit, in all lanes."""
            number = builder.load(builder.gep(numbers, [place]))
            variable = builder.zext(builder.and_(number, HALF(0x7FFFFFFF)), WORD)
            bit = builder.trunc(builder.lshr(number, HALF(31)), BYTE)
            found = builder.load(lanes_at(values, builder.add(builder.mul(variable, width), lane)), align=1)
            return found, builder.shuffle_vector(builder.insert_element(ANY, bit, HALF(0)), ANY, FIRST)

        with cgutils.for_range_slice(builder, WORD(0), width, WORD(LANES)) as (lane, _):
            builder.store(VECTOR(None), total)
            with cgutils.for_range_slice(builder, args[2], args[3], WORD(1)) as (e, _):
                place = builder.shl(e, WORD(1))
                a, minus = literal(place, lane)
                b, negated = literal(builder.add(place, WORD(1)), lane)
                one = builder.xor(builder.and_(a, builder.xor(b, negated)), minus)
                builder.store(builder.add(builder.load(total), one), total)
            builder.store(builder.load(total), lanes_at(counts, lane), align=1)
        return context.get_dummy_value()

    return types.void(state, product, types.int64, types.int64, count), codegen
