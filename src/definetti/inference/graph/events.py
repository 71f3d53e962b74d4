"""Joint queries as statistics: an event is a disjoint union of conjunctions, each averaged over the orbit of its
tuple."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from definetti.errors import Notice
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.queries import Query, parse_query, unconditional
from definetti.samplers.graph.lanes import Block
from definetti.symmetry.graph.group import GraphSymmetries

if TYPE_CHECKING:
    from definetti.constraints.graph.contract import Contracted
    from definetti.inference.question import Formulas

MOST_ASKED = 4096  # tuples of one query that the solver is asked about
MOST_MEMBERS = 20_000  # of a query's orbits that are listed, if the model has not more variables: about 10 ms a sweep
RANDOM_IMAGES = 4096  # tuples that stand for an orbit too large to list


@dataclass(frozen=True, eq=False)
class Event:
    """A query's conjunctions: `tuples[t]` is the orbit (literals, one row per member) of the t-th way to satisfy it, or
    to fail it where these are fewer (`sign` -1). The event is `certain` + `sign` · the sum of the orbits' means.

    `certain` is 1 where the evidence, or the formula itself, leaves nothing open.
    """

    query: Query
    tuples: tuple[np.ndarray, ...]
    certain: int
    orbit_size: int
    sign: int = 1


def parse(queries: Sequence[str | Query], model: FactorGraph) -> tuple[Query, ...]:
    """`A | B` is followed by its condition."""
    found = [query if isinstance(query, Query) else parse_query(query, model) for query in queries]
    return tuple(unconditional(found))


def events_of(
    queries: Sequence[Query],
    carried: Sequence[Query],
    group: GraphSymmetries,
    over_orbit: bool,
    rng: np.random.Generator,
) -> tuple[tuple[Event, ...], list[Notice]]:
    """The joint queries among these, each once; `carried`: the same queries about the model that is sampled."""
    events: dict[str, Event] = {}
    notices: list[Notice] = []
    for query, possible in zip(queries, possible_events(group.model, carried), strict=True):
        if query.kind != "event" or query.text in events:
            continue
        if isinstance(possible, bool):
            events[query.text] = Event(query, (), int(possible), 1)
        else:
            events[query.text], more = build_event(possible, group, over_orbit, rng)
            notices += more
    return tuple(events.values()), notices


def possible_events(model: FactorGraph, queries: Sequence[Query]) -> list[Query | bool]:
    """Events without the tuples that hard factors rule out; true or false where these decide the event."""
    out: list[Query | bool] = [True if _always(model, query) else query for query in queries]
    events = [k for k, query in enumerate(out) if isinstance(query, Query) and len(query.satisfying)]
    if not events or not len(model.hard_factors):
        return out
    from definetti.constraints.graph.legal_states import possible_tuples

    asked = []
    for k in events:
        shape = [int(c) for c in model.cards[list(queries[k].variables)]]
        small = np.prod(np.array(shape, dtype=np.float64)) <= MOST_ASKED
        tuples = np.indices(shape).reshape(len(shape), -1).T if small else queries[k].satisfying[:MOST_ASKED]
        asked.append((queries[k].variables, tuples))
    for k, (variables, tuples), can in zip(events, asked, possible_tuples(model, asked), strict=True):
        wanted = {tuple(row) for row in queries[k].satisfying.tolist()}
        true = np.array([tuple(row) in wanted for row in tuples.tolist()], dtype=bool)
        if len(tuples) < len(wanted):  # too many to look at all
            continue
        if not (can & true).any():
            out[k] = False
        elif len(tuples) > len(wanted) and not (can & ~true).any():
            out[k] = True
        else:
            out[k] = _shortest(queries[k].text, variables, tuples[can], tuples[can & true])
    return out


def _shortest(text: str, variables: Sequence[int], possible: np.ndarray, wanted: np.ndarray) -> Query:
    """A conjunction without the literals that hard factors imply from its others: then more may be known of it."""
    kept = list(range(len(variables)))
    if len(wanted) == 1 and len(possible) > 1:
        for column in range(len(variables)):
            rest = [c for c in kept if c != column]
            agree = (possible[:, rest] == wanted[0, rest]).all(axis=1)
            if rest and int(agree.sum()) == 1:
                kept = rest
    return Query(text, tuple(variables[c] for c in kept), "event", wanted[:, kept].astype(np.int32))


def _always(model: FactorGraph, query: Query) -> bool:
    """Every tuple that agrees with the evidence satisfies the event, as in `X0=0 v X0=1`."""
    if query.kind != "event":
        return False
    seen = model.evidence[list(query.variables)]
    every = np.prod(model.cards[list(query.variables)][seen == FREE].astype(np.float64))
    return int(((seen == FREE) | (query.satisfying == seen)).all(axis=1).sum()) == every


def build_event(
    query: Query, group: GraphSymmetries, over_orbit: bool, rng: np.random.Generator
) -> tuple[Event, list[Notice]]:
    """The orbits of a query's satisfying tuples; without `over_orbit` (standard estimator) the tuples themselves."""
    model = group.model
    variables = np.array(query.variables, dtype=np.int64)
    free = model.evidence[variables] == FREE
    agreeing = query.satisfying[(query.satisfying[:, ~free] == model.evidence[variables[~free]]).all(axis=1)]
    if len(agreeing) == np.prod(model.cards[variables[free]], dtype=np.int64):  # nothing is left open
        return Event(query, (), 1, 1), []
    rows, certain, sign = _fewer(agreeing[:, free], model.cards[variables[free]])
    literals = model.literal_start[variables[free]] + rows
    if not over_orbit:
        return Event(query, tuple(literals[:, None]), certain, 1, sign), []
    orbits = _orbits(literals, group)
    if orbits is not None:
        size = max(map(len, orbits), default=1)
        return Event(query, tuple(map(_sets, orbits)), certain, size, sign), []
    count = max(1, RANDOM_IMAGES // len(literals))
    elements = group.random_elements(rng)
    images = np.stack([next(elements)[literals] for _ in range(count)], axis=1)
    text = f"the orbit of {query.text!r} is too large to list; {count} random images stand for it"
    return Event(query, tuple(images), certain, count, sign), [Notice("fallback", text)]


def _fewer(rows: np.ndarray, cards: np.ndarray) -> tuple[np.ndarray, int, int]:
    """The rows, or all others where these are fewer (of 2^k - 1 ways to satisfy a disjunction one is left), with
    `certain` and `sign`."""
    if 2 * len(rows) <= np.prod(cards, dtype=np.float64):
        return rows, 0, 1
    place = np.cumprod([1, *cards[:-1]], dtype=np.int64)
    others = np.ones(int(np.prod(cards, dtype=np.int64)), dtype=bool)
    others[rows @ place] = False
    return (np.flatnonzero(others)[:, None] // place % cards).astype(rows.dtype), 1, -1


def _orbits(literals: np.ndarray, group: GraphSymmetries) -> list[np.ndarray] | None:
    """The orbit of each row, or None where they have too many members together: each is looked up in every sweep."""
    left = max(MOST_MEMBERS, group.model.n)
    out: list[np.ndarray] = []
    for row in literals:
        members = group.tuple_orbit(row, left)
        if members is None:
            return None
        left -= len(members)
        out.append(members)
    return out


def _sets(members: np.ndarray) -> np.ndarray:
    """A conjunction holds in whatever order it is written, and the orbit has each set of literals equally often."""
    return np.unique(np.sort(members, axis=1), axis=0)


def observer(
    events: Sequence[Event], model: FactorGraph, formulas: Formulas | None = None, untied: Contracted | None = None
) -> tuple[Callable[[Block, np.ndarray], None] | None, np.ndarray]:
    """A function that adds the hits of all events' tuples and formulas in a block's states, and the sizes to divide
    by; `untied` if the model is the core of the one that the formulas speak of."""
    orbits = [members for event in events for members in event.tuples]
    sizes = np.array([len(members) for members in orbits], dtype=np.int64)
    watch: Callable[[Block, np.ndarray], None] | None = None
    if len(orbits):
        from definetti.samplers.kernels import orbit_counts as kernels

        tuples = kernels.Tuples(*flat_tuples(orbits, model))

        def count(block: Block, hits: np.ndarray) -> None:
            kernels.count_tuples(tuples, block.state, np.uint8(block.mask), hits[: len(orbits)])

        watch = count
    if formulas is None:
        return watch, sizes
    asked = formulas.variables
    parent, values = (asked, None) if untied is None else (untied.links.parent[asked], untied.values(asked))
    rows = np.arange(len(asked))[:, None]

    def observe(block: Block, hits: np.ndarray) -> None:
        if watch is not None:
            watch(block, hits)
        state = block.state[parent] & np.uint8(block.mask)
        hits[len(orbits) :] += formulas.count(state if values is None else values[rows, state])

    return observe, np.concatenate([sizes, formulas.sizes])


def flat_tuples(orbits: Sequence[np.ndarray], model: FactorGraph) -> tuple[np.ndarray, ...]:
    """Orbits as the flat arrays of `kernels.orbit_counts.Tuples`."""
    widths = np.concatenate([np.full(len(members), members.shape[1]) for members in orbits])
    literals = np.concatenate([members.ravel() for members in orbits])
    variable = np.searchsorted(model.literal_start, literals, side="right") - 1
    return (
        np.concatenate([[0], np.cumsum([len(members) for members in orbits])]).astype(np.int64),
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        variable.astype(np.int32),
        (literals - model.literal_start[variable]).astype(np.uint8),
    )
