"""Solution: what every exact engine returns, and how events look to it once evidence is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.queries import Query


@dataclass(frozen=True, eq=False)
class Solution:
    """log Z, the probability of every literal (number `literal_start[i] + v`), and one probability per event."""

    log_z: float
    literals: np.ndarray
    events: tuple[float, ...] = ()

    def marginal(self, model: FactorGraph, variable: int) -> np.ndarray:
        return self.literals[model.literal_start[variable] : model.literal_start[variable + 1]]


@dataclass(frozen=True, eq=False)
class Event:
    """The free variables of an event and the tuples of their values that make it true under the evidence."""

    variables: tuple[int, ...]
    rows: np.ndarray  # int64[s, k]


def open_events(model: FactorGraph, queries: Sequence[Query]) -> list[Event]:
    """The events among the queries, without observed variables and what contradicts them."""
    out = []
    for query in queries:
        if query.kind != "event":
            continue
        seen = model.evidence[list(query.variables)]
        free = seen == FREE
        agrees = (query.satisfying[:, ~free] == seen[~free]).all(axis=1)
        rows = query.satisfying[agrees][:, free].astype(np.int64)
        out.append(Event(tuple(int(i) for i in np.array(query.variables)[free]), rows))
    return out


def start_literals(model: FactorGraph) -> np.ndarray:
    """Observed variables at their values, all others uniform: right for every variable without factors."""
    out = np.repeat(1.0 / model.cards, model.cards)
    seen = np.flatnonzero(model.evidence != FREE)
    for_seen = np.repeat(model.evidence != FREE, model.cards)
    out[for_seen] = 0.0
    out[model.literal_start[seen] + model.evidence[seen]] = 1.0
    return out


def active_variables(model: FactorGraph) -> np.ndarray:
    """The variables that have factors (in a simplified model: all free), ascending."""
    return np.unique(model.scope)


def log_idle(model: FactorGraph, handled: np.ndarray) -> float:
    """The logarithm of what the free variables that are not `handled` contribute to Z."""
    idle = np.setdiff1d(model.free, handled, assume_unique=True)
    return float(np.log(model.cards[idle]).sum())


def no_state(model: FactorGraph) -> Unsatisfiable:
    seen = [f"{model.names[i]}={model.evidence[i]}" for i in np.flatnonzero(model.evidence != FREE)[:5]]
    given = f" given the evidence {', '.join(seen)}, …" if seen else ""
    return Unsatisfiable(f"no state has positive probability{given}: the hard factors contradict each other")
