"""Updates per second of the never-grounded engine: one core, default scan, folding on, by process CPU time.

`python benchmarks/relational.py NAME` measures one case by itself and prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
from measuring import Row, peak_megabytes

from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Formula,
    Implies,
    MarkovLogic,
    Not,
    Predicate,
    Sort,
    Variable,
    WeightedFormula,
)
from definetti.samplers.logic.engine import advance, compile_model
from definetti.samplers.logic.starts import first_state

SORT = "person"


def atom(name: str, *variables: str) -> Atom:
    return Atom(name, tuple(Variable(v) for v in variables))


def rule(weight: float | None, body: Formula, variables: str) -> WeightedFormula:
    return WeightedFormula(body, weight, dict.fromkeys(variables.split(), SORT), tuple(variables.split()))


def network(n: int, arities: dict[str, int], rules: list[WeightedFormula]) -> MarkovLogic:
    sorts = {SORT: Sort(SORT, tuple(f"P{i}" for i in range(n)))}
    return MarkovLogic(sorts, {p: Predicate(p, (SORT,) * k) for p, k in arities.items()}, tuple(rules))


def smokers(n: int, transitive: bool) -> MarkovLogic:
    rules = [
        rule(1.4, Not(atom("smokes", "x")), "x"),
        rule(2.3, Not(atom("cancer", "x")), "x"),
        rule(4.6, Not(atom("friends", "x", "y")), "x y"),
        rule(1.5, Implies(atom("smokes", "x"), atom("cancer", "x")), "x"),
        rule(1.1, Implies(And((atom("friends", "x", "y"), atom("smokes", "x"))), atom("smokes", "y")), "x y"),
    ]
    if transitive:
        body = And((atom("friends", "x", "y"), atom("friends", "y", "z")))
        rules.append(rule(1.0, Implies(body, atom("friends", "x", "z")), "x y z"))
    return network(n, {"smokes": 1, "cancer": 1, "friends": 2}, rules)


def stars(n: int) -> MarkovLogic:
    """Reciprocity, two-stars and a ternary predicate."""
    apart = Not(Equal(Variable("y"), Variable("z")))
    rules = [
        rule(-2.0, atom("e", "x", "y"), "x y"),
        rule(1.0, And((atom("e", "x", "y"), atom("e", "y", "x"))), "x y"),
        rule(-0.001, And((atom("e", "x", "y"), atom("e", "x", "z"), apart)), "x y z"),
        rule(-1.0, atom("t", "x", "y", "z"), "x y z"),
        rule(0.5, Implies(atom("t", "x", "y", "z"), And((atom("e", "x", "y"), atom("e", "y", "z")))), "x y z"),
    ]
    return network(n, {"e": 2, "t": 3}, rules)


def paths(n: int, bias: float) -> MarkovLogic:
    """Two further variables: paths of length three close."""
    body = And((atom("e", "x", "y"), atom("e", "y", "z"), atom("e", "z", "u")))
    rules = [rule(bias, atom("e", "x", "y"), "x y"), rule(0.001, Implies(body, atom("e", "x", "u")), "x y z u")]
    return network(n, {"e": 2}, rules)


def ten(n: int) -> MarkovLogic:
    """Ten formula shapes."""
    more = [
        rule(0.2, Implies(atom("friends", "x", "y"), atom("friends", "y", "x")), "x y"),
        rule(0.1, Implies(And((atom("friends", "x", "y"), atom("cancer", "x"))), atom("cancer", "y")), "x y"),
        rule(-0.1, And((atom("friends", "x", "y"), atom("friends", "x", "z"), atom("smokes", "y"))), "x y z"),
        rule(0.1, atom("friends", "x", "x"), "x"),
    ]
    base = smokers(n, True)
    return MarkovLogic(base.sorts, base.predicates, (*base.formulas, *more))


def graph(n: int) -> MarkovLogic:
    """Undirected edges by a hard symmetry, and triangles: a sparse graph, of mean degree 10 at 1,000 nodes."""
    apart = [Not(Equal(Variable(a), Variable(b))) for a, b in ("xy", "yz", "xz")]
    triangle = And((atom("e", "x", "y"), atom("e", "y", "z"), atom("e", "x", "z"), *apart))
    rules = [
        rule(None, Not(atom("e", "x", "x")), "x"),
        rule(None, Implies(atom("e", "x", "y"), atom("e", "y", "x")), "x y"),
        rule(-2.3, atom("e", "x", "y"), "x y"),
        rule(0.02, triangle, "x y z"),
    ]
    return with_forced_atoms(network(n, {"e": 2}, rules))


def repeated(n: int, count: int) -> MarkovLogic:
    """Many formulas of one shape with different constants."""
    rng = np.random.default_rng(1)
    rules = smokers(n, True).formulas
    for _ in range(count):
        a, b = (Constant(SORT, int(k)) for k in rng.integers(n, size=2))
        body = Implies(Atom("friends", (a, b)), Atom("smokes", (a,)))
        rules = (*rules, WeightedFormula(body, float(rng.normal()), {}, ()))
    return MarkovLogic(smokers(n, True).sorts, smokers(n, True).predicates, rules)


def orbits_of(model: MarkovLogic) -> dict[str, AtomOrbits]:
    """All constants interchangeable."""
    found, first = {}, 0
    for name, predicate in model.predicates.items():
        k = len(predicate.sorts)
        lookup = np.arange(first, first + 2 ** (k * (k - 1) // 2), dtype=np.int32)
        classes = tuple(np.zeros(n, np.int32) for n in model.shape(name))
        found[name] = AtomOrbits(classes, lookup.reshape((1,) * k + (-1,)))
        first += lookup.size
    return found


CASES = {
    "smokers-transitive-50": (lambda: smokers(50, True), 8_000_000),
    "smokers-transitive-100": (lambda: smokers(100, True), 8_000_000),
    "smokers-transitive-1000": (lambda: smokers(1000, True), 5_000_000),
    "smokers-1000": (lambda: smokers(1000, False), 8_000_000),
    "stars-200": (lambda: stars(200), 5_000_000),
    "paths-sparse-100": (lambda: paths(100, -4.0), 1_000_000),
    "paths-dense-100": (lambda: paths(100, 0.0), 500_000),
    "hard-graph-1000": (lambda: graph(1000), 5_000_000),
    "ten-shapes-50": (lambda: ten(50), 5_000_000),
    "repeated-100": (lambda: repeated(100, 5000), 5_000_000),
    "smokers-transitive-10000": (lambda: smokers(10_000, True), 1_000_000),
}


#: case → millions of updates a second at least, megabytes of the process at most
TARGETS: dict[str, tuple[float | None, float | None]] = {
    "smokers-transitive-50": (30, None),
    "smokers-transitive-100": (30, None),
    "smokers-transitive-1000": (15, 500),
    "smokers-transitive-10000": (None, 2000),
    "smokers-1000": (40, 500),
    "stars-200": (10, 500),
    "paths-dense-100": (1.5, None),
    "hard-graph-1000": (10, None),
    "ten-shapes-50": (None, None),
    "repeated-100": (None, None),
}


def rows(quick: bool) -> list[Row]:
    """Each case in a process of its own, so that its memory is its own."""
    out = []
    for name, (rate, memory) in TARGETS.items():
        if quick and name.endswith("10000"):
            continue
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        note = f"{found['groundings']:.3g} groundings, {found['true']:.2g} of the atoms true at the end"
        note += f", compiled or loaded in {found['compile']:.2f} CPU s"
        out.append(Row(f"{name}, one core", found["rate"], "M updates/s", rate, note=note))
        out.append(Row(f"{name}, memory", found["memory"], "MB", memory, at_least=False))
    return out


def measure(name: str) -> dict[str, float]:
    make, updates = CASES[name]
    model = make()
    cpu = time.process_time()
    r = compile_model(model, orbits_of(model))
    compiled = time.process_time() - cpu
    chain = first_state(r, 1, 0, None)
    advance(r, chain, min(updates, 2 * r.free_sites))
    rate = 0.0
    for _ in range(3):
        cpu = time.process_time()
        done = advance(r, chain, updates)
        rate = max(rate, done / (time.process_time() - cpu) / 1e6)
    true = sum(int(r.atoms(chain, name).sum()) for name in model.predicates) / model.atom_count
    peak = peak_megabytes()
    return {"rate": rate, "compile": compiled, "memory": peak, "groundings": float(model.ground_count), "true": true}


if __name__ == "__main__":
    for case in sys.argv[1:]:
        print(json.dumps(measure(case)))
