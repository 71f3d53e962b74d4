"""The models of the paper's experiments, and its evidence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic

SMOKERS = """
smokes(person)
cancer(person)
friends(person, person)
1.4 !smokes(x)
2.3 !cancer(x)
{prior} !friends(x,y)
1.5 smokes(x) => cancer(x)
1.1 friends(x,y) ^ smokes(x) => smokes(y)
"""
TRANSITIVITY = "1.0 friends(x,y) ^ friends(y,z) => friends(x,z)\n"
ASTHMA_HARD = """
asthma(person)
smokes(person)
cancer(person)
friends(person, person)
!asthma(x) v !smokes(x).
!asthma(x) v !friends(x,y) v !smokes(y).
!smokes(x) v cancer(x).
"""
ASTHMA_SOFT = """
asthma(person)
smokes(person)
cancer(person)
friends(person, person)
0.25 asthma(x) v !friends(x,y) v !smokes(y)
0.25 !asthma(x) v !smokes(x)
0.35 !smokes(x) v cancer(x)
"""
SIDE, WEIGHT = 100, 0.2  # of the grid
KNOWN_FRIENDS = 10
MANY = 10_000  # people; more are not listed by name


def smokers(people: int, transitive: bool = False, evidence: str = "", prior: float = 4.6) -> MarkovLogic:
    """Friends and smokers, all groundings counted; `prior` is the weight against a friendship."""
    return _theory(SMOKERS.format(prior=prior) + TRANSITIVITY * transitive, people, evidence)


def crowd(people: int, transitive: bool) -> MarkovLogic:
    """Friends and smokers with the prior log(n/10), by which a person has about as many friends in any crowd."""
    return smokers(people, transitive, prior=round(math.log(people / 10), 6))


def asthma(people: int, hard: bool, evidence: str = "") -> MarkovLogic:
    """Asthma, smokes, cancer: the rules all hard, or in the second published form with weights."""
    return _theory(ASTHMA_HARD if hard else ASTHMA_SOFT, people, evidence)


def _theory(text: str, people: int, evidence: str) -> MarkovLogic:
    from definetti.readers.reading import markov_logic

    if people > MANY:
        return markov_logic(text, evidence or None, domain={"person": people})
    names = ", ".join(f"P{k}" for k in range(people))
    return markov_logic(f"person = {{{names}}}\n{text}", evidence or None)


def known_people(people: int, seed: int, share: float = 0.1) -> str:
    """The paper's evidence: "For a random 10% of all people it is known (a) whether they smoke or not and (b) who 10 of
    their friends are." Whether they smoke is a fair coin."""
    rng = np.random.default_rng(seed)
    lines = []
    for p in rng.choice(people, max(1, round(share * people)), replace=False).tolist():
        lines.append(f"{'' if rng.random() < 0.5 else '!'}smokes(P{p})")
        others = np.delete(np.arange(people), p)
        lines += [f"friends(P{p},P{q})" for q in rng.choice(others, KNOWN_FRIENDS, replace=False).tolist()]
    return "\n".join(lines)


def known_smokers(evidence: str) -> int:
    return sum(line.startswith("smokes") for line in evidence.splitlines())


def grid_edges(side: int = SIDE) -> np.ndarray:
    """int64[m, 2]: neighbours on a square grid with free boundary."""
    node = np.arange(side * side).reshape(side, side)
    across = np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    return np.concatenate([across, np.column_stack([node[:-1].ravel(), node[1:].ravel()])])


def grid(side: int = SIDE, hard: bool = False, fields: np.ndarray | None = None) -> FactorGraph:
    """The 2-colouring grid: exp(0.2) where neighbours differ, else 1; hard: 1 where they differ, else 0. `fields`: the
    log odds of each variable's own factor."""
    from definetti.model.graph.factors import FactorGraph

    edges, n = grid_edges(side), side * side
    equal = -np.inf if hard else 0.0
    pair = np.array([[equal, 0.0], [0.0, equal]]) if hard else np.array([[0.0, WEIGHT], [WEIGHT, 0.0]])
    scopes, tables, table_of = [edges.ravel()], [pair], [np.zeros(len(edges), np.int64)]
    lengths = [np.full(len(edges), 2)]
    if fields is not None:
        values, which = np.unique(fields, return_inverse=True)
        scopes.append(np.arange(n))
        tables += [np.array([0.0, value]) for value in values.tolist()]
        table_of.append(1 + which.ravel())
        lengths.append(np.ones(n, np.int64))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return FactorGraph.from_arrays(np.full(n, 2), starts, np.concatenate(scopes), np.concatenate(table_of), tables)


def symmetric_fields(side: int = SIDE, seed: int = 1, strength: float = 0.5) -> np.ndarray:
    """Random log odds that the reflections and rotations of the square leave alone: one normal number per orbit."""
    row, column = np.indices((side, side))
    a, b = np.minimum(row, side - 1 - row), np.minimum(column, side - 1 - column)
    orbit = np.minimum(a, b) * side + np.maximum(a, b)
    return np.random.default_rng(seed).normal(0.0, strength, side * side)[orbit].ravel()
