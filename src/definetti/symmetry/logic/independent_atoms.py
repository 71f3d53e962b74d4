"""Atoms that are independent given the evidence and the other atoms, and what a renaming of constants has to preserve.

After evidence, R(a,b) is *pendant on b* if each grounding that contains it holds no other free atoms than those over b
alone, and an atom is *isolated* if no grounding holds another free atom beside it. Given the other (core) atoms these
are independent. Pendant atoms on b with equal residuals may be permuted freely, so may isolated ones with equal fields,
whatever their constants; so all they and the known atoms ask of a renaming is a colour of b: how many atoms of each
residual are pendant on it. That group is larger than the one that preserves the evidence itself. Proof: the density is
a product over groundings; a map of constants that keeps colours, the residuals of pairs and all that other formulas
mention maps the groundings of the core atoms onto each other, and sends what is pendant on b to as many alike atoms on
the image of b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from definetti.integer_rows import distinct
from definetti.model.logic.evidence import UNKNOWN, Relation
from definetti.model.logic.kinds import Kinds, PairKinds, TooManyKinds, find_kinds, pair_kinds
from definetti.model.logic.residuals import Function, Slot, gathered, residual
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.logic.relations import formula_relations


class Names(dict[Hashable, int]):
    """Numbers for values, in order of first use."""

    def of(self, value: Hashable) -> int:
        return self.setdefault(value, len(self))


@dataclass(frozen=True, eq=False)
class PairStatus:
    """What the atoms R(a,b) are, by kind of pair: -1 where they are not that."""

    kinds: PairKinds
    isolated: Mapping[str, np.ndarray]  # predicate → the number of its field
    on_a: Mapping[str, np.ndarray]  # predicate → the number of its residual where it is pendant on a
    on_b: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class OwnStatus:
    """What the atoms R(a) or R(a,a) are, by constant: -1 where they are not that."""

    isolated: Mapping[str, np.ndarray]  # predicate → the number of its field
    pendant: Mapping[str, np.ndarray]  # predicate → the number of its residual


@dataclass(frozen=True, eq=False)
class IndependentAtoms:
    relations: tuple[Relation, ...]  # what renamings of the core must preserve
    own: Mapping[str, OwnStatus]  # by sort
    pairs: Mapping[tuple[str, str], PairStatus]
    field_count: int
    residual_count: int


@dataclass
class _Numbers:
    """Numbers shared by all predicates and sorts."""

    fields: Names
    residuals: Names
    rests: Names


@dataclass
class _Sorted:
    """What one kind of pair (a, b) holds."""

    isolated: dict[str, Hashable]  # R → field, for R(a,b)
    on_a: dict[str, Hashable]
    on_b: dict[str, Hashable]
    features: Counter[Hashable]  # what it adds to b's colour
    rest: Hashable  # what ties a and b: functions and free atoms over both


@dataclass
class _Single:
    """What one kind of constant holds."""

    isolated: dict[str, Hashable]
    pendant: dict[str, Hashable]
    colour: Hashable


def independent_atoms(model: MarkovLogic) -> IndependentAtoms | None:
    """The pendant and isolated atoms of a model, or None where there are too many kinds of pairs to look at."""
    kinds, numbers = find_kinds(model), _Numbers(Names(), Names(), Names())
    features: dict[str, list[tuple[Names, np.ndarray]]] = {s: [] for s in model.sorts}
    pairs: dict[tuple[str, str], PairStatus] = {}
    relations = list(formula_relations(model))
    try:
        for s, t in kinds.pair_instances:
            found = pair_kinds(kinds, s, t)
            parts = [_pair(kinds, s, t, codes, found.slots) for codes in found.codes]
            pairs[s, t] = _status(found, parts, numbers)
            features[t].append(_feature_counts(parts, found, s == t))
            relations.append(_rest_relation(s, t, parts, found, numbers.rests))
    except TooManyKinds:
        return None
    own: dict[str, OwnStatus] = {}
    for s in model.sorts:
        own[s], colours = _singles(kinds, s, features[s], numbers)
        relations.append(colours)
    relations += [kinds.known[name] for name in sorted(kinds.tied)]
    needed = tuple(r for r in relations if len(r.tuples) and r.sorts)
    return IndependentAtoms(needed, own, pairs, len(numbers.fields), len(numbers.residuals))


# --- pairs ---------------------------------------------------------------------------------------------------


def _pair(kinds: Kinds, s: str, t: str, codes: Mapping[Slot, int], slots: Sequence[Slot]) -> _Sorted:
    functions = gathered(residual(i, codes) for i in kinds.pair_instances[s, t])
    return _sort_out(functions, [slot for slot in slots if codes[slot] == UNKNOWN], kinds.tied)


def _status(found: PairKinds, parts: Sequence[_Sorted], numbers: _Numbers) -> PairStatus:
    def by_kind(all_values: Sequence[Mapping[str, Hashable]], names: Names) -> dict[str, np.ndarray]:
        predicates = sorted({name for values in all_values for name in values})
        return {p: np.array([names.of(v[p]) if p in v else -1 for v in all_values], np.int32) for p in predicates}

    return PairStatus(
        found,
        by_kind([part.isolated for part in parts], numbers.fields),
        by_kind([part.on_a for part in parts], numbers.residuals),
        by_kind([part.on_b for part in parts], numbers.residuals),
    )


def _rest_relation(s: str, t: str, parts: Sequence[_Sorted], pairs: PairKinds, rests: Names) -> Relation:
    """What ties pairs beyond what their profiles say (the profiles are colours already)."""
    rest = np.array([rests.of(part.rest) for part in parts], dtype=np.int32)
    a, b, kind = pairs.rows.T
    special = rest[kind] != rest[pairs.usual(a, b)]
    return Relation(f"ties {s} {t}", (s, t), pairs.rows[special, :2].astype(np.int32), rest[kind][special])


def _sort_out(functions: tuple[Function, ...], free: Sequence[Slot], tied: frozenset[str]) -> _Sorted:
    """Which atoms over both constants are isolated or pendant, what falls on b, and what is left to tie a and b."""
    kind = _Sorted({}, {}, {}, Counter(), None)
    taken: set[Slot] = set()
    for slot in free:
        about = [f for f in functions if slot in f.support]
        others = {other[0] for f in about for other in f.support if other != slot}
        if slot[1] in tied or len(others) > 1 or not others <= {"a", "b"}:
            continue
        taken.add(slot)
        if not others:
            if slot[0] == "ab":
                kind.isolated[slot[1]] = field_of([(f, 1) for f in about])
            continue
        table = _table(about, slot)
        side = others.pop()
        if slot[0] == "ab":
            (kind.on_a if side == "a" else kind.on_b)[slot[1]] = table
        if side == "b":
            kind.features["pendant", table] += 1
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


def _table(about: Iterable[Function], slot: Slot) -> Hashable:
    """The residual of a pendant atom: its functions with itself first, then the atoms over the one constant by name."""
    return tuple(sorted(_relative(f, slot) for f in about))


def _relative(f: Function, slot: Slot) -> tuple[tuple[str, ...], int, float, bool]:
    place = f.support.index(slot)
    others = tuple(other[1] for other in f.support if other != slot)
    width = len(f.support)
    bits = np.array([f.bits >> k & 1 for k in range(1 << width)]).reshape((2,) * width)
    moved = np.moveaxis(bits, place, 0).reshape(-1).tolist()
    return others, sum(bit << k for k, bit in enumerate(moved)), f.weight, f.hard


def field_of(units: Iterable[tuple[Function, int]]) -> Hashable:
    """The log-odds of a isolated atom, to twelve digits; with a hard condition the value it must have."""
    units = list(units)
    forced = sorted({f.bits for f, _ in units if f.hard})  # bit 0: may be false, bit 1: may be true
    if forced:
        return ("forced", *forced)
    return float(f"{fsum(w for f, n in units for w in [f.weight * n]):.12g}") + 0.0


# --- single constants ----------------------------------------------------------------------------------------


def _singles(
    kinds: Kinds, sort: str, features: Sequence[tuple[Names, np.ndarray]], numbers: _Numbers
) -> tuple[OwnStatus, Relation]:
    """Atoms over one constant that are isolated or pendant on it, and the constants' colours."""
    own = kinds.own[sort]
    diagonal = frozenset(p for p in own.predicates if len(kinds.model.predicates[p].sorts) == 2)
    names, counts = _joined(features, len(own.of))
    types, type_of, _ = distinct(np.concatenate([own.of[:, None], kinds.profiles[sort].of[:, None], counts], 1))
    colours = Names()
    parts: list[_Single] = []
    for kind, profile, *amounts in types.tolist():
        codes = own.slots(kind, "a")
        functions = gathered(residual(i, codes) for i in kinds.own_instances[sort])
        seen = Counter({name: n for name, n in zip(names, amounts, strict=True) if n})
        parts.append(_single(codes, functions, seen, kinds.tied, diagonal))
        parts[-1].colour = colours.of((profile, parts[-1].colour))
    status = OwnStatus(
        _numbered([part.isolated for part in parts], own.predicates, numbers.fields, type_of),
        _numbered([part.pendant for part in parts], own.predicates, numbers.residuals, type_of),
    )
    tuples = np.arange(len(type_of), dtype=np.int32)[:, None]
    colour = np.array([part.colour for part in parts], dtype=np.int32)[type_of]
    return status, Relation(f"colour {sort}", (sort,), tuples, colour)


def _numbered(
    parts: Sequence[Mapping[str, Hashable]], predicates: Sequence[str], names: Names, type_of: np.ndarray
) -> dict[str, np.ndarray]:
    return {p: np.array([names.of(v[p]) if p in v else -1 for v in parts], np.int32)[type_of] for p in predicates}


def _single(
    codes: Mapping[Slot, int],
    functions: tuple[Function, ...],
    features: Counter[Any],
    elsewhere: frozenset[str],
    diagonal: frozenset[str],
) -> _Single:
    """What one kind of constant holds. R(a,a) is pendant on a like R(b,a) if only other atoms over a are tied to it."""
    bound = {feature[1] for feature in features if feature[0] == "tie"} | elsewhere
    tied = {slot[1] for f in functions if len(f.support) > 1 for slot in f.support}
    free = {slot[1] for slot, code in codes.items() if code == UNKNOWN}
    isolated = {name: field_of(_units(name, functions, features)) for name in free - tied - bound}
    may_be_pendant = (free & diagonal & tied) - bound
    pendant: dict[str, Hashable] = {}
    for name in sorted(may_be_pendant):
        about = [f for f in functions if ("a", name) in f.support]
        if all(slot[1] == name or slot[1] not in may_be_pendant for f in about for slot in f.support):
            fields = [(f, n) for f, n in _units(name, (), features)]
            weights = [Function((("a", name),), f.bits, f.weight * n, f.hard) for f, n in fields]
            pendant[name] = _table(gathered([*about, *weights]), ("a", name))
    gone = {*isolated, *pendant}
    kept = tuple(f for f in functions if not any(slot[1] in gone for slot in f.support))
    seen = Counter({k: n for k, n in features.items() if k[0] == "pendant"})
    seen.update(("pendant", table) for table in pendant.values())
    seen.update({k: n for k, n in features.items() if k[0] == "field" and k[1].support[0][1] not in gone})
    return _Single(isolated, pendant, (tuple(sorted(free - gone)), kept, frozenset(seen.items())))


def _units(name: str, functions: Iterable[Function], features: Mapping[Any, int]) -> list[tuple[Function, int]]:
    """The functions of one atom over a constant alone, and how often they occur."""
    found = [(f, 1) for f in functions if f.support == (("a", name),)]
    return found + [(f, n) for (kind, f), n in features.items() if kind == "field" and f.support == (("", name),)]


# --- counting over all constants -----------------------------------------------------------------------------


def _feature_counts(kinds: Sequence[_Sorted], pairs: PairKinds, same: bool) -> tuple[Names, np.ndarray]:
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
    np.add.at(counts, b, adds[kind] - adds[pairs.usual(a, b)])
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
