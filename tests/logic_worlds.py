"""Small Markov logic networks for tests of symmetries, and their distributions by enumeration, from the definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Evidence,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Sort,
    Truth,
    Variable,
    WeightedFormula,
)

Ground = tuple[str, tuple[int, ...]]


def at(predicate: str, *args: str | tuple[str, int]) -> Atom:
    return Atom(predicate, tuple(Variable(a) if isinstance(a, str) else Constant(*a) for a in args))


def weighted(weight, body: Formula, predicates: Mapping[str, Predicate], plus: tuple[str, ...] = ()) -> WeightedFormula:
    """Sorts of the variables from the predicates; free are those that no quantifier binds."""
    sorts: dict[str, str] = {}
    bound: set[str] = set()

    def walk(f: Formula) -> None:
        match f:
            case Atom(name, args):
                for term, sort in zip(args, predicates[name].sorts, strict=True):
                    if isinstance(term, Variable):
                        sorts.setdefault(term.name, sort)
            case Not(part):
                walk(part)
            case And(parts) | Or(parts):
                for p in parts:
                    walk(p)
            case Implies(left, right) | Iff(left, right):
                walk(left)
                walk(right)
            case Exist(names, inner) | Forall(names, inner):
                bound.update(names)
                walk(inner)
            case _:
                pass

    walk(body)
    return WeightedFormula(body, weight, sorts, tuple(v for v in sorts if v not in bound), plus)


def evidence(rows: Mapping[str, Sequence[tuple[tuple[int, ...], int]]]) -> dict[str, Evidence]:
    out = {}
    for name, known in rows.items():
        if known:
            ordered = sorted(dict(known).items())
            out[name] = Evidence(
                np.array([t for t, _ in ordered], np.int32), np.array([v for _, v in ordered], np.int8)
            )
    return out


def network(sizes: Mapping[str, int], predicates: Sequence[Predicate], formulas, known=None, **more) -> MarkovLogic:
    by_name = {p.name: p for p in predicates}
    sorts = {s: Sort(s, tuple(f"{s[0].upper()}{i}" for i in range(k))) for s, k in sizes.items()}
    made = tuple(weighted(f[0], f[1], by_name, *f[2:]) for f in formulas)
    return MarkovLogic(sorts, by_name, made, evidence(known or {}), **more)


# --- the paper's models --------------------------------------------------------------------------------------

SMOKERS = (
    Predicate("Smokes", ("person",)),
    Predicate("Cancer", ("person",)),
    Predicate("Friends", ("person", "person")),
)
SMOKERS_FORMULAS = (
    (1.4, Not(at("Smokes", "x"))),
    (2.3, Not(at("Cancer", "x"))),
    (4.6, Not(at("Friends", "x", "y"))),
    (1.5, Implies(at("Smokes", "x"), at("Cancer", "x"))),
    (1.1, Implies(And((at("Friends", "x", "y"), at("Smokes", "x"))), at("Smokes", "y"))),
)
TRANSITIVITY = (1.0, Implies(And((at("Friends", "x", "y"), at("Friends", "y", "z"))), at("Friends", "x", "z")))


def paper_evidence(n: int, smokers: int, seed: int = 0, known: float = 0.1, friends: int = 10) -> dict:
    """A random 10 % of people, each with known smokes and 10 known friends: true atoms only, one direction."""
    rng = np.random.default_rng(seed)
    people = rng.choice(n, size=round(known * n), replace=False).tolist()
    others = [
        (p, q)
        for p in people
        for q in rng.choice([q for q in range(n) if q != p], size=friends, replace=False).tolist()
    ]
    return {
        "Smokes": [((p,), int(k < smokers)) for k, p in enumerate(people)],
        "Friends": [((p, q), 1) for p, q in others],
    }


def smokers(n: int, known=None, transitivity: bool = False, **more) -> MarkovLogic:
    formulas = SMOKERS_FORMULAS + ((TRANSITIVITY,) if transitivity else ())
    return network({"person": n}, SMOKERS, formulas, known, **more)


# --- enumeration ---------------------------------------------------------------------------------------------


def atoms(model: MarkovLogic) -> list[Ground]:
    return [(p, c) for p in model.predicates for c in product(*(range(k) for k in model.shape(p)))]


def holds(f: Formula, env: dict[str, int], state: Mapping[Ground, np.ndarray | bool], model, sorts):
    """The truth of a formula; states may be arrays of many worlds at once."""
    value = lambda t: env[t.name] if isinstance(t, Variable) else t.index  # noqa: E731
    again = lambda g, e=env: holds(g, e, state, model, sorts)  # noqa: E731
    match f:
        case Truth(v):
            return np.bool_(v)
        case Atom(name, args):
            return state[name, tuple(value(t) for t in args)]
        case Equal(left, right):
            return np.bool_(value(left) == value(right))
        case Not(part):
            return ~again(part)
        case And(parts):
            return np.logical_and.reduce(np.broadcast_arrays(*map(again, parts)))
        case Or(parts):
            return np.logical_or.reduce(np.broadcast_arrays(*map(again, parts)))
        case Implies(left, right):
            return ~again(left) | again(right)
        case Iff(left, right):
            return again(left) == again(right)
        case Exist(names, body) | Forall(names, body):
            values = product(*(range(model.sorts[sorts[n]].size) for n in names))
            found = [again(body, env | dict(zip(names, v, strict=True))) for v in values]
            both = np.broadcast_arrays(*found)
            return (np.logical_or if isinstance(f, Exist) else np.logical_and).reduce(both)
    raise AssertionError(f)


def observed(model: MarkovLogic) -> dict[Ground, int]:
    out: dict[Ground, int] = {}
    for name in model.closed:
        doubt = {tuple(r) for r in np.asarray(model.unknown.get(name, np.zeros((0, 0)))).astype(int).tolist()}
        out |= {(name, c): 0 for p, c in atoms(model) if p == name and c not in doubt}
    for name, known in model.evidence.items():
        out |= {(name, tuple(r)): int(v) for r, v in zip(known.tuples.tolist(), known.values.tolist(), strict=True)}
    return out


def decided(model: MarkovLogic) -> dict[Ground, int]:
    """Evidence with what follows from it in blocks of which exactly one value is true."""
    known = observed(model)
    for p in model.predicates.values():
        if p.exclusive:
            every = list(product(*(range(k) for k in model.shape(p.name))))
            key = lambda c, p=p: tuple(v for j, v in enumerate(c) if j not in p.exclusive)  # noqa: E731
            for outer in {key(c) for c in every}:
                block = [(p.name, c) for c in every if key(c) == outer]
                if any(known.get(t) == 1 for t in block):
                    known |= {t: known.get(t, 0) for t in block}
                elif sum(t in known for t in block) == len(block) - 1:
                    known |= {t: 1 for t in block if t not in known}
    return known


def worlds(model: MarkovLogic) -> tuple[list[Ground], dict[Ground, np.ndarray], np.ndarray]:
    """(free atoms, every atom's value in every world, the log-density of every world): -inf where impossible."""
    every, known = atoms(model), decided(model)
    free = [a for a in every if a not in known]
    count = 1 << len(free)
    index = np.arange(count)
    state = {a: (index >> k & 1).astype(bool) for k, a in enumerate(free)}
    state |= {a: np.full(count, bool(v)) for a, v in known.items()}
    log = np.zeros(count)
    for f in model.formulas:
        for values in groundings(model, f):
            env = dict(zip(f.free, values, strict=True))
            true = holds(f.body, env, state, model, f.sorts)
            if f.weight is None:
                log = np.where(true, log, -np.inf)
            else:
                log = log + np.asarray(f.weight)[tuple(env[v] for v in f.plus)] * true
    for predicate in model.predicates.values():
        log = np.where(_blocks_hold(model, predicate, state, count), log, -np.inf)
    return free, state, log


def groundings(model: MarkovLogic, f: WeightedFormula) -> Iterator[tuple[int, ...]]:
    return product(*(range(model.sorts[f.sorts[v]].size) for v in f.free))


def _blocks_hold(model: MarkovLogic, predicate: Predicate, state, count: int) -> np.ndarray:
    fine = np.ones(count, bool)
    if predicate.exclusive:
        totals: dict[tuple[int, ...], np.ndarray] = {}
        for c in product(*(range(k) for k in model.shape(predicate.name))):
            key = tuple(v for j, v in enumerate(c) if j not in predicate.exclusive)
            totals[key] = totals.get(key, 0) + state[predicate.name, c].astype(int)
        for total in totals.values():
            fine &= total == 1
    return fine


def marginals(model: MarkovLogic) -> dict[Ground, float]:
    _, state, log = worlds(model)
    p = np.exp(log - log.max())
    p /= p.sum()
    return {a: float(p[v].sum()) for a, v in state.items()}


def atoms_in(f: Formula) -> Iterator[Atom]:
    from definetti.model.logic.formulas import atoms as walk

    return walk(f)
