"""The tasks: models and their truths, made by this library once and handed to every peer as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from models import paper_grid, random_tables

from peers.problem import Problem

PEOPLE, NODES = 30, 30
POTTS = (8, 128, 3)  # rows, columns, values
GRAPH = """
e(node, node)
-2.5 e(x,y)
0.5 e(x,y) ^ e(y,x) ^ x != y
0.02 e(x,y) ^ e(y,z) ^ e(z,x) ^ x != y ^ y != z ^ x != z
"""  # edges −2.5; each mutual pair is met twice: 1.0; each cycle of three is met three times: 0.06.
# With 0.3 the complete graph outweighs all others by 10^269, and single-site samplers from no edges never see it.


def made(task: str, graph: Any, truth: np.ndarray, text: str = "") -> Problem:
    """The free variables alone, what is known put in."""
    from definetti.model.graph.simplify import simplify

    simple = simplify(graph)
    free = simple.free
    full = np.column_stack([1 - truth, truth]) if truth.ndim == 1 else truth
    place = np.full(simple.n, -1)
    place[free] = np.arange(len(free))
    keys = [(int(t), simple.shape(k)) for k, t in enumerate(simple.table_of)]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return Problem(
        task, simple.cards[free].astype(np.int64), simple.scope_start.astype(np.int64), place[simple.scope],
        np.array([number[key] for key in keys]), tuple(simple.log_values(*key) for key in number), full[free], text,
    )  # fmt: skip


def grid() -> Problem:
    """The paper's 100×100 grid: every marginal is 1/2."""
    return made("grid", paper_grid(100), np.full(10_000, 0.5))


def fields() -> Problem:
    """The same in a random field that the square's symmetries leave alone; the truth is a long run that is kept."""
    from definetti.experiments import models, truths

    fields = models.symmetric_fields()
    kept = truths.truth("grid-fields").values
    _, first, orbit = np.unique(fields, return_index=True, return_inverse=True)  # an orbit has one field
    truth = np.array([kept[f"X{k}"] for k in first.tolist()])[orbit.ravel()]
    return made("fields", models.grid(fields=fields), truth)


def potts() -> Problem:
    """A lattice of 8 × 128 with three values, 0.9 for equal neighbours and a random field: exact by elimination."""
    import definetti as dft

    height, width, q = POTTS
    node = np.arange(height * width).reshape(height, width)
    pairs = np.concatenate([np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
                            np.column_stack([node[:-1].ravel(), node[1:].ravel()])])  # fmt: skip
    own = np.random.default_rng(5).normal(0.0, 0.5, (node.size, q))
    model = dft.FactorGraph.from_arrays(
        np.full(node.size, q), np.concatenate([np.arange(len(pairs)) * 2, 2 * len(pairs) + np.arange(node.size + 1)]),
        np.concatenate([pairs.ravel(), node.ravel()]), np.concatenate([np.zeros(len(pairs), int), 1 + node.ravel()]),
        [0.9 * np.eye(q), *own],
    )  # fmt: skip
    answer = dft.exact(model)
    return made("potts", model, np.stack([np.asarray(answer[name].probability) for name in model.names]))


def tables() -> Problem:
    """5,000 variables of 2 to 4 values under 10,000 random tables over triples; the truth is a run of this library with
    another seed, KL divergence below 1e-5."""
    import definetti as dft

    model = random_tables()
    answer = dft.marginals(model, symmetries="none", sampler="gibbs", sweeps=2000, seed=999)
    truth = np.zeros((model.n, 4))
    for k, name in enumerate(model.names):
        found = np.ravel(answer[name].probability)  # one number where there are two values
        truth[k, : model.cards[k]] = [1 - found[0], found[0]] if len(found) == 1 else found
    return made("tables", model, truth)


def smokers() -> Problem:
    """Friends and smokers, 30 people, ground; exact by lifted counting."""
    import definetti as dft
    from definetti.experiments import models

    model = models.smokers(PEOPLE)
    return _ground("smokers", model, dft.exact(model), models.SMOKERS.format(prior=4.6))


def transitive() -> Problem:
    """The same with transitivity; the truth is a long run that is kept."""
    from definetti.experiments import models, truths

    kept = truths.truth(f"smokers-{PEOPLE}-transitive").values
    return _ground("transitive", models.smokers(PEOPLE, True), kept,
                   models.SMOKERS.format(prior=4.6) + models.TRANSITIVITY)  # fmt: skip


def graph() -> Problem:
    """A directed graph of 30 nodes without loops: edges, mutual pairs, cycles of three; the truth is a long run."""
    import definetti as dft

    loops = "\n".join(f"!e(P{k},P{k})" for k in range(NODES))
    names = ", ".join(f"P{k}" for k in range(NODES))
    model = dft.markov_logic(f"node = {{{names}}}\n{GRAPH}", evidence=loops)
    answer = dft.marginals(model, sampler="gibbs", sweeps=20_000, seed=999)
    return _ground("graph", model, {row.representative: row.probability for row in answer.orbits}, GRAPH)


def reading() -> Problem:
    """Reading a .uai file of the paper's grid: 10,000 variables, 19,800 factors."""
    import tempfile
    from dataclasses import replace
    from pathlib import Path

    from definetti.readers.writing import write

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.uai"
        write(paper_grid(100), path)
        return replace(grid(), task="reading", text=path.read_text())


def _ground(task: str, model: Any, truth: Any, text: str) -> Problem:
    """The ground factor graph, atoms in its order; members of an orbit share their truth."""
    from definetti.model.graph.factors import FREE
    from definetti.model.logic.ground import ground
    from definetti.symmetry.find import symmetries

    found, group = ground(model), symmetries(model)
    by_orbit = [float(getattr(one, "probability", one)) for one in (truth[row.representative] for row in group.orbits)]
    grids = {name: group.orbit_grid(name) for name in model.predicates}
    values = np.zeros(found.n)
    for k in np.flatnonzero(found.evidence == FREE).tolist():
        name, _, rest = found.names[k].partition("(")
        values[k] = by_orbit[int(grids[name][tuple(int(c[1:]) for c in rest[:-1].split(","))])]
    return made(task, found, values, text)


TASKS: dict[str, Callable[[], Problem]] = {
    "grid": grid, "fields": fields, "potts": potts, "smokers": smokers, "transitive": transitive, "graph": graph,
    "reading": reading, "tables": tables,
}  # fmt: skip
