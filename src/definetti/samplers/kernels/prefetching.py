"""A word to the memory: a place of an array is read soon. Nothing depends on it but time."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BYTE, NUMBER = ir.IntType(8).as_pointer(), ir.IntType(32)
KIND = ir.FunctionType(ir.VoidType(), [BYTE, NUMBER, NUMBER, NUMBER])


@intrinsic
def prefetch(typingctx, array, index):
    """Of a C-contiguous array, `index` in the order of its memory."""

    def codegen(context, builder, signature, args):
        made = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(made.data, [args[1]]), BYTE)
        function = cgutils.get_or_insert_function(builder.module, KIND, "llvm.prefetch.p0i8")
        builder.call(function, [place, NUMBER(0), NUMBER(3), NUMBER(1)])  # to read, to stay, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen
