"""Ways to the exact answer of a factor graph, each with the work and the memory that it will take.

Elimination and enumeration are tried on the model as it is given and on its core (tied variables merged): merging makes
most models smaller, but it multiplies values, and some have a better order of elimination without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from definetti.constraints.graph.contract import Contracted, contract
from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.model.queries import Query
from definetti.solvers import work
from definetti.solvers.graph.eliminate import FEW_ROWS, MANY_ROWS, eliminate, with_event
from definetti.solvers.graph.elimination_order import CURE, Order, core_number, min_fill
from definetti.solvers.graph.enumerate import MOST_STATES, enumerate_states, enumerated, state_bits
from definetti.solvers.graph.solution import Event, Solution, open_events

BYTES = 8  #: of an entry
AT_ONCE = 4  #: arrays as large as the largest table that exist for a moment
TRIFLE = 0.02  #: of work: below it the way with the smaller tables is taken


@dataclass(frozen=True, eq=False)
class Route:
    """An engine, and the simplified model that it is to solve: the one asked about, or its core."""

    method: str
    model: FactorGraph
    queries: tuple[Query, ...]
    work: float
    bytes: float
    size: float  # table entries, or states
    order: Order | None = None
    contracted: Contracted | None = None  # of which `model` is the core

    def solve(self) -> Solution:
        if self.method == "enumerate":
            found = enumerate_states(self.model, self.queries, limit=math.inf)
        else:
            found = eliminate(self.model, self.queries, order=self.order, limit=math.inf)
        return found if self.contracted is None else replace(found, literals=_of_model(self.contracted, found))


def _of_model(contracted: Contracted, solution: Solution) -> np.ndarray:
    """P(x_i = v) is the sum over the values of the core variable that mean it."""
    core, links, model = contracted.core, contracted.links, contracted.model
    parts = [
        np.bincount(links.function(i), weights=solution.marginal(core, int(links.parent[i])), minlength=int(card))
        for i, card in enumerate(model.cards.tolist())
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def routes(
    model: FactorGraph, queries: Sequence[Query], entries: float, steps: float = math.inf
) -> tuple[list[Route], TooLarge | None]:
    """Every way that needs tables of at most so many entries together, the cheapest first; and why elimination of the
    model does not fit, where it does not."""
    contracted = contract(model)
    found, refusal = [], None
    for target, asked, of in _targets(model, contracted, tuple(queries)):
        found += _enumeration(target, asked, of)
        try:
            found.append(_elimination(target, asked, of, entries, steps))
        except TooLarge as reason:
            refusal = refusal or reason
    return sorted(found, key=lambda route: (max(route.work, TRIFLE), route.size)), refusal


Target = tuple[FactorGraph, tuple[Query, ...], Contracted | None]


def _targets(model: FactorGraph, contracted: Contracted, queries: tuple[Query, ...]) -> list[Target]:
    out: list[Target] = []
    if contracted.merged:
        with suppress(TooLarge):  # a query may have too many tuples in terms of the core
            out.append((contracted.core, tuple(contracted.query(query) for query in queries), contracted))
    else:
        out.append((contracted.model, queries, None))
    if not out or contracted.merged or len(contracted.model.hard_factors):
        out.append((simplify(model), queries, None))
    return out


# --- enumeration -------------------------------------------------------------------------------------------------


def _enumeration(model: FactorGraph, queries: tuple[Query, ...], of: Contracted | None) -> list[Route]:
    events = open_events(model, queries)
    variables = enumerated(model, events)
    if state_bits(model, variables) > math.log2(MOST_STATES) + 1e-9:
        return []
    states, work_ = enumeration_work(model, variables, events)
    return [Route("enumerate", model, queries, work_, 2 * BYTES * min(states, 2**20), states, None, of)]


def enumeration_work(model: FactorGraph, variables: np.ndarray, events: Sequence[Event]) -> tuple[float, float]:
    """(states, work): a factor is added to the array over the states of all variables up to its last one."""
    sizes = np.cumprod(model.cards[variables].astype(np.float64))
    states = float(sizes[-1]) if len(sizes) else 1.0
    last = model.scope[model.scope_start[1:] - 1] if model.factor_count else model.scope[:0]
    added = float(sizes[np.searchsorted(variables, last)].sum()) if len(last) else 0.0
    fixed = work.FACTOR * (model.factor_count + len(variables))
    return states, fixed + work.STATE * states * (1 + 0.25 * len(events)) + work.ADDED * added


# --- elimination -------------------------------------------------------------------------------------------------


def _elimination(
    model: FactorGraph, queries: tuple[Query, ...], of: Contracted | None, entries: float, steps: float
) -> Route:
    order = find_order(model, entries, steps)
    once = elimination_work(model, order)
    total, largest = order.total, order.largest
    work_ = once
    for event in open_events(model, queries):
        if len(event.rows) <= FEW_ROWS:
            work_ += len(event.rows) * once / 2
            continue
        try:
            observed = with_event(model, event, entries)
            other = find_order(observed, entries, steps)
            work_ += elimination_work(observed, other) / 2
            largest = max(largest, other.largest)
        except TooLarge:
            if len(event.rows) > MANY_ROWS:
                raise
            work_ += len(event.rows) * once / 2
    return Route("eliminate", model, queries, work_, BYTES * (total + AT_ONCE * largest), total, order, of)


def elimination_work(model: FactorGraph, order: Order) -> float:
    """An entry is cheaper where the eliminated variable has many values: what is left of the table is smaller."""
    cards = model.cards.astype(np.float64)
    entries = sum(float(cards[list(clique)].prod()) * (0.3 + 1.4 / cards[clique[0]]) for clique in order.cliques)
    return work.BUCKET * len(order.cliques) + work.FACTOR * model.factor_count + work.ENTRY * entries


def find_order(model: FactorGraph, entries: float, steps: float = math.inf) -> Order:
    """By min-fill; `TooLarge` without a search where some table is too large whatever the order."""
    width = core_number(model, int(math.log2(entries)))
    if width:  # whole numbers: 2^width may be beyond any float
        raise TooLarge("elimination", 2 ** (width + 1), entries, CURE, unit="table entries", at_least=True)
    return min_fill(model, entries, steps)
