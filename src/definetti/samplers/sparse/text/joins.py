"""What a sparse kernel is made from, and joins: loops over lists of true atoms.

Each atom with one constant known is a loop, each with both known a test (`Writer.nest`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from definetti.samplers.sparse.normal_form import Monomial, Symmetric, Unfit
from definetti.samplers.sparse.terms import B, System, Term

NUMBER = re.compile(r"(\d+)")
Env = dict[str | int, str]  # role or variable → the expression of its constant


@dataclass(frozen=True, eq=False)
class Plan:
    """The structure of a theory's sparse sampler."""

    monomials: tuple[Monomial, ...]
    systems: tuple[System, ...]
    sorts: tuple[tuple[int, ...], ...]  # of each predicate's arguments
    position: Mapping[int, int]  # of each predicate's bit in the types
    offsets: tuple[int, ...]  # of each monomial's table among all tables
    size: int  # of all tables
    ties: Symmetric  # predicates whose sites are unordered pairs

    @property
    def hard(self) -> bool:
        return any(m.hard for m in self.monomials)

    @property
    def held_pairs(self) -> frozenset[int]:
        """The predicates whose atoms of different constants hard formulas speak of."""
        hard = [m for m in self.monomials if m.hard]
        some = {self.some(p)[0] for m in hard for p, _ in m.bits if p >= len(self.sorts)}
        return frozenset(p for m in hard for p, *_ in m.pairs) | some

    @property
    def held_bits(self) -> frozenset[int]:
        """The predicates whose P(x), or R(x,x), hard formulas speak of."""
        return frozenset(p for m in self.monomials if m.hard for p, _ in m.bits if p < len(self.sorts))

    def some(self, bit: int) -> tuple[int, int]:
        """Of a bit that says whether there is an atom: its predicate, and the argument whose constant has it."""
        return divmod(bit - len(self.sorts), 2)

    @property
    def unary(self) -> tuple[int, ...]:
        return tuple(p for p in self.position if len(self.sorts[p]) == 1)


@dataclass
class Writer:
    """Lines of text, with a counter for names."""

    plan: Plan
    lines: list[str]
    names: int = 0

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def nest(
        self, depth: int, env: Env, pairs: Sequence[tuple[int, str | int, str | int]],
        sorts: Mapping[str | int, int], inside: Callable[[int, Env], None],
    ) -> None:  # fmt: skip
        """Loops over all ways to make the pairs true; constants of one sort are different."""
        left = []
        for p, x, y in pairs:
            if x in env and y in env:
                self.put(depth, f"if linked(c.pool, c.head, {lists(p, 0)} + LIST * {env[x]}, {env[y]}):")
                depth += 1
            else:
                left.append((p, x, y))
        if not left:
            inside(depth, env)
            return
        here = next((pair for pair in left if pair[1] in env or pair[2] in env), None)
        if here is None:
            raise Unfit("a formula ties atoms without a chain of atoms between them")
        p, x, y = here
        side = 0 if x in env else 1
        known, new = (x, y) if side == 0 else (y, x)
        h, i, v = self.name(), self.name(), self.name()
        self.put(depth, f"{h} = {lists(p, side)} + LIST * {env[known]}")
        self.put(depth, f"for {i} in range(c.head[{h}], c.head[{h}] + c.head[{h} + LENGTH]):")
        self.put(depth + 1, f"{v} = I(c.pool[{i}])")
        differ = [e for u, e in env.items() if u != known and sorts[u] == sorts[new]]
        if differ:
            self.put(depth + 1, f"if {' and '.join(f'{v} != {e}' for e in sorted(differ))}:")
            depth += 1
        left.remove(here)
        self.nest(depth + 1, {**env, new: v}, left, sorts, inside)


def own_arguments(plan: Plan, p: int) -> str:
    """Of functions that belong to a predicate: its sites are those of a system where it has two arguments."""
    return "d, c, s" if len(plan.sorts[p]) == 2 else "d, c"


def lists(p: int, side: int) -> str:
    return f"d.lists[{2 * p + side}]"


def type_place(sort: int, constant: str) -> str:
    return f"d.type_start[{sort}] + {constant}"


def type_of(sort: int, constant: str) -> str:
    return f"c.types[{type_place(sort, constant)}]"


def entry(plan: Plan, k: int, bit: Callable[[int, int], str]) -> str:
    """The index of a monomial's coefficient; `bit(predicate, variable)` is the text of one bit."""
    m, width = plan.monomials[k], len(plan.monomials[k].bits)
    parts = [f"({bit(p, v)} << {width - 1 - i})" for i, (p, v) in enumerate(m.bits)]
    alike = sorted(parts, key=lambda text: NUMBER.sub("", text))  # so that predicates of one shape have one text
    return " + ".join([str(plan.offsets[k]), *alike])


def type_bit(plan: Plan, types: Mapping[str | int, str], env: Env | None = None) -> Callable[[int, str | int], str]:
    """Reads bits from types; with `env` also whether the constants there have an atom."""

    def read(p: int, role: str | int) -> str:
        if p >= len(plan.sorts):
            assert env is not None
            return f"I({length(plan, p, env[role])} > 0)"
        return f"(({types[role]} >> {plan.position[p]}) & 1)"

    return read


def length(plan: Plan, bit: int, constant: str) -> str:
    """How many atoms a constant has."""
    return f"c.head[{lists(*plan.some(bit))} + LIST * {constant} + LENGTH]"


def term_entry(plan: Plan, term: Term, types: Mapping[str | int, str], compact: Sequence[int] | None = None) -> str:
    """The same for a term in roles; with `compact` the bits of b are those of a class."""
    read = type_bit(plan, types)

    def bit(p: int, v: int) -> str:
        role = term.roles[v]
        return f"((tb >> {compact.index(p)}) & 1)" if role == B and compact is not None else read(p, role)

    return entry(plan, term.monomial, bit)
