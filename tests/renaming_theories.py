"""Random small theories of every kind that renamings must cope with: two sorts, arities 0 to 3, `!`, `+`, quantifiers,
constants in formulas, open and closed predicates. Made from a seed (see `evidence_theories`).
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
    Predicate("Q", ("b",)),
    Predicate("R", ("a", "a")),
    Predicate("S", ("a", "b")),
    Predicate("B", ("a", "b"), (1,)),
    Predicate("T", ("a", "a", "a")),
    Predicate("Z", ()),
)
VARIABLES = {"a": ("x", "y", "z"), "b": ("u", "w")}

Known = list[tuple[tuple[int, ...], int]]


def theories(most_free: int = 11) -> st.SearchStrategy[MarkovLogic]:
    return st.integers(0, 2**32 - 1).map(lambda seed: theory(seed, most_free))


def theory(seed: int, most_free: int = 11) -> MarkovLogic:
    rng = np.random.default_rng(seed)
    sizes = {"a": int(rng.integers(1, 5)), "b": int(rng.integers(1, 4))}
    predicates = [p for p in PREDICATES if rng.random() < 0.5] or [PREDICATES[2]]
    known: dict[str, Known] = {}
    closed: set[str] = set()
    doubt: dict[str, np.ndarray] = {}
    for p in predicates:
        stated, unsure = _block_evidence(rng, sizes) if p.exclusive else _evidence(rng, p, sizes)
        total = int(np.prod([sizes[s] for s in p.sorts], dtype=np.int64))
        free = total - len(stated) if unsure is None else len(unsure)
        if free > most_free:  # then it is observed altogether
            stated, unsure, free = ([((a, 0), 1) for a in range(sizes["a"])] if p.exclusive else stated), [], 0
        most_free -= free
        known[p.name] = stated
        if unsure is not None:
            closed.add(p.name)
            doubt[p.name] = np.array(unsure, np.int32).reshape(len(unsure), len(p.sorts))
    formulas = [_formula(rng, predicates, sizes) for _ in range(rng.integers(1, 4))]
    return lw.network(sizes, predicates, formulas, known, closed=frozenset(closed), unknown=doubt)


def _evidence(rng, p: Predicate, sizes) -> tuple[Known, list[tuple[int, ...]] | None]:
    """(what is stated, what is left open in a closed predicate or None in an open one); few rows leave symmetry."""
    chance = rng.choice([0.0, 0.15, 0.5])
    truth = {
        t: int(rng.choice([0, 1, 1])) for t in product(*(range(sizes[s]) for s in p.sorts)) if rng.random() < chance
    }
    if rng.random() < 0.3:
        stated = [(t, v) for t, v in truth.items() if v == 1 or rng.random() < 0.3]
        return stated, [t for t, v in truth.items() if v == 0 and t not in dict(stated)]
    return list(truth.items()), None


def _block_evidence(rng, sizes) -> tuple[Known, None]:
    """Blocks known by their true value, by all the others, or by both: three ways to say the same."""
    stated: Known = []
    for a in range(sizes["a"]):
        chosen = int(rng.integers(sizes["b"]))
        way = rng.integers(5)
        if way in (1, 2):
            stated.append(((a, chosen), 1))
        if way in (2, 3):
            stated += [((a, v), 0) for v in range(sizes["b"]) if v != chosen]
    return stated, None


def _formula(rng, predicates: list[Predicate], sizes) -> tuple:
    used: dict[str, str] = {}
    named = rng.random() < 0.3

    def term(sort: str):
        if named and rng.random() < 0.4:
            return sort, int(rng.integers(sizes[sort]))
        name = VARIABLES[sort][rng.integers(len(VARIABLES[sort]))]
        used[name] = sort
        return name

    def body(depth: int) -> Formula:
        if depth == 0 or rng.random() < 0.3:
            p = predicates[rng.integers(len(predicates))]
            found = at(p.name, *(term(s) for s in p.sorts))
            return Not(found) if rng.random() < 0.3 else found
        parts = body(depth - 1), body(depth - 1)
        kind = (And, Or, Implies, Iff)[rng.integers(4)]
        return kind(parts) if kind in (And, Or) else kind(*parts)

    whole = body(2)
    for quantifier in (Exist, Forall):
        if used and rng.random() < 0.15:
            name = sorted(used)[rng.integers(len(used))]
            del used[name]
            whole = quantifier((name,), whole)
    if {"x", "y"} <= set(used) and rng.random() < 0.2:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    if used and rng.random() < 0.25:
        plus = sorted(used)[: rng.integers(1, 3)]
        return rng.choice([0.3, 0.3, 0.7], size=[sizes[used[v]] for v in plus]), whole, tuple(plus)
    return float(rng.choice([-1.0, 0.5, 2.0])), whole
