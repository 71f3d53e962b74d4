"""Sweeps of a chain that looks for modes, forwards or backwards, with its tally followed.

Sweeps of states with few true atoms cost what these cost. The dense engine follows the schedule of the sparse one: the
two are one kernel, in both directions, and which of them sweeps may depend on the state (`samplers/sparse/crowded.py`).
The chains of a survey begin in crowded states, and most of them end in sparse ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from definetti.samplers.logic import engine as dense
from definetti.samplers.logic.levels import recount
from definetti.samplers.logic.queries import Asked
from definetti.samplers.logic.starts import put
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.logic.tensors.known_bits import pack
from definetti.samplers.sparse import data as lists
from definetti.samplers.sparse.choice import sparse_engine
from definetti.samplers.sparse.crowded import StateOf, pairs_of
from definetti.samplers.sparse.engine import CROWDED, FOREVER, LOOKS, SWEEP, Sparse, advance, tensor_of
from definetti.samplers.sparse.schedule import one_kernel
from definetti.samplers.sparse.starts import drawn_chain

FEWEST_SITES = 100_000  # whose dense sweeps take so long that a second engine is worth being compiled


def sparse_ways(asked: Asked, free_sites: int, scan: str) -> tuple[Sparse, Sparse] | None:
    """Engines of sparse sweeps forwards and backwards; None where there are none, or they are not worth it."""
    made = sparse_engine(asked, scan) if free_sites >= FEWEST_SITES else ""
    if isinstance(made, str) or made.plan.ties or not one_kernel(made):
        return None
    return made, backwards(made)


def backwards(r: Sparse) -> Sparse:
    """With sweeps in reversed order: constants are shuffled for each, so that reversing the predicates is enough (not
    where pairs have no order)."""
    entries, sorts = (np.ascontiguousarray(x[::-1]) for x in (r.data.entries, r.data.entry_sorts))
    families = r.data.families.copy()
    families[:, 0] = len(entries) - families.sum(axis=1)
    return replace(r, data=r.data._replace(entries=entries, entry_sorts=sorts, families=families))


class Sweeps:
    """Of one chain, whose tally is made anew. Its state is in its bits before and after, and while few of its atoms are
    true in lists besides."""

    def __init__(
        self, ways: Sequence[dense.Relational], chain: Chain, sparse: tuple[Sparse, Sparse] | None = None
    ) -> None:
        self._ways, self._chain, self._sparse = ways, chain, sparse
        self._lists: lists.Chain | None = None
        self._remainder = float(np.random.default_rng(chain.streams).exponential())  # of the clock, to the next tick
        recount(ways[0], chain)

    def make(self, way: int, sweeps: int = 1) -> None:
        """So many, forwards (0) or backwards (1)."""
        while sweeps and self._sparse is not None:
            if self._lists is None and not self._is_sparse(self._sparse[0]):
                dense.advance(self._ways[way], self._chain, FOREVER, 1)
                sweeps -= 1
            else:
                sweeps -= self._made_sparse(self._sparse[way], sweeps)
        if sweeps:
            dense.advance(self._ways[way], self._chain, FOREVER, sweeps)

    def _is_sparse(self, r: Sparse) -> bool:
        return pairs_of(r, self._ways[0], self._chain) <= r.data.most_pairs[0]

    def _made_sparse(self, r: Sparse, most: int) -> int:
        """Sweeps at the cost of the true atoms while these are few, how many; sums go on, the state and the tally
        follow."""
        engine, bits = self._ways[0], self._chain
        found = self._lists or drawn_chain(r, 0, 0, StateOf(engine, bits))
        if self._lists is None:
            found.remainder[0], found.clock[LOOKS] = self._remainder, 1
        constants, before = len(found.order), int(found.clock[SWEEP])
        found.streams[:], found.order[:] = bits.streams, bits.order[:constants]
        found, _ = advance(r, found, FOREVER, most)
        bits.streams[:], bits.order[:constants] = found.streams, found.order
        put(engine, bits, {name: pack(tensor_of(r, found, name)) for name in engine.model.predicates})
        bits.sum_f[1] += found.sum_f[1]
        bits.sum_g[1:] += found.sum_g[1:]
        found.sum_f[1:] = 0
        found.sum_g[1:] = 0
        self._lists, self._remainder = None if found.clock[CROWDED] else found, float(found.remainder[0])
        recount(engine, bits)
        return int(found.clock[SWEEP]) - before
