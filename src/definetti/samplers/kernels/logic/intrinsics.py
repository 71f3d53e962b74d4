"""What relational kernels say to LLVM directly: bits of words, and array places without Numba's square brackets."""

from numba import types
from numba.extending import intrinsic

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.linking import Linked

#: Without wrappers for Python and without reference counting, both of which would only cost compile time.
BARE = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    "pipeline_class": Linked,
}
helper = njit(**BARE)
part = njit(cache=True, **BARE)  # what kernels call


@intrinsic
def popcount(typingctx, x):
    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def lowest(typingctx, x):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], context.get_constant(types.boolean, 0))

    return types.int64(types.uint64), codegen


# array[index], table[row, column], a bit of words[index]: Numba takes twice as long to compile square brackets.


@intrinsic
def peek(typingctx, array, index):
    def codegen(context, builder, signature, args):
        return builder.load(place(context, builder, signature, args))

    return array.dtype(array, types.int64), codegen


@intrinsic
def cell(typingctx, table, row, column):
    def codegen(context, builder, signature, args):
        shape = context.data_model_manager[signature.args[0]].get(builder, args[0], "shape")
        index = builder.add(builder.mul(args[1], builder.extract_value(shape, 1)), args[2])
        return builder.load(place(context, builder, signature, (args[0], index)))

    return table.dtype(table, types.int64, types.int64), codegen


@intrinsic
def test(typingctx, words, index, bit):
    def codegen(context, builder, signature, args):
        word = builder.load(place(context, builder, signature, args))
        one = context.get_constant(types.uint64, 1)
        return builder.and_(builder.lshr(word, shift(context, builder, args)), one)

    return types.uint64(words, types.int64, types.int64), codegen


@intrinsic
def toggle(typingctx, words, index, bit):
    def codegen(context, builder, signature, args):
        where = place(context, builder, signature, args)
        one = context.get_constant(types.uint64, 1)
        builder.store(builder.xor(builder.load(where), builder.shl(one, shift(context, builder, args))), where)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), codegen


def place(context, builder, signature, args):
    data = context.data_model_manager[signature.args[0]].get(builder, args[0], "data")
    return builder.gep(data, [args[1]])


def shift(context, builder, args):
    return builder.and_(args[2], context.get_constant(types.int64, 63))
