"""The meaning of a Markov logic network spelled out atom by atom, with nothing of the grounder in it: for tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from definetti.model.graph.factors import FactorGraph
from definetti.model.logic.formulas import holds
from definetti.model.logic.theory import MarkovLogic

State = dict[tuple[str, tuple[int, ...]], bool]


def all_atoms(model: MarkovLogic) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, index) for name in model.predicates for index in np.ndindex(*model.shape(name))]


def log_weight(model: MarkovLogic, state: State) -> float:
    """The sum of weights of true groundings; -inf if a hard one is false or the state is not `legal`."""
    if not legal(model, state):
        return -np.inf
    total = 0.0
    for formula in model.formulas:
        sizes = {name: model.sorts[sort].size for name, sort in formula.sorts.items()}
        for values in product(*(range(sizes[name]) for name in formula.free)):
            binding = dict(zip(formula.free, values, strict=True))
            true = holds(formula.body, binding, lambda p, i: state[p, i], sizes)
            if formula.weight is None:
                if not true:
                    return -np.inf
            elif true:
                total += float(np.asarray(formula.weight)[tuple(binding[name] for name in formula.plus)])
    return total


def legal(model: MarkovLogic, state: State) -> bool:
    """Whether a state agrees with the evidence and gives every block of a `!` predicate exactly one value."""
    for name, predicate in model.predicates.items():
        known = {}
        if name in model.closed:
            known = dict.fromkeys(np.ndindex(*model.shape(name)), 0)
            for row in model.unknown.get(name, ()):
                del known[tuple(int(i) for i in row)]
        if name in model.evidence:
            rows = model.evidence[name].tuples.tolist()
            known |= dict(zip(map(tuple, rows), model.evidence[name].values.tolist(), strict=True))
        if any(state[name, index] != bool(value) for index, value in known.items()):
            return False
        if predicate.exclusive:
            counts: dict[tuple[int, ...], int] = {}
            for index in np.ndindex(*model.shape(name)):
                place = tuple(i for k, i in enumerate(index) if k not in predicate.exclusive)
                counts[place] = counts.get(place, 0) + state[name, index]
            if set(counts.values()) != {1}:
                return False
    return True


def states(model: MarkovLogic) -> Iterator[State]:
    found = all_atoms(model)
    for bits in product((False, True), repeat=len(found)):
        yield dict(zip(found, bits, strict=True))


def oracle_marginals(model: MarkovLogic) -> dict[tuple[str, tuple[int, ...]], float]:
    """P(atom) by summing over every state."""
    found = all_atoms(model)
    table = [(np.array([state[atom] for atom in found]), log_weight(model, state)) for state in states(model)]
    logs = np.array([weight for _, weight in table])
    p = np.exp(logs - logs.max())
    return dict(zip(found, (p @ np.array([row for row, _ in table])) / p.sum(), strict=True))


def ground_states(graph: FactorGraph) -> np.ndarray:
    """Every state that agrees with the evidence, one a row."""
    choices = [[int(e)] if e >= 0 else range(int(c)) for c, e in zip(graph.cards, graph.evidence, strict=True)]
    grid = np.meshgrid(*choices, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)


def ground_marginals(graph: FactorGraph) -> list[np.ndarray]:
    """P(variable = value) of a small ground model."""
    rows = ground_states(graph)
    logs = graph.log_density(rows)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    return [np.bincount(rows[:, i], weights=p, minlength=int(graph.cards[i])) for i in range(graph.n)]
