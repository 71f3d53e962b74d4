"""Small theories for the tests of the relational kernel, and a formula interpreter that shares nothing with it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np
from hypothesis import strategies as st

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
    Term,
    Truth,
    Variable,
    WeightedFormula,
)

World = dict[tuple, bool]


def atom(predicate: str, *names: str) -> Atom:
    return Atom(predicate, tuple(Variable(n) for n in names))


def rule(
    body: Formula,
    weight: float | np.ndarray | None,
    sort: str | Mapping[str, str],
    free: str,
    bound: str = "",
    plus: str = "",
) -> WeightedFormula:
    names = [*free.split(), *bound.split()]
    sorts = {n: sort if isinstance(sort, str) else sort[n] for n in names}
    return WeightedFormula(body, weight, sorts, tuple(free.split()), tuple(plus.split()))


def people(n: int) -> dict[str, Sort]:
    return {"person": Sort("person", tuple(f"P{i}" for i in range(n)))}


def smokers(n: int, transitive: bool = True, hard: bool = False) -> MarkovLogic:
    s, f = "person", "friends"
    rules = [
        rule(Not(atom("smokes", "x")), 1.4, s, "x"),
        rule(Not(atom("cancer", "x")), 2.3, s, "x"),
        rule(Not(atom(f, "x", "y")), 4.6, s, "x y"),
        rule(Implies(atom("smokes", "x"), atom("cancer", "x")), 1.5, s, "x"),
        rule(Implies(And((atom(f, "x", "y"), atom("smokes", "x"))), atom("smokes", "y")), 1.1, s, "x y"),
    ]
    if transitive:
        body = Implies(And((atom(f, "x", "y"), atom(f, "y", "z"))), atom(f, "x", "z"))
        rules.append(rule(body, None if hard else 1.0, s, "x y z"))
    predicates = [Predicate("smokes", (s,)), Predicate("cancer", (s,)), Predicate(f, (s, s))]
    return MarkovLogic(people(n), {p.name: p for p in predicates}, tuple(rules))


# --- the interpreter ---


def truth(f: Formula, env: Mapping[str, int], world: World, sizes: Mapping[str, int]) -> bool:
    def value(t: Term) -> int:
        return env[t.name] if isinstance(t, Variable) else t.index

    match f:
        case Truth(v):
            return v
        case Atom(p, args):
            return world[(p, *map(value, args))]
        case Equal(a, b):
            return value(a) == value(b)
        case Not(a):
            return not truth(a, env, world, sizes)
        case And(parts):
            return all(truth(p, env, world, sizes) for p in parts)
        case Or(parts):
            return any(truth(p, env, world, sizes) for p in parts)
        case Implies(a, b):
            return not truth(a, env, world, sizes) or truth(b, env, world, sizes)
        case Iff(a, b):
            return truth(a, env, world, sizes) == truth(b, env, world, sizes)
        case Exist(names, body) | Forall(names, body):
            boxes = itertools.product(*(range(sizes[n]) for n in names))
            results = (truth(body, {**env, **dict(zip(names, b, strict=True))}, world, sizes) for b in boxes)
            return any(results) if isinstance(f, Exist) else all(results)
    raise AssertionError(f)


def groundings(model: MarkovLogic, f: WeightedFormula) -> Iterator[dict[str, int]]:
    for values in itertools.product(*(range(model.sorts[f.sorts[v]].size) for v in f.free)):
        yield dict(zip(f.free, values, strict=True))


def mentions(f: Formula, env: Mapping[str, int], target: tuple) -> bool:
    """Whether some atom of the grounding can be the target, quantified variables taking any value."""
    match f:
        case Atom(p, args):
            values = [env.get(t.name) if isinstance(t, Variable) else t.index for t in args]
            return p == target[0] and all(v in (None, c) for v, c in zip(values, target[1:], strict=True))
        case Not(a):
            return mentions(a, env, target)
        case And(parts) | Or(parts):
            return any(mentions(p, env, target) for p in parts)
        case Implies(a, b) | Iff(a, b):
            return mentions(a, env, target) or mentions(b, env, target)
        case Exist(_, body) | Forall(_, body):
            return mentions(body, env, target)
    return False


def weight_of(f: WeightedFormula, env: Mapping[str, int]) -> float:
    assert f.weight is not None
    return float(np.asarray(f.weight)[tuple(env[v] for v in f.plus)])


def log_density(model: MarkovLogic, world: World) -> float:
    """The unnormalised log-density: -inf where a hard grounding is violated."""
    total = 0.0
    for f in model.formulas:
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        for env in groundings(model, f):
            true = truth(f.body, env, world, sizes)
            if f.hard and not true:
                return -math.inf
            total += weight_of(f, env) if true and not f.hard else 0.0
    return total


def local(model: MarkovLogic, world: World, target: tuple) -> tuple[float, int]:
    """(log-density, violated hard groundings) from the groundings that mention an atom."""
    total, violated = 0.0, 0
    for f in model.formulas:
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        for env in groundings(model, f):
            if mentions(f.body, env, target):
                true = truth(f.body, env, world, sizes)
                violated += f.hard and not true
                total += weight_of(f, env) if true and not f.hard else 0.0
    return total, violated


def conditional(model: MarkovLogic, world: World, target: tuple) -> float | None:
    """P(target | rest); None if both values violate a hard grounding that mentions it."""
    high, y1 = local(model, {**world, target: True}, target)
    low, y0 = local(model, {**world, target: False}, target)
    if y1 or y0:
        return None if y1 and y0 else float(bool(y0))
    return 1 / (1 + math.exp(low - high))


def atoms_of(model: MarkovLogic) -> list[tuple]:
    return [(p, *c) for p in model.predicates for c in itertools.product(*map(range, model.shape(p)))]


# --- random theories ---

SORTS = ("red", "blue")
PREDICATES = [
    Predicate("p", ("red",)),
    Predicate("q", ("blue",)),
    Predicate("r", ("red", "red")),
    Predicate("s", ("red", "blue")),
    Predicate("t", ("red", "blue", "red")),
    Predicate("o", ()),
]


@st.composite
def terms(draw: st.DrawFn, sort: str, env: dict[str, str], sizes: dict[str, int]) -> Term:
    names = [v for v, s in env.items() if s == sort]
    if not names or draw(st.integers(0, 7)) == 0:
        return Constant(sort, draw(st.integers(0, sizes[sort] - 1)))
    return Variable(draw(st.sampled_from(names)))


@st.composite
def formulas(
    draw: st.DrawFn, env: dict[str, str], sizes: dict[str, int], depth: int, fresh: list[str], every: dict[str, str]
) -> Formula:
    kinds = ["not", "and", "or", "implies", "iff", "exist", "forall", "and", "or", "implies"] if depth else []
    kinds += ["atom"] * (0 if depth == 3 else 4) + (["equal"] if depth < 3 else [])
    kind = draw(st.sampled_from(kinds))

    def part(extra: dict[str, str] | None = None) -> Formula:
        return draw(formulas({**env, **(extra or {})}, sizes, depth - 1, fresh, every))

    if kind == "atom":
        p = draw(st.sampled_from(PREDICATES + [PREDICATES[2]] * 3))
        return Atom(p.name, tuple(draw(terms(s, env, sizes)) for s in p.sorts))
    if kind == "equal":
        sort = draw(st.sampled_from(SORTS))
        return Equal(draw(terms(sort, env, sizes)), draw(terms(sort, env, sizes)))
    if kind == "not":
        return Not(part())
    if kind in ("and", "or"):
        return (And if kind == "and" else Or)((part(), part()))
    if kind in ("implies", "iff"):
        return (Implies if kind == "implies" else Iff)(part(), part())
    names = {f"b{len(fresh) + i}": draw(st.sampled_from(SORTS)) for i in range(draw(st.integers(1, 2)))}
    fresh.extend(names)
    every.update(names)
    return (Exist if kind == "exist" else Forall)(tuple(names), part(names))


def free_of(f: Formula, bound: frozenset[str] = frozenset()) -> list[str]:
    match f:
        case Atom(_, args):
            return [t.name for t in args if isinstance(t, Variable) and t.name not in bound]
        case Equal(a, b):
            return [t.name for t in (a, b) if isinstance(t, Variable) and t.name not in bound]
        case Not(a):
            return free_of(a, bound)
        case And(parts) | Or(parts):
            return [v for p in parts for v in free_of(p, bound)]
        case Implies(a, b) | Iff(a, b):
            return free_of(a, bound) + free_of(b, bound)
        case Exist(names, body) | Forall(names, body):
            return free_of(body, bound | set(names))
    return []


@st.composite
def theories(draw: st.DrawFn, hard: bool = False) -> MarkovLogic:
    sizes = {s: draw(st.integers(1, 3)) for s in SORTS}
    rules = []
    for _ in range(draw(st.integers(1, 3))):
        env = {f"x{i}": draw(st.sampled_from(SORTS)) for i in range(draw(st.integers(1, 4)))}
        every = dict(env)
        body = draw(formulas(env, sizes, 3, [], every))
        free = tuple(dict.fromkeys(free_of(body)))
        plus = tuple(v for v in free if draw(st.integers(0, 4)) == 0)
        sorts = {v: s for v, s in every.items() if v in free or v not in env}
        box = tuple(sizes[sorts[v]] for v in plus)
        values = draw(
            st.lists(st.sampled_from([0.7, -1.3, 0.25, -0.6]), min_size=int(np.prod(box)), max_size=int(np.prod(box)))
        )
        weight = np.array(values).reshape(box) if plus else values[0]
        if hard and draw(st.booleans()):
            plus, weight = (), None
        rules.append(WeightedFormula(body, weight, sorts, free, plus))
    found = {s: Sort(s, tuple(f"{s}{i}" for i in range(n))) for s, n in sizes.items()}
    return MarkovLogic(found, {p.name: p for p in PREDICATES}, tuple(rules))


def with_evidence(model: MarkovLogic, known: Mapping[str, Mapping[tuple[int, ...], bool]]) -> MarkovLogic:
    evidence = {}
    for p, facts in known.items():
        rows = sorted(facts)
        arity = len(model.predicates[p].sorts)
        tuples = np.array(rows, dtype=np.int32).reshape(len(rows), arity)
        evidence[p] = Evidence(tuples, np.array([facts[r] for r in rows], dtype=np.int8))
    return MarkovLogic(model.sorts, model.predicates, model.formulas, evidence, model.closed, model.unknown)


# --- a structure of every kind ---


def zoo(n: int, m: int = 3) -> MarkovLogic:
    """A dozen structures in one model: clauses, quantifiers, constants, repeated variables, equality, `+`, `!`."""
    x, y, z, u, c = (Variable(v) for v in "xyzuc")
    p, k = "person", "kind"
    e, t = "e", "t"
    both = {"x": p, "y": p, "z": p, "u": p, "c": k, "d": k}

    def two(name: str, a: Variable, b: Variable) -> Atom:
        return Atom(name, (a, b))

    first, last = Constant(p, 0), Constant(p, n - 1)
    transitive = Implies(And((two(e, x, y), two(e, y, z))), two(e, x, z))
    returns = Exist(("z",), And((two(e, y, z), Not(two(e, z, x)))))
    rules = [
        rule(transitive, 0.11, both, "x y z"),
        rule(Iff(two(e, x, y), two(e, y, x)), 0.7, both, "x y"),
        rule(And((two(e, x, y), two(e, x, z), Not(Equal(y, z)))), -0.05, both, "x y z"),
        rule(And((Atom(t, (x, y, y)), Atom(t, (y, x, z)))), 0.21, both, "x y z"),
        rule(Exist(("y",), And((two(e, x, y), Atom("s", (y,))))), 0.9, both, "x", "y"),
        rule(Forall(("y",), Or((two(e, x, y), returns))), 0.4, both, "x", "y z"),
        rule(Implies(two(e, x, first), two(e, last, x)), -0.6, both, "x"),
        rule(Atom("s", (first,)), 0.33, both, ""),
        rule(Atom("s", (last,)), -0.44, both, ""),
        rule(Iff(Atom("s", (x,)), two(e, x, x)), 0.37, both, "x"),
        rule(And((Atom("s", (x,)), two("of", x, c))), np.linspace(-0.5, 0.8, m), both, "x c", "", "c"),
        rule(And((two(e, x, y), two("of", x, c), two("of", y, c))), 0.3, both, "x y c"),
        rule(And((two(e, x, y), two(e, y, z), two(e, z, u), Atom("s", (u,)))), 0.013, both, "x y z u"),
        rule(Or((Atom("flag", ()), Not(Atom("s", (x,))))), 0.2, both, "x"),
    ]
    sorts = {**people(n), k: Sort(k, tuple(f"k{i}" for i in range(m)))}
    predicates = [
        Predicate("s", (p,)),
        Predicate(e, (p, p)),
        Predicate(t, (p, p, p)),
        Predicate("of", (p, k), (1,)),
        Predicate("flag", ()),
    ]
    return MarkovLogic(sorts, {q.name: q for q in predicates}, tuple(rules))


def dense(f: Formula, axes: list[str], sizes: Mapping[str, int], tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """A formula's truth over the box of all variables in `axes`, by broadcasting: fast, and nothing like the kernel."""

    def index(t: Term) -> np.ndarray | int:
        if not isinstance(t, Variable):
            return t.index
        shape = [1] * len(axes)
        shape[axes.index(t.name)] = sizes[t.name]
        return np.arange(sizes[t.name]).reshape(shape)

    match f:
        case Atom(p, args):
            return np.asarray(tensors[p][tuple(index(t) for t in args)])
        case Equal(a, b):
            return np.asarray(index(a) == index(b))
        case Not(a):
            return ~dense(a, axes, sizes, tensors)
        case And(parts) | Or(parts):
            out = dense(parts[0], axes, sizes, tensors)
            for part in parts[1:]:
                more = dense(part, axes, sizes, tensors)
                out = out & more if isinstance(f, And) else out | more
            return out
        case Implies(a, b):
            return ~dense(a, axes, sizes, tensors) | dense(b, axes, sizes, tensors)
        case Iff(a, b):
            return dense(a, axes, sizes, tensors) == dense(b, axes, sizes, tensors)
        case Exist(names, body) | Forall(names, body):
            out = dense(body, axes, sizes, tensors)
            for name in names:
                axis = axes.index(name)
                out = out.any(axis, keepdims=True) if isinstance(f, Exist) else out.all(axis, keepdims=True)
            return out
    raise AssertionError(f)


def dense_log_density(model: MarkovLogic, tensors: Mapping[str, np.ndarray]) -> float:
    """The log-density of a model without hard formulas."""
    total = 0.0
    for f in model.formulas:
        axes = list(f.sorts)
        axes = [*f.free, *(v for v in axes if v not in f.free)]
        sizes = {v: model.sorts[s].size for v, s in f.sorts.items()}
        true = dense(f.body, axes, sizes, tensors)
        box = tuple(sizes[v] for v in f.free) + (1,) * (len(axes) - len(f.free))
        true = np.broadcast_to(true, np.broadcast_shapes(true.shape, box)) if axes else true
        if f.plus:
            shape = [sizes[v] if v in f.plus else 1 for v in axes]
            total += float((true * np.asarray(f.weight).reshape(shape)).sum())
        else:
            total += float(np.asarray(f.weight)) * int(true.sum())
    return total
