"""Starts of sparse chains: a state that is given, or one whose law the group leaves alone.

Bits are drawn from the formulas on them alone. Of the pairs the first chain has none; the others have a few at random,
up to a mean degree that grows from chain to chain, so that the starts are spread out and cost what sparse sweeps cost.

Where hard formulas do not hold in such a state, sweeps mend it: a site whose values violate different numbers of
groundings takes the one that violates fewer. They are sweeps of the sampler, so the law of the start stays symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.evidence import UNKNOWN
from definetti.samplers.sparse.data import Chain, known_bits
from definetti.samplers.sparse.engine import FOREVER, Sparse, advance, bits_of, make_chain, true_pairs

MOST_REPAIRS = 30  # sweeps
DEGREES = (0.0, 1.0, 2.0, 4.0)  # mean degrees of the first chains, and of those after them again


def first_chain(r: Sparse, seed: int, number: int, given: Any = None) -> Chain:
    """`given`: a state with a method `atoms(predicate)`, the truth values of all its atoms."""
    chain = drawn_chain(r, seed, number, given)
    if given is not None:
        return chain
    chain = mended(r, seed, number, chain) or mended(r, seed, number, drawn_chain(r, seed, 0))
    if chain is None:
        raise ModelError("no start that satisfies the hard formulas was found; sampler mcsat looks for one by a solver")
    return chain


def violations(r: Sparse, chain: Chain) -> int:
    """Of hard formulas: how many groundings the chain's state violates."""
    return int(r.kernel.violations(r.data, chain)) if r.plan.hard else 0


def mended(r: Sparse, seed: int, number: int, chain: Chain) -> Chain | None:
    """A new chain at a legal state near that of a chain; None where sweeps lead to none."""
    if not violations(r, chain):
        return chain
    for _ in range(MOST_REPAIRS):
        chain, _ = advance(r, chain, FOREVER, 1)
        if not violations(r, chain):
            names = r.model.predicates
            bits = {name: bits_of(r, chain, name) for p, name in enumerate(names) if p in r.plan.position}
            pairs = {n: true_pairs(r, chain, n) for n in names if len(r.model.shape(n)) == 2}
            return make_chain(r, seed, number, bits, pairs)
    return None


def drawn_chain(r: Sparse, seed: int, number: int, given: Any = None) -> Chain:
    rng = np.random.default_rng([seed, number, 11])
    bits, pairs = {}, {}
    for p, name in enumerate(r.model.predicates):
        shape = r.model.shape(name)
        if p in r.plan.position:
            bits[name] = own_bits(r, p, name, rng) if given is None else diagonal_of(given_atoms(r, name, given))
        if len(shape) == 2:
            pairs[name] = (
                own_pairs(r, p, name, rng, number) if given is None else np.argwhere(given_atoms(r, name, given))
            )
            if r.plan.sorts[p][0] == r.plan.sorts[p][1]:
                pairs[name] = pairs[name][pairs[name][:, 0] != pairs[name][:, 1]]
    return make_chain(r, seed, number, bits, pairs)


def given_atoms(r: Sparse, name: str, given: Any) -> np.ndarray:
    """bool: of a given state the atoms of a predicate of the split theory; marks of constants are known."""
    if name not in r.split.parts:
        return r.model.knowledge.codes(name) == 1
    part = r.split.parts[name]
    return np.asarray(given.atoms(part.name))[part.index()]


def diagonal_of(atoms: np.ndarray) -> np.ndarray:
    return atoms if atoms.ndim == 1 else np.diagonal(atoms)


def own_bits(r: Sparse, p: int, name: str, rng: np.random.Generator) -> np.ndarray:
    """P(x) or R(x,x), drawn from the formulas that speak of nothing else."""
    relation, size = r.model.knowledge.relation(name), r.model.shape(name)[0]
    alone = [m for m in r.plan.monomials if not m.pairs and m.bits == ((p, 0),) and not m.hard]
    field = sum(float(m.table[1] - m.table[0]) for m in alone)
    drawn = rng.random(size) < 1.0 / (1.0 + np.exp(-field))
    known = known_bits(relation.tuples, relation.codes, relation.default, size)
    return np.where(known == UNKNOWN, drawn, known == 1)


def own_pairs(r: Sparse, p: int, name: str, rng: np.random.Generator, number: int) -> np.ndarray:
    """True R(x,y), x ≠ y: the known ones, and some at random."""
    relation, shape = r.model.knowledge.relation(name), r.model.shape(name)
    known = relation.tuples.astype(np.int64)
    true = known[relation.codes == 1]
    if relation.default != UNKNOWN:
        return true
    count = rng.poisson(DEGREES[number % len(DEGREES)] * min(shape))
    drawn = np.unique(rng.integers(0, shape[0] * shape[1], count))
    if p in r.plan.ties:
        drawn = np.unique(np.concatenate([drawn, drawn % shape[1] * shape[1] + drawn // shape[1]]))
    drawn = drawn[~np.isin(drawn, known[:, 0] * shape[1] + known[:, 1])]
    return np.concatenate([true, np.stack([drawn // shape[1], drawn % shape[1]], axis=1)])
