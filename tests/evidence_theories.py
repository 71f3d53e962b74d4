"""Random small theories with much evidence, mostly of formulas of one or two variables: what it can simplify.

Theories are made from a seed with chances of our own, not drawn choice by choice: hypothesis prefers small choices, and
planted mistakes went unseen in the small theories that it made of them.
"""

from __future__ import annotations

from itertools import product

import logic_worlds as lw
import numpy as np
from hypothesis import strategies as st
from logic_worlds import at

from definetti.model.logic.theory import (
    And,
    Equal,
    Exist,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Variable,
)

UNARY = (Predicate("P", ("a",)), Predicate("Q", ("a",)))
BINARY = (Predicate("R", ("a", "a")), Predicate("T", ("a", "a")))
OTHERS = (Predicate("U", ("b",)), Predicate("S", ("a", "b")), Predicate("V", ("b", "a")), Predicate("Z", ()))
VARIABLES = {"a": ("x", "y"), "b": ("u", "u")}


def theories(most_free: int = 10, hard: bool = False) -> st.SearchStrategy[MarkovLogic]:
    return st.integers(0, 2**32 - 1).map(lambda seed: theory(seed, most_free, hard))


def theory(seed: int, most_free: int = 10, hard: bool = False) -> MarkovLogic:
    rng = np.random.default_rng(seed)
    predicates = [*UNARY[: rng.integers(1, 3)], BINARY[0]]
    predicates += [p for p in (BINARY[1], *OTHERS) if rng.random() < 0.15]
    sizes = {"a": int(rng.integers(2, 5)), "b": int(rng.integers(1, 3))}
    made = [_formula(rng, predicates, hard) for _ in range(rng.integers(1, 5))]
    return lw.network(sizes, predicates, made, _evidence(rng, predicates, sizes, most_free))


def _evidence(rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int], most_free: int) -> dict:
    """Some of every predicate is known; what would be too much to enumerate is known as well."""
    codes = {}
    for p in predicates:
        chance = rng.choice([0.2, 0.5, 0.9])  # of being free
        lean = rng.choice([0.2, 0.5, 1.0])  # of being true, if known
        for t in product(*(range(sizes[s]) for s in p.sorts)):
            codes[p.name, t] = 2 if rng.random() < chance else int(rng.random() < lean)
    free = [atom for atom, code in codes.items() if code == 2]
    for k in rng.permutation(len(free))[most_free:]:
        codes[free[k]] = int(rng.random() < 0.5)
    return {p.name: [(t, v) for (name, t), v in codes.items() if name == p.name and v < 2] for p in predicates}


def _formula(rng: np.random.Generator, predicates: list[Predicate], hard: bool) -> tuple[float | None, Formula]:
    """Now and then a quantifier, a third variable, a constant, an equality or a hard formula."""
    odd = int(rng.integers(0, 12))

    def atom() -> Formula:
        p = predicates[rng.integers(len(predicates))]
        names = [VARIABLES[s][rng.integers(2)] for s in p.sorts]
        if odd == 0 and names.count("y"):
            names[names.index("y")] = "z"
        found = at(p.name, *(("a", 0) if odd == 1 and n == "x" and rng.random() < 0.5 else n for n in names))
        return Not(found) if rng.random() < 0.3 else found

    def body(depth: int) -> Formula:
        if depth == 0 or rng.random() < 0.2:
            return atom()
        parts = body(depth - 1), body(depth - 1)
        kind = (And, Or, Implies, Implies, Iff)[rng.integers(5)]
        return kind(parts) if kind in (And, Or) else kind(*parts)

    whole = body(2)
    free = {t.name for a in lw.atoms_in(whole) for t in a.args if isinstance(t, Variable)}
    if odd == 2 and "y" in free:
        whole = Exist(("y",), whole)
    elif odd == 3 and {"x", "y"} <= free:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    weight = None if rng.random() < (0.5 if hard else 0.05) else float(rng.choice([-1.0, 0.5, 2.0]))
    return weight, whole
