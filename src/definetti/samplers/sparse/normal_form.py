"""The sparse normal form of a theory: its log density as a polynomial in the atoms of binary predicates.

Every formula, under every way in which its variables may be equal, is a Boolean function of distinct constants: of
atoms R(x,y) of two constants, and of what is known of each constant alone, its *bits* (unary atoms, the diagonal atoms
R(x,x), and whether it has any R(x,y): `EXIST y R(x,y)` is that, or R(x,x)). Expanded in the former (A² = A) it is a sum
of monomials, each a set of atoms over distinct variables with a table over the bits. So the log density is a sum over
monomials and over injective assignments of constants, and a false atom takes its monomials away: only true atoms are
ever visited. Atoms R(x,y) and R(y,x) that a hard formula makes equal are one atom of an unordered pair, written with
the smaller variable first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import TypeVar

import numpy as np

from definetti.constraints.logic.ties import tied_classes
from definetti.model.logic.formulas import atoms, equalities, parts, quantified, rebuild, terms
from definetti.model.logic.theory import (
    And,
    Atom,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Truth,
    Variable,
    WeightedFormula,
)

T = TypeVar("T", int, str)
MOST_ATOMS = 12  # of one formula: its truth table has 2^12 entries
SOME = "\0"  # starts the names of bits that say whether there is an atom
NOTHING = 1e-13  # of the largest coefficient: what is left where coefficients cancel


class Unfit(Exception):
    """Why a theory has no sparse sampler: a sentence for `info`."""


Pair = tuple[int, int, int]  # predicate, variable, variable: an atom of two different constants
Symmetric = frozenset[int]  # predicates R with R(x,y) = R(y,x) by a hard formula
# predicate, variable: P(x) of a unary predicate, R(x,x) of a binary one, or, numbered behind them all, whether x has
# any R(x,y) with y ≠ x (2 R), any R(y,x) (2 R + 1)
Bit = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Monomial:
    """coefficient(bits) · Π pairs, summed over injective assignments of constants to the variables.

    Attributes
    ----------
    sorts : tuple of int
        Of the variables.
    pairs : tuple of Pair
        Atoms that must be true.
    bits : tuple of Bit
        What the coefficient depends on, one axis of `table` each.
    table : array
        Coefficients; of a hard formula minus the number of groundings that are violated.
    """

    sorts: tuple[int, ...]
    pairs: tuple[Pair, ...]
    bits: tuple[Bit, ...]
    table: np.ndarray
    hard: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        return (self.hard, self.sorts, self.pairs)


def symmetric_predicates(model: MarkovLogic) -> Symmetric:
    """The binary predicates whose atoms R(x,y) and R(y,x) are tied to each other, and to nothing else."""
    found, number = set(), {name: p for p, name in enumerate(model.predicates)}
    for name, images in tied_classes(model).items():
        if [(i.predicate, i.places, i.sign) for i in images] != [(name, (0, 1), True), (name, (1, 0), True)]:
            raise Unfit(f"hard formulas tie atoms of {name} to others")
        found.add(number[name])
    return frozenset(found)


def unordered(pair: tuple[int, T, T], symmetric: Symmetric) -> tuple[int, T, T]:
    p, x, y = pair
    return (p, y, x) if p in symmetric and y < x else pair


def monomials(model: MarkovLogic, symmetric: Symmetric = frozenset()) -> tuple[Monomial, ...]:
    """The normal form of a theory, equal monomials merged; raises `Unfit` for what it cannot express.

    Bits that have the same known value for all constants, such as the diagonal of an irreflexive relation, are put in.
    """
    known = constant_bits(model)
    found: dict[tuple[object, ...], list[Monomial]] = {}
    for formula in model.formulas:
        for monomial in expanded(model, formula, known, symmetric):
            made = canonical(monomial, symmetric)
            found.setdefault(made.key, []).append(made)
    merged = [summed(group) for group in found.values()]
    return tuple(m for m in merged if m is not None)


def constant_bits(model: MarkovLogic) -> dict[int, int]:
    """Predicate → the value that is known of P(x), or R(x,x), for every x."""
    found = {}
    for p, (name, predicate) in enumerate(model.predicates.items()):
        if len(set(predicate.sorts)) != 1 or predicate.exclusive or len(predicate.sorts) > 2:
            continue
        relation, size = model.knowledge.relation(name), model.shape(name)[0]
        here = relation.codes[relation.tuples[:, 0] == relation.tuples[:, -1]]
        values = {int(code) for code in np.unique(here)} | ({relation.default} if len(here) < size else set())
        if values in ({0}, {1}):
            found[p] = values.pop()
    return found


def expanded(
    model: MarkovLogic, formula: WeightedFormula, known: Mapping[int, int], symmetric: Symmetric
) -> Iterator[Monomial]:
    """The monomials of one formula, for every way in which its variables may be equal."""
    formula = replace(formula, body=with_degrees(model, formula.body, formula.sorts))
    check_formula(model, formula)
    sort_number = {name: s for s, name in enumerate(model.sorts)}
    number = {name: p for p, name in enumerate(model.predicates)}
    number |= {SOME + str(k) + name: len(number) + 2 * p + k for name, p in number.items() for k in (0, 1)}
    names = list(formula.free)
    sorts = [sort_number[formula.sorts[x]] for x in names]
    sizes = [sort.size for sort in model.sorts.values()]
    weight = 1.0 if formula.weight is None else float(np.asarray(formula.weight))
    for block_of in partitions(sorts):
        blocks = sorted(set(block_of))
        place = dict(zip(names, (blocks.index(b) for b in block_of), strict=True))
        block_sorts = tuple(sorts[b] for b in blocks)
        yield from polynomial(formula.body, place, number, block_sorts, sizes, weight, formula.hard, known, symmetric)


def with_degrees(model: MarkovLogic, f: Formula, sorts: Mapping[str, str]) -> Formula:
    """With bits for `EXIST y R(x,y)` and `EXIST y R(y,x)`, also where y ≠ x is asked for; other quantifiers stay."""
    match f:
        case Forall(names, Not(inner)):
            return Not(with_degrees(model, Exist(names, inner), sorts))
        case Exist((_,), Or(some)):
            return Or(tuple(with_degrees(model, Exist(f.variables, part), sorts) for part in some))
        case Exist((y,), And((Atom() as atom, Not(Equal(left, right))))) if Variable(y) in (left, right):
            other = right if left == Variable(y) else left
            return some_pair(atom, y) if {*atom.args} == {Variable(y), other} else f
        case Exist((y,), Atom(name, (one, two)) as atom) if (one == Variable(y)) != (two == Variable(y)):
            x = one if two == Variable(y) else two
            pair = some_pair(atom, y)
            same = isinstance(x, Variable) and sorts[x.name] == sorts[y]
            return Or((Atom(name, (x, x)), pair)) if same else pair
    return rebuild(f, tuple(with_degrees(model, part, sorts) for part in parts(f)))


def some_pair(atom: Atom, y: str) -> Atom:
    side = 0 if atom.args[1] == Variable(y) else 1
    return Atom(f"{SOME}{side}{atom.predicate}", (atom.args[side],))


def check_formula(model: MarkovLogic, formula: WeightedFormula) -> None:
    body, text = formula.body, formula.source or "a formula"
    if formula.plus or np.ndim(0.0 if formula.weight is None else formula.weight):
        raise Unfit(f"{text!r} has a weight for each constant (`+`)")
    if any(not isinstance(t, Variable) for t in terms(body)):
        raise Unfit(f"{text!r} names a constant")
    if next(quantified(body), None) is not None:
        raise Unfit(f"{text!r} has a quantifier")
    if {t.name for a in atoms(body) for t in a.args if isinstance(t, Variable)} != set(formula.free):
        raise Unfit(f"{text!r} has a variable that stands in no atom")


def partitions(sorts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways in which variables of these sorts may be equal: for each the first variable that it equals."""
    found: list[tuple[int, ...]] = [()]
    for j, sort in enumerate(sorts):
        found = [
            (*head, leader)
            for head in found
            for leader in [*(i for i in range(j) if head[i] == i and sorts[i] == sort), j]
        ]
    yield from found


def polynomial(
    body: Formula,
    place: Mapping[str, int],
    number: Mapping[str, int],
    sorts: tuple[int, ...],
    sizes: Sequence[int],
    weight: float,
    hard: bool,
    known: Mapping[int, int],
    symmetric: Symmetric,
) -> Iterator[Monomial]:
    """The monomials of a formula whose variables stand for the distinct constants `place`."""
    pairs: list[Pair] = []
    bits: list[Bit] = []
    slot: dict[Atom, tuple[bool, int]] = {}
    for atom in atoms(body):
        at = [place[t.name] for t in atom.args if isinstance(t, Variable)]
        if not at:
            raise Unfit(f"{atom.predicate} has no arguments")
        if len(at) > 2:
            raise Unfit(f"{atom.predicate} has {len(at)} arguments")
        p = number[atom.predicate]
        if len(set(at)) == 2:
            slot[atom] = (True, _place(pairs, unordered((p, at[0], at[1]), symmetric)))
        else:
            slot[atom] = (False, _place(bits, (p, at[0])))
    if len(pairs) + len(bits) > MOST_ATOMS:
        raise Unfit(f"a formula has more than {MOST_ATOMS} atoms")
    same = {e: place[e.left.name] == place[e.right.name] for e in equalities(body)}  # pyright: ignore
    table = np.zeros((2,) * (len(pairs) + len(bits)))
    for values in product((0, 1), repeat=table.ndim):
        truth = {a: bool(values[k if pair else len(pairs) + k]) for a, (pair, k) in slot.items()}
        table[values] = holds(body, truth, same) - int(hard)
    for axis in reversed(range(len(bits))):
        if bits[axis][0] in known:
            table = np.take(table, known[bits[axis][0]], len(pairs) + axis)
            del bits[axis]
    for axis in range(len(pairs)):  # from values to coefficients of products
        low, high = np.take(table, 0, axis), np.take(table, 1, axis)
        table = np.stack([low, high - low], axis)
    for values in product((0, 1), repeat=len(pairs)):
        part = table[values]
        if part.any() and (hard or any(values) or part.min() != part.max()):
            chosen = tuple(pair for pair, used in zip(pairs, values, strict=True) if used)
            made = reduced(sorts, chosen, tuple(bits), weight * part, hard, sizes)
            if len(made.sorts) > 1 and any(p >= len(number) // 3 for p, _ in made.bits):
                raise Unfit("a formula ties whether there is an atom (EXIST) to other constants")
            yield made


def _place(found: list, item: object) -> int:
    if item not in found:
        found.append(item)
    return found.index(item)


def holds(f: Formula, truth: Mapping[Atom, bool], same: Mapping[Equal, bool]) -> bool:
    match f:
        case Truth(value):
            return value
        case Atom():
            return truth[f]
        case Equal():
            return same[f]
        case Not(part):
            return not holds(part, truth, same)
        case And(parts):
            return all(holds(p, truth, same) for p in parts)
        case Or(parts):
            return any(holds(p, truth, same) for p in parts)
        case Implies(left, right):
            return not holds(left, truth, same) or holds(right, truth, same)
        case Iff(left, right):
            return holds(left, truth, same) == holds(right, truth, same)
        case Exist() | Forall():
            raise Unfit("a formula has a quantifier")


def reduced(
    sorts: tuple[int, ...], pairs: tuple[Pair, ...], bits: tuple[Bit, ...], table: np.ndarray, hard: bool,
    sizes: Sequence[int],
) -> Monomial:  # fmt: skip
    """Without bits that nothing depends on, and without variables that only multiply: as often as there are
    constants different from the others."""
    for axis in reversed(range(len(bits))):
        if np.array_equal(np.take(table, 0, axis), np.take(table, 1, axis)):
            table, bits = np.take(table, 0, axis), (*bits[:axis], *bits[axis + 1 :])
    used = sorted({v for _, *at in pairs for v in at} | {v for _, v in bits})
    left = list(used)
    for v in range(len(sorts)):
        if v not in used:
            table = table * max(0, sizes[sorts[v]] - sum(sorts[u] == sorts[v] for u in left))
            left.append(v)
    new = {v: k for k, v in enumerate(used)}
    return Monomial(
        tuple(sorts[v] for v in used),
        tuple((p, new[x], new[y]) for p, x, y in pairs),
        tuple((p, new[v]) for p, v in bits),
        table,
        hard,
    )


def canonical(m: Monomial, symmetric: Symmetric) -> Monomial:
    """The variables renamed so that equal monomials look equal."""
    best = None
    for order in permutations(range(len(m.sorts))):
        new = {v: k for k, v in enumerate(order)}
        sorts = tuple(m.sorts[v] for v in order)
        pairs = tuple(sorted(unordered((p, new[x], new[y]), symmetric) for p, x, y in m.pairs))
        bits = [(p, new[v]) for p, v in m.bits]
        axes = sorted(range(len(bits)), key=bits.__getitem__)
        key = (sorts, pairs, tuple(bits[k] for k in axes))
        if best is None or key < best[0]:
            best = (key, m.table.transpose(axes))
    assert best is not None
    (sorts, pairs, bits), table = best
    return Monomial(sorts, pairs, bits, table, m.hard)


def summed(group: Sequence[Monomial]) -> Monomial | None:
    """The sum of monomials with the same atoms; None where they cancel."""
    bits = tuple(sorted({bit for m in group for bit in m.bits}))
    total = np.zeros((2,) * len(bits))
    for m in group:
        shape = [2 if bit in m.bits else 1 for bit in bits]
        total = total + m.table.reshape(shape)  # both in sorted order
    scale = max(float(np.abs(m.table).max()) for m in group)
    total = np.where(np.abs(total) <= NOTHING * scale, 0.0, total)
    first = group[0]
    for axis in reversed(range(len(bits))):
        if np.array_equal(np.take(total, 0, axis), np.take(total, 1, axis)):
            total, bits = np.take(total, 0, axis), (*bits[:axis], *bits[axis + 1 :])
    if not total.any() or not (first.pairs or bits or first.hard):
        return None
    return Monomial(first.sorts, first.pairs, bits, total, first.hard)
