"""Dense sweeps of states with many true atoms: a start with all of them, or a phase that is not sparse.

A sweep begins with a look at the degrees (`work.most_pairs`). Where joins would cost more than a dense sweep, the state
is written as bits, swept by the dense engine with the chain's own streams, and written as lists again. Where the two
sweeps are one kernel, such a rule may depend on the state in any way. Where the schedules differ (columns, unordered
pairs, parts of a predicate, listed atoms) it is followed in warm-up only, as each kernel for itself leaves
the distribution alone, but a choice by the state between different ones does not; and where there are hard formulas, as
the dense sweep is not watched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from definetti.model.logic.evidence import UNKNOWN
from definetti.samplers.logic import engine as dense
from definetti.samplers.logic.starts import put
from definetti.samplers.logic.tensors.known_bits import FEW, pack
from definetti.samplers.sparse.data import SHARED, Chain, SystemData, known_bits, late_bits, pairs_late
from definetti.samplers.sparse.engine import CROWDED, FOREVER, SWEEP, UPDATES, Sparse, tensor_of
from definetti.samplers.sparse.starts import drawn_chain
from definetti.samplers.sparse.work import END, counts_of

KEPT = ("watched", "watch_length")  # of a system
LEAST_SITES = 1 << 24  # drawn before the state is written as lists again, which takes as long as a few dense sweeps


def one_kernel(r: Sparse, deferred: Mapping[str, np.ndarray]) -> bool:
    """Whether dense and sparse sweeps visit the sites in the same order, and nothing has to be watched."""
    if r.plan.hard or r.plan.ties or any(s.side for s in r.plan.systems) or r.split.model is not r.split.source:
        return False
    return all(_by_raster(r, p, name, deferred.get(name)) for p, name in enumerate(r.model.predicates))


def _by_raster(r: Sparse, p: int, name: str, mask: np.ndarray | None) -> bool:
    """Whether the dense engine visits by a raster, not by a list, what it does not draw after all others. (Given the
    others those are independent, so that their order is all one.)"""
    relation, shape, orbits = r.model.knowledge.relation(name), r.model.shape(name), r.orbits.get(name)
    free, alone = r.model.knowledge.free_count(name), 0
    if p in r.plan.position:
        unknown = known_bits(relation.tuples, relation.codes, relation.default, shape[0]) == UNKNOWN
        alone = int((unknown & ~late_bits(orbits, mask)).sum())
        free -= int(unknown.sum()) - alone
    if len(shape) == 2 and pairs_late(name, orbits, mask):
        return not alone
    return not 0 < FEW * free <= float(np.prod(shape, dtype=float))


class StateOf:
    """The state of a dense chain, as starts are given."""

    def __init__(self, r: dense.Relational, chain: dense.Chain) -> None:
        self.r, self.chain = r, chain

    def atoms(self, name: str) -> np.ndarray:
        return self.r.atoms(self.chain, name)


def pairs_of(r: Sparse, engine: dense.Relational, bits: dense.Chain) -> int:
    """What `work.most_pairs` limits, of a dense state, as the sparse kernel adds it up."""
    total = 0
    for s in r.plan.systems:
        part = r.split.parts[list(r.model.predicates)[s.predicate]]
        atoms = engine.atoms(bits, part.name)[part.index()]
        out, into = (atoms.sum(axis=j, dtype=np.int64) for j in (1, 0))
        degrees = (out, into)
        if s.same:
            loops = np.diagonal(atoms).astype(np.int64)
            degrees = (out - loops if s.symmetric else out + into - 2 * loops,)
        total += sum(int((d * (END + bool(counts_of(s)) * d)).sum()) for d in degrees)
    return total


def dense_sweeps(
    r: Sparse,
    engine: dense.Relational,
    chain: Chain,
    budget: int,
    sweeps: int,
    note: Callable[[dense.Chain], None] | None = None,
) -> tuple[Chain, int, int]:
    """The chain after sweeps of the dense engine, how many, and how many sites they drew: at least one sweep, at most
    `sweeps`, until `budget` sites or a few million are drawn, or the state is no longer crowded. `note` is given
    the state after each sweep."""
    bits, constants = dense.blank(engine), len(chain.order)
    put(engine, bits, {name: pack(tensor_of(r, chain, name)) for name in engine.model.predicates})
    bits.streams[:], bits.order[:constants] = chain.streams, chain.order
    done, swept, most, budget = 0, 0, int(r.data.most_pairs[0]), max(budget, LEAST_SITES)
    while not swept or (done < budget and swept < sweeps and pairs_of(r, engine, bits) > most):
        done += dense.advance(engine, bits, FOREVER, 1)
        swept += 1
        if note is not None:
            note(bits)
    new = drawn_chain(r, 0, 0, StateOf(engine, bits))
    for name in ("remainder", "clock", "live", "sum_f", "sum_g"):
        getattr(new, name)[...] = getattr(chain, name)
    new.streams[:], new.order[:] = bits.streams, bits.order[:constants]
    new.sum_f[1] += bits.sum_f[1]
    new.sum_g[1:] += bits.sum_g[1:]
    for mine, old in zip(new.systems, chain.systems, strict=True):
        for name in KEPT:
            assert name in SystemData._fields[:SHARED]
            getattr(mine, name)[...] = getattr(old, name)
    new.clock[SWEEP] += swept
    new.clock[UPDATES] += done
    new.clock[CROWDED] = 0
    return new, swept, done
