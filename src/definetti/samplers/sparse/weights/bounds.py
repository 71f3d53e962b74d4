"""Can states with many more true atoms than any chain visits weigh as much? Bounds in closed form, without a sample.

With the sparse normal form (`normal_form.py`) the log density is a sum over monomials and over injective assignments of
constants. So for the product of single atoms in which R(x,y) is true with probability p_R its mean is a polynomial in
these: mean + entropy is a *lower* bound of log Z for any p (Gibbs' inequality), and the best of a few fixed points is
taken. For all states with m_R true atoms together there is an *upper* bound: a monomial of coefficient c > 0 has at
most as many matches as a fractional edge cover allows (Atserias, Grohe, Marx: triangles ≤ m^1.5), one with c < 0
counts as nothing or takes away from a monomial that has its atoms and more, bits take their best values, and the
states are at most C(N, m). Where the upper bound of everything denser than `cutoff` is far below the lower bound,
denser states weigh nothing. Chains that start below the cutoff have to be followed; what lies beyond it need not be.

Where the product of a dense state already outweighs all that lies below a density, chains that stay there are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

import numpy as np

from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.data import known_bits
from definetti.samplers.sparse.emit import Plan
from definetti.samplers.sparse.normal_form import Monomial

FAR = 12.0  # nats: what lies further below weighs nothing
GRID, COARSE = 600, 4  # densities that are looked at; of another relation each fourth
MOST_CLASSES = 24  # of constants by what is known of them
STEPS, DAMPING = 80, (1.0, 0.3, 0.1, 0.03)  # of the fixed point iteration
LEAST = 1e-300


class NotBounded(Exception):
    """Why a theory has no such bounds."""


@dataclass(frozen=True, eq=False)
class Denser:
    """What is known of states by the density of their true atoms.

    Attributes
    ----------
    predicate : str
        The binary predicate that the densities are of.
    cutoff : float
        The density beyond which states weigh nothing; above 1 if the densest may weigh something.
    lower : float
        A lower bound of log Z.
    product : dict of str to float
        The product that it is of: predicate → probability of true.
    densities, upper : arrays
        An upper bound of log Z of the states with these densities.
    """

    predicate: str
    cutoff: float
    lower: float
    product: dict[str, float]
    densities: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)

    def outweighed(self, density: float) -> float:
        """By how many nats the product outweighs all states up to a density, at least."""
        if self.product[self.predicate] <= density:
            return -np.inf
        below = self.upper[self.densities <= max(density, self.densities[0])]
        return self.lower - float(below.max())


def denser(model: MarkovLogic, plan: Plan) -> list[Denser]:
    """For each binary predicate with free atoms; raises `NotBounded`."""
    if any(m.hard for m in plan.monomials):
        raise NotBounded("hard formulas")
    if any(p >= len(model.predicates) for m in plan.monomials for p, _ in m.bits):
        raise NotBounded("whether there is an atom (EXIST)")
    terms = Terms(model, plan)
    lower, best = terms.best_product()
    names = list(model.predicates)
    found = []
    for p in terms.binary:
        densities = terms.grid(p)
        upper = terms.upper(p, densities)
        above = np.flatnonzero(upper >= lower - FAR)
        if not len(above):
            cutoff = float(densities[0])
        else:
            cutoff = float(densities[above[-1] + 1]) if above[-1] + 1 < len(densities) else np.inf
        shown = {names[q]: float(best[k]) for k, q in enumerate(terms.drawn)}
        found.append(Denser(names[p], cutoff, lower, shown, densities, upper))
    return found


def cutoffs(model: MarkovLogic, plan: Plan) -> dict[str, float]:
    """Binary predicate → the density beyond which states weigh nothing; infinite where that is not known."""
    names = [list(model.predicates)[s.predicate] for s in plan.systems]
    try:
        return dict.fromkeys(names, np.inf) | {d.predicate: d.cutoff for d in denser(model, plan)}
    except NotBounded:
        return dict.fromkeys(names, np.inf)


class Terms:
    """The monomials of a theory, with what is known of the constants."""

    def __init__(self, model: MarkovLogic, plan: Plan) -> None:
        self.model, self.plan, names = model, plan, list(model.predicates)
        self.sizes = [sort.size for sort in model.sorts.values()]
        self.binary = [s.predicate for s in plan.systems if model.knowledge.free_count(names[s.predicate])]
        if len(self.binary) < len(plan.systems):
            raise NotBounded("a relation is known")
        for p in self.binary:
            tuples = model.knowledge.relation(names[p]).tuples
            if (tuples[:, 0] != tuples[:, 1]).sum() > min(model.shape(names[p])):
                raise NotBounded("many pairs are known")
        self.drawn = sorted({*self.binary, *(p for p in plan.position if self._free(p).any())})
        self.place = {p: k for k, p in enumerate(self.drawn)}
        self.classes = [self._classes(s) for s in range(len(self.sizes))]
        self.rows = [row for m in plan.monomials for row in self._rows(m)]
        counts = [self.pairs(p) if p in self.binary else 0 for p in self.drawn]
        self.pair_sites = np.array([c / 2 if p in plan.ties else c for p, c in zip(self.drawn, counts, strict=True)])
        self.bit_sites = np.array([int(self._free(p).sum()) if p in plan.position else 0 for p in self.drawn], float)

    def pairs(self, p: int) -> int:
        first, second = self.plan.sorts[p]
        return self.sizes[first] * (self.sizes[second] - (first == second))

    def _free(self, p: int) -> np.ndarray:
        """bool[constants]: whether P(x), or R(x,x), is drawn."""
        if p not in self.plan.position:
            return np.zeros(1, bool)
        relation = self.model.knowledge.relation(list(self.model.predicates)[p])
        size = self.sizes[self.plan.sorts[p][0]]
        return known_bits(relation.tuples, relation.codes, relation.default, size) == UNKNOWN

    def _classes(self, sort: int) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Of a sort's constants by what is known of them: predicate → value of each class (−1: drawn); their sizes."""
        here = [p for p in self.plan.position if self.plan.sorts[p][0] == sort]
        if not here:
            return {}, np.array([self.sizes[sort]])
        names, columns = list(self.model.predicates), []
        for p in here:
            relation = self.model.knowledge.relation(names[p])
            known = known_bits(relation.tuples, relation.codes, relation.default, self.sizes[sort]).astype(np.int64)
            columns.append(np.where(known == UNKNOWN, -1, known))
        code = sum((column + 1) * 3**k for k, column in enumerate(columns))
        kinds, counts = np.unique(code, return_counts=True)
        if len(kinds) > MOST_CLASSES:
            raise NotBounded("what is known makes many classes of constants")
        return {p: kinds // 3**k % 3 - 1 for k, p in enumerate(here)}, counts

    # --- products ----------------------------------------------------------------------------------------------------

    def _rows(self, m: Monomial) -> Iterator[tuple[float, list[int], list[int]]]:
        """(coefficient × assignments, places of pair densities, bits as 2 · place + value) of a monomial, for each
        choice of classes and of values of the bits that are drawn."""
        pairs = [self.place[p] for p, *_ in m.pairs]
        for kinds in product(*(range(len(self.classes[s][1])) for s in m.sorts)):
            count = self._assignments(m.sorts, kinds)
            values = [int(self.classes[m.sorts[v]][0][p][kinds[v]]) for p, v in m.bits]
            if not count:
                continue
            for bits in product(*((0, 1) if value < 0 else (value,) for value in values)):
                coefficient = float(m.table[bits]) * count
                if coefficient:
                    free = [(self.place[p], b) for (p, _), b, v in zip(m.bits, bits, values, strict=True) if v < 0]
                    yield coefficient, pairs, [2 * k + b for k, b in free]

    def _assignments(self, sorts: Sequence[int], kinds: Sequence[int]) -> float:
        total, taken = 1.0, {}
        for sort, kind in zip(sorts, kinds, strict=True):
            total *= max(0, int(self.classes[sort][1][kind]) - taken.get((sort, kind), 0))
            taken[sort, kind] = taken.get((sort, kind), 0) + 1
        return total

    def mean(self, pair: np.ndarray, bit: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The mean log density of a product, and its derivatives by the probabilities of pairs and of bits."""
        value, by_pair, by_bit = 0.0, np.zeros(len(pair)), np.zeros(len(bit))
        for coefficient, pairs, bits in self.rows:
            chances = [pair[k] for k in pairs] + [bit[k // 2] if k % 2 else 1.0 - bit[k // 2] for k in bits]
            value += coefficient * float(np.prod(chances))
            for i in range(len(chances)):
                rest = coefficient * float(np.prod(chances[:i] + chances[i + 1 :]))
                if i < len(pairs):
                    by_pair[pairs[i]] += rest
                else:
                    k = bits[i - len(pairs)]
                    by_bit[k // 2] += rest if k % 2 else -rest
        return value, by_pair, by_bit

    def bound(self, pair: np.ndarray, bit: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The lower bound of log Z that a product gives, and the fields that it makes."""
        value, by_pair, by_bit = self.mean(pair, bit)
        value += float(self.pair_sites @ entropy(pair) + self.bit_sites @ entropy(bit))
        fields = (by_pair / np.maximum(self.pair_sites, 1.0), by_bit / np.maximum(self.bit_sites, 1.0))
        return value, *fields

    def best_product(self) -> tuple[float, np.ndarray]:
        """The largest bound of products that fixed point iterations reach, and its densities (of pairs, where a
        predicate has them)."""
        count = len(self.drawn)
        best, where = -np.inf, np.zeros(count)
        levels = (1e-12, 0.05, 0.5, 0.999)
        starts = [(pair, bit) for pair in product(levels, repeat=len(self.binary)) for bit in (0.02, 0.5, 0.98)]
        for pairs, share in starts[:200]:
            pair, bit = np.zeros(count), np.full(count, share)
            pair[[self.place[p] for p in self.binary]] = pairs
            for step in range(STEPS):
                value, by_pair, by_bit = self.bound(pair, bit)
                if value > best:
                    best, where = value, np.where(self.pair_sites > 0, pair, bit)
                pair = np.where(self.pair_sites > 0, damped(pair, by_pair, step), 0.0)
                bit = damped(bit, by_bit, step)
        return best, where

    # --- everything of a density -------------------------------------------------------------------------------------

    def grid(self, predicate: int) -> np.ndarray:
        least = 0.5 / self.pair_sites[self.place[predicate]]
        return np.unique(np.concatenate([np.geomspace(least, 0.5, GRID), 1.0 - np.geomspace(1e-9, 0.5, GRID)]))

    def upper(self, predicate: int, densities: np.ndarray) -> np.ndarray:
        """An upper bound of log Z of the states with so many true atoms of a predicate, and any of the others."""
        terms, most = self._positive()
        together = [relations for _, m in terms if len(relations := {p for p, *_ in m.pairs}) > 1]
        coupled = set().union(*together)
        if len(coupled) > 2:
            raise NotBounded("formulas tie more than two relations together")
        joint = coupled if predicate in coupled else {predicate}
        total = np.full(len(densities), most)
        rest = [{q} for q in self.binary if q not in joint | coupled] + ([coupled] if coupled - joint else [])
        for others in rest:
            grids = np.meshgrid(*(self.grid(q)[::COARSE] for q in others), indexing="ij")
            total += float(self._of(terms, dict(zip(others, grids, strict=True))).max())
        found = {predicate: densities[:, None]} | {q: self.grid(q)[None, ::COARSE] for q in joint - {predicate}}
        return total + self._of(terms, found).max(axis=1)

    def _of(self, terms: list[tuple[float, Monomial]], density: dict[int, np.ndarray]) -> np.ndarray:
        """The upper bound of log Z of states with given densities, as far as it depends on these relations."""
        total: np.ndarray = np.zeros(())
        for p, values in density.items():
            total = total + self.pair_sites[self.place[p]] * entropy(values)
        for c, m in terms:
            if {p for p, *_ in m.pairs} <= set(density):
                total = total + c * self._matches(m, density)
        return total

    def _positive(self) -> tuple[list[tuple[float, Monomial]], float]:
        """Monomials that add to the log density, with the most that they add for each match; single atoms whatever
        their sign; and the most that bits alone give, with their number of states."""
        singles, more = [], []
        debts: list[list] = []
        for m in self.plan.monomials:
            high = float(m.table.max())
            if len(m.pairs) == 1 and len(m.sorts) == 2:
                singles.append((high, m))
            elif m.pairs and high > 0:
                more.append([high, m])
            elif m.pairs:
                debts.append([-high, m])
        for item in more:
            for debt in debts:
                if item[0] > 0 and debt[0] > 0 and covers(item[1], debt[1], self.plan.ties):
                    paid = min(item[0], debt[0])
                    item[0] -= paid
                    debt[0] -= paid
        return [*singles, *((c, m) for c, m in more if c > 0)], self._bits_alone()

    def _bits_alone(self) -> float:
        """log Σ over the bits of each constant of the monomials on it alone."""
        total = 0.0
        for sort, (known, counts) in enumerate(self.classes):
            here = list(known)
            for kind, count in enumerate(counts.tolist()):
                choices = [(0, 1) if known[p][kind] < 0 else (int(known[p][kind]),) for p in here]
                fields = []
                for values in product(*choices):
                    of = dict(zip(here, values, strict=True))
                    fields.append(
                        sum(float(m.table[tuple(of[p] for p, _ in m.bits)])
                            for m in self.plan.monomials if not m.pairs and m.sorts == (sort,))
                    )  # fmt: skip
                total += count * float(np.logaddexp.reduce(fields))
        return total

    def _matches(self, m: Monomial, density: dict[int, np.ndarray]) -> np.ndarray:
        """At most so many matches, by the best fractional edge cover: halves suffice. Of a single atom: so many."""
        if len(m.pairs) == 1 and len(m.sorts) == 2:
            return density[m.pairs[0][0]] * self.pairs(m.pairs[0][0])
        best: np.ndarray | None = None
        logs = [np.log(density[p] * self.pairs(p)) for p, *_ in m.pairs]
        for halves in product((0.0, 0.5, 1.0), repeat=len(m.pairs)):
            total: np.ndarray = np.zeros(())
            for v, sort in enumerate(m.sorts):
                covered = sum(h for h, (_, x, y) in zip(halves, m.pairs, strict=True) if v in (x, y))
                total = total + max(0.0, 1.0 - covered) * np.log(self.sizes[sort])
            for h, log in zip(halves, logs, strict=True):
                total = total + h * log
            best = total if best is None else np.minimum(best, total)
        assert best is not None
        return np.exp(best)


def entropy(p: np.ndarray) -> np.ndarray:
    q = 1.0 - p
    return -p * np.log(np.maximum(p, LEAST)) - q * np.log(np.maximum(q, LEAST))


def damped(p: np.ndarray, field: np.ndarray, step: int) -> np.ndarray:
    """A step of the fixed point iteration p = σ(field), on the scale of log odds."""
    odds = np.log(np.clip(p, 1e-15, 1 - 1e-15)) - np.log1p(-np.clip(p, 1e-15, 1 - 1e-15))
    new = odds + DAMPING[step * len(DAMPING) // STEPS] * (np.clip(field, -600, 600) - odds)
    return 1.0 / (1.0 + np.exp(-new))


def covers(m: Monomial, other: Monomial, ties: frozenset[int]) -> bool:
    """Whether each match of m is one of the other, the variables renamed."""
    if sorted(m.sorts) != sorted(other.sorts):
        return False
    have = set(m.pairs) | {(p, y, x) for p, x, y in m.pairs if p in ties}
    renamings = [order for order in permutations(range(len(m.sorts)))
                 if all(m.sorts[order[v]] == s for v, s in enumerate(other.sorts))]  # fmt: skip
    return any(all((p, order[x], order[y]) in have for p, x, y in other.pairs) for order in renamings)
