"""Atoms that a sparse run could never have moved: hard formulas held them at every visit of every chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from definetti.samplers.logic.engine import Relational
from definetti.samplers.logic.tensors.data import Chain as BitChain
from definetti.samplers.logic.tensors.known_bits import unpack
from definetti.samplers.logic.tensors.state import live_region
from definetti.samplers.sparse.data import Chain, SystemData
from definetti.samplers.sparse.engine import Sparse, bits_of
from definetti.samplers.sparse.watch import still_watched


def held(r: Sparse, chains: Sequence[Chain]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(predicate, watched atoms that no chain could have moved, their values by chain), where there are any."""
    names, d = list(r.model.predicates), r.data
    for p in sorted(r.plan.held_bits):
        if p not in r.plan.position or not r.model.knowledge.free_count(names[p]):
            continue
        sort, one = r.plan.sorts[p][0], r.plan.position[p]
        here = slice(int(d.type_start[sort]), int(d.type_start[sort] + d.sizes[sort]))
        live = np.bitwise_or.reduce([chain.live[here] for chain in chains]) | (d.fixed[0, here] & d.fixed[1, here])
        still = np.flatnonzero(~live >> one & 1)
        if len(still):
            rows = np.repeat(still[:, None], len(r.plan.sorts[p]), axis=1)
            part = r.split.parts[names[p]]
            yield part.name, part.rows(rows), np.stack([bits_of(r, chain, names[p])[still] for chain in chains])
    for k, s in enumerate(r.plan.systems):
        if s.predicate not in r.plan.held_pairs:
            continue
        rows = held_pairs([chain.systems[k] for chain in chains], s.symmetric)
        if len(rows):
            x, y = (np.ascontiguousarray(rows[:, j]) for j in ((0, 1) if s.side == 0 else (1, 0)))
            values = np.zeros((len(chains), len(rows)), bool)
            for value, chain in zip(values, chains, strict=True):
                r.kernel.look_up(chain, int(d.lists[2 * s.predicate]), x, y, value)
            part = r.split.parts[names[s.predicate]]
            yield part.name, part.rows(np.stack([x, y], axis=1)), values


def held_pairs(systems: Sequence[SystemData], symmetric: bool) -> np.ndarray:
    """int64[m, 2]: rows (a, b) that are still watched in every chain, unordered pairs in the rows of both ends."""
    found = None
    for s in systems:
        start, length = s.watch_start[:-1], s.watch_length
        a = np.repeat(np.arange(len(length)), length)
        place = np.arange(len(a)) - np.repeat(np.cumsum(length) - length, length) + np.repeat(start, length)
        keys = (a << 32) | s.watched[place].astype(np.int64)
        found = keys if found is None else np.intersect1d(found, keys)
    keys = np.zeros(0, np.int64) if found is None else found
    if symmetric:
        keys = np.intersect1d(keys, ((keys & 0xFFFFFFFF) << 32) | (keys >> 32))
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1)


def seen_free(r: Sparse, chain: Chain, engine: Relational, bits: BitChain) -> None:
    """What hard formulas left free in dense sweeps need not be watched any longer."""
    places = {name: p for p, name in enumerate(engine.model.predicates)}
    for p, new in enumerate(r.model.predicates):
        if p not in r.plan.held_pairs | r.plan.held_bits or new not in r.split.parts:
            continue
        part = r.split.parts[new]
        shape = engine.model.shape(part.name)
        words = live_region(engine.written, engine.data, bits, places[part.name], shape)
        # no region: no hard formula holds these atoms, once ties are put in
        free = np.ones(r.model.shape(new), bool) if words is None else unpack(words, shape)[part.index()]
        if p in r.plan.held_bits:
            at = int(r.data.type_start[r.plan.sorts[p][0]])
            own = free if free.ndim == 1 else np.diagonal(free)
            chain.live[at : at + len(own)] |= own.astype(np.int64) << r.plan.position[p]
        for k, s in enumerate(r.plan.systems):
            if s.predicate == p and p in r.plan.held_pairs:
                still_watched(chain.systems[k], ~(free if s.side == 0 else free.T))
