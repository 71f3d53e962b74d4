"""Which variable of a formula is bit-parallel (the word axis), and in which order the others are looped over; what an
update costs by the same counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from math import prod

from definetti.samplers.codegen.expressions import (
    And,
    Constant,
    Equal,
    Exists,
    Expr,
    Leaf,
    Literal,
    Or,
    Read,
    Slot,
    Xor,
    either,
    leaves,
    possible,
    variables_of,
)
from definetti.samplers.codegen.occurrences import Place
from definetti.samplers.codegen.shapes import Theory

#: Guesses of how often a literal is true: relations are sparse. Only the order of loops depends on them.
OFTEN = {Read: 0.15, Equal: 0.05, Exists: 0.5}


def chance(e: Expr) -> float:
    """A guess of how often an expression is true, its leaves taken as independent."""
    match e:
        case Constant(value):
            return float(value)
        case Literal(leaf, sign):
            return OFTEN[type(leaf)] if sign else 1 - OFTEN[type(leaf)]
        case Xor(left, right):
            a, b = chance(left), chance(right)
            return a + b - 2 * a * b
        case And(parts):
            return prod(map(chance, parts))
        case Or(parts):
            return 1 - prod(1 - chance(part) for part in parts)


def plan(
    exprs: list[Expr], rest: tuple[int, ...], plus: tuple[int, ...], theory: Theory, sorts: tuple[int, ...]
) -> tuple[tuple[int, ...], int | None]:
    """The cheapest (order of loops, word axis) by a guess; `plus` variables come first and are never the axis."""
    first = tuple(v for v in rest if v in plus)
    others = tuple(v for v in rest if v not in plus)
    if len(others) > 6:  # 720 orders are enough to look at
        return first + others[:-1], others[-1]
    words = {v: theory.words[sorts[v]] or 16 for v in rest}
    sizes = {v: 60 * words[v] for v in rest}
    best: tuple[float, tuple[int, ...]] | None = None
    for order in permutations(others):
        cost = _cost(exprs, first + order, words, sizes)
        if best is None or cost < best[0]:
            best = cost, order
    order = best[1] if best else ()
    return (first + order[:-1], order[-1]) if order else (first, None)


def _cost(exprs: list[Expr], order: tuple[int, ...], words: Mapping[int, int], sizes: Mapping[int, int]) -> float:
    """Words evaluated when the last variable of the order is the word axis and each loop skips what is decided."""
    cost, runs, box = 0.0, 1.0, 1.0
    bound = frozenset(v for e in exprs for x in leaves(e) for v in variables_of(x)) - set(order)
    for v in order:
        cost += runs * (1 + words[v])
        bound |= {v}

        def known(leaf: Leaf, bound: frozenset[int] = bound) -> bool:
            return not isinstance(leaf, Exists) and variables_of(leaf) <= bound

        box *= sizes[v]
        runs = box * chance(either(possible(e, known) for e in exprs))
    return cost


def update_words(
    theory: Theory, predicate: int, places: Iterable[Place], instances: Sequence[int], sizes: Sequence[int]
) -> float:
    """A guess of the words that an update of one atom evaluates: the price of a sweep is counted, not timed.

    `instances`: formulas of each shape; `sizes` of the sorts.
    """
    total, sorts = 0.0, theory.signatures[predicate].sorts
    for place in places:
        shape = theory.shapes[place.shape]
        often = instances[place.shape] / prod(sizes[sorts[j]] for j in place.slot_arguments)  # that an atom matches
        often /= prod(sizes[sorts[b.number]] for a, b in place.guards if not isinstance(a, Slot))
        exprs = [g.expression for g in place.goals]
        loops, axis = plan(exprs, place.rest, shape.plus, theory, shape.sorts)
        order = loops if axis is None else (*loops, axis)
        size = {v: sizes[sort] for v, sort in enumerate(shape.sorts)}
        words = {v: -(-n // 64) for v, n in size.items()}
        cost = 1.0 + _cost(exprs, order, words, size)
        for x in (x for e in exprs for x in leaves(e) if isinstance(x, Exists) and x.variables):
            cost += prod(size[v] for v in (*loops, *x.variables[:-1])) * words[x.variables[-1]]
        total += often * cost
    return total
