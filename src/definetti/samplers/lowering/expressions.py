"""Expressions of the language of generated kernels as LLVM values, each with its type."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportCallIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.np import arrayobj

INT, WORD, REAL, TRUTH = types.int64, types.uint64, types.float64, types.boolean
I64, F64, BIT, BYTE = ir.IntType(64), ir.DoubleType(), ir.IntType(1), ir.IntType(8)
LLVM = {INT: I64, WORD: I64, REAL: F64, TRUTH: BIT}
OPERATIONS = {
    ast.Add: ("add", "fadd"), ast.Sub: ("sub", "fsub"), ast.Mult: ("mul", "fmul"), ast.BitAnd: ("and_", ""),
    ast.BitOr: ("or_", ""), ast.BitXor: ("xor", ""), ast.LShift: ("shl", ""), ast.RShift: ("lshr", ""),
}  # fmt: skip
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True)
class Value:
    """An LLVM value and the type that says how it is used."""

    type: Any
    llvm: Any


@dataclass(frozen=True)
class Array:
    """An argument: its type, where its numbers are, and the lengths of its axes."""

    kind: Any
    data: Any
    shape: tuple[Any, ...]

    @property
    def dtype(self) -> Any:
        return self.kind.dtype

    def whole(self, context: Any, builder: Any) -> Any:
        """The array as Numba hands it on."""
        made = arrayobj.make_array(self.kind)(context, builder)
        size = context.get_constant(types.intp, self.dtype.bitwidth // 8)
        steps = [builder.mul(size, self.shape[1]), size] if len(self.shape) == 2 else [size]
        arrayobj.populate_array(made, self.data, list(self.shape), steps, size, None)
        return made._getvalue()


class Expressions:
    """A function that is being written: where the text stands, what its names are, and the values of expressions."""

    def __init__(self, context: Any, made: ir.Function, source: Any) -> None:
        self.context, self.made, self.tree = context, made, source.tree
        self.globals, self.name = source.function.__globals__, source.function.__name__
        self.top = ir.IRBuilder(made.append_basic_block("top"))  # room for variables
        self.at = ir.IRBuilder(made.append_basic_block("begin"))
        self.known: dict[str, Value | Array] = {}  # arguments, and names that are assigned once
        self.places: dict[str, Value] = {}  # the memory of the others
        self.loops: list[tuple[Any, Any]] = []  # where `continue` and `break` go
        stored = (n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.assigned = Counter(stored)  # one that is changed in place is counted twice: it has been assigned before

    def variable(self, kind: Any, name: str = "") -> Any:
        self.top.position_at_end(self.top.block)  # calls of helpers put variables there, too
        return self.top.alloca(kind, name=name)

    def refuse(self, node: ast.AST) -> NoReturn:
        raise TypeError(f"{self.name}: the language of generated kernels lacks `{ast.unparse(node)}`")

    def block(self, name: str) -> Any:
        return self.made.append_basic_block(name)

    def go_on(self, block: Any) -> None:
        if not self.at.block.is_terminated:
            self.at.branch(block)

    # --- expressions ---

    def value(self, e: ast.expr) -> Value:
        match e:
            case ast.Name(id=name):
                return self.named(name, e)
            case ast.Constant(value=constant):
                return self.constant(constant, e)
            case ast.Attribute(value=ast.Name(id=module), attr=attribute):
                return self.constant(getattr(self.globals.get(module), attribute, None), e)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=k)):
                return Value(INT, self.array(name, e).shape[k])
            case ast.Subscript():
                array, place = self.element(e)
                return self.read(array, place)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right), e)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, self.value(operand), e)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compare(op, self.value(left), self.value(right), e)
            case ast.BoolOp(op=op, values=values):
                return Value(TRUTH, self.shortcut(isinstance(op, ast.And), values))
            case ast.IfExp():
                return self.choose(e)
            case ast.Call():
                found = self.call(e)
                return self.refuse(e) if found is None else found
        self.refuse(e)

    def named(self, name: str, e: ast.expr) -> Value:
        if name in self.places:
            place = self.places[name]
            return Value(place.type, self.at.load(place.llvm))
        found = self.known.get(name)
        if found is None and name not in self.assigned:
            return self.constant(self.globals.get(name), e)
        return found if isinstance(found, Value) else self.refuse(e)

    def constant(self, constant: Any, e: ast.expr) -> Value:
        if isinstance(constant, np.uint64):
            return Value(WORD, I64(int(constant)))
        if isinstance(constant, bool):
            return Value(TRUTH, BIT(int(constant)))
        if isinstance(constant, int | np.int64):
            return Value(INT, I64(int(constant)))
        return Value(REAL, F64(constant)) if isinstance(constant, float) else self.refuse(e)

    def array(self, name: str, e: ast.expr) -> Array:
        found = self.known.get(name)
        return found if isinstance(found, Array) else self.refuse(e)

    def element(self, e: ast.Subscript) -> tuple[Array, Any]:
        if not isinstance(e.value, ast.Name):
            self.refuse(e)
        array = self.array(e.value.id, e)
        if isinstance(e.slice, ast.Tuple):
            row, column = (self.integer(x) for x in e.slice.elts)
            index = self.at.add(self.at.mul(row, array.shape[1]), column)
        else:
            index = self.index(e.slice)
        return array, self.at.gep(array.data, [index], inbounds=True)

    def read(self, array: Array, place: Any) -> Value:
        found = self.at.load(place)
        if array.dtype == types.int32:
            return Value(INT, self.at.sext(found, I64))
        return Value(array.dtype, found)

    def binary(self, op: ast.operator, a: Value, b: Value, e: ast.AST) -> Value:
        whole, real = OPERATIONS.get(type(op), ("", ""))
        if REAL in (a.type, b.type):
            if not real:
                self.refuse(e)
            return Value(REAL, getattr(self.at, real)(self.cast(a, REAL).llvm, self.cast(b, REAL).llvm))
        if not whole or a.type != b.type or a.type == TRUTH:
            self.refuse(e)
        whole = "ashr" if whole == "lshr" and a.type == INT else whole
        return Value(a.type, getattr(self.at, whole)(a.llvm, b.llvm))

    def unary(self, op: ast.unaryop, a: Value, e: ast.expr) -> Value:
        if isinstance(op, ast.Not):
            return Value(TRUTH, self.at.not_(self.cast(a, TRUTH).llvm))
        if isinstance(op, ast.Invert) and a.type in (INT, WORD):
            return Value(a.type, self.at.not_(a.llvm))
        if not isinstance(op, ast.USub) or a.type not in (INT, REAL):
            self.refuse(e)
        return Value(a.type, self.at.fneg(a.llvm) if a.type == REAL else self.at.neg(a.llvm))

    def compare(self, op: ast.cmpop, a: Value, b: Value, e: ast.expr) -> Value:
        sign = COMPARISONS.get(type(op), "")
        if sign and REAL in (a.type, b.type):
            compared = self.at.fcmp_unordered if sign == "!=" else self.at.fcmp_ordered
            return Value(TRUTH, compared(sign, self.cast(a, REAL).llvm, self.cast(b, REAL).llvm))
        if not sign or a.type != b.type or a.type == TRUTH:
            self.refuse(e)
        compared = self.at.icmp_signed if a.type == INT else self.at.icmp_unsigned
        return Value(TRUTH, compared(sign, a.llvm, b.llvm))

    def shortcut(self, all_of: bool, values: list[ast.expr]) -> Any:
        """What follows a part that decides is not evaluated: it may read where nothing is."""
        end, known = self.block("end"), []
        for k, v in enumerate(values):
            test = self.truth(v)
            if k == len(values) - 1:
                known.append((test, self.at.block))
                self.at.branch(end)
                break
            known.append((BIT(int(not all_of)), self.at.block))
            further = self.block("further")
            self.at.cbranch(test, *((further, end) if all_of else (end, further)))
            self.at.position_at_end(further)
        self.at.position_at_end(end)
        return self.merge(BIT, known)

    def choose(self, e: ast.IfExp) -> Value:
        then, other, end = (self.block(x) for x in ("then", "else", "end"))
        self.at.cbranch(self.truth(e.test), then, other)
        found = []
        for block, part in ((then, e.body), (other, e.orelse)):
            self.at.position_at_end(block)
            found.append((self.value(part), self.at.block))
            self.at.branch(end)
        if found[0][0].type != found[1][0].type:
            self.refuse(e)
        self.at.position_at_end(end)
        kind = found[0][0].type
        return Value(kind, self.merge(LLVM[kind], [(v.llvm, block) for v, block in found]))

    def merge(self, kind: Any, known: list[tuple[Any, Any]]) -> Any:
        phi = self.at.phi(kind)
        for value, block in known:
            phi.add_incoming(value, block)
        return phi

    def truth(self, e: ast.expr) -> Any:
        return self.cast(self.value(e), TRUTH).llvm

    def integer(self, e: ast.expr) -> Any:
        found = self.value(e)
        return found.llvm if found.type == INT else self.refuse(e)

    def index(self, e: ast.expr) -> Any:
        """An integer, or a word that stands for one."""
        found = self.value(e)
        return found.llvm if found.type in (INT, WORD) else self.refuse(e)

    def cast(self, a: Value, kind: Any) -> Value:
        match a.type, kind:
            case same, other if same == other:
                return a
            case (types.int64, types.uint64) | (types.uint64, types.int64):
                return Value(kind, a.llvm)
            case types.int64, types.float64:
                return Value(kind, self.at.sitofp(a.llvm, F64))
            case types.uint64, types.float64:
                return Value(kind, self.at.uitofp(a.llvm, F64))
            case types.boolean, types.int64 | types.uint64:
                return Value(kind, self.at.zext(a.llvm, I64))
            case types.int64 | types.uint64, types.boolean:
                return Value(kind, self.at.icmp_unsigned("!=", a.llvm, I64(0)))
        raise TypeError(f"{self.name}: {a.type} is not turned into {kind}")

    # --- calls ---

    def call(self, e: ast.Call) -> Value | None:
        if not isinstance(e.func, ast.Name) or e.keywords:
            self.refuse(e)
        name = e.func.id
        own = getattr(self, f"call_{name}", None)
        if own is not None:
            return own(e.args)
        helper = self.globals.get(name)
        if hasattr(helper, "lowered"):
            return self.call_lowered(helper.lowered, e.args)
        if isinstance(helper, Dispatcher):
            return self.call_helper(helper, [self.argument(a) for a in e.args])
        kind = REAL if name == "float" else INT if helper is np.int64 else WORD if helper is np.uint64 else None
        return self.cast(self.value(e.args[0]), kind) if kind is not None else self.refuse(e)

    def argument(self, e: ast.expr) -> tuple[Any, Any]:
        """What a compiled helper is given: an array as Numba knows it, or a value."""
        if isinstance(e, ast.Name) and isinstance(self.known.get(e.id), Array):
            found = self.known[e.id]
            return found.kind, found.whole(self.context, self.at)
        found = self.value(e)
        return found.type, found.llvm

    def call_lowered(self, source: Any, arguments: list[ast.expr]) -> Value:
        given = [
            self.known[a.id] if isinstance(a, ast.Name) and a.id in self.known else self.value(a) for a in arguments
        ]
        kinds = tuple(x.kind if isinstance(x, Array) else x.type for x in given)
        parts = [part for x in given for part in ((x.data, *x.shape) if isinstance(x, Array) else (x.llvm,))]
        return Value(INT, self.at.call(source.declare(self.context, self.made.module, kinds), parts))

    def call_helper(self, helper: Dispatcher, arguments: list[tuple[Any, Any]]) -> Value | None:
        typed = self.context.typing_context
        kind = typed.resolve_value_type(helper)
        signature = typed.resolve_function_type(kind, tuple(t for t, _ in arguments), {})
        values = [self.context.cast(self.at, v, t, s) for (t, v), s in zip(arguments, signature.args, strict=True)]
        compiled = helper.overloads[signature.args]
        self.context.active_code_library.add_linking_library(compiled.library)
        _, found = self.context.call_internal_no_propagate(self.at, compiled.fndesc, signature, values)  # never raises
        return None if signature.return_type == types.none else Value(signature.return_type, found)

    def place_of(self, array: ast.expr, index: ast.expr) -> tuple[Array, Any]:
        return self.element(ast.Subscript(array, index))

    def call_peek(self, args: list[ast.expr]) -> Value:
        return self.read(*self.place_of(args[0], args[1]))

    def call_test(self, args: list[ast.expr]) -> Value:
        word = self.at.load(self.place_of(args[0], args[1])[1])
        return Value(WORD, self.at.and_(self.at.lshr(word, self.bit(args[2])), I64(1)))

    def call_toggle(self, args: list[ast.expr]) -> None:
        place = self.place_of(args[0], args[1])[1]
        self.at.store(self.at.xor(self.at.load(place), self.at.shl(I64(1), self.bit(args[2]))), place)

    def bit(self, e: ast.expr) -> Any:
        return self.at.and_(self.integer(e), I64(63))

    def call_popcount(self, args: list[ast.expr]) -> Value:
        return Value(INT, self.at.ctpop(self.index(args[0])))

    def call_lowest(self, args: list[ast.expr]) -> Value:
        return Value(INT, self.at.cttz(self.index(args[0]), BIT(0)))

    def call_mask(self, args: list[ast.expr]) -> Value:
        """The bit of a number in the word with this index."""
        i, word = (self.integer(a) for a in args)
        here = self.at.icmp_signed("==", self.at.ashr(i, I64(6)), word)
        return Value(WORD, self.at.select(here, self.at.shl(I64(1), self.at.and_(i, I64(63))), I64(0)))
