"""Small Markov logic networks that tests share: the paper's, one with every structure, and random ones.

Random theories are made from a seed with chances of our own where hypothesis would prefer small choices: planted
mistakes went unseen in the small theories that it made. Those for the relational kernel are drawn choice by choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from hypothesis import strategies as st
from logic_worlds import at, atoms_in, network

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
    Variable,
    WeightedFormula,
)

# --- by name ---------------------------------------------------------------------------------------------------------


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


def with_evidence(model: MarkovLogic, known: Mapping[str, Mapping[tuple[int, ...], bool]]) -> MarkovLogic:
    evidence = {}
    for p, facts in known.items():
        rows = sorted(facts)
        arity = len(model.predicates[p].sorts)
        tuples = np.array(rows, dtype=np.int32).reshape(len(rows), arity)
        evidence[p] = Evidence(tuples, np.array([facts[r] for r in rows], dtype=np.int8))
    return MarkovLogic(model.sorts, model.predicates, model.formulas, evidence, model.closed, model.unknown)


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


# --- for the relational kernel: arities 0 to 3, quantifiers, constants, `+`, hard formulas ---------------------------

SORTS = ("red", "blue")
KERNEL_PREDICATES = [
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
        p = draw(st.sampled_from(KERNEL_PREDICATES + [KERNEL_PREDICATES[2]] * 3))
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
def kernel_theories(draw: st.DrawFn, hard: bool = False) -> MarkovLogic:
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
    return MarkovLogic(found, {p.name: p for p in KERNEL_PREDICATES}, tuple(rules))


# --- with much evidence, mostly of formulas of one or two variables: what it can simplify ----------------------------

UNARY = (Predicate("P", ("a",)), Predicate("Q", ("a",)))
BINARY = (Predicate("R", ("a", "a")), Predicate("T", ("a", "a")))
OTHERS = (Predicate("U", ("b",)), Predicate("S", ("a", "b")), Predicate("V", ("b", "a")), Predicate("Z", ()))
EVIDENCE_VARIABLES = {"a": ("x", "y"), "b": ("u", "u")}


def evidence_theories(most_free: int = 10, hard: bool = False) -> st.SearchStrategy[MarkovLogic]:
    return st.integers(0, 2**32 - 1).map(lambda seed: evidence_theory(seed, most_free, hard))


def evidence_theory(seed: int, most_free: int = 10, hard: bool = False) -> MarkovLogic:
    rng = np.random.default_rng(seed)
    predicates = [*UNARY[: rng.integers(1, 3)], BINARY[0]]
    predicates += [p for p in (BINARY[1], *OTHERS) if rng.random() < 0.15]
    sizes = {"a": int(rng.integers(2, 5)), "b": int(rng.integers(1, 3))}
    made = [_formula_of_two(rng, predicates, hard) for _ in range(rng.integers(1, 5))]
    return network(sizes, predicates, made, _much_evidence(rng, predicates, sizes, most_free))


def _much_evidence(
    rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int], most_free: int
) -> dict:
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


def _formula_of_two(rng: np.random.Generator, predicates: list[Predicate], hard: bool) -> tuple[float | None, Formula]:
    """Now and then a quantifier, a third variable, a constant, an equality or a hard formula."""
    odd = int(rng.integers(0, 12))

    def atom() -> Formula:
        p = predicates[rng.integers(len(predicates))]
        names = [EVIDENCE_VARIABLES[s][rng.integers(2)] for s in p.sorts]
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
    free = {t.name for a in atoms_in(whole) for t in a.args if isinstance(t, Variable)}
    if odd == 2 and "y" in free:
        whole = Exist(("y",), whole)
    elif odd == 3 and {"x", "y"} <= free:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    weight = None if rng.random() < (0.5 if hard else 0.05) else float(rng.choice([-1.0, 0.5, 2.0]))
    return weight, whole


# --- of two variables, for lifted counting: quantifiers, equality, constants, `+`, evidence on one and two -----------

TWO_VARIABLE_PREDICATES = (
    Predicate("P", ("a",)),
    Predicate("R", ("a", "a")),
    Predicate("Q", ("a",)),
    Predicate("U", ("b",)),
    Predicate("S", ("a", "b")),
    Predicate("V", ("b", "a")),
    Predicate("Z", ()),
)


def two_variable_theory(seed: int, most_free: int = 12) -> MarkovLogic:
    rng = np.random.default_rng(seed)
    two = rng.random() < 0.4
    sizes = {"a": int(rng.integers(1, 4)), "b": int(rng.integers(1, 3))} if two else {"a": int(rng.integers(2, 4))}
    chance = {"P": 0.9, "R": 0.7, "Q": 0.4, "U": 0.6, "S": 0.6, "V": 0.2, "Z": 0.1}
    some = [p for p in TWO_VARIABLE_PREDICATES if set(p.sorts) <= set(sizes) and rng.random() < chance[p.name]]
    predicates = some or [TWO_VARIABLE_PREDICATES[0]]
    formulas = [_two_variable_formula(rng, predicates, sizes) for _ in range(rng.integers(1, 5))]
    return network(sizes, predicates, formulas, _some_evidence(rng, predicates, sizes, most_free))


def _some_evidence(rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int], most: int) -> dict:
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


def _two_variable_formula(rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int]) -> tuple:
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


# --- of every kind that renamings must cope with: arities 0 to 3, `!`, `+`, open and closed predicates ---------------

RENAMING_PREDICATES = (
    Predicate("P", ("a",)),
    Predicate("Q", ("b",)),
    Predicate("R", ("a", "a")),
    Predicate("S", ("a", "b")),
    Predicate("B", ("a", "b"), (1,)),
    Predicate("T", ("a", "a", "a")),
    Predicate("Z", ()),
)
RENAMING_VARIABLES = {"a": ("x", "y", "z"), "b": ("u", "w")}

Known = list[tuple[tuple[int, ...], int]]


def renaming_theories(most_free: int = 11) -> st.SearchStrategy[MarkovLogic]:
    return st.integers(0, 2**32 - 1).map(lambda seed: renaming_theory(seed, most_free))


def renaming_theory(seed: int, most_free: int = 11) -> MarkovLogic:
    rng = np.random.default_rng(seed)
    sizes = {"a": int(rng.integers(1, 5)), "b": int(rng.integers(1, 4))}
    predicates = [p for p in RENAMING_PREDICATES if rng.random() < 0.5] or [RENAMING_PREDICATES[2]]
    known: dict[str, Known] = {}
    closed: set[str] = set()
    doubt: dict[str, np.ndarray] = {}
    for p in predicates:
        stated, unsure = _block_evidence(rng, sizes) if p.exclusive else _sparse_evidence(rng, p, sizes)
        total = int(np.prod([sizes[s] for s in p.sorts], dtype=np.int64))
        free = total - len(stated) if unsure is None else len(unsure)
        if free > most_free:  # then it is observed altogether
            stated, unsure, free = ([((a, 0), 1) for a in range(sizes["a"])] if p.exclusive else stated), [], 0
        most_free -= free
        known[p.name] = stated
        if unsure is not None:
            closed.add(p.name)
            doubt[p.name] = np.array(unsure, np.int32).reshape(len(unsure), len(p.sorts))
    formulas = [_renaming_formula(rng, predicates, sizes) for _ in range(rng.integers(1, 4))]
    return network(sizes, predicates, formulas, known, closed=frozenset(closed), unknown=doubt)


def _sparse_evidence(rng, p: Predicate, sizes) -> tuple[Known, list[tuple[int, ...]] | None]:
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


def _renaming_formula(rng, predicates: list[Predicate], sizes) -> tuple:
    used: dict[str, str] = {}
    named = rng.random() < 0.3

    def term(sort: str):
        if named and rng.random() < 0.4:
            return sort, int(rng.integers(sizes[sort]))
        name = RENAMING_VARIABLES[sort][rng.integers(len(RENAMING_VARIABLES[sort]))]
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
