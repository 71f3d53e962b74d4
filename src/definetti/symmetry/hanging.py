"""Atoms that evidence has cut loose: which they are, and what is left for a renaming of constants to preserve.

After evidence, R(a,b) *hangs on b* if each grounding that contains it holds no other free atoms than those over b alone,
and an atom is *loose* if no grounding ties it to another free atom. Given the other atoms they are independent. Hanging
atoms on b with equal residuals may be permuted freely, so may loose ones with equal fields, whatever their constants; so
all they and the known atoms ask of a renaming is a colour of b: how many hang on it of each residual. That group is larger
than the one that preserves the evidence itself. Proof: the density is a product over groundings; a map of constants that
keeps colours, the residuals of pairs and all that other formulas mention maps the groundings of the remaining (core)
atoms onto each other, and sends what hangs on b to as many alike things on the image of b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from definetti.model.logic import MarkovLogic, WeightedFormula
from definetti.model.logic_simplify import UNKNOWN, Function, Instance, Slot, gathered, instance, residual, simple_formulas
from definetti.symmetry.relations import Relation, evidence_relations, formula_relations

MOST_KINDS = 4000  #: of pairs of constants; beyond that evidence leaves hardly any symmetry, and only renamings are used


class _TooManyKinds(Exception):
    pass


class Names(dict[Hashable, int]):
    """Numbers for values, in order of first use."""

    def of(self, value: Hashable) -> int:
        return self.setdefault(value, len(self))


@dataclass(frozen=True, eq=False)
class PairKinds:
    """Pairs of constants of two sorts by kind. Arrays by kind say what R(a,b) is there: -1 where it is not that."""

    default: np.ndarray  # int32[profile of a, profile of b]: the kind where no binary evidence speaks
    profiles: tuple[np.ndarray, np.ndarray]  # of the constants of both sorts
    rows: np.ndarray  # int64[m, 3]: a, b, kind where it does
    loose: Mapping[str, np.ndarray]  # predicate → the number of its field, by kind
    on_a: Mapping[str, np.ndarray]  # predicate → the number of its residual where it hangs on a, by kind
    on_b: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Hanging:
    """`own[R]` is, for each constant a, the number of the field of R(a) or R(a,a) if that atom is loose, else -1."""

    relations: tuple[Relation, ...]  # what renamings of the core must preserve
    own: Mapping[str, np.ndarray]
    pairs: Mapping[tuple[str, str], PairKinds]
    field_count: int
    residual_count: int


def hanging(model: MarkovLogic) -> Hanging | None:
    """The hanging and loose atoms of a model, or None where there are too many kinds of pairs to look at."""
    try:
        return _Analysis(model).result()
    except _TooManyKinds:
        return None


@dataclass
class _Kind:
    """What one kind of pair (a, b) holds."""

    loose: dict[str, Hashable]  # R → field, for R(a,b)
    on_a: dict[str, Hashable]
    on_b: dict[str, Hashable]
    features: Counter[Hashable]  # what it adds to b's colour
    rest: Hashable  # what ties a and b: functions and free atoms over both


class _Analysis:
    """One pass over kinds of pairs, one over kinds of constants; numbers are shared by all predicates."""

    def __init__(self, model: MarkovLogic) -> None:
        self.model = model
        self.known = evidence_relations(model)
        self.simple, self.tied = simple_formulas(model)
        self.own = {s: [p for p in model.predicates if self._is_own(p, s)] for s in model.sorts}
        self.codes = {s: self._own_codes(s) for s in model.sorts}
        self.fields, self.residuals, self.rests = Names(), Names(), Names()
        self.pair_instances = {
            (s, t): [i for f in self.simple for i in _pair_instances(f, s, t)] for s in model.sorts for t in model.sorts
        }
        self.profiles = {s: self._profiles(s) for s in model.sorts}
        self.features: dict[str, list[tuple[Names, np.ndarray]]] = {s: [] for s in model.sorts}

    def _is_own(self, predicate: str, sort: str) -> bool:
        return set(self.model.predicates[predicate].sorts) == {sort} and len(self.model.predicates[predicate].sorts) <= 2

    def _own_codes(self, sort: str) -> np.ndarray:
        """int8[constant, own predicate]: the evidence on P(a) or P(a,a)."""
        codes = np.empty((self.model.sorts[sort].size, len(self.own[sort])), dtype=np.int8)
        for k, name in enumerate(self.own[sort]):
            known = self.known[name]
            codes[:, k] = known.default
            alone = (known.tuples == known.tuples[:, :1]).all(axis=1)
            codes[known.tuples[alone, 0], k] = known.codes[alone]
        return codes

    def _profiles(self, sort: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """(distinct codes, each constant's, for which predicates): own atoms that occur in formulas of two variables."""
        used = {
            predicate
            for (s, t), instances in self.pair_instances.items()
            for i in instances
            for side, predicate in i.slots
            if (side == "a" and s == sort) or (side == "b" and t == sort)
        }
        places = [k for k, name in enumerate(self.own[sort]) if name in used]
        values, inverse = _unique_rows(self.codes[sort][:, places])
        return values, inverse, [self.own[sort][k] for k in places]

    # --- pairs ---

    def pair_kinds(self, s: str, t: str) -> tuple[PairKinds, Relation | None]:
        slots = self._pair_slots(s, t)
        rows, labels = self._pair_rows(s, t, slots)
        values_s, profile_s, _ = self.profiles[s]
        values_t, profile_t, _ = self.profiles[t]
        usual = np.array([self.known[name].default for _, name in slots], dtype=np.int8)
        vectors, label = _unique_rows(np.concatenate([usual[None], labels]))
        triples = np.stack([profile_s[rows[:, 0]], profile_t[rows[:, 1]], label[1:]], 1)
        seen, kind_of_row = _unique_rows(triples)
        if len(values_s) * len(values_t) + len(seen) > MOST_KINDS:
            raise _TooManyKinds
        kinds: list[_Kind] = []
        ids: dict[tuple[int, int, int], int] = {}

        def kind(p: int, q: int, vector: int) -> int:
            if (p, q, vector) not in ids:
                ids[p, q, vector] = len(kinds)
                kinds.append(self._kind(s, t, values_s[p], values_t[q], slots, vectors[vector]))
            return ids[p, q, vector]

        default = np.array(
            [[kind(p, q, int(label[0])) for q in range(len(values_t))] for p in range(len(values_s))], dtype=np.int32
        ).reshape(len(values_s), len(values_t))
        kind_ids = np.array([kind(*map(int, triple)) for triple in seen], dtype=np.int64)[kind_of_row]
        made = PairKinds(
            default,
            (profile_s, profile_t),
            np.concatenate([rows, kind_ids[:, None]], 1),
            self._by_kind(kinds, "loose", self.fields),
            self._by_kind(kinds, "on_a", self.residuals),
            self._by_kind(kinds, "on_b", self.residuals),
        )
        self.features[t].append(_feature_counts(kinds, made, s == t))
        return made, self._rest_relation(s, t, kinds, made)

    def _pair_slots(self, s: str, t: str) -> list[Slot]:
        binary = [p for p in self.model.predicates.values() if len(p.sorts) == 2 and not p.exclusive]
        return [("ab", p.name) for p in binary if p.sorts == (s, t)] + [("ba", p.name) for p in binary if p.sorts == (t, s)]

    def _pair_rows(self, s: str, t: str, slots: list[Slot]) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of different constants that binary evidence mentions, each with its codes for all slots."""
        found, marks = [np.zeros((0, 2), np.int64)], []
        for k, (side, name) in enumerate(slots):
            tuples = self.known[name].tuples.astype(np.int64)
            pairs = tuples if side == "ab" else tuples[:, ::-1]
            apart = (pairs[:, 0] != pairs[:, 1]) if s == t else np.ones(len(pairs), bool)
            found.append(pairs[apart])
            marks.append((k, self.known[name].codes[apart]))
        width = self.model.sorts[t].size
        keys, inverse = np.unique(np.concatenate([p[:, 0] * width + p[:, 1] for p in found]), return_inverse=True)
        codes = np.tile(np.array([self.known[name].default for _, name in slots], dtype=np.int8), (len(keys), 1))
        at = 0
        for k, values in marks:
            codes[inverse[at : at + len(values)], k] = values
            at += len(values)
        return np.stack(np.divmod(keys, max(width, 1)), 1), codes

    def _kind(self, s: str, t: str, own_a: np.ndarray, own_b: np.ndarray, slots: list[Slot], label: np.ndarray) -> _Kind:
        codes: dict[Slot, int] = {("a", n): int(v) for n, v in zip(self.profiles[s][2], own_a, strict=True)}
        codes |= {("b", n): int(v) for n, v in zip(self.profiles[t][2], own_b, strict=True)}
        codes |= {slot: int(v) for slot, v in zip(slots, label, strict=True)}
        functions = gathered(residual(i, codes) for i in self.pair_instances[s, t])
        free = [slot for slot in slots if codes[slot] == UNKNOWN]
        return _sort_out(functions, free, self.tied)

    def _by_kind(self, kinds: Sequence[_Kind], what: str, names: Names) -> dict[str, np.ndarray]:
        predicates = {name for k in kinds for name in getattr(k, what)}
        return {
            name: np.array([names.of(getattr(k, what)[name]) if name in getattr(k, what) else -1 for k in kinds])
            for name in sorted(predicates)
        }

    def _rest_relation(self, s: str, t: str, kinds: Sequence[_Kind], pairs: PairKinds) -> Relation | None:
        """What ties pairs beyond what their profiles say (the profiles are colours already)."""
        rest = np.array([self.rests.of(k.rest) for k in kinds], dtype=np.int64)
        a, b, kind = pairs.rows.T
        usual = rest[pairs.default[pairs.profiles[0][a], pairs.profiles[1][b]]]
        special = rest[kind] != usual
        if not special.any():
            return None
        tuples = np.stack([a[special], b[special]], 1).astype(np.int32)
        return Relation(f"ties {s} {t}", (s, t), tuples, rest[kind][special].astype(np.int32))

    # --- single constants ---

    def single_kinds(self, sort: str) -> tuple[dict[str, np.ndarray], Relation]:
        """Loose atoms over one constant, and the constants' colours."""
        names, counts = _joined(self.features[sort], self.model.sorts[sort].size)
        own_values, own_kind = _unique_rows(self.codes[sort])
        types, type_of = _unique_rows(np.concatenate([own_kind[:, None], self.profiles[sort][1][:, None], counts], 1))
        own_instances = [i for f in self.simple if (i := _own_instance(f, sort)) is not None]
        colours = Names()
        loose_of, colour_of = [], []
        for kind, profile, *numbers in types.tolist():
            codes = {("a", n): int(v) for n, v in zip(self.own[sort], own_values[kind], strict=True)}
            functions = gathered(residual(i, codes) for i in own_instances)
            features = {name: n for name, n in zip(names, numbers, strict=True) if n}
            loose, colour = self._single(codes, functions, features)
            loose_of.append({name: self.fields.of(field) for name, field in loose.items()})
            colour_of.append(colours.of((profile, colour)))
        own = {
            name: np.array([loose.get(name, -1) for loose in loose_of], dtype=np.int64)[type_of]
            for name in self.own[sort]
        }
        tuples = np.arange(len(type_of), dtype=np.int32)[:, None]
        return own, Relation(f"colour {sort}", (sort,), tuples, np.array(colour_of, dtype=np.int32)[type_of])

    def _single(
        self, codes: Mapping[Slot, int], functions: tuple[Function, ...], features: Mapping[Any, int]
    ) -> tuple[dict[str, Hashable], Hashable]:
        tied = {slot[1] for f in functions if len(f.support) > 1 for slot in f.support}
        tied |= {name[1] for name in features if name[0] == "tie"} | self.tied
        free = {slot[1] for slot, code in codes.items() if code == UNKNOWN}
        loose = {}
        for name in free - tied:
            units = [(f, 1) for f in functions if f.support == (("a", name),)]
            units += [(f, n) for (kind, f), n in features.items() if kind == "field" and f.support == (("", name),)]
            loose[name] = field_of(units)
        kept = tuple(f for f in functions if f.support[0][1] not in loose)
        seen = [(k, n) for k, n in features.items() if not (k[0] == "field" and k[1].support[0][1] in loose)]
        return loose, (tuple(sorted(free - set(loose))), kept, frozenset(seen))

    def result(self) -> Hanging:
        pairs, relations = {}, list(formula_relations(self.model))
        for s in self.model.sorts:
            for t in self.model.sorts:
                pairs[s, t], rest = self.pair_kinds(s, t)
                relations += [] if rest is None else [rest]
        own: dict[str, np.ndarray] = {}
        for s in self.model.sorts:
            loose, colours = self.single_kinds(s)
            own |= loose
            relations.append(colours)
        relations += [self.known[name] for name in sorted(self.tied)]
        needed = tuple(r for r in relations if len(r.tuples) and r.sorts)
        return Hanging(needed, own, pairs, len(self.fields), len(self.residuals))


# --- one kind ------------------------------------------------------------------------------------------------


def _pair_instances(formula: WeightedFormula, s: str, t: str) -> Iterable[Instance]:
    """The groundings of a formula of two variables at (a, b) and at (b, a), a of sort s and b of sort t, a ≠ b."""
    if len(formula.free) == 2:
        x, y = formula.free
        for first, second in ("ab", "ba"):
            sort = {"a": s, "b": t}
            if formula.sorts[x] == sort[first] and formula.sorts[y] == sort[second]:
                yield instance(formula, {x: first, y: second})


def _own_instance(formula: WeightedFormula, sort: str) -> Instance | None:
    """A formula with all its variables at one constant."""
    if any(formula.sorts[v] != sort for v in formula.free):
        return None
    return instance(formula, dict.fromkeys(formula.free, "a"))


def _sort_out(functions: tuple[Function, ...], free: Sequence[Slot], tied: set[str]) -> _Kind:
    """Which atoms over both constants are loose or hang, what falls on b, and what is left to tie a and b."""
    kind = _Kind({}, {}, {}, Counter(), None)
    taken: set[Slot] = set()
    for slot in free:
        about = [f for f in functions if slot in f.support]
        others = {other[0] for f in about for other in f.support if other != slot}
        if slot[1] in tied or len(others) > 1 or not others <= {"a", "b"}:
            continue
        taken.add(slot)
        if not others:
            if slot[0] == "ab":
                kind.loose[slot[1]] = field_of([(f, 1) for f in about])
            continue
        table = tuple((_relative(f, slot), f.bits, f.weight, f.hard) for f in about)
        side = others.pop()
        if slot[0] == "ab":
            (kind.on_a if side == "a" else kind.on_b)[slot[1]] = table
        if side == "b":
            kind.features["hang", table] += 1
    rest = []
    for f in functions:
        sides = {slot[0] for slot in f.support}
        if sides == {"b"}:
            anywhere = Function(tuple(("", name) for _, name in f.support), f.bits, f.weight, f.hard)
            kind.features["field", anywhere] += 1
        elif sides != {"a"} and not taken & set(f.support):
            rest.append(f)
        if len(f.support) > 1:
            kind.features.update({("tie", name): 1 for side, name in f.support if side == "b"})
    kind.rest = (tuple(rest), tuple(sorted(set(free) - taken)))
    return kind


def _relative(f: Function, slot: Slot) -> tuple[str, ...]:
    """The support of a function as a hanging atom sees it: itself first (`order_of`), then atoms over one constant."""
    return tuple("" if other == slot else other[1] for other in f.support)


def field_of(units: Iterable[tuple[Function, int]]) -> Hashable:
    """The log-odds of a loose atom, to twelve digits; with a hard condition the value it must have."""
    units = list(units)
    forced = sorted({f.bits for f, _ in units if f.hard})  # bit 0: may be false, bit 1: may be true
    if forced:
        return ("forced", *forced)
    return float(f"{fsum(w for f, n in units for w in [f.weight * n]):.12g}") + 0.0


# --- counting over all constants -----------------------------------------------------------------------------


def _feature_counts(kinds: Sequence[_Kind], pairs: PairKinds, same: bool) -> tuple[Names, np.ndarray]:
    """For each constant b and feature, how often pairs (a, b) over all a ≠ b have it."""
    names = Names()
    for k in kinds:
        for feature in k.features:
            names.of(feature)
    adds = np.zeros((len(kinds), len(names)), dtype=np.int64)
    for i, k in enumerate(kinds):
        for feature, n in k.features.items():
            adds[i, names[feature]] = n
    of_a, of_b = pairs.profiles
    held = np.bincount(of_a, minlength=pairs.default.shape[0])
    usual = np.einsum("p,pqf->qf", held, adds[pairs.default])
    if same:  # b is not paired with itself
        usual = usual - adds[np.diagonal(pairs.default)]
    counts = usual[of_b]
    a, b, kind = pairs.rows.T
    np.add.at(counts, b, adds[kind] - adds[pairs.default[of_a[a], of_b[b]]])
    return names, counts


def _joined(parts: Sequence[tuple[Names, np.ndarray]], size: int) -> tuple[list[Any], np.ndarray]:
    """The counts of several kinds of partners, one after the other: a feature is known by what it does to b alone."""
    names = Names()
    for own, _ in parts:
        for feature in own:
            names.of(feature)
    counts = np.zeros((size, len(names)), dtype=np.int64)
    for own, part in parts:
        for feature, k in own.items():
            counts[:, names[feature]] += part[:, k]
    return list(names), counts


def _unique_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.unique by rows; a matrix without columns has one kind of row."""
    if rows.shape[1] == 0:
        return rows[: min(1, len(rows))], np.zeros(len(rows), dtype=np.int64)
    values, inverse = np.unique(rows, axis=0, return_inverse=True)
    return values, inverse.reshape(-1)
