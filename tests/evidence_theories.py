"""Random small theories with much evidence, mostly of formulas of one or two variables: what it can simplify."""

from __future__ import annotations

from itertools import product

import logic_worlds as lw
from hypothesis import strategies as st
from logic_worlds import at

from definetti.model.logic import And, Equal, Exist, Iff, Implies, Not, Or, Predicate, Variable

PREDICATES = (
    Predicate("P", ("a",)),
    Predicate("Q", ("a",)),
    Predicate("U", ("b",)),
    Predicate("R", ("a", "a")),
    Predicate("S", ("a", "b")),
    Predicate("V", ("b", "a")),
    Predicate("T", ("a", "a")),
    Predicate("Z", ()),
)
VARIABLES = {"a": ("x", "y"), "b": ("u",)}


@st.composite
def formulas(draw, predicates, hard):
    """Mostly of one or two variables; now and then a quantifier, a third variable, a constant or a hard formula."""
    odd = draw(st.integers(0, 9))
    used: set[str] = set()

    def body(depth):
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            p = draw(st.sampled_from(predicates))
            names = [
                draw(st.sampled_from((*VARIABLES[s], "z") if odd == 0 and s == "a" else VARIABLES[s])) for s in p.sorts
            ]
            used.update(names)
            return at(p.name, *(("a", 0) if odd == 1 and n == "x" and draw(st.booleans()) else n for n in names))
        kind = draw(st.sampled_from((Not, And, Or, Implies, Iff)))
        if kind is Not:
            return Not(body(depth - 1))
        parts = body(depth - 1), body(depth - 1)
        return kind(parts) if kind in (And, Or) else kind(*parts)

    whole = body(3)
    free = {t.name for a in lw.atoms_in(whole) for t in a.args if isinstance(t, Variable)}
    if odd == 2 and "y" in free:
        whole = Exist(("y",), whole)
    elif {"x", "y"} <= free and draw(st.integers(0, 4)) == 0:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    return draw(st.sampled_from((None, -1.0, 0.5, 0.5, 2.0) if hard or odd > 6 else (-1.0, 0.5, 0.5, 2.0))), whole


@st.composite
def theories(draw, most_free=10, hard=False):
    sizes = {"a": draw(st.integers(1, 4)), "b": draw(st.integers(1, 3))}
    predicates = [p for p in PREDICATES if draw(st.booleans())] or [PREDICATES[0], PREDICATES[3]]
    known, free = {}, 0
    for p in predicates:
        tuples = list(product(*(range(sizes[s]) for s in p.sorts)))
        unknown_part = draw(st.sampled_from((0, 1, 3)))
        truth = {t: draw(st.sampled_from((0, 1) + (2,) * unknown_part)) for t in tuples}
        for t in tuples:
            if truth[t] == 2:
                free += 1
                if free > most_free:
                    truth[t] = draw(st.integers(0, 1))
        known[p.name] = [(t, v) for t, v in truth.items() if v < 2]
    made = [draw(formulas(predicates, hard)) for _ in range(draw(st.integers(1, 4)))]
    return lw.network(sizes, predicates, made, known)
