"""Constants and pairs of constants by kind: those between which the evidence draws no difference that formulas of
one or two variables can see. What evidence leaves of such formulas is then computed once per kind, never per
grounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from definetti.integer_rows import distinct
from definetti.model.logic import formulas as walk
from definetti.model.logic.evidence import Relation
from definetti.model.logic.residuals import Instance, Slot, instance, is_simple
from definetti.model.logic.theory import MarkovLogic, WeightedFormula

MOST_KINDS = 4000  #: of pairs; with more of them evidence leaves hardly anything alike


class TooManyKinds(Exception):
    """Caught inside the package: callers go on without what they wanted to know."""


@dataclass(frozen=True, eq=False)
class OwnKinds:
    """The constants of a sort by the evidence on atoms over one of them alone, P(a) or P(a,a)."""

    predicates: tuple[str, ...]
    codes: np.ndarray  # int8[kind, predicate]
    of: np.ndarray  # the kind of each constant

    def slots(self, kind: int, side: str) -> dict[Slot, int]:
        return {(side, name): int(code) for name, code in zip(self.predicates, self.codes[kind], strict=True)}


@dataclass(frozen=True, eq=False)
class PairKinds:
    """Ordered pairs of different constants (a, b) of two sorts by the evidence on atoms over them."""

    slots: tuple[Slot, ...]  # the atoms over both
    codes: tuple[Mapping[Slot, int], ...]  # by kind: over both and over each alone
    default: np.ndarray  # int32[profile of a, profile of b]: the kind where no binary evidence speaks
    profiles: tuple[np.ndarray, np.ndarray]  # of the constants of both sorts
    rows: np.ndarray  # int64[m, 3]: a, b, kind where it does

    def usual(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The kind these pairs would have without binary evidence."""
        return self.default[self.profiles[0][a], self.profiles[1][b]]


@dataclass(frozen=True, eq=False)
class Kinds:
    model: MarkovLogic
    known: Mapping[str, Relation]
    tied: frozenset[str]  # predicates that other formulas or `!` blocks mention: their atoms are tied there, too
    own: Mapping[str, OwnKinds]  # by sort
    profiles: Mapping[str, OwnKinds]  # the same for the predicates that matter in pairs
    own_instances: Mapping[str, tuple[Instance, ...]]
    pair_instances: Mapping[tuple[str, str], tuple[Instance, ...]]


def find_kinds(model: MarkovLogic) -> Kinds:
    simple = [f for f in model.formulas if is_simple(model, f)]
    tied = {atom.predicate for f in model.formulas if not is_simple(model, f) for atom in walk.atoms(f.body)}
    tied |= {p.name for p in model.predicates.values() if p.exclusive or not 1 <= len(p.sorts) <= 2}
    known = model.knowledge.relations
    pairs = {(s, t): tuple(_pair_instances(simple, s, t)) for s in model.sorts for t in model.sorts}
    alone = {s: tuple(_own_instances(simple, s)) for s in model.sorts}
    own = {s: [p for p, q in model.predicates.items() if q.sorts in ((s,), (s, s))] for s in model.sorts}
    matter = {s: [p for p in own[s] if _matters(p, s, pairs)] for s in model.sorts}
    return Kinds(
        model,
        known,
        frozenset(tied),
        {s: _own_kinds(model, known, s, own[s]) for s in model.sorts},
        {s: _own_kinds(model, known, s, matter[s]) for s in model.sorts},
        alone,
        pairs,
    )


def _pair_instances(simple: list[WeightedFormula], s: str, t: str) -> Iterator[Instance]:
    """Groundings of formulas of two variables at (a, b) and at (b, a), a of sort s and b of sort t, a ≠ b."""
    sort = {"a": s, "b": t}
    for formula in simple:
        if len(formula.free) == 2:
            x, y = formula.free
            for first, second in ("ab", "ba"):
                if formula.sorts[x] == sort[first] and formula.sorts[y] == sort[second]:
                    yield instance(formula, {x: first, y: second})


def _own_instances(simple: list[WeightedFormula], sort: str) -> Iterator[Instance]:
    """Formulas with all their variables at one constant."""
    for formula in simple:
        if all(formula.sorts[v] == sort for v in formula.free):
            yield instance(formula, dict.fromkeys(formula.free, "a"))


def _matters(predicate: str, sort: str, pairs: Mapping[tuple[str, str], tuple[Instance, ...]]) -> bool:
    return any(("b", predicate) in i.slots for (_, t), instances in pairs.items() if t == sort for i in instances)


def _own_kinds(model: MarkovLogic, known: Mapping[str, Relation], sort: str, predicates: list[str]) -> OwnKinds:
    codes = np.empty((model.sorts[sort].size, len(predicates)), dtype=np.int8)
    for k, name in enumerate(predicates):
        relation = known[name]
        codes[:, k] = relation.default
        alone = (relation.tuples == relation.tuples[:, :1]).all(axis=1)
        codes[relation.tuples[alone, 0], k] = relation.codes[alone]
    return OwnKinds(tuple(predicates), *distinct(codes)[:2])


def pair_kinds(kinds: Kinds, s: str, t: str) -> PairKinds:
    """The kinds of pairs that occur, and those that profiles alone make."""
    slots = _pair_slots(kinds.model, s, t)
    pairs, labels = _pair_rows(kinds, s, t, slots)
    of_a, of_b = kinds.profiles[s], kinds.profiles[t]
    usual = np.array([kinds.known[name].default for _, name in slots], dtype=np.int8)
    vectors, label, _ = distinct(np.concatenate([usual[None], labels]))
    shape = len(of_a.codes), len(of_b.codes)
    default = np.stack([*np.indices(shape).reshape(2, -1), np.full(shape[0] * shape[1], label[0])], 1)
    special = np.stack([of_a.of[pairs[:, 0]], of_b.of[pairs[:, 1]], label[1:]], 1)
    triples, kind, _ = distinct(np.concatenate([default, special]))
    if len(triples) > MOST_KINDS:
        raise TooManyKinds
    codes = tuple(
        of_a.slots(p, "a") | of_b.slots(q, "b") | dict(zip(slots, map(int, vectors[v]), strict=True))
        for p, q, v in triples.tolist()
    )
    table = kind[: len(default)].reshape(shape).astype(np.int32)
    return PairKinds(slots, codes, table, (of_a.of, of_b.of), np.concatenate([pairs, kind[len(default) :, None]], 1))


def _pair_slots(model: MarkovLogic, s: str, t: str) -> tuple[Slot, ...]:
    binary = [p for p in model.predicates.values() if len(p.sorts) == 2 and not p.exclusive]
    forward = [("ab", p.name) for p in binary if p.sorts == (s, t)]
    return (*forward, *(("ba", p.name) for p in binary if p.sorts == (t, s)))


def _pair_rows(kinds: Kinds, s: str, t: str, slots: tuple[Slot, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of different constants that binary evidence mentions, each with its codes for all slots."""
    found, marks = [np.zeros((0, 2), np.int64)], []
    for side, name in slots:
        relation = kinds.known[name]
        pairs = relation.tuples.astype(np.int64) if side == "ab" else relation.tuples[:, ::-1].astype(np.int64)
        apart = (pairs[:, 0] != pairs[:, 1]) if s == t else np.ones(len(pairs), bool)
        found.append(pairs[apart])
        marks.append(relation.codes[apart])
    width = max(kinds.model.sorts[t].size, 1)
    keys, inverse = np.unique(np.concatenate([p[:, 0] * width + p[:, 1] for p in found]), return_inverse=True)
    codes = np.tile(np.array([kinds.known[name].default for _, name in slots], dtype=np.int8), (len(keys), 1))
    at = 0
    for k, values in enumerate(marks):
        codes[inverse[at : at + len(values)], k] = values
        at += len(values)
    return np.stack(np.divmod(keys, width), 1), codes
