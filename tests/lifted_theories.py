"""Random small two-variable theories for lifted counting: one and two sorts, quantifiers, equality, constants,
`+`, hard and soft formulas, evidence on one and on two constants. Made from a seed (see `evidence_theories`).
"""

from __future__ import annotations

from itertools import product

import logic_worlds as lw
import numpy as np
from logic_worlds import at

from definetti.model.logic.theory import (
    And,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Variable,
)

PREDICATES = (
    Predicate("P", ("a",)),
    Predicate("R", ("a", "a")),
    Predicate("Q", ("a",)),
    Predicate("U", ("b",)),
    Predicate("S", ("a", "b")),
    Predicate("V", ("b", "a")),
    Predicate("Z", ()),
)


def theory(seed: int, most_free: int = 12) -> MarkovLogic:
    rng = np.random.default_rng(seed)
    two = rng.random() < 0.4
    sizes = {"a": int(rng.integers(1, 4)), "b": int(rng.integers(1, 3))} if two else {"a": int(rng.integers(2, 4))}
    chance = {"P": 0.9, "R": 0.7, "Q": 0.4, "U": 0.6, "S": 0.6, "V": 0.2, "Z": 0.1}
    some = [p for p in PREDICATES if set(p.sorts) <= set(sizes) and rng.random() < chance[p.name]]
    predicates = some or [PREDICATES[0]]
    formulas = [_formula(rng, predicates, sizes) for _ in range(rng.integers(1, 5))]
    return lw.network(sizes, predicates, formulas, _evidence(rng, predicates, sizes, most_free))


def _evidence(rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int], most: int) -> dict:
    known: dict[str, list] = {}
    free = []
    for p in predicates:
        chance = rng.choice([0.0, 0.0, 0.2, 0.5])
        every = list(product(*(range(sizes[s]) for s in p.sorts)))
        known[p.name] = [(t, int(rng.random() < 0.5)) for t in every if rng.random() < chance]
        free += [(p.name, t) for t in every if t not in dict(known[p.name])]
    for k in rng.permutation(len(free))[most:]:
        known[free[k][0]].append((free[k][1], int(rng.random() < 0.5)))
    return known


def _formula(rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int]) -> tuple:
    names = {"a": ("x", "y"), "b": ("u", "w")} if rng.random() < 0.5 else {"a": ("x", "x"), "b": ("u", "u")}
    if rng.random() < 0.3:
        names = {"a": ("x", "y"), "b": ("x", "y")} if len(sizes) == 1 else names
    named = rng.random() < 0.2
    used: dict[str, str] = {}

    def term(sort: str):
        if named and rng.random() < 0.4:
            return sort, int(rng.integers(sizes[sort]))
        name = names[sort][rng.integers(2)]
        used[name] = sort
        return name

    def body(depth: int) -> Formula:
        if depth == 0 or rng.random() < 0.25:
            p = predicates[rng.integers(len(predicates))]
            found = at(p.name, *(term(s) for s in p.sorts))
            return Not(found) if rng.random() < 0.3 else found
        parts = body(depth - 1), body(depth - 1)
        kind = (And, Or, Or, Implies, Iff)[rng.integers(5)]
        return kind(parts) if kind in (And, Or) else kind(*parts)

    whole = body(2)
    if {"x", "y"} <= set(used) and rng.random() < 0.2:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    while used and rng.random() < 0.4:
        name = sorted(used)[rng.integers(len(used))]
        del used[name]
        whole = (Exist, Exist, Forall)[rng.integers(3)]((name,), whole)
        if rng.random() < 0.3:
            whole = Not(whole)
    if used and rng.random() < 0.15:
        plus = sorted(used)[: rng.integers(1, 3)]
        return rng.choice([0.3, 0.3, 0.7], size=[sizes[used[v]] for v in plus]), whole, tuple(plus)
    weight = None if rng.random() < 0.3 else float(rng.choice([-1.0, 0.5, 2.0]))
    return weight, whole
