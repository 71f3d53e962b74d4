"""The models on which error bars are measured, and their exact answers."""

from __future__ import annotations

import tempfile
from math import comb, exp, log
from pathlib import Path

import numpy as np

import definetti as dft

RULES = """person = {%s}
smokes(person)
cancer(person)
friends(person, person)
%g !smokes(x)
2.3 !cancer(x)
%g !friends(x,y)
1.5 smokes(x) => cancer(x)
%g friends(x,y) ^ smokes(x) => smokes(y)
"""
WEAK, STRONG = (1.4, 4.6, 1.1), (-1.0, 0.0, 1.5)


def people(n: int, weights: tuple[float, float, float] = WEAK, evidence: str = "") -> dft.MarkovLogic:
    """Friends and smokers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.mln"
        path.write_text(RULES % (",".join(f"P{k}" for k in range(n)), *weights))
        if not evidence:
            return dft.read(path)
        known = Path(folder) / "known.db"
        known.write_text(evidence)
        return dft.read(path, known)


def town(n: int, seed: int = 1) -> str:
    """The paper's evidence: a tenth of the people with known smokes and 10 known friends."""
    rng = np.random.default_rng(seed)
    lines = []
    for p in range(n // 10):
        lines.append(f"{'' if rng.random() < 0.3 else '!'}smokes(P{p})")
        lines += [f"friends(P{p},P{q})" for q in rng.choice(n, 10, replace=False)]
    return "\n".join(lines) + "\n"


def truth(n: int, weights: tuple[float, float, float] = WEAK) -> dict[str, float]:
    """Exact marginals of friends and smokers: a sum over the number of smokers; the rest is independent given it."""
    alone, apart, influence = weights
    smoker = log(exp(1.5) + exp(2.3))  # cancer summed out
    other = log(exp(1.5) + exp(3.8))
    broken, kept = log(1 + exp(apart + influence)), log(exp(influence) + exp(apart + influence))
    logs = np.array(
        [
            log(comb(n, k)) + alone * (n - k) + k * smoker + (n - k) * other
            + k * (n - k) * broken + (n * n - k * (n - k)) * kept
            for k in range(n + 1)
        ]
    )  # fmt: skip
    p = np.exp(logs - logs.max())
    p /= p.sum()
    k = np.arange(n + 1)
    smokes, mixed = float(p @ k) / n, float(p @ (k * (n - k))) / (n * (n - 1))
    given = exp(influence) / (exp(influence) + exp(apart + influence))
    return {
        "smokes": smokes,
        "cancer": smokes * exp(1.5 - smoker) + (1 - smokes) * exp(1.5 - other),
        "friends": mixed / (1 + exp(apart + influence)) + (1 - mixed) * given,
        "self": given,
    }


def potts(n: int = 12) -> dft.FactorGraph:
    """A ring of three-valued variables: equal neighbours are liked, and the values differ."""
    edges = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    scope = np.concatenate([edges.ravel(), np.arange(n)])
    start = np.concatenate([2 * np.arange(n + 1), 2 * n + np.arange(1, n + 1)])
    which = np.concatenate([np.zeros(n, np.int64), np.ones(n, np.int64)])
    return dft.FactorGraph.from_arrays(
        np.full(n, 3), start, scope, which, [0.8 * np.eye(3), np.array([0.0, 0.3, -0.5])]
    )


def grid(side: int = 20, seed: int = 1) -> dft.FactorGraph:
    """Neighbours like to be equal; every variable has a field of its own."""
    rng = np.random.default_rng(seed)
    node = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
            np.column_stack([node[:-1].ravel(), node[1:].ravel()]),
        ]
    )
    fields = [np.array([0.0, h]) for h in rng.normal(0, 0.5, side * side)]
    scope = np.concatenate([edges.ravel(), node.ravel()])
    start = np.concatenate([2 * np.arange(len(edges) + 1), 2 * len(edges) + np.arange(1, node.size + 1)])
    which = np.concatenate([np.zeros(len(edges), np.int64), 1 + np.arange(node.size)])
    return dft.FactorGraph.from_arrays(np.full(node.size, 2), start, scope, which, [0.4 * np.eye(2), *fields])


def grid_truth(model: dft.FactorGraph) -> dict[str, float]:
    """P(1) of each variable of `grid`, by transfer of the 2^side states of a row, from above and from below."""
    side = round(model.n**0.5)
    fields = np.array([model.table(k)[1] for k in range(2 * side * (side - 1), len(model.table_of))]).reshape(
        side, side
    )
    link = np.exp(model.table(0))
    bits = ((np.arange(1 << side)[:, None] >> np.arange(side)[::-1]) & 1).astype(float)  # first variable, first axis
    within = model.table(0)[0, 0] * (bits[:, 1:] == bits[:, :-1]).sum(axis=1)
    rows = [np.exp(within + bits @ field) for field in fields]

    def pass_on(weight: np.ndarray) -> np.ndarray:
        for _ in range(side):  # the first axis goes through its link and becomes the last
            weight = (link @ weight.reshape(2, -1)).T.ravel()
        return weight / weight.max()

    above = [np.ones(1 << side)]
    for row in rows[:-1]:
        above.append(pass_on(above[-1] * row))
    below, found = np.ones(1 << side), np.zeros((side, side))
    for r in range(side - 1, -1, -1):
        joint = above[r] * rows[r] * below
        found[r] = joint @ bits / joint.sum()
        below = pass_on(below * rows[r])
    return dict(zip(model.names, found.ravel().tolist(), strict=True))


def joined(edges: np.ndarray, tables: list[np.ndarray], fields: np.ndarray) -> dft.FactorGraph:
    """Binary variables with a table on each edge and a field on each variable."""
    scope = np.concatenate([edges.ravel(), np.arange(len(fields))])
    start = np.concatenate([2 * np.arange(len(edges) + 1), 2 * len(edges) + np.arange(1, len(fields) + 1)])
    every = [*tables, *(np.array([0.0, h]) for h in fields)]
    return dft.FactorGraph.from_arrays(np.full(len(fields), 2), start, scope, np.arange(len(every)), every)


def rare(n: int = 12) -> dft.FactorGraph:
    """A chain of bits from P(1) = 0.0005 to 0.2, neighbours weakly joined."""
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return joined(edges, [np.array([[0.0, 0.0], [0.0, 0.8]])] * (n - 1), np.log(np.geomspace(0.0005, 0.2, n)))


def hidden(n: int = 4) -> dft.FactorGraph:
    """Pairs of rare bits, where the second is hardly ever 1 without the first."""
    table = np.array([[0.0, -16.0], [-7.0, -7.0]])
    start, which = 2 * np.arange(n + 1), np.zeros(n, np.int64)
    return dft.FactorGraph.from_arrays(np.full(2 * n, 2), start, np.arange(2 * n), which, [table])


def segments(side: int = 8, seed: int = 11) -> dft.FactorGraph:
    """A grid like those that segment images: strong fields of both signs, many variables that hardly ever move."""
    rng = np.random.default_rng(seed)
    node = np.arange(side * side).reshape(side, side)
    across, down = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, down)])
    fields = rng.normal(0, 6.0, node.size)
    return joined(edges, [j * np.eye(2) for j in 4.0 * rng.random(len(edges))], fields)
