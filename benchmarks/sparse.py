"""Sweeps at the cost of the true atoms, beside the dense engine in the same run: one core, folding on, CPU time.

`python benchmarks/sparse.py NAME` measures one case by itself and prints JSON. Rates count sites as the dense engine
does: a sweep of n people draws n² + 2n.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time

import numpy as np
from measuring import Row, peak_megabytes
from relational import atom, network, orbits_of, rule, smokers

from definetti import markov_logic
from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.inference.logic.question import logic_question
from definetti.model.logic.theory import And, Equal, Evidence, Iff, MarkovLogic, Not, Variable
from definetti.samplers.logic import engine as dense
from definetti.samplers.logic.sampling import relational_model
from definetti.samplers.logic.starts import first_state
from definetti.samplers.protocol import Plan
from definetti.samplers.sparse.engine import FOREVER, advance, compile_sparse, true_pairs
from definetti.samplers.sparse.sampling import SparseSampling
from definetti.samplers.sparse.starts import first_chain
from definetti.symmetry.find import symmetries


def crowd(n: int, prior: float) -> MarkovLogic:
    """Friends and smokers with transitivity and another prior of friendship."""
    base = smokers(n, True)
    rules = [f for f in base.formulas if f.weight != 4.6]
    return MarkovLogic(base.sorts, base.predicates, (*rules, rule(prior, Not(atom("friends", "x", "y")), "x y")))


def graph(n: int) -> MarkovLogic:
    """A directed graph: edges, reciprocity, triangles, homophily over four groups (two known bits of each node)."""
    apart = [Not(Equal(Variable(a), Variable(b))) for a, b in ("xy", "yz", "xz")]
    alike = [Iff(atom(g, "x"), atom(g, "y")) for g in ("g", "h")]
    rules = [
        rule(math.log(4.2 / n), atom("e", "x", "y"), "x y"),
        rule(1.0, And((atom("e", "x", "y"), atom("e", "y", "x"), apart[0])), "x y"),
        rule(0.2, And((atom("e", "x", "y"), atom("e", "y", "z"), atom("e", "x", "z"), *apart)), "x y z"),
        rule(0.5, And((atom("e", "x", "y"), *alike)), "x y"),
    ]
    made = network(n, {"g": 1, "h": 1, "e": 2}, rules)
    people = np.arange(n, dtype=np.int32)[:, None]
    known = {name: Evidence(people, (people[:, 0] >> k & 1).astype(np.int8)) for k, name in enumerate(("g", "h"))}
    return MarkovLogic(made.sorts, made.predicates, made.formulas, known)


EDGE, MUTUAL, CYCLE, ALIKE = math.log(4.2 / 300), 1.0, 0.03, 0.5  # of the graph of 300 nodes that pyERGM samples, too


def small_graph(n: int = 300) -> MarkovLogic:
    """Edges, mutual pairs, cycles of three and homophily over four groups: what pyERGM has metrics for."""
    base = graph(n)
    apart = [Not(Equal(Variable(a), Variable(b))) for a, b in ("xy", "yz", "xz")]
    cycle = And((atom("e", "x", "y"), atom("e", "y", "z"), atom("e", "z", "x"), *apart))
    rules = [
        rule(EDGE, atom("e", "x", "y"), "x y"),
        rule(MUTUAL / 2, And((atom("e", "x", "y"), atom("e", "y", "x"), apart[0])), "x y"),  # both ways round
        rule(CYCLE / 3, cycle, "x y z"),  # from each of its nodes
        rule(ALIKE, And((atom("e", "x", "y"), *(Iff(atom(g, "x"), atom(g, "y")) for g in ("g", "h")))), "x y"),
        rule(None, Not(atom("e", "x", "x")), "x"),
    ]
    return with_forced_atoms(MarkovLogic(base.sorts, base.predicates, tuple(rules), base.evidence))


def pyergm_rate(seconds: float = 10.0) -> dict[str, float] | None:
    """Millions of steps a second of pyERGM's Metropolis sampler on the same graph, and the mean degree it finds."""
    try:
        from pyERGM.ergm import ERGM
        from pyERGM.metrics import (
            NumberOfEdgesDirected,
            NumberOfEdgesTypesDirected,
            NumberOfTrianglesDirected,
            TotalReciprocity,
        )
    except ImportError:
        return None
    n = 300
    groups = NumberOfEdgesTypesDirected([str(k % 4) for k in range(n)])
    metrics = [NumberOfEdgesDirected(), TotalReciprocity(), NumberOfTrianglesDirected(), groups]
    thetas = np.array([EDGE, MUTUAL, CYCLE, *np.where(np.eye(4, dtype=bool), ALIKE, 0.0).ravel()])
    model = ERGM(n, metrics, True, initial_thetas=None, fix_collinearity=False, verbose=False)
    model.mh_sampler.set_thetas(thetas)
    steps, done, degree = n * (n - 1), 0, 0.0
    state = model.mh_sampler.sample(np.zeros((n, n)), 1, burn_in=4 * steps, steps_per_sample=1)[:, :, -1].copy()
    began = time.process_time()
    while time.process_time() - began < seconds:
        nets = model.mh_sampler.sample(state, 1, burn_in=0, steps_per_sample=steps)
        state, done = nets[:, :, -1].copy(), done + 1
        degree += float(nets.sum()) / n
    took = time.process_time() - began
    return {"rate": done * steps / took / 1e6, "degree": degree / done, "seconds": took / done}


CASES = {
    "transitive-100": (lambda: smokers(100, True), 400),
    "transitive-1000": (lambda: smokers(1000, True), 100),
    "prior-log-10000": (lambda: crowd(10_000, math.log(1000)), 10),
    "prior-log-100000": (lambda: crowd(100_000, math.log(10_000)), 4),
    "prior-log-1000000": (lambda: crowd(1_000_000, math.log(100_000)), 2),
    "graph-100000": (lambda: graph(100_000), 4),
    "graph-300": (small_graph, 200),
}
WARM = 4  # sweeps before the first that is measured


def measure(name: str) -> dict[str, float]:
    make, sweeps = CASES[name]
    model = make()
    group = symmetries(model)
    began = time.process_time()
    r = compile_sparse(group.model, group.atom_orbits, group.deferred)
    compiled = time.process_time() - began
    chain, _ = advance(r, first_chain(r, 1, 1), FOREVER, WARM)
    seconds = math.inf
    for _ in range(3):
        began = time.process_time()
        chain, _ = advance(r, chain, FOREVER, sweeps)
        seconds = min(seconds, (time.process_time() - began) / sweeps)
    binary = next(n for n, p in model.predicates.items() if len(p.sorts) == 2)
    degree = len(true_pairs(r, chain, binary)) / model.shape(binary)[0]
    found = {"seconds": seconds, "rate": r.free_sites / seconds / 1e6, "memory": peak_megabytes(), "degree": degree}
    found |= {"groundings": float(model.ground_count), "compile": compiled}
    if r.free_sites < 2_000_000:
        found["dense"] = dense_rate(model, 5_000_000)
    return found


def dense_rate(model: MarkovLogic, updates: int) -> float:
    r = dense.compile_model(model, orbits_of(model))
    chain, rate = first_state(r, 1, 0, None), 0.0
    dense.advance(r, chain, 2 * r.free_sites)
    for _ in range(3):
        began = time.process_time()
        done = dense.advance(r, chain, updates)
        rate = max(rate, done / (time.process_time() - began) / 1e6)
    return rate


#: case → millions of updates a second at least, times the dense engine at least, seconds a sweep and megabytes at most
TARGETS: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "transitive-100": (150, None, None, None),
    "transitive-1000": (500, 12, None, None),
    "prior-log-10000": (None, None, None, None),
    "prior-log-100000": (20_000, None, None, None),
    "prior-log-1000000": (None, None, 6.0, 1500),
    "graph-100000": (None, None, 1.0, None),
    "graph-300": (None, None, None, None),
}


#: dense phases, whose states stay crowded: theory, and whether starts have loops
CROWDS = {
    "stars by columns": ("P(n)\nE(n,n)\n3 E(x,y)\n0.001 E(x,y) ^ E(x,z)\n0.5 E(x,y) ^ P(y)", True),
    "undirected triangles": (
        "E(n,n)\n1 E(x,y)\n0.001 E(x,y) ^ E(y,z) ^ E(x,z)\nE(x,y) => E(y,x).\n!E(x,x).", False,
    ),
}  # fmt: skip
CROWD, CROWD_SWEEPS = 500, 200


class Full:
    """A start with all pairs."""

    def __init__(self, model: MarkovLogic, loops: bool) -> None:
        self.model, self.loops = model, loops

    def atoms(self, name: str) -> np.ndarray:
        found = np.ones(self.model.shape(name), bool)
        if found.ndim == 2 and not self.loops:
            np.fill_diagonal(found, False)
        return found


def crowd_times(name: str) -> float:
    """How many times the dense engine's sweeps a dense phase of a sparse run costs."""
    text, loops = CROWDS[name]
    group = symmetries(markov_logic(text, domain={"n": CROWD}))
    r = compile_sparse(group.model, group.atom_orbits, group.deferred)
    start = Full(group.model, loops)
    plan = Plan(chains=1, burn_in=0, sweeps=CROWD_SWEEPS, seed=1, workers=1, starts=[start])
    asked, mine, theirs = logic_question(group, (), "orbit")._asked, math.inf, math.inf
    own = relational_model(asked, "symmetric", plan)
    for _ in range(5):
        run = SparseSampling(r, asked, plan)
        run._dense()
        began = time.process_time()
        for _ in run.steps():
            pass
        mine = min(mine, time.process_time() - began)
        assert run.report()["dense_sweeps"] == CROWD_SWEEPS
        chain = first_state(own, 1, 0, {name: start.atoms(name) for name in group.model.predicates})
        began = time.process_time()
        dense.advance(own, chain, FOREVER, CROWD_SWEEPS)
        theirs = min(theirs, time.process_time() - began)
    return mine / theirs


def rows(quick: bool) -> list[Row]:
    """Each case in a process of its own, so that its memory is its own."""
    out, seconds = [], {}
    for name, (rate, times, most, memory) in TARGETS.items():
        if quick and name.endswith("000000"):
            continue
        found = json.loads(python(name))
        seconds[name] = found["seconds"]
        note = f"{found['groundings']:.3g} groundings, mean degree {found['degree']:.3g}"
        note += f", compiled or loaded in {found['compile']:.2f} CPU s"
        out.append(Row(f"{name}, one core", found["rate"], "M updates/s", rate, note=note))
        if "dense" in found:
            ratio = found["rate"] / found["dense"]
            out.append(Row(f"{name}, against dense", ratio, "times", times, note=f"dense {found['dense']:.3g} M"))
        out.append(Row(f"{name}, a sweep", found["seconds"], "CPU s", most, at_least=False))
        out.append(Row(f"{name}, memory", found["memory"], "MB", memory, at_least=False))
    for name in CROWDS:
        note = f"{CROWD} constants, all pairs true at the start, {CROWD_SWEEPS} sweeps"
        times = json.loads(python(name))
        out.append(Row(f"dense phase, {name}, against dense sweeps", times, "times", 1.3, at_least=False, note=note))
    peer = json.loads(python("pyERGM"))
    if peer is not None:
        out.append(Row("graph-300, pyERGM", peer["rate"], "M steps/s", note=f"mean degree {peer['degree']:.3g}"))
    if "prior-log-1000000" in seconds:
        growth = math.log10(seconds["prior-log-1000000"] / seconds["prior-log-10000"]) / 2
        out.append(Row("growth of a sweep, 10^4 to 10^6 people", growth, "exponent", 1.3, at_least=False))
    return out


def python(name: str) -> str:
    """A case in a process of its own; what libraries print before its JSON is left out."""
    done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    for case in sys.argv[1:]:
        print(json.dumps(pyergm_rate() if case == "pyERGM" else crowd_times(case) if case in CROWDS else measure(case)))
