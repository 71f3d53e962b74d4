"""What the field of a site R(a,b) is made of, along a row: all b for one a.

The derivative of the normal form by R(a,b) is, for each place of R in a monomial, the monomial without it. By what the
rest touches these are
- *constant*: nothing but bits of a and b;
- *row*: atoms between a and a third constant, the same for all b;
- *degree*: atoms between b and a third constant, the same for all a: part of the class of b;
- *support*: atoms that link a and b. They are found from a by joins over true atoms.
Sums over a third constant z leave out z = b (z = a); rows and degrees are counted without that exception, which becomes
a support with the opposite sign. A row may not hold the row's own sites: their flips would change every later site.

Where R(x,y) and R(y,x) are one atom, the site {a,b} belongs to the row of that constant which comes first in the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.normal_form import Monomial, Pair, Symmetric, Unfit, unordered

A, B, Z = "a", "b", "z"


@dataclass(frozen=True)
class Term:
    """Monomial number `monomial` with its variables in the roles a, b, z; `pairs` (in roles) are what has to be true
    beside the site."""

    monomial: int
    roles: tuple[str, ...]  # of each variable
    pairs: tuple[tuple[int, str, str], ...]
    sign: int = 1

    def bits(self, m: Monomial, role: str) -> tuple[int, ...]:
        """The predicates whose bits of the constant in a role matter."""
        return tuple(p for p, v in m.bits if self.roles[v] == role)


@dataclass
class System:
    """The sites of one binary predicate: `side` 0 scans rows (a is the first argument), 1 columns."""

    predicate: int
    side: int
    sorts: tuple[int, int]  # of a and b
    constant: list[Term] = field(default_factory=list)
    row: list[Term] = field(default_factory=list)
    degree: list[Term] = field(default_factory=list)
    support: list[Term] = field(default_factory=list)
    some: list[tuple[int, int]] = field(default_factory=list)  # monomials, and their bit that a first R(·,b) sets
    bits_a: tuple[int, ...] = ()  # predicates whose bits of a the base field depends on
    bits_b: tuple[int, ...] = ()  # of b: part of its class
    ties: Symmetric = frozenset()  # of all predicates

    @property
    def same(self) -> bool:
        return self.sorts[0] == self.sorts[1]

    @property
    def symmetric(self) -> bool:
        """Whether its sites are unordered pairs."""
        return self.predicate in self.ties

    def own(self, z: str) -> tuple[int, str, str]:
        """The site (a,z) of the row."""
        return (self.predicate, A, z) if self.side == 0 else (self.predicate, z, A)


def system_of(model: MarkovLogic, found: Sequence[Monomial], predicate: int, ties: Symmetric = frozenset()) -> System:
    """The terms of a predicate's sites, by rows where that is possible, else by columns."""
    why = None
    for side in (0,) if predicate in ties else (0, 1):
        try:
            return sorted_out(model, found, predicate, side, ties)
        except Unfit as unfit:
            why = why or unfit
    assert why is not None
    raise why


def sorted_out(model: MarkovLogic, found: Sequence[Monomial], predicate: int, side: int, ties: Symmetric) -> System:
    name = list(model.predicates)[predicate]
    number = {s: k for k, s in enumerate(model.sorts)}
    sorts = [number[s] for s in model.predicates[name].sorts]
    s = System(predicate, side, (sorts[side], sorts[1 - side]), ties=ties)
    for k, m in enumerate(found):
        for place, pair in enumerate(m.pairs):
            if pair[0] == predicate:
                sort_out(s, found, k, place, name, side)
                if s.symmetric:  # {a,b} is met with its constants either way round
                    sort_out(s, found, k, place, name, 1 - side)
    for k, m in enumerate(found):
        sort_out_some(s, m, k, name, len(model.predicates))
    bits_a = {p for t in s.constant for p in t.bits(found[t.monomial], A)}
    bits_b = {p for t in (*s.constant, *s.row, *s.degree) for p in t.bits(found[t.monomial], B)}
    bits_b |= {p for k, _ in s.some for p, _ in found[k].bits if p < len(model.predicates)}
    if s.same and (predicate in bits_a or any(predicate in t.bits(found[t.monomial], A) for t in s.row)):
        raise Unfit(f"{name}(x,x) changes all {name}(x,y) of its row")
    s.bits_a, s.bits_b = tuple(sorted(bits_a)), tuple(sorted(bits_b))
    return s


def sort_out(s: System, found: Sequence[Monomial], k: int, place: int, name: str, side: int) -> None:
    m = found[k]
    first, second = m.pairs[place][1:]
    a, b = (first, second) if side == 0 else (second, first)
    others = [v for v in range(len(m.sorts)) if v not in (a, b)]
    if len(others) > 1:
        raise Unfit(f"a formula ties {name} to more than three constants")
    roles = tuple(A if v == a else B if v == b else Z for v in range(len(m.sorts)))
    pairs = in_roles([p for i, p in enumerate(m.pairs) if i != place], roles, s.ties)
    term = Term(k, roles, pairs)
    if not others:
        (s.support if pairs else s.constant).append(term)
        return
    touches = {frozenset(pair[1:]) for pair in pairs}
    to_a, to_b, both = (frozenset(x) in touches for x in ((A, Z), (B, Z), (A, B)))
    if to_a and to_b:
        s.support.append(term)
    elif to_a and not both:
        if s.own(Z) in pairs:
            raise Unfit(f"the atoms of {name} in a row count each other, whichever way rows go")
        s.row.append(term)
        correct(s, term, found, Z, B)
    elif to_b and not both:
        if len(pairs) > 1 or term.bits(m, A) or term.bits(m, Z):
            raise Unfit(f"the weight of a degree beside {name} depends on other atoms")
        s.degree.append(term)
        correct(s, term, found, Z, A)
    else:
        raise Unfit(f"a formula ties {name} to a constant without an atom between them")


def sort_out_some(s: System, m: Monomial, k: int, name: str, count: int) -> None:
    """Whether b has any other atom of the predicate: then R(a,b) does not change that it has one."""
    for bit, _ in m.bits:
        if bit >= count and (bit - count) // 2 == s.predicate:
            if s.symmetric or (bit - count) % 2 == s.side:
                raise Unfit(f"the atoms of {name} in a row count each other, whichever way rows go")
            s.some.append((k, bit))


def in_roles(pairs: Sequence[Pair], roles: Sequence[str], ties: Symmetric) -> tuple[tuple[int, str, str], ...]:
    return tuple(sorted(unordered((p, roles[x], roles[y]), ties) for p, x, y in pairs))


def correct(s: System, term: Term, found: Sequence[Monomial], gone: str, stands: str) -> None:
    """Takes out the terms in which z is b (or a), which the sum over all z has counted."""
    m = found[term.monomial]
    if m.sorts[term.roles.index(gone)] != m.sorts[term.roles.index(stands)]:
        return
    new = {A: A, B: B, gone: stands}
    pairs = tuple(sorted(unordered((p, new[x], new[y]), s.ties) for p, x, y in term.pairs))
    s.support.append(Term(term.monomial, tuple(new[r] for r in term.roles), pairs, -1))


def groups(terms: Sequence[Term]) -> Iterator[tuple[tuple[tuple[int, str, str], ...], list[Term]]]:
    """Terms with the same atoms, which are found by one join."""
    found: dict[tuple[tuple[int, str, str], ...], list[Term]] = {}
    for term in terms:
        found.setdefault(term.pairs, []).append(term)
    yield from found.items()


def depends(term: Term, found: Sequence[Monomial], predicate: int) -> bool:
    """Whether a support depends on the bit R(a,a) of the row's own predicate."""
    return predicate in term.bits(found[term.monomial], A)


def positions(model: MarkovLogic) -> Mapping[int, int]:
    """Where the bit of each predicate stands in the type of a constant: unary ones, and diagonals of binary ones."""
    used: dict[str, int] = {}
    out: dict[int, int] = {}
    for p, predicate in enumerate(model.predicates.values()):
        sort, *others = predicate.sorts or ("",)
        if sort and others in ([], [sort]):
            out[p] = used.get(sort, 0)
            used[sort] = out[p] + 1
    if any(n > 60 for n in used.values()):
        raise Unfit("more than 60 predicates of one constant")
    return out
