"""Expressions to statements: loops over the variables of a formula, 64 values of one of them at once.

`descend` binds one variable after another: it reads the bits that are decided by now, skips if they already decide
the outcome, and opens the next loop, stepping from set bit to set bit where the expressions allow it. The innermost
variable is the word axis: its 64-bit words are evaluated and counted. Only integers of our own making enter the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from definetti.samplers.codegen.expressions import (
    FALSE,
    TRUE,
    Expr,
    Leaf,
    assign,
    conjuncts,
    either,
    leaves,
    possible,
    without,
)
from definetti.samplers.codegen.occurrences import variables_of
from definetti.samplers.codegen.plan import plan
from definetti.samplers.codegen.shapes import Term, Theory
from definetti.samplers.codegen.text import Any, Count, Goals, Layout, Scope, Sink, Text, Word


class Source:
    """Writes the statements that evaluate goals. One instance per generated function."""

    def __init__(self, theory: Theory, layout: Layout, text: Text) -> None:
        self.theory, self.layout, self.text = theory, layout, text
        self.locals: dict[str, str] = {}  # what the function must look up at its top, by name

    # --- names ---

    def number(self, *key: object) -> str:
        """The name of a local variable that holds a number of the layout."""
        place = self.layout.number(key)
        self.locals[f"g{place}"] = f"peek(numbers, {place})"
        return f"g{place}"

    def size(self, sort: int) -> str:
        return self.number("n", sort)

    def words(self, sort: int) -> str:
        return str(self.theory.words[sort] or self.number("w", sort))

    def tail(self, sort: int) -> str:
        self.locals[f"t{sort}"] = f"peek(words, {sort})"
        return f"t{sort}"

    @staticmethod
    def value(term: Term) -> str:
        return f"{term[0]}{term[1]}"

    def address(
        self, predicate: int, terms: tuple[Term, ...], axis: tuple[int, ...], index: str, kind: str = "o"
    ) -> str:
        """Where the word with number `index` of a row stands: rows are counted by the arguments beside the axis."""
        sorts = self.theory.signatures[predicate].sorts
        row = ""
        for j, term in enumerate(terms):
            if j not in axis:
                row = f"({row} * {self.size(sorts[j])} + {self.value(term)})" if row else self.value(term)
        parts = [self.number(kind, predicate, axis)]
        if row:
            width = self.words(sorts[axis[0]]) if axis else "1"
            parts.append(row if width == "1" else f"{row} * {width}")
        if index != "0":
            parts.append(index)
        return " + ".join(parts)

    def read(self, leaf: Leaf, scope: Scope) -> str:
        """A scalar leaf as 0 or 1."""
        if leaf[0] == "=":
            return f"U({self.value(leaf[1])} == {self.value(leaf[2])})"
        _, predicate, terms = leaf
        if not terms:
            return f"test(bits, {self.address(predicate, terms, (), '0')}, 0)"
        last = len(terms) - 1
        bit = self.value(terms[last])
        single = self.theory.words[self.theory.signatures[predicate].sorts[last]] == 1
        index = "0" if single else f"({bit} >> 6)"
        return f"test(bits, {self.address(predicate, terms, (last,), index)}, {bit})"

    def read_word(self, leaf: Leaf, word: Word, sort: int) -> str:
        axis_term = ("v", word.variable)
        if leaf[0] == "=":
            other = self.value(leaf[1] if leaf[2] == axis_term else leaf[2])
            if self.theory.words[sort] == 1:
                return f"(ONE << U({other}))"
            return f"mask({other}, I({word.index}))"  # Numba would compile the helper for each literal
        _, predicate, terms = leaf
        axis = tuple(j for j, t in enumerate(terms) if t == axis_term)
        return f"peek(bits, {self.address(predicate, terms, axis, word.index)})"

    # --- expressions ---

    def join(self, e: Expr, lit: Callable[[Leaf, bool], str], one: str) -> str:
        kind = e[0]
        if kind in "01":
            return one if kind == "1" else "ZERO"
        if kind == "l":
            return lit(e[1], e[2])
        if kind == "x":
            return f"({self.join(e[1], lit, one)} ^ {self.join(e[2], lit, one)})"
        return "(" + f" {kind} ".join(self.join(p, lit, one) for p in e[1]) + ")"

    def bit(self, e: Expr, scope: Scope) -> str:
        def lit(leaf: Leaf, sign: bool) -> str:
            return scope.bits[leaf] if sign else f"({scope.bits[leaf]} ^ ONE)"

        return self.join(e, lit, "ONE")

    def whole(self, e: Expr, scope: Scope, word: Word, inner: dict[Leaf, str]) -> str:
        """An expression on words along `word`; scalars are spread over all bits; `inner` names quantifiers' words."""
        sort = scope.sorts[word.variable]

        def lit(leaf: Leaf, sign: bool) -> str:
            if leaf in inner:
                text = inner[leaf]
            elif leaf in scope.bits:
                text = f"(ZERO - {scope.bits[leaf]})"
            else:
                text = self.read_word(leaf, word, sort)
            return text if sign else f"~{text}"

        return self.join(e, lit, "FULL")

    # --- statements ---

    def settle(self, goals: Goals, scope: Scope, quantifiers: bool) -> None:
        """Reads the scalars that are decided by the bound variables (the quantified ones in a second go)."""
        for leaf in dict.fromkeys(x for _, e in goals for x in leaves(e)):
            if leaf in scope.bits or (leaf[0] == "E") != quantifiers or not variables_of(leaf) <= scope.bound:
                continue
            scope.bits[leaf] = self.exists(leaf, scope) if quantifiers else self.text.fresh("s")
            if not quantifiers:
                self.text.add(f"{scope.bits[leaf]} = {self.read(leaf, scope)}")

    def guard(self, goals: Goals, scope: Scope) -> Goals:
        """Skips what follows if the scalars already decide that no goal can be true."""
        test = either(possible(e, scope.decided) for _, e in goals)
        if test == TRUE:
            return goals
        self.text.add(f"if {self.bit(test, scope)} != ZERO:")
        self.text.depth += 1
        return given(goals, scope.decided)

    def descend(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope, sink: Sink) -> None:
        goals = [g for g in goals if g[1] != FALSE]
        if not goals:
            return
        scope = replace(scope, bits=dict(scope.bits))
        with self.text.inside():
            for quantifiers in (False, True):
                self.settle(goals, scope, quantifiers)
                if self.worth_a_test(goals, todo, word, scope):
                    goals = self.guard(goals, scope)
            if todo:
                self.loop(goals, todo, word, scope, sink)
            elif word is None:
                self.finish_scalar(goals, scope, sink)
            elif word.index:
                self.finish_open(goals, word, scope, sink)
            else:
                self.word_loop(goals, word, scope, sink)

    def worth_a_test(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope) -> bool:
        """A branch that is mispredicted costs as much as a few words."""
        undecided = any(x[0] == "E" and x not in scope.bits for _, e in goals for x in leaves(e))
        if todo or undecided:
            return True
        return word is not None and not word.index and not 0 < self.theory.words[scope.sorts[word.variable]] < 3

    def loop(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope, sink: Sink) -> None:
        """The loop over `todo[0]`, from set bit to set bit of the words that say where a goal is possible."""
        v, sort = todo[0], scope.sorts[todo[0]]
        bound = scope.bound | {v}

        def known(leaf: Leaf) -> bool:
            return leaf in scope.bits or (leaf[0] != "E" and variables_of(leaf) <= bound)

        candidates = either(possible(e, known) for _, e in goals)
        inner = replace(scope, bound=bound)
        if not any(v in variables_of(x) for x in leaves(candidates)):
            with self.text.inside(f"for v{v} in range({self.size(sort)}):"):
                self.inside_loop(goals, todo, word, inner, sink)
            return
        index, rest = self.text.fresh("i"), self.text.fresh("b")
        with self.text.inside(f"for {index} in range({self.words(sort)}):"):
            axis = Word(v, index)
            self.text.add(f"{rest} = {self.whole(candidates, scope, axis, {})}{self.cut(candidates, axis, scope)}")
            with self.text.inside(f"while {rest} != ZERO:"):
                self.text.add(f"v{v} = ({index} << 6) + lowest({rest})")
                self.text.add(f"{rest} &= {rest} - ONE")
                self.inside_loop(given(goals, known), todo, word, inner, sink)
            if sink.stop:
                self.text.add(f"if {sink.stop}: break")

    def inside_loop(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope, sink: Sink) -> None:
        last_plus = todo[0] in sink.plus and not sink.plus & set(todo[1:])
        if last_plus:
            self.text.add(sink.before)
        self.descend(goals, todo[1:], word, scope, sink)
        if last_plus:
            self.text.add(sink.after)
        if sink.stop:
            self.text.add(f"if {sink.stop}: break")

    def cut(self, e: Expr, word: Word, scope: Scope) -> str:
        """The mask of a row's last word, unless the expression is false there anyway (bits past the end are 0)."""
        padding = {x: False for x in leaves(e) if x[0] != "E" and word.variable in variables_of(x)}
        if assign(e, padding) == FALSE:
            return ""
        sort = scope.sorts[word.variable]
        words, tail = self.words(sort), self.tail(sort)
        if word.index.isdigit():
            return f" & {tail}" if str(int(word.index) + 1) == words else ""
        return f" & {tail}" if words == "1" else f" & ({tail} if {word.index} == {words} - 1 else FULL)"

    def finish_scalar(self, goals: Goals, scope: Scope, sink: Sink) -> None:
        for name, e in goals:
            if isinstance(sink, Count):
                self.text.add(sink.take(name, "1" if e == TRUE else f"I({self.bit(e, scope)})"))
            elif isinstance(sink, Any):
                self.text.add(f"{sink.name} |= {self.bit(e, scope)}")

    def finish_open(self, goals: Goals, word: Word, scope: Scope, sink: Sink) -> None:
        inner = self.open_quantifiers(goals, word, scope)
        for _, e in goals:
            if isinstance(sink, Any):
                self.text.add(f"{sink.name} |= {self.whole(e, scope, word, inner)}")

    def open_quantifiers(self, goals: Goals, word: Word, scope: Scope) -> dict[Leaf, str]:
        """The quantifiers that depend on the word axis, evaluated for 64 of its values at once."""
        found = dict.fromkeys(x for _, e in goals for x in leaves(e) if x[0] == "E" and x not in scope.bits)
        return {leaf: self.exists(leaf, scope, word) for leaf in found}

    def exists(self, leaf: Leaf, scope: Scope, word: Word | None = None) -> str:
        """A quantifier's value: one bit, the last variable of its plan being the word axis, or a whole open word."""
        name = self.text.fresh("q")
        goals: Goals = [("", leaf[2])]
        past = self.cut(TRUE, word, scope) if word is not None else ""  # bits past the end are full from the start
        self.text.add(f"{name} = ~{past.removeprefix(' & ')}" if past else f"{name} = ZERO")
        if word is not None:
            self.descend(goals, leaf[1], word, scope, Any(name=name, stop=f"{name} == FULL"))
            return name
        todo, axis = plan([leaf[2]], leaf[1], (), self.theory, scope.sorts)
        sink = Any(name=name, stop=f"{name} != ZERO")
        self.descend(goals, todo, Word(axis) if axis is not None else None, scope, sink)
        return name

    # --- the word loop ---

    def word_loop(self, goals: Goals, word: Word, scope: Scope, sink: Sink) -> None:
        number = self.theory.words[scope.sorts[word.variable]]
        if any(x[0] == "E" and x not in scope.bits for _, e in goals for x in leaves(e)) or isinstance(sink, Any):
            self.plain_words(goals, word, scope, sink)
        elif number:
            for i in range(number):
                self.count_word(goals, Word(word.variable, str(i)), scope, sink)
        else:
            self.long_words(goals, word, scope, sink)

    def plain_words(self, goals: Goals, word: Word, scope: Scope, sink: Sink) -> None:
        word = Word(word.variable, self.text.fresh("i"))
        with self.text.inside(f"for {word.index} in range({self.words(scope.sorts[word.variable])}):"):
            if isinstance(sink, Count):
                self.count_word(goals, word, scope, sink)
                return
            assert isinstance(sink, Any)
            inner = self.open_quantifiers(goals, word, scope)
            for _, e in goals:
                self.text.add(f"if ({self.whole(e, scope, word, inner)}{self.cut(e, word, scope)}) != ZERO:")
                self.text.add(f"    {sink.name} = ONE")
            self.text.add(f"if {sink.stop}: break")

    def count_word(
        self, goals: Goals, word: Word, scope: Scope, sink: Sink, sign: str = "+", whole_row: bool = True
    ) -> None:
        assert isinstance(sink, Count)
        inner = self.open_quantifiers(goals, word, scope)
        for name, e in goals:
            cut = self.cut(e, word, scope) if whole_row else ""
            self.text.add(sink.take(name, f"popcount({self.whole(e, scope, word, inner)}{cut})", sign))

    def long_words(self, goals: Goals, word: Word, scope: Scope, sink: Sink) -> None:
        """A loop without masks over all words, then corrections for the few words that have special bits."""
        sort = scope.sorts[word.variable]
        equalities = dict.fromkeys(
            x for _, e in goals for x in leaves(e) if x[0] == "=" and word.variable in variables_of(x)
        )
        raw = [(name, assign(e, dict.fromkeys(equalities, False))) for name, e in goals]
        raw = [g for g in raw if g[1] != FALSE]
        index = self.text.fresh("i")
        if raw:
            with self.text.inside(f"for {index} in range({self.words(sort)}):"):
                self.count_word(raw, Word(word.variable, index), scope, sink, whole_row=False)
        here: list[str] = []
        axis_term = ("v", word.variable)
        specials = [f"{self.value(x[1] if x[2] == axis_term else x[2])} >> 6" for x in equalities]
        if any(self.cut(e, Word(word.variable, index), scope) for _, e in goals):
            specials.append(f"{self.words(sort)} - 1")
        for special in dict.fromkeys(specials):
            name = self.text.fresh("i")
            self.text.add(f"{name} = {special}")
            with self.text.inside(" and ".join(f"{name} != {h}" for h in here).join(("if ", ":")) if here else ""):
                self.count_word(raw, Word(word.variable, name), scope, sink, sign="-", whole_row=False)
                self.count_word(goals, Word(word.variable, name), scope, sink)
            here.append(name)


def given(goals: Iterable[tuple[str, Expr]], known: Callable[[Leaf], bool]) -> Goals:
    """The goals after a test that passed: conjuncts that all goals share and that are known are true."""
    goals = list(goals)
    shared = frozenset.intersection(*(frozenset(conjuncts(e)) for _, e in goals))
    true = frozenset(p for p in shared if all(known(x) for x in leaves(p)))
    return [(name, without(e, true)) for name, e in goals]
