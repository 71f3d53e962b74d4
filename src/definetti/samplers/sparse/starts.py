"""Starts of sparse chains: a state that is given, or one whose law the group leaves alone.

Of the first four chains, and of those after them again, two draw bits from the formulas on them alone, one has all bits
false and one all true; of the pairs the first has none, the others have some at random, the last as many as it takes so
that denser states weigh nothing (`weights/bounds.py`), as far as that costs what sparse sweeps cost.

Where hard formulas do not hold in such a state, sweeps mend it: a site whose values violate different numbers of
groundings takes the one that violates fewer. They are sweeps of the sampler, so the law of the start stays symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.integer_rows import increasing
from definetti.model.logic.evidence import UNKNOWN
from definetti.samplers.sparse.data import Chain, known_bits
from definetti.samplers.sparse.engine import FOREVER, Sparse, advance, bits_of, make_chain, true_pairs
from definetti.samplers.sparse.weights.bounds import cutoffs

MOST_REPAIRS = 30  # sweeps
DEGREES = (0.0, 1.0, 4.0)  # mean degrees of the first chains; the fourth is as dense as it has to be
BITS = (None, False, True, None)  # of the first chains; None: drawn
MOST_ATOMS, MOST_JOINS = 1 << 24, 1 << 30  # of a dense start
TOP = 16.0  # mean degree of a dense start, where nothing is known of denser states


class Lists:
    """A state as lists: by predicate of the engine's theory the values of P(x) or R(x,x), and the rows of true R(x,y),
    x ≠ y."""

    def __init__(self, bits: dict[str, np.ndarray], pairs: dict[str, np.ndarray]) -> None:
        self.bits, self.pairs = bits, pairs


def lists_of(r: Sparse, chain: Chain) -> Lists:
    """The state of a chain."""
    names = r.model.predicates
    bits = {name: bits_of(r, chain, name) for p, name in enumerate(names) if p in r.plan.position}
    return Lists(bits, {name: true_pairs(r, chain, name) for name in names if len(r.model.shape(name)) == 2})


def top_degrees(r: Sparse) -> dict[str, float]:
    """Binary predicate → the mean degree of dense starts."""
    out = {}
    for name, cutoff in cutoffs(r.model, r.plan).items():
        rows, columns = r.model.shape(name)
        out[name] = max(1.0, affordable(rows, columns, cutoff))
    return out


def affordable(rows: int, columns: int, cutoff: float) -> float:
    """The mean degree of a start at some density, or as much of it as sparse sweeps can take."""
    wanted = cutoff * columns if np.isfinite(cutoff) else TOP
    return float(min(wanted, MOST_ATOMS / rows, np.sqrt(MOST_JOINS / rows), columns / 4))


def first_chain(r: Sparse, seed: int, number: int, given: Any = None) -> Chain:
    """`given`: a state as lists, or one with a method `atoms(predicate)`, the truth values of all its atoms."""
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
            legal = lists_of(r, chain)
            return make_chain(r, seed, number, legal.bits, legal.pairs)
    return None


def drawn_chain(r: Sparse, seed: int, number: int, given: Any = None) -> Chain:
    if isinstance(given, Lists):
        return make_chain(r, seed, number, given.bits, given.pairs)
    rng, kind, top = np.random.default_rng([seed, number, 11]), number % len(BITS), {}
    if given is None and kind == len(DEGREES):
        top = top_degrees(r)
    bits, pairs = {}, {}
    for p, name in enumerate(r.model.predicates):
        shape = r.model.shape(name)
        if p in r.plan.position:
            known = None if given is None else diagonal_of(given_atoms(r, name, given))
            bits[name] = own_bits(r, p, name, rng, BITS[kind]) if known is None else known
        if len(shape) == 2:
            degree = top[name] if top else DEGREES[kind % len(DEGREES)]
            pairs[name] = (
                own_pairs(r, p, name, rng, degree) if given is None else np.argwhere(given_atoms(r, name, given))
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


def own_bits(r: Sparse, p: int, name: str, rng: np.random.Generator, value: bool | None) -> np.ndarray:
    """P(x) or R(x,x), drawn from the formulas that speak of nothing else, unless they are to have one value."""
    relation, size = r.model.knowledge.relation(name), r.model.shape(name)[0]
    alone = [m for m in r.plan.monomials if not m.pairs and m.bits == ((p, 0),) and not m.hard]
    field = sum(float(m.table[1] - m.table[0]) for m in alone)
    drawn = rng.random(size) < 1.0 / (1.0 + np.exp(-field))
    if value is not None:
        drawn[:] = value
    known = known_bits(relation.tuples, relation.codes, relation.default, size)
    return np.where(known == UNKNOWN, drawn, known == 1)


def own_pairs(r: Sparse, p: int, name: str, rng: np.random.Generator, degree: float) -> np.ndarray:
    """True R(x,y), x ≠ y: the known ones, and so many for each x at random."""
    relation, shape = r.model.knowledge.relation(name), r.model.shape(name)
    known = relation.tuples.astype(np.int64)
    true = known[relation.codes == 1]
    if relation.default != UNKNOWN:
        return true
    count = rng.poisson(degree * shape[0])
    drawn = increasing(rng.integers(0, shape[0] * shape[1], count))
    if p in r.plan.ties:
        drawn = increasing(np.concatenate([drawn, drawn % shape[1] * shape[1] + drawn // shape[1]]))
    if len(known):
        drawn = drawn[~np.isin(drawn, known[:, 0] * shape[1] + known[:, 1])]
    return np.concatenate([true, np.stack([drawn // shape[1], drawn % shape[1]], axis=1)])
