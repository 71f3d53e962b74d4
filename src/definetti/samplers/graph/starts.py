"""Starts of chains: each free variable from its own unary factor, then the legal state that a solver finds near it.

The law of such a start is left alone by the group, which the theory needs (`docs/architecture.md`): unary factors are
carried along by symmetries, and the solver numbers its variables in a random order. Where there are hard factors, the
first chains prefer each value in turn (all 0, all 1, …), so that separate regions of what is possible are seen.

Chains that look for modes begin all over the place (`dispersed`), and at many local maxima.
Drawn states and states with one value everywhere are few, and a mode may be met from a small part of the states only.
So there are hundreds of greedy ascents as well, of a few sweeps each: from uniform draws; with one variable held at
each of its values in turn until the others have followed it (a class that explains the others is never entered
otherwise); with the variables of a wide table held at its largest entries; from states put together table by table,
each at its largest entry that agrees with those before (`_extended`); around one variable, where all others are as the
tables that they share with it like best (`_around`); and from slow cooling. Of their distinct ends, as far as the group
and the statistics distinguish them, the best and some of the others are starts.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import permutations
from typing import Any

import numpy as np

from definetti.model.graph.factors import FREE, FactorGraph
from definetti.samplers.ascents import best_and_others
from definetti.samplers.graph.lanes import words

TURNS = 4  # at most one chain in so many prefers one value everywhere
CHUNK = 1 << 22  # uniform numbers drawn at once
DRAWN = 3  # starts of each kind that are drawn at random
MOST_TURNS = 8  # starts that have one value everywhere
GREEDY, GREEDY_SWEEPS = 1000.0, 4
UNIFORM = 64  # ascents from uniform draws
HELD, HELD_VALUES = 96, 128  # variables that are held at their values, or orbits of them; values of each
TABLES, ENTRIES = 48, 2  # tables over three variables and more, and entries of each, that are held
COOLED, COOLING = 32, (0.1, 0.2, 0.35, 0.6, 1.0, 1.6, 2.5, 4.0)  # lanes, and levels on the way down
SWEEPS_HELD = 3
EXTENDED, MOST_EXTENSIONS = 24, 6000  # states that are put together table by table, and tables looked at in all
AROUND, MOST_CENTRES = 48, 192  # states around one value of a variable, of so many values that are looked at
MOST_VOTES, WIDEST_VOTE = 1 << 24, 4096  # preferences of all of these; entries of a table that has a say in them
MOST_PAIRS = 8_000  # pairs of places in different tables that are looked at
BEST = 8  # entries of a table, one of which such a state begins with
NEAR = 32  # steps to the farthest of a neighbourhood


def starts(model: FactorGraph, chains: int, rng: np.random.Generator) -> np.ndarray:
    """uint8[chains, n]: legal states of a simplified model, observed variables at their values."""
    states = _drawn(model, chains, lambda card: _unary(model, card), rng)
    hard = model.hard_factors
    if len(hard):
        from definetti.constraints.graph.legal_states import legalise

        _prefer_in_turn(model, states, hard)
        legalise(model, states, rng)
    return states


def _drawn(
    model: FactorGraph, chains: int, weights_of: Callable[[int], np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """uint8[chains, n]: each free variable by its weights; `weights_of(card)`: float64[n, card]."""
    states = np.zeros((chains, model.n), dtype=np.uint8)
    states[:, model.evidence != FREE] = model.evidence[model.evidence != FREE]
    for card in np.unique(model.cards[model.free]).tolist():
        sites = model.free[model.cards[model.free] == card]
        weights = weights_of(card)[sites]
        reach = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        step = max(1, CHUNK // (len(sites) * card))
        for lo in range(0, chains, step):
            draws = rng.random((len(states[lo : lo + step]), len(sites)))
            states[lo : lo + step, sites] = np.minimum((draws[..., None] >= reach).sum(axis=-1), card - 1)
    return states


def _prefer_in_turn(model: FactorGraph, states: np.ndarray, hard: np.ndarray) -> None:
    """Chain v wishes for value v at every variable of a hard factor (the last value of those that have fewer)."""
    spread = [k for k in hard.tolist() if len(model.variables(k)) > 1]
    sites = np.unique(np.concatenate([model.variables(k) for k in spread] or [np.zeros(0, np.int64)])).astype(np.int64)
    if not len(sites):
        return
    for value in range(min(int(model.cards[sites].max()), len(states) // TURNS)):
        states[value, sites] = np.minimum(value, model.cards[sites] - 1)


def _unary(model: FactorGraph, card: int) -> np.ndarray:
    """float64[n, card]: the weights of the variables' own factors, for variables with so many values."""
    own = np.flatnonzero(model.arity == 1)
    own = own[model.cards[model.scope[model.scope_start[own]]] == card]
    logs = np.zeros((model.n, card))
    logs[model.scope[model.scope_start[own]]] = model.tables[
        model.table_start[model.table_of[own]][:, None] + np.arange(card)
    ]
    return np.exp(logs - logs.max(axis=1, keepdims=True))


# --- starts of chains that look for modes ----------------------------------------------------------------------------


def dispersed(walkers: Any, key: tuple[int, ...], most: int, climbs: int) -> np.ndarray:
    """uint8[n, at most `most`]: legal states; `climbs`: sweeps of single chains that ascents may take."""
    model, rng = walkers.model, np.random.default_rng([*key, 1])
    uniform = _uniform(walkers, DRAWN, rng)
    unary = np.ascontiguousarray(starts(model, DRAWN, rng).T)
    parts = [
        unary[:, :2],
        *_as_given(walkers, 2, np.random.default_rng([*key, 14])),
        uniform[:, :2],
        *_turns(walkers, rng, model.free, unary),
    ]
    parts += _orbit_turns(walkers, rng, unary)
    parts += [uniform[:, 2:], unary[:, 2:]]
    plain = walkers.legal(walkers.join(parts)[:, : max(most // 2, most - climbs // GREEDY_SWEEPS)], rng)
    return walkers.moved(walkers.join([plain, maxima(walkers, key, most - plain.shape[1], climbs)]), rng)


def _as_given(walkers: Any, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draws from the unary parts as they were given, where these are not what the simplified model has: centring moves
    the unary parts of tables to their variables, and what is left of a field may point elsewhere."""
    model, given = walkers.model, walkers.given
    if given is None:
        return []

    def weights(card: int) -> np.ndarray:
        logs = np.zeros((model.n, card))
        sites = np.flatnonzero(model.cards == card)
        logs[sites] = given[model.literal_start[sites][:, None] + np.arange(card)]
        top = logs.max(axis=1, keepdims=True)
        return np.where(np.isneginf(top), 1.0, np.exp(logs - np.where(np.isneginf(top), 0.0, top)))

    def share(table: np.ndarray) -> np.ndarray:
        return table[model.free] / table[model.free].sum(axis=1, keepdims=True)

    cards = np.unique(model.cards[model.free]).tolist()
    if all(np.allclose(share(weights(card)), share(_unary(model, card)), atol=1e-6) for card in cards):
        return []
    return [np.ascontiguousarray(_drawn(model, count, weights, rng).T)]


def _uniform(walkers: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    free = walkers.model.free
    out = walkers.blank(count)
    out[free] = rng.integers(walkers.model.cards[free][:, None], size=(len(free), count))
    return out


def _turns(walkers: Any, rng: np.random.Generator, sites: np.ndarray, around: np.ndarray) -> list[np.ndarray]:
    """Each value at all of these sites (the last value of those that have fewer)."""
    cards = walkers.model.cards[sites]
    values = np.arange(int(cards.max(initial=1)))
    if len(values) > MOST_TURNS:
        values = np.sort(rng.choice(values, MOST_TURNS, replace=False))
    out = []
    for value in values.tolist():
        state = around[:, value % around.shape[1]][:, None].copy()
        state[sites, 0] = np.minimum(value, cards - 1)
        out.append(state)
    return out


def _orbit_turns(walkers: Any, rng: np.random.Generator, around: np.ndarray) -> list[np.ndarray]:
    orbit_of, free = walkers.statistics.orbit_of, walkers.model.free
    if orbit_of is None:
        return []
    kinds, sizes = np.unique(orbit_of[free], return_counts=True)
    if not 1 < len(kinds) <= MOST_TURNS:
        return []
    large = kinds[np.argsort(-sizes, kind="stable")]
    turns = [_turns(walkers, rng, free[orbit_of[free] == k], around) for k in large.tolist()]
    return [state for some in turns for state in some]


# --- ascents ----------------------------------------------------------------------------------------------------------


def maxima(walkers: Any, key: tuple[int, ...], wanted: int, budget: int) -> np.ndarray:
    """Ends of ascents: of those that differ, the best ones, and some of the others."""
    rng = np.random.default_rng([*key, 5])
    lanes = min(UNIFORM, budget // (2 * GREEDY_SWEEPS))
    if wanted <= 0 or lanes < 1:
        return walkers.blank(0)
    ends = [_climbed(walkers, walkers.legal(_uniform(walkers, lanes, rng), rng), (*key, 6))]
    budget -= GREEDY_SWEEPS * lanes
    together = _extended(walkers, rng)
    if together.shape[1] and budget >= GREEDY_SWEEPS * together.shape[1]:
        budget -= GREEDY_SWEEPS * together.shape[1]
        ends.append(_climbed(walkers, walkers.legal(together, rng), (*key, 12)))
    around = _around(walkers, np.random.default_rng([*key, 15]))[:, : max(0, budget // (2 * GREEDY_SWEEPS))]
    if around.shape[1]:
        budget -= GREEDY_SWEEPS * around.shape[1]
        ends.append(_climbed(walkers, walkers.legal(around, rng), (*key, 16)))
    for number, (sites, rows) in enumerate(_held(walkers, rng)):
        cost = rows.shape[1] * (SWEEPS_HELD + GREEDY_SWEEPS)
        if budget < cost:
            break
        budget -= cost
        ends.append(_climbed(walkers, _followed(walkers, sites, rows, rng, (*key, 7, number)), (*key, 8, number)))
    lanes = min(COOLED, budget // (len(COOLING) + GREEDY_SWEEPS))
    if lanes > 0:
        cooled = walkers.legal(_uniform(walkers, lanes, rng), rng)
        ends.append(_climbed(walkers, _swept(walkers, cooled, COOLING, (*key, 9)), (*key, 10)))
    states = walkers.join(ends)
    return walkers.take(states, best_and_others(walkers.features(states), wanted, rng))


def _central(walkers: Any, rng: np.random.Generator) -> np.ndarray:
    """One free variable of each orbit, those with most factors first."""
    model, orbit_of = walkers.model, walkers.statistics.orbit_of
    degree = np.bincount(model.scope, minlength=model.n)
    sites = model.free[np.lexsort((rng.random(len(model.free)), -degree[model.free]))]
    return sites if orbit_of is None else sites[np.sort(np.unique(orbit_of[sites], return_index=True)[1])]


def _held(walkers: Any, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """(sites, values[sites, lanes]) to hold while the others follow."""
    model = walkers.model
    free = np.zeros(model.n, dtype=bool)
    free[model.free] = True
    sites = _central(walkers, rng)
    cards = model.cards[sites[:HELD]].tolist()
    values = [np.arange(card) if card <= HELD_VALUES else rng.permutation(card)[:HELD_VALUES] for card in cards]
    single = [(np.array([i]), v[None]) for i, v in zip(sites[:HELD].tolist(), values, strict=True)]
    wide = np.flatnonzero(model.arity > 2)
    wide = wide[np.argsort(-model.arity[wide], kind="stable")][:TABLES]
    tables = []
    for k in wide.tolist():
        scope, table = model.variables(k), model.table(k)
        places = np.argsort(-table, axis=None, kind="stable")[:ENTRIES]
        entries = np.stack(np.unravel_index(places, table.shape))
        tables.append((scope[free[scope]], entries[free[scope]]))
    return [*tables[: TABLES // 2], *single, *tables[TABLES // 2 :]]


def _extended(walkers: Any, rng: np.random.Generator) -> np.ndarray:
    """uint8[n, states]: from the largest entry of one table to that of the next one which shares most variables with
    those before, and so on; tables that agree only as a whole are met together. The first is one of the widest; pairs
    do as well (values that are far from where draws begin, and that only each other reward). Half of them
    begin with the tables that reward their largest entry most: a few such are hardly met among many others."""
    model = walkers.model
    most = min(EXTENDED, MOST_EXTENSIONS // max(len(model.arity), 1))
    wide = np.flatnonzero(model.arity > (2 if (model.arity > 2).any() else 1))
    seeds = wide[np.lexsort((rng.random(len(wide)), -model.arity[wide]))]
    if len(seeds) and most:
        several = rng.permutation(np.flatnonzero(model.arity > 1))
        strongest = several[np.argsort(-_rewards(model, several), kind="stable")]
        seeds = np.concatenate([np.resize(seeds, most - most // 2), np.resize(strongest, most // 2)])
    else:
        seeds = seeds[:0]
    out = _uniform(walkers, len(seeds), rng)
    tables = _Tables(model) if len(seeds) else None
    for chain, seed in enumerate(seeds.tolist()):
        assert tables is not None
        rank = int(rng.integers(BEST)) if chain % 2 else 0  # a large entry, if not the largest
        _extend(tables, out[:, chain], seed, rank, chain % 4 < 2, rng)
    return out


def _around(walkers: Any, rng: np.random.Generator) -> np.ndarray:
    """uint8[n, states]: one variable at one of its values, and each other at the value that the tables over both like
    best, the largest entries of each added up; those that share none, or have no preference, are drawn. A group that
    only many tables together hold at its values is such a state, seen from any of its members: of those that differ the
    ones that most see."""
    model = walkers.model
    sites = _central(walkers, rng)
    most = min(MOST_CENTRES, MOST_VOTES // max(int(model.literal_start[-1]), 1))
    sites = sites[np.cumsum(model.cards[sites]) <= most]
    first = np.full(model.n, -1)
    first[sites] = np.cumsum(model.cards[sites]) - model.cards[sites]
    votes = _votes(model, first, int(model.cards[sites].sum()))
    if votes is None:
        return walkers.blank(0)
    own = np.concatenate([np.arange(0), *(model.literal_start[i] + np.arange(model.cards[i]) for i in sites)])
    votes[np.arange(len(own)), own] = np.inf  # tables over one variable say nothing of the others
    top = np.maximum.reduceat(votes, model.literal_start[:-1], axis=1)
    best = votes == np.repeat(top, model.cards, axis=1)
    decided = np.add.reduceat(best, model.literal_start[:-1], axis=1, dtype=np.int64) < model.cards
    kept, seen = np.unique(best[decided[:, model.free].sum(axis=1) > 1], axis=0, return_counts=True)
    kept = kept[np.lexsort((rng.random(len(kept)), -seen))[:AROUND]]
    out = _uniform(walkers, len(kept), rng)
    liking = np.where(kept, rng.random(kept.shape), -1.0)
    for i in model.free.tolist():
        out[i] = liking[:, model.literal_start[i] : model.literal_start[i + 1]].argmax(axis=1)
    return out


def _votes(model: FactorGraph, first: np.ndarray, count: int) -> np.ndarray | None:
    """float64[values, literals]: for each value of some variables (rows from `first` on, −1: none) the largest entries
    that it leaves, added up over tables; None if there are too many different tables."""
    votes, pairs = np.zeros((count, int(model.literal_start[-1]))), 0
    for arity in np.unique(model.arity[model.arity > 1]).tolist():
        factors = np.flatnonzero(model.arity == arity)
        scopes = model.scope[model.scope_start[factors][:, None] + np.arange(arity)]
        near = (first[scopes] >= 0).any(axis=1)
        if not near.any():
            continue
        factors, scopes = factors[near], scopes[near]
        kinds, kind = np.unique(np.c_[model.table_of[factors], model.cards[scopes]], axis=0, return_inverse=True)
        pairs += len(kinds) * arity * (arity - 1)
        if pairs > MOST_PAIRS:
            return None
        kind = kind.ravel()
        alike = np.split(np.argsort(kind, kind="stable"), np.bincount(kind).cumsum()[:-1])
        for number, members in enumerate(alike):
            cards = kinds[number, 1:]
            if cards.prod() <= WIDEST_VOTE:
                _vote(votes, model, first, model.table(int(factors[members[0]])), scopes[members])
    return votes


def _vote(votes: np.ndarray, model: FactorGraph, first: np.ndarray, table: np.ndarray, scopes: np.ndarray) -> None:
    """Add what factors with one table have to say."""
    for p, q in permutations(range(table.ndim), 2):
        chosen = scopes[first[scopes[:, p]] >= 0]
        most = table.max(axis=tuple(a for a in range(table.ndim) if a not in (p, q)))
        most = most if p < q else most.T
        for a, b in np.ndindex(*most.shape):
            np.add.at(votes, (first[chosen[:, p]] + a, model.literal_start[chosen[:, q]] + b), most[a, b])


def _rewards(model: FactorGraph, factors: np.ndarray) -> np.ndarray:
    """float64[factors]: how far the largest entry of each table is above the mean of those that are possible."""
    out = np.zeros(len(model.table_start) - 1)
    for number in np.unique(model.table_of[factors]).tolist():
        table = model.tables[model.table_start[number] : model.table_start[number + 1]]
        possible = table[np.isfinite(table)]
        out[number] = possible.max() - possible.mean() if len(possible) else 0.0
    return out[model.table_of[factors]]


class _Tables:
    """The factors of a model, and those of each variable."""

    def __init__(self, model: FactorGraph) -> None:
        self.cards, self.observed = model.cards, model.evidence != FREE
        self.scopes = [model.variables(k).tolist() for k in range(len(model.arity))]
        self.tables = [model.table(k) for k in range(len(model.arity))]
        self.around: dict[int, list[int]] = {}
        for k, scope in enumerate(self.scopes):
            for i in scope:
                self.around.setdefault(i, []).append(k)

    def part(self, k: int, known: list[bool], state: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """What is left of a table where some of its variables are known, and those that are not."""
        scope = self.scopes[k]
        at = tuple(int(state[i]) if known[i] else slice(None) for i in scope)
        return self.tables[k][at], [i for i in scope if not known[i]]

    def most(self, site: int, known: list[bool], state: np.ndarray) -> np.ndarray:
        """float64[values] of one variable: at most so much from all tables over it, whatever the others will be."""
        total = np.zeros(int(self.cards[site]))
        for k in self.around[site]:
            part, free = self.part(k, known, state)
            total += part if len(free) == 1 else part.max(axis=tuple(a for a, i in enumerate(free) if i != site))
        return total


def _extend(
    tables: _Tables, state: np.ndarray, seed: int, rank: int, all_tables: bool, rng: np.random.Generator
) -> None:
    """Fill a state in; `rank`: how many entries of the first table are larger than the one that is taken;
    `all_tables`: a variable that is alone left in a table listens to all tables over it."""
    known, left = tables.observed.tolist(), [len(scope) for scope in tables.scopes]
    for k, scope in enumerate(tables.scopes):
        left[k] -= sum(known[i] for i in scope)
    waiting, turn = [(0, 0, seed)], 0  # by how many variables are known; the oldest first
    while waiting:
        k = heappop(waiting)[2]
        if not left[k]:
            continue
        part, free = tables.part(k, known, state)
        if all_tables and len(free) == 1:
            part = tables.most(free[0], known, state)
        best = np.lexsort((rng.random(part.size), -part.ravel()))  # entries that are alike in random order
        place = np.unravel_index(int(best[min(rank, part.size - 1)]), part.shape)
        rank = 0
        for i, value in zip(free, place, strict=True):
            state[i], known[i] = value, True
            for other in tables.around[i]:
                left[other] -= 1
                if left[other]:
                    turn += 1
                    heappush(waiting, (left[other] - len(tables.scopes[other]), turn, other))


def neighbourhood(model: FactorGraph, site: int, most: int) -> np.ndarray:
    """bool[n]: the variables around one, step by step, until there are so many."""
    found = np.zeros(model.n, dtype=bool)
    found[site] = True
    spans = np.diff(model.scope_start)
    start = model.scope_start[:-1][spans > 0]
    for _ in range(NEAR):
        touched = np.repeat(np.logical_or.reduceat(found[model.scope], start), spans[spans > 0])
        reached = found.copy()
        reached[model.scope[touched]] = True
        if reached.sum() > most or (reached == found).all():
            break
        found = reached
    return found


def _followed(
    walkers: Any, sites: np.ndarray, values: np.ndarray, rng: np.random.Generator, key: tuple[int, ...]
) -> np.ndarray:
    """States in which some variables were held at values[sites, lanes] while the others climbed."""
    states = _uniform(walkers, values.shape[1], rng)
    states[sites] = values
    if walkers.hard:
        return walkers.legal(states, rng)
    return _swept(walkers, states, (1.0,) * (SWEEPS_HELD - 1) + (GREEDY,), key, sites)


def _climbed(walkers: Any, states: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
    return _swept(walkers, states, (GREEDY,) * GREEDY_SWEEPS, key)


def _swept(
    walkers: Any, states: np.ndarray, levels: tuple[float, ...], key: tuple[int, ...], held: np.ndarray | None = None
) -> np.ndarray:
    """A sweep on each level, of all sites but those that are held."""
    out, orders = states.copy(), walkers.orders((*key, 2)).next(len(levels))
    streams, scratch = words(np.random.SeedSequence([*key, 3]), (4, out.shape[1])), walkers.scratch(out.shape[1])
    flat = np.zeros(int(walkers.model.literal_start[-1]))  # log weights of the lower end: uniform
    for level, order in zip(levels, orders, strict=True):
        kept = order if held is None else order[~np.isin(order, held)]
        walkers.sweep(out, kept, streams, scratch, level, np.inf, flat)
    return out
