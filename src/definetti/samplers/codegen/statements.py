"""Goals to statements: loops over the variables of a formula, 64 values of one of them at once.

`descend` binds one variable after another: it reads the bits that are decided by now, skips if they already decide
the outcome, and opens the next loop, stepping from set bit to set bit where the expressions allow it. The innermost
variable is the word axis: its 64-bit words are evaluated and counted. Only integers of our own making enter the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from definetti.samplers.codegen.expressions import (
    FALSE,
    TRUE,
    And,
    Constant,
    Equal,
    Exists,
    Expr,
    Leaf,
    Literal,
    Or,
    Variable,
    Xor,
    assign,
    conjuncts,
    either,
    leaves,
    possible,
    variables_of,
    without,
)
from definetti.samplers.codegen.occurrences import Goal
from definetti.samplers.codegen.plan import plan
from definetti.samplers.codegen.text import Text


@dataclass(frozen=True)
class Word:
    """The word axis: variable `variable`, and the name of the word index once its loop is open."""

    variable: int
    index: str = ""


@dataclass(frozen=True)
class Scope:
    """What is known at a point of the text: bound variables, and names of scalar bits (0 or 1) by leaf."""

    bound: frozenset[int]
    bits: dict[Leaf, str]
    sorts: tuple[int, ...]

    def decided(self, leaf: Leaf) -> bool:
        return leaf in self.bits


@dataclass(frozen=True)
class Count:
    """What to do where all variables are bound: add the number of true bits of each goal, `times` over, to its counter.

    `before` and `after` are put around the innermost loops in which all `plus` variables are bound.
    """

    plus: frozenset[int] = frozenset()
    before: str = ""
    after: str = ""
    times: int = 1
    stop: str = ""

    def take(self, goal: Goal, value: str, sign: int = 1) -> str:
        value = value if self.times == 1 else f"{self.times} * {value}"
        return f"{goal.counter} {'+' if goal.sign * sign > 0 else '-'}= {value}"


@dataclass(frozen=True)
class FindAny:
    """Instead: set `name` if some value makes the goal true, one bit or each bit of the open word; end on `stop`."""

    name: str
    stop: str
    plus: frozenset[int] = frozenset()
    before: str = ""
    after: str = ""


Sink = Count | FindAny
Goals = Sequence[Goal]


class Statements(Text):
    """Writes the statements that evaluate goals."""

    # --- expressions ---

    def join(self, e: Expr, literal: Callable[[Leaf, bool], str], one: str) -> str:
        match e:
            case Constant(value):
                return one if value else "ZERO"
            case Literal(leaf, sign):
                return literal(leaf, sign)
            case Xor(left, right):
                return f"({self.join(left, literal, one)} ^ {self.join(right, literal, one)})"
            case And(parts):
                return "(" + " & ".join(self.join(p, literal, one) for p in parts) + ")"
            case Or(parts):
                return "(" + " | ".join(self.join(p, literal, one) for p in parts) + ")"

    def bit(self, e: Expr, scope: Scope) -> str:
        """An expression on scalar bits."""

        def literal(leaf: Leaf, sign: bool) -> str:
            return scope.bits[leaf] if sign else f"({scope.bits[leaf]} ^ ONE)"

        return self.join(e, literal, "ONE")

    def whole(self, e: Expr, scope: Scope, word: Word, inner: dict[Leaf, str]) -> str:
        """An expression on words along `word`; scalars are spread over all bits; `inner` names quantifiers' words."""
        axis, sort = Variable(word.variable), scope.sorts[word.variable]

        def literal(leaf: Leaf, sign: bool) -> str:
            if leaf in scope.bits:
                text = f"(ZERO - {scope.bits[leaf]})"
            elif isinstance(leaf, Exists):
                text = inner[leaf]
            else:
                text = self.read_word(leaf, axis, word.index, sort)
            return text if sign else f"~{text}"

        return self.join(e, literal, "FULL")

    # --- statements ---

    def evaluate(self, goals: Goals, rest: tuple[int, ...], plus: tuple[int, ...], scope: Scope, sink: Sink) -> None:
        """Loops over the variables `rest`, in the order of the plan; `plus` variables come first."""
        todo, axis = plan([g.expression for g in goals], rest, plus, self.theory, scope.sorts)
        self.descend(goals, todo, None if axis is None else Word(axis), scope, sink)

    def descend(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope, sink: Sink) -> None:
        goals = [g for g in goals if g.expression != FALSE]
        if not goals:
            return
        scope = replace(scope, bits=dict(scope.bits))
        with self.inside():
            for quantifiers in (False, True):
                self.read_decided(goals, scope, quantifiers)
                if self.worth_a_test(goals, todo, word, scope):
                    goals = self.guard(goals, scope)
            if todo:
                self.loop(goals, todo, word, scope, sink)
            elif word is None:
                self.finish_scalar(goals, scope, sink)
            elif word.index:
                assert isinstance(sink, FindAny)
                self.finish_open(goals, word, scope, sink)
            else:
                self.word_loop(goals, word, scope, sink)

    def read_decided(self, goals: Goals, scope: Scope, quantifiers: bool) -> None:
        """Reads the scalars that are decided by the bound variables (the quantified ones in a second go)."""
        for leaf in all_leaves(goals):
            if leaf in scope.bits or not variables_of(leaf) <= scope.bound:
                continue
            if isinstance(leaf, Exists):
                if quantifiers:
                    scope.bits[leaf] = self.exists(leaf, scope)
            elif not quantifiers:
                scope.bits[leaf] = self.fresh("s")
                self.add(f"{scope.bits[leaf]} = {self.read(leaf)}")

    def guard(self, goals: Goals, scope: Scope) -> Goals:
        """Skips what follows if the scalars already decide that no goal can be true."""
        test = either(possible(g.expression, scope.decided) for g in goals)
        if test == TRUE:
            return goals
        self.open(f"if {self.bit(test, scope)} != ZERO:")
        return given(goals, scope.decided)

    def worth_a_test(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope) -> bool:
        """A branch that is mispredicted costs as much as a few words."""
        if todo or open_quantifiers(goals, scope):
            return True
        return word is not None and not word.index and not 0 < self.theory.words[scope.sorts[word.variable]] < 3

    def loop(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope, sink: Sink) -> None:
        """The loop over `todo[0]`, from set bit to set bit of the words that say where a goal is possible."""
        v, sort = todo[0], scope.sorts[todo[0]]
        bound = scope.bound | {v}

        def known(leaf: Leaf) -> bool:
            return leaf in scope.bits or (not isinstance(leaf, Exists) and variables_of(leaf) <= bound)

        candidates = either(possible(g.expression, known) for g in goals)
        inner = replace(scope, bound=bound)
        if not any(v in variables_of(x) for x in leaves(candidates)):
            with self.inside(f"for v{v} in range({self.size(sort)}):"):
                self.inside_loop(goals, todo, word, inner, sink)
            return
        index, rest = self.fresh("i"), self.fresh("b")
        with self.inside(f"for {index} in range({self.width(sort)}):"):
            axis = Word(v, index)
            self.add(f"{rest} = {self.whole(candidates, scope, axis, {})}{self.cut(candidates, axis, scope)}")
            with self.inside(f"while {rest} != ZERO:"):
                self.add(f"v{v} = ({index} << 6) + lowest({rest})")
                self.add(f"{rest} &= {rest} - ONE")
                self.inside_loop(given(goals, known), todo, word, inner, sink)
            if sink.stop:
                self.add(f"if {sink.stop}: break")

    def inside_loop(self, goals: Goals, todo: tuple[int, ...], word: Word | None, scope: Scope, sink: Sink) -> None:
        last_plus = todo[0] in sink.plus and not sink.plus & set(todo[1:])
        if last_plus:
            self.add(sink.before)
        self.descend(goals, todo[1:], word, scope, sink)
        if last_plus:
            self.add(sink.after)
        if sink.stop:
            self.add(f"if {sink.stop}: break")

    def cut(self, e: Expr, word: Word, scope: Scope) -> str:
        """The mask of a row's last word, unless the expression is false there anyway (bits past the end are 0)."""
        along = [x for x in leaves(e) if not isinstance(x, Exists) and word.variable in variables_of(x)]
        if assign(e, dict.fromkeys(along, False)) == FALSE:
            return ""
        sort = scope.sorts[word.variable]
        width, tail = self.width(sort), self.tail(sort)
        if word.index.isdigit():
            return f" & {tail}" if str(int(word.index) + 1) == width else ""
        return f" & {tail}" if width == "1" else f" & ({tail} if {word.index} == {width} - 1 else FULL)"

    def finish_scalar(self, goals: Goals, scope: Scope, sink: Sink) -> None:
        for g in goals:
            if isinstance(sink, Count):
                one = g.expression == TRUE
                self.add(sink.take(g, "1" if one else f"I({self.bit(g.expression, scope)})"))
            else:
                self.add(f"{sink.name} |= {self.bit(g.expression, scope)}")

    def finish_open(self, goals: Goals, word: Word, scope: Scope, sink: FindAny) -> None:
        inner = self.exist_in_word(goals, word, scope)
        for g in goals:
            self.add(f"{sink.name} |= {self.whole(g.expression, scope, word, inner)}")

    def exist_in_word(self, goals: Goals, word: Word, scope: Scope) -> dict[Leaf, str]:
        """The quantifiers that depend on the word axis, evaluated for 64 of its values at once."""
        return {leaf: self.exists(leaf, scope, word) for leaf in open_quantifiers(goals, scope)}

    def exists(self, leaf: Exists, scope: Scope, word: Word | None = None) -> str:
        """A quantifier's value: one bit, the last variable of its plan being the word axis, or a whole open word."""
        name = self.fresh("q")
        goals = [Goal(name, 1, leaf.body)]
        past = self.cut(TRUE, word, scope) if word is not None else ""  # bits past the end are full from the start
        self.add(f"{name} = ~{past.removeprefix(' & ')}" if past else f"{name} = ZERO")
        if word is not None:
            self.descend(goals, leaf.variables, word, scope, FindAny(name, f"{name} == FULL"))
        else:
            self.evaluate(goals, leaf.variables, (), scope, FindAny(name, f"{name} != ZERO"))
        return name

    # --- the word loop ---

    def word_loop(self, goals: Goals, word: Word, scope: Scope, sink: Sink) -> None:
        number = self.theory.words[scope.sorts[word.variable]]
        if isinstance(sink, FindAny):
            self.find_in_words(goals, word, scope, sink)
        elif open_quantifiers(goals, scope):
            index = self.fresh("i")
            with self.inside(f"for {index} in range({self.width(scope.sorts[word.variable])}):"):
                self.count_word(goals, Word(word.variable, index), scope, sink)
        elif number:
            for i in range(number):
                self.count_word(goals, Word(word.variable, str(i)), scope, sink)
        else:
            self.count_long_row(goals, word, scope, sink)

    def find_in_words(self, goals: Goals, word: Word, scope: Scope, sink: FindAny) -> None:
        word = Word(word.variable, self.fresh("i"))
        with self.inside(f"for {word.index} in range({self.width(scope.sorts[word.variable])}):"):
            inner = self.exist_in_word(goals, word, scope)
            for g in goals:
                value = self.whole(g.expression, scope, word, inner)
                self.add(f"if ({value}{self.cut(g.expression, word, scope)}) != ZERO:")
                self.add(f"    {sink.name} = ONE")
            self.add(f"if {sink.stop}: break")

    def count_word(
        self, goals: Goals, word: Word, scope: Scope, sink: Count, sign: int = 1, whole_row: bool = True
    ) -> None:
        inner = self.exist_in_word(goals, word, scope)
        for g in goals:
            cut = self.cut(g.expression, word, scope) if whole_row else ""
            self.add(sink.take(g, f"popcount({self.whole(g.expression, scope, word, inner)}{cut})", sign))

    def count_long_row(self, goals: Goals, word: Word, scope: Scope, sink: Count) -> None:
        """A loop without masks over all words, then corrections for the few words that have special bits."""
        width = self.width(scope.sorts[word.variable])
        equalities = [x for x in all_leaves(goals) if isinstance(x, Equal) and word.variable in variables_of(x)]
        raw = [g.with_expression(assign(g.expression, dict.fromkeys(equalities, False))) for g in goals]
        raw = [g for g in raw if g.expression != FALSE]
        index = self.fresh("i")
        if raw:
            with self.inside(f"for {index} in range({width}):"):
                self.count_word(raw, Word(word.variable, index), scope, sink, whole_row=False)
        specials = [f"{x.other(Variable(word.variable))} >> 6" for x in equalities]
        if any(self.cut(g.expression, Word(word.variable, index), scope) for g in goals):
            specials.append(f"{width} - 1")
        here: list[str] = []
        for special in dict.fromkeys(specials):
            name = self.fresh("i")
            self.add(f"{name} = {special}")
            with self.inside(f"if {' and '.join(f'{name} != {h}' for h in here)}:" if here else ""):
                self.count_word(raw, Word(word.variable, name), scope, sink, sign=-1, whole_row=False)
                self.count_word(goals, Word(word.variable, name), scope, sink)
            here.append(name)


def all_leaves(goals: Goals) -> list[Leaf]:
    return list(dict.fromkeys(x for g in goals for x in leaves(g.expression)))


def open_quantifiers(goals: Goals, scope: Scope) -> list[Exists]:
    """The quantifiers whose value is not known yet."""
    return [x for x in all_leaves(goals) if isinstance(x, Exists) and x not in scope.bits]


def given(goals: Goals, known: Callable[[Leaf], bool]) -> Goals:
    """The goals after a test that passed: conjuncts that all goals share and that are known are true."""
    shared = frozenset.intersection(*(frozenset(conjuncts(g.expression)) for g in goals))
    true = frozenset(p for p in shared if all(known(x) for x in leaves(p)))
    return [g.with_expression(without(g.expression, true)) for g in goals]
