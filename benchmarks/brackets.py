"""Brackets of the weights of regions against weights that are summed: `python benchmarks/brackets.py`.

Theories of unary predicates are summed over the numbers of constants of each kind, small graphs and theories over all
states. The true weight of a region is that of its part of the partition, less what chains in it cannot be expected to
reach: states beyond a saddle that is lighter than one in `SWEEPS` of the rest.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise, product
from math import comb, log
from typing import Any

import numpy as np
from measuring import Row
from scipy.special import gammaln, logsumexp
from trap_models import Trap, traps

SUMMED = ("Curie–Weiss", "agreement", "cubic", "either", "needle", "two predicates", "equivalence", "digraph",
          "edges squared", "classes", "random tables")  # fmt: skip
MOST_STATES = 5000
SWEEPS = 2000
DEFAULT = 8000  # sweeps of the run for which regions are weighed


@dataclass(frozen=True, eq=False)
class Listed:
    """All states, those that a renaming carries into each other as one."""

    features: np.ndarray  # float64[states, features]
    log_weight: np.ndarray  # float64[states]
    around: Callable[[int], Sequence[int]]  # states that one move leads to


@dataclass(frozen=True)
class Compared:
    name: str
    truth: float  # log of the region's weight
    lower: float
    upper: float

    @property
    def holds(self) -> bool:
        return self.lower <= self.truth <= self.upper


def listed(walkers: Any) -> Listed | None:
    """None where there are too many, or where it takes more than this file knows."""
    return _states_of_graph(walkers) if hasattr(walkers, "model") else _states_of_theory(walkers)


def _states_of_graph(walkers: Any) -> Listed | None:
    model = walkers.model
    cards = tuple(int(c) for c in model.cards[model.free])
    if log(MOST_STATES) < sum(map(log, cards)):
        return None
    states = walkers.blank(int(np.prod(cards)))
    states[model.free] = np.indices(cards).reshape(len(cards), -1)
    features = walkers.features(np.ascontiguousarray(states))
    density = np.where(walkers.read(states, np.zeros(0))[1] > 0, -np.inf, features[:, -1])
    place = np.arange(len(density)).reshape(cards)

    def around(x: int) -> list[int]:
        at = np.unravel_index(x, cards)
        return [int(y) for k in range(len(cards)) for y in place[(*at[:k], slice(None), *at[k + 1 :])] if y != x]

    return Listed(features, density, around)


def _states_of_theory(walkers: Any) -> Listed | None:
    model = walkers.relational.model
    shapes = {name: model.shape(name) for name in model.predicates}
    plain = all(walkers.relational.known[name].mask is None for name in shapes)
    if walkers.hard or not plain or any(p.exclusive for p in model.predicates.values()):
        return None
    if all(len(shape) == 1 for shape in shapes.values()) and len(set(shapes.values())) == 1:
        return _by_kinds(walkers, list(shapes), next(iter(shapes.values()))[0])
    size = sum(int(np.prod(shape)) for shape in shapes.values())
    if 2**size > MOST_STATES:
        return None
    cuts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())])
    worlds = np.array(list(product((False, True), repeat=size)))
    parts = [worlds[:, a:b] for a, b in pairwise(cuts)]
    states = [
        {name: parts[k][w].reshape(shape) for k, (name, shape) in enumerate(shapes.items())} for w in range(len(worlds))
    ]
    features = _features(walkers, states)
    return Listed(features, features[:, -1], lambda x: [x ^ (1 << k) for k in range(size)])


def _by_kinds(walkers: Any, names: Sequence[str], n: int) -> Listed | None:
    """By how many constants have each combination of the predicates."""
    kinds = 2 ** len(names)
    if comb(n + kinds - 1, kinds - 1) > MOST_STATES:
        return None
    counts = [c for c in product(range(n + 1), repeat=kinds - 1) if sum(c) <= n]
    counts = [(*c, n - sum(c)) for c in counts]
    index = {c: number for number, c in enumerate(counts)}
    states = []
    for c in counts:
        kind = np.repeat(np.arange(kinds), c)
        states.append({name: (kind >> k & 1).astype(bool) for k, name in enumerate(names)})
    features = _features(walkers, states)
    ways = gammaln(n + 1) - gammaln(np.array(counts) + 1).sum(axis=1)

    def around(x: int) -> list[int]:
        out = []
        for kind, other in product(range(kinds), [1 << k for k in range(len(names))]):
            if counts[x][kind]:
                moved = list(counts[x])
                moved[kind], moved[kind ^ other] = moved[kind] - 1, moved[kind ^ other] + 1
                out.append(index[tuple(moved)])
        return out

    return Listed(features, features[:, -1] + ways, around)


def _features(walkers: Any, states: Sequence[dict[str, np.ndarray]]) -> np.ndarray:
    from definetti.samplers.logic.levels import recount
    from definetti.samplers.logic.starts import put
    from definetti.samplers.logic.tensors.known_bits import pack

    chain, rows = walkers._chain((0,), 0), []
    for atoms in states:
        put(walkers.relational, chain, {name: pack(np.ascontiguousarray(x)) for name, x in atoms.items()})
        recount(walkers._ways[0], chain)
        rows.append(walkers._of(chain))
    return np.array(rows)


def weight_around(states: Listed, inside: np.ndarray, distance: np.ndarray) -> float:
    """Log weight of those states `inside` that belong to the mode nearest to the centre (`distance` from it)."""
    weight = states.log_weight
    peak = int(np.where(inside, distance, np.inf).argmin())
    while (top := max((y for y in states.around(peak) if inside[y]), key=weight.__getitem__, default=peak)) != peak:
        if weight[top] <= weight[peak]:
            break
        peak = top
    found, edge, total = {peak}, [], weight[peak]

    def widen(x: int) -> None:
        for y in states.around(x):
            if inside[y] and y not in found:
                heappush(edge, (-weight[y], y))

    widen(peak)
    while edge and -edge[0][0] >= total - log(SWEEPS):
        x = heappop(edge)[1]
        if x not in found:
            found.add(x)
            total = np.logaddexp(total, weight[x])
            widen(x)
    stack = list(found)
    while stack:  # downhill from there
        x = stack.pop()
        fresh = [y for y in states.around(x) if inside[y] and y not in found and weight[y] <= weight[x]]
        found.update(fresh)
        stack += fresh
    return float(logsumexp(weight[list(found)]))


def compare(trap: Trap, seed: int) -> list[Compared]:
    """The regions of a model that have brackets; none where one region is found, or its weight is not summed."""
    import definetti as dft
    from definetti.inference.graph.question import ask
    from definetti.inference.logic.question import logic_question
    from definetti.inference.modes import Exploration, explore
    from definetti.samplers.gibbs import Gibbs
    from definetti.samplers.protocol import Plan
    from definetti.symmetry.find import symmetries

    model = trap.build()
    group: Any = symmetries(model)
    graph = isinstance(model, dft.FactorGraph)
    question = ask(group, (), "auto", seed) if graph else logic_question(group, (), "auto")
    walkers = question.walkers(Gibbs())
    if walkers is None or not walkers.weighs or (states := listed(walkers)) is None:
        return []
    explored = explore(question, Gibbs(), DEFAULT, Plan(8, None, None, seed, 1), True)
    if not isinstance(explored, Exploration) or explored.weighing is None or explored.weighing.partition is None:
        return []
    where, out = explored.weighing.partition, []
    of = where.of(states.features)
    for m, region in enumerate(explored.weighing.regions):
        if region.bracket is not None and (of == m).any():
            apart = (((states.features - where.centres[m]) / where.scale) ** 2).sum(axis=1)
            truth = weight_around(states, of == m, apart)
            out.append(Compared(f"{trap.name}, {m + 1}", truth, region.bracket.lower, region.bracket.upper))
    return out


def compared(families: Sequence[str], parameters: int, seeds: int) -> Iterator[Compared]:
    for trap in traps(parameters, families):
        for seed in range(1, seeds + 1):
            yield from compare(trap, seed)


def rows(quick: bool) -> list[Row]:
    return summary(list(compared(SUMMED[:1] if quick else SUMMED, 1, 1 if quick else 2)))


def summary(found: Sequence[Compared]) -> list[Row]:
    missed = [c for c in found if not c.holds]
    widths = sorted(c.upper - c.lower for c in found)
    note = "; ".join(f"{c.name}: {c.truth:.6g} not in [{c.lower:.6g}, {c.upper:.6g}]" for c in missed[:5])
    return [
        Row("brackets without the true weight", len(missed), f"of {len(found)}", 0.0, at_least=False, note=note),
        Row("their width", widths[len(widths) // 2] if widths else None, "nats", note="median"),
        Row("of these below a nat", sum(w < 1.0 for w in widths) / max(len(widths), 1), ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", default=[], help="of the traps; may be given again")
    parser.add_argument("--parameters", type=int, default=1, help="seed of the parameters")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each model")
    options = parser.parse_args()
    found = []
    for one in compared(options.family or SUMMED, options.parameters, options.seeds):
        found.append(one)
        if not one.holds:
            print(f"  {one.name}: {one.truth:.9g} not in [{one.lower:.9g}, {one.upper:.9g}]", flush=True)
    for row in summary(found):
        print(f"  {row.name:36} {row.value if row.value is not None else '–':>8.4g} {row.unit} {row.note}")
    return 1 if any(row.passed is False for row in summary(found)) else 0


if __name__ == "__main__":
    sys.exit(main())
