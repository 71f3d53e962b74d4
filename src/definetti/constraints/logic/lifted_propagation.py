"""Atoms that evidence and hard formulas force, by propagation over kinds of constants and pairs: nothing is grounded.

A hard formula of one or two variables whose residual leaves an atom only one value makes that value evidence, and so
on until nothing new follows. Hard formulas of other shapes are not looked at: what is found is forced, but perhaps
not all that is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.logic.kinds import Kinds, PairKinds, TooManyKinds, find_kinds, pair_kinds
from definetti.model.logic.residuals import Function, Instance, Slot, gathered, residual
from definetti.model.logic.text import atom_name
from definetti.model.logic.theory import Evidence, MarkovLogic

MOST_ROWS = 4_000_000  #: of forced atoms over pairs; more stay as they are (the samplers hold them by the hard formula)
MOST_ROUNDS = 100

Facts = dict[tuple[str, int], list[np.ndarray]]  # (predicate, value) → rows of constants


def entailed(model: MarkovLogic) -> MarkovLogic:
    """The model with forced atoms as evidence; `Unsatisfiable` if two hard formulas force an atom both ways."""
    if not any(f.hard for f in model.formulas):
        return model
    for _ in range(MOST_ROUNDS):
        facts: Facts = defaultdict(list)
        kinds = find_kinds(_only_hard(model))
        for sort in model.sorts:
            _own_facts(kinds, sort, facts)
        for s, t in kinds.pair_instances:
            try:
                _pair_facts(kinds, s, t, pair_kinds(kinds, s, t), facts)
            except TooManyKinds:
                continue
        if not facts:
            break
        model = with_facts(model, facts)
    return model


def _only_hard(model: MarkovLogic) -> MarkovLogic:
    return replace(model, formulas=tuple(f for f in model.formulas if f.hard))


def implied(functions: Iterable[Function]) -> Iterator[tuple[Slot, int]]:
    """The values that a hard function leaves as the only ones."""
    for f in functions:
        width = len(f.support)
        legal = [k for k in range(1 << width) if f.bits >> k & 1]
        for j, slot in enumerate(f.support):
            values = {k >> (width - 1 - j) & 1 for k in legal}  # the first slot is the slowest
            if len(values) == 1:
                yield slot, values.pop()


def _residuals(instances: Iterable[Instance], codes: Mapping[Slot, int]) -> tuple[Function, ...]:
    return gathered(residual(i, codes) for i in instances)


def _own_facts(kinds: Kinds, sort: str, facts: Facts) -> None:
    own = kinds.own[sort]
    for kind in range(len(own.codes)):
        functions = _residuals(kinds.own_instances[sort], own.slots(kind, "a"))
        members = np.flatnonzero(own.of == kind)
        _require_possible(functions, kinds.model, (sort,), members[:1])
        for (_, name), value in implied(functions):
            facts[name, value].append(_repeated(members, len(kinds.model.predicates[name].sorts)))


def _pair_facts(kinds: Kinds, s: str, t: str, pairs: PairKinds, facts: Facts) -> None:
    """Facts on R(a,b) and on atoms over b alone; (b, a) is a pair of its own and gives the rest."""
    for kind, codes in enumerate(pairs.codes):
        functions = _residuals(kinds.pair_instances[s, t], codes)
        if not functions or not len(members := _members(pairs, kind, s == t, limit=1)):
            continue
        _require_possible(functions, kinds.model, (s, t), members[0])
        for (side, name), value in implied(functions):
            arity = len(kinds.model.predicates[name].sorts)
            if side == "b":
                facts[name, value].append(_repeated(np.unique(_members(pairs, kind, s == t)[:, 1]), arity))
            elif side == "ab" and len(rows := _members(pairs, kind, s == t)) <= MOST_ROWS:
                facts[name, value].append(rows)


def _members(pairs: PairKinds, kind: int, same: bool, limit: int | None = None) -> np.ndarray:
    """The pairs (a, b) of a kind; with a limit at least one of them if there are any, and not many more."""
    rows = pairs.rows[pairs.rows[:, 2] == kind, :2]
    special = np.unique(pairs.rows[:, 0] * np.int64(len(pairs.profiles[1])) + pairs.rows[:, 1])
    found = [rows]
    for p, q in np.argwhere(pairs.default == kind).tolist():
        a, b = np.flatnonzero(pairs.profiles[0] == p), np.flatnonzero(pairs.profiles[1] == q)
        for start in range(0, len(a), max(1, 1_000_000 // max(1, len(b)))):
            some = a[start : start + max(1, 1_000_000 // max(1, len(b)))]
            grid = np.stack([np.repeat(some, len(b)), np.tile(b, len(some))], 1)
            usual = ~np.isin(grid[:, 0] * np.int64(len(pairs.profiles[1])) + grid[:, 1], special)
            found.append(grid[usual & (grid[:, 0] != grid[:, 1])] if same else grid[usual])
            total = sum(map(len, found))
            if (limit is not None and total >= limit) or total > MOST_ROWS:
                return np.concatenate(found)
    return np.concatenate(found)


def _repeated(constants: np.ndarray, arity: int) -> np.ndarray:
    """P(a), or P(a,a), for each constant."""
    return np.repeat(constants[:, None], arity, axis=1)


def _require_possible(
    functions: Iterable[Function], model: MarkovLogic, sorts: tuple[str, ...], row: np.ndarray
) -> None:
    if any(f.hard and f.bits == 0 for f in functions):
        names = ", ".join(model.sorts[s].constants[c] for s, c in zip(sorts, row.tolist(), strict=True))
        raise Unsatisfiable(f"the evidence contradicts the hard formulas at {names}: no state is possible")


def with_facts(model: MarkovLogic, facts: Facts) -> MarkovLogic:
    evidence, unknown = dict(model.evidence), dict(model.unknown)
    for name in {name for name, _ in facts}:
        true, false = (_rows(facts.get((name, value), []), model, name) for value in (1, 0))
        keys_true, keys_false = (_keys(model, name, rows) for rows in (true, false))
        both = np.isin(keys_true, keys_false)
        if both.any():
            row = true[both][0]
            words = [model.sorts[s].constants[c] for s, c in zip(model.predicates[name].sorts, row, strict=True)]
            raise Unsatisfiable(f"hard formulas and evidence force {atom_name(name, words)} to be true and to be false")
        known = evidence.get(name)
        old = np.zeros((0, true.shape[1]), np.int32) if known is None else known.tuples
        values = np.zeros(0, np.int8) if known is None else known.values
        tuples = np.concatenate([old, true, false]).astype(np.int32)
        values = np.concatenate([values, np.ones(len(true), np.int8), np.zeros(len(false), np.int8)])
        order = np.argsort(_keys(model, name, tuples), kind="stable")
        evidence[name] = Evidence(tuples[order], values[order])
        if name in unknown:
            decided = np.isin(_keys(model, name, unknown[name]), np.concatenate([keys_true, keys_false]))
            unknown[name] = unknown[name][~decided]
    return replace(model, evidence=evidence, unknown=unknown)


def _rows(parts: list[np.ndarray], model: MarkovLogic, name: str) -> np.ndarray:
    if not parts:
        return np.zeros((0, len(model.predicates[name].sorts)), np.int64)
    rows = np.concatenate(parts)
    return rows[np.unique(_keys(model, name, rows), return_index=True)[1]]


def _keys(model: MarkovLogic, name: str, rows: np.ndarray) -> np.ndarray:
    key = np.zeros(len(rows), dtype=np.int64)
    for size, column in zip(model.shape(name), rows.T, strict=True):
        key = key * size + column
    return key
