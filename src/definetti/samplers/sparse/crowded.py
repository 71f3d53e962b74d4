"""Dense sweeps of states with many true atoms: a start with all of them, or a phase that is not sparse.

A sweep begins with a look at the degrees (`work.most_pairs`). Where joins would cost more than a dense sweep, the state
is written as bits, swept by the dense engine with the chain's own streams, and written as lists again when the crowd is
gone. The two sweeps are one kernel (`schedule.py`), so such a rule may depend on the state in any way. Where they are
not it is followed in warm-up only: each kernel for itself leaves the distribution alone, but a choice by the state
between two does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from definetti.samplers.logic import engine as dense
from definetti.samplers.logic.starts import put
from definetti.samplers.logic.tensors.known_bits import pack
from definetti.samplers.sparse.data import SHARED, Chain, SystemData
from definetti.samplers.sparse.engine import CROWDED, FOREVER, SWEEP, UPDATES, Sparse, tensor_of
from definetti.samplers.sparse.starts import drawn_chain
from definetti.samplers.sparse.stuck import seen_free
from definetti.samplers.sparse.work import END, counts_of

KEPT = ("watched", "watch_length")  # of a system
KEPT_OF_CHAIN = ("remainder", "clock", "live", "sum_f", "sum_g")


@dataclass
class Crowd:
    """A crowded chain as bits; `ahead`: its lists are those of an earlier state."""

    bits: dense.Chain
    ahead: bool = False


class StateOf:
    """The state of a dense chain, as starts are given."""

    def __init__(self, r: dense.Relational, chain: dense.Chain) -> None:
        self.r, self.chain = r, chain

    def atoms(self, name: str) -> np.ndarray:
        return self.r.atoms(self.chain, name)


def pairs_of(r: Sparse, engine: dense.Relational, bits: dense.Chain) -> int:
    """What `work.most_pairs` limits, of a dense state, as the sparse kernel adds it up."""
    total, tensors = 0, dict[str, np.ndarray]()
    for s in r.plan.systems:
        part = r.split.parts[list(r.model.predicates)[s.predicate]]
        if part.name not in tensors:
            tensors[part.name] = engine.atoms(bits, part.name)
        atoms = tensors[part.name][part.index()].view(np.uint8)
        degrees = [atoms.sum(axis=j, dtype=np.uint32).astype(np.int64) for j in ((0,) if s.symmetric else (0, 1))]
        if s.same:
            degrees = [sum(degrees) - len(degrees) * np.diagonal(atoms).astype(np.int64)]
        total += sum(int((d * (END + bool(counts_of(s)) * d)).sum()) for d in degrees)
    return total


def as_bits(r: Sparse, engine: dense.Relational, chain: Chain) -> Crowd:
    bits = dense.blank(engine)
    put(engine, bits, {name: pack(tensor_of(r, chain, name)) for name in engine.model.predicates})
    bits.streams[:], bits.order[: len(chain.order)] = chain.streams, chain.order
    return Crowd(bits)


def dense_sweeps(
    r: Sparse,
    engine: dense.Relational,
    crowd: Crowd,
    chain: Chain,
    budget: int,
    sweeps: int,
    note: Callable[[dense.Chain], None] | None = None,
) -> tuple[int, bool]:
    """How many sites the dense engine drew, and whether the state is still crowded: at least one sweep is made, and at
    most `sweeps`, until `budget` sites are drawn or the crowd is gone. The chain's clock and sums go on, its lists stay
    behind. `note` is given the state after each sweep."""
    bits, constants, done, swept, crowded = crowd.bits, len(chain.order), 0, 0, True
    crowd.ahead = True
    while not swept or (crowded and done < budget and swept < sweeps):
        bits.order[constants : constants + len(engine.listed)] = engine.listed  # the last one's order is not saved
        done += dense.advance(engine, bits, FOREVER, 1)
        swept += 1
        crowded = pairs_of(r, engine, bits) > r.data.most_pairs[0]
        if note is not None:
            note(bits)
    chain.clock[[SWEEP, UPDATES]] += (swept, done)
    chain.sum_f[1] += bits.sum_f[1]
    chain.sum_g[1:] += bits.sum_g[1:]
    bits.sum_f[1:], bits.sum_g[1:] = 0, 0.0
    return done, crowded


def as_lists(r: Sparse, engine: dense.Relational, crowd: Crowd, chain: Chain) -> Chain:
    """The chain with its lists made anew from the bits."""
    new = drawn_chain(r, 0, 0, StateOf(engine, crowd.bits))
    for name in KEPT_OF_CHAIN:
        getattr(new, name)[...] = getattr(chain, name)
    new.streams[:], new.order[:] = crowd.bits.streams, crowd.bits.order[: len(chain.order)]
    for mine, old in zip(new.systems, chain.systems, strict=True):
        for name in KEPT:
            assert name in SystemData._fields[:SHARED]
            getattr(mine, name)[...] = getattr(old, name)
    seen_free(r, new, engine, crowd.bits)
    new.clock[CROWDED] = 0
    crowd.ahead = False
    return new
