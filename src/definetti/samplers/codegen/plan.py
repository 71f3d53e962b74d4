"""Which variable of a formula is bit-parallel, and in which order the others are looped over."""

from __future__ import annotations

from itertools import permutations

from definetti.samplers.codegen.expressions import Expr, Leaf, either, leaves, possible
from definetti.samplers.codegen.occurrences import variables_of
from definetti.samplers.codegen.shapes import Theory

#: Guesses of how often a literal is true: relations are sparse. Only the order of loops depends on them.
TRUE_BIT, EQUAL, EXISTS = 0.15, 0.05, 0.5


def chance(e: Expr) -> float:
    """A guess of how often an expression is true, its leaves taken as independent."""
    kind = e[0]
    if kind in "01":
        return float(kind)
    if kind == "l":
        p = {"r": TRUE_BIT, "=": EQUAL, "E": EXISTS}[e[1][0]]
        return p if e[2] else 1 - p
    if kind == "x":
        a, b = chance(e[1]), chance(e[2])
        return a + b - 2 * a * b
    product = 1.0
    for part in e[1]:
        product *= chance(part) if kind == "&" else 1 - chance(part)
    return product if kind == "&" else 1 - product


def plan(
    exprs: list[Expr], rest: tuple[int, ...], plus: tuple[int, ...], theory: Theory, sorts: tuple[int, ...]
) -> tuple[tuple[int, ...], int | None]:
    """The cheapest (order of loops, word axis) by a guess; `plus` variables come first and are never the axis."""
    first = tuple(v for v in rest if v in plus)
    others = tuple(v for v in rest if v not in plus)
    if len(others) > 6:  # 720 orders are enough to look at
        return first + others[:-1], others[-1]
    inside = frozenset(v for e in exprs for x in leaves(e) for v in variables_of(x))
    best: tuple[float, tuple[int, ...]] | None = None
    for order in permutations(others):
        cost = _cost(exprs, first + order, inside - set(rest), theory, sorts)
        if best is None or cost < best[0]:
            best = cost, order
    order = best[1] if best else ()
    return (first + order[:-1], order[-1]) if order else (first, None)


def _cost(
    exprs: list[Expr], order: tuple[int, ...], bound: frozenset[int], theory: Theory, sorts: tuple[int, ...]
) -> float:
    """Words evaluated when the last variable of the order is the word axis and each loop skips what is decided."""
    cost, runs, box = 0.0, 1.0, 1.0
    for v in order:
        words = theory.words[sorts[v]] or 16
        cost += runs * (1 + words)
        bound |= {v}

        def known(leaf: Leaf, bound: frozenset[int] = bound) -> bool:
            return leaf[0] != "E" and variables_of(leaf) <= bound

        box *= 60 * words
        runs = box * chance(either(possible(e, known) for e in exprs))
    return cost
