"""Compiles the functions of generated kernels straight to LLVM, past Numba's type inference.

The generator writes a small language: integers, 64-bit words, reals and truth values; loops over ranges, `while`, `if`;
C-contiguous arrays. Each name has one type, that of its first assignment, so one pass over the syntax tree suffices.
Numba's analysis of the same text (SSA, inference, rewrites) took most of the time: a theory of 60 shapes was not
compiled after 67 CPU seconds, and takes about 6 so. Arithmetic is Numba's: integers wrap, an integer beside a real
becomes one, nothing is reordered. Each function stays an LLVM function of its own: chunks of sites are long, and
optimising one huge function takes more than linear time. Calls of compiled helpers go through Numba; code that is
compiled once for all theories calls such a function where its machine code stands (`located`, `caller`). What is not in
the language is refused by an exception.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportCallIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from definetti.samplers.kernels.linking import optimise_once
from definetti.samplers.lowering.expressions import I64, INT, LLVM, Array, Expressions, Value


@dataclass(frozen=True, eq=False)
class Source:
    """A function of the generator's language."""

    function: Callable[..., Any]
    tree: ast.FunctionDef

    @property
    def names(self) -> list[str]:
        return [a.arg for a in self.tree.args.args]

    def declare(self, context: Any, module: ir.Module, kinds: tuple[Any, ...]) -> ir.Function:
        """The LLVM function, written into a module when it is first called there."""
        name = f"definetti.{self.function.__name__}"
        if name in module.globals:
            return module.globals[name]
        parts = [part for kind in kinds for part in parts_of(context, kind)]
        made = ir.Function(module, ir.FunctionType(I64, parts), name)
        made.linkage = "internal"
        made.attributes.add("noinline")
        made.attributes.add("nounwind")
        for argument in made.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")  # a chain's arrays and the model's are all different
        Writer(context, made, self).write(kinds)
        return made


def lowered(function: Callable[..., Any]) -> Any:
    """Lets compiled code call a function of the generator's language, which returns an integer."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    source = Source(function, tree)

    def typing(typingctx: Any, *arguments: Any) -> Any:
        kinds = tuple(a if isinstance(a, types.Array) else INT for a in arguments)

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            optimise_once(context.active_code_library)
            made = source.declare(context, builder.module, kinds)
            return builder.call(made, flat(context, builder, kinds, values))

        return INT(*kinds), codegen

    made = with_names(typing, source.names)
    made.lowered = source
    return made


def located(kinds: Mapping[str, Any], *functions: Any) -> Any:
    """Lets compiled code say where the machine code of such functions stands; `kinds`: of arguments that are arrays."""

    def typing(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            optimise_once(context.active_code_library)
            given = [(f.lowered, tuple(kinds.get(name, INT) for name in f.lowered.names)) for f in functions]
            made = [source.declare(context, builder.module, arguments) for source, arguments in given]
            return context.make_tuple(builder, signature.return_type, [builder.ptrtoint(f, I64) for f in made])

        return types.UniTuple(INT, len(functions))(), codegen

    return intrinsic(typing)


def caller(kinds: Mapping[str, Any], *names: str) -> Any:
    """Lets compiled code call machine code that `located` has found, which has arguments of these names."""

    def typing(typingctx: Any, at: Any, *arguments: Any) -> Any:
        given = tuple(a if isinstance(a, types.Array) else INT for a in arguments)
        for name, kind in zip(names, given, strict=True):
            if shape_of(kind) != shape_of(kinds.get(name, INT)):
                raise TypeError(f"`{name}` is {kind}, and should be {kinds.get(name, INT)}")

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            parts = flat(context, builder, given, values[1:])
            kind = ir.FunctionType(I64, [part.type for part in parts])
            return builder.call(builder.inttoptr(values[0], kind.as_pointer()), parts)

        return INT(INT, *given), codegen

    return with_names(typing, ["at", *names])


def with_names(typing: Any, names: Sequence[str]) -> Any:
    """An intrinsic whose arguments have these names: Numba asks for them, and the typing context comes first."""
    shown = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("typingctx", *names)]
    typing.__signature__ = inspect.Signature(shown)
    return intrinsic(typing)


def shape_of(kind: Any) -> Any:
    return (kind.dtype, kind.ndim) if isinstance(kind, types.Array) else kind


def parts_of(context: Any, kind: Any) -> list[Any]:
    """The LLVM types of an argument: of an array those of the place of its numbers, and of the lengths of its axes."""
    if not isinstance(kind, types.Array):
        return [I64]
    return [context.get_data_type(kind.dtype).as_pointer(), *([I64] * kind.ndim)]


def flat(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    """Arguments as machine code takes them."""
    parts: list[Any] = []
    for kind, value in zip(kinds, values, strict=True):
        parts += array_parts(context, builder, kind, value) if isinstance(kind, types.Array) else [value]
    return parts


def array_parts(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Where an array's numbers are, and the lengths of its axes."""
    if kind.layout != "C" or kind.ndim > 2:
        raise TypeError(f"an array must be C-contiguous with one or two axes, not {kind}")
    model = context.data_model_manager[kind]
    shape = model.get(builder, value, "shape")
    return [model.get(builder, value, "data"), *(builder.extract_value(shape, k) for k in range(kind.ndim))]


class Writer(Expressions):
    """Writes the statements of one function."""

    def write(self, kinds: Any) -> None:
        parts = iter(self.made.args)
        for argument, kind in zip(self.tree.args.args, kinds, strict=True):
            value = Value(INT, next(parts))
            if isinstance(kind, types.Array):
                value = Array(kind, value.llvm, tuple(next(parts) for _ in range(kind.ndim)))
            self.known[argument.arg] = value
        begin = self.at.block
        self.body(self.tree.body)
        if not self.at.block.is_terminated:
            self.at.ret(I64(-1))
        self.top.position_at_end(self.top.block)
        self.top.branch(begin)

    # --- statements ---

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)
            if self.at.block.is_terminated:
                return

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, [self.value(v) for v in values], strict=True):
                    self.store(target, value)
            case ast.Assign(targets=[target], value=value):
                self.store(target, self.value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self.store(target, self.binary(op, self.load(target), self.value(value), s))
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(self.truth(test), body, orelse)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), orelse=[]):
                self.count(name, [self.integer(b) for b in bounds], s.body)
            case ast.While(test=test, body=body, orelse=[]):
                self.repeat(test, body)
            case ast.Break() | ast.Continue():
                self.at.branch(self.loops[-1][isinstance(s, ast.Break)])
            case ast.Return(value=ast.expr() as value):
                self.at.ret(self.integer(value))
            case ast.Expr(value=ast.Call() as value):
                self.call(value)
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                self.refuse(s)

    def store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Subscript):
            array, place = self.element(target)
            self.at.store(self.cast(value, array.dtype).llvm, place)
            return
        if not isinstance(target, ast.Name):
            self.refuse(target)
        name = target.id
        if self.assigned[name] == 1 and name not in self.known:
            self.known[name] = value
            return
        if name not in self.places:
            if name in self.known:
                self.refuse(target)
            self.places[name] = Value(value.type, self.variable(LLVM[value.type], name))
        place = self.places[name]
        if place.type != value.type:
            raise TypeError(f"{self.name}: `{name}` is first {place.type} and then {value.type}")
        self.at.store(value.llvm, place.llvm)

    def load(self, target: ast.expr) -> Value:
        return self.value(ast.Name(target.id) if isinstance(target, ast.Name) else target)

    def branch(self, test: Any, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        then, end = self.block("then"), self.block("end")
        other = self.block("else") if orelse else end
        self.at.cbranch(test, then, other)
        for block, statements in ((then, body), (other, orelse)):
            if statements:
                self.at.position_at_end(block)
                self.body(statements)
                self.go_on(end)
        self.at.position_at_end(end)

    def count(self, name: str, bounds: list[Any], body: list[ast.stmt]) -> None:
        first, last = bounds if len(bounds) == 2 else (I64(0), *bounds)
        counter = self.variable(I64)
        self.at.store(first, counter)
        test, inside, step, end = (self.block(x) for x in ("test", "inside", "step", "end"))
        self.at.branch(test)
        self.at.position_at_end(test)
        now = self.at.load(counter)
        self.at.cbranch(self.at.icmp_signed("<", now, last), inside, end)
        self.at.position_at_end(inside)
        self.store(ast.Name(name, ast.Store()), Value(INT, now))
        with self.loop(step, end):
            self.body(body)
        self.go_on(step)
        self.at.position_at_end(step)
        self.at.store(self.at.add(now, I64(1), flags=["nsw"]), counter)
        self.at.branch(test)
        self.at.position_at_end(end)

    def repeat(self, test: ast.expr, body: list[ast.stmt]) -> None:
        again, inside, end = (self.block(x) for x in ("again", "inside", "end"))
        self.at.branch(again)
        self.at.position_at_end(again)
        self.at.cbranch(self.truth(test), inside, end)
        self.at.position_at_end(inside)
        with self.loop(again, end):
            self.body(body)
        self.go_on(again)
        self.at.position_at_end(end)

    @contextmanager
    def loop(self, again: Any, end: Any) -> Iterator[None]:
        self.loops.append((again, end))
        yield
        self.loops.pop()
