"""Atoms that hard formulas and evidence force: found by unit propagation, made evidence before symmetries are sought.

Hard formulas of one or two variables are propagated over kinds of constants and of pairs, without grounding: a residual
that leaves an atom only one value makes that value evidence, and so on until nothing new follows. Other hard formulas
(three variables, constants, quantifiers, `!` blocks) are grounded where that is small; where it is not, the samplers
hold such atoms by the hard formulas themselves. What is found is forced, but perhaps not all that is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from definetti.constraints.logic.clauses import (
    HardClauses,
    clause_templates,
    evidence_literals,
    hard_clauses,
    hard_size,
)
from definetti.constraints.logic.legal_states import legal
from definetti.constraints.logic.unsat_core import explain, few_clash, without_evidence
from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.evidence import row_keys
from definetti.model.logic.formulas import atoms as walk_atoms
from definetti.model.logic.formulas import quantified
from definetti.model.logic.kinds import Kinds, PairKinds, TooManyKinds, find_kinds, pair_kinds
from definetti.model.logic.residuals import Function, Instance, Slot, gathered, is_simple, residual
from definetti.model.logic.text import atom_name
from definetti.model.logic.theory import Evidence, MarkovLogic, Not

MOST_GROUND = 6_000_000  #: literals of ground hard formulas that are propagated
MOST_ASKED = 4_000_000  #: and that a solver is asked about before sampling
MOST_ROWS = 4_000_000  #: of forced atoms over pairs; more stay as they are (the samplers hold them by the hard formula)
MOST_ROUNDS = 100

Facts = dict[tuple[str, int], list[np.ndarray]]  # (predicate, value) → rows of constants


def with_forced_atoms(model: MarkovLogic) -> MarkovLogic:
    """The model with forced atoms as evidence; `Unsatisfiable`, naming what clashes, where propagation shows it."""
    if not any(f.hard for f in model.formulas):
        return model
    try:
        found = propagate_lifted(model)
        if not all(is_simple(model, f) for f in model.formulas if f.hard) and hard_size(model) <= MOST_GROUND:
            found = propagate_ground(found)
    except Unsatisfiable as clash:
        raise explain(model, str(clash)) from None
    if not decided_by_propagation(model):
        require_possible(model)
    return found


@contextmanager
def explain_clashes(model: MarkovLogic) -> Iterator[None]:
    """Turns an `Unsatisfiable` raised inside into one that names formulas and evidence of the model."""
    try:
        yield
    except Unsatisfiable as clash:
        if clash.explained is model:
            raise  # to look for a small set once more would take as long again
        raise explain(model, str(clash)) from None


def decided_by_propagation(model: MarkovLogic) -> bool:
    """Whether unit propagation decides satisfiability: all hard clauses are Horn, or all are once atoms are negated."""
    positive, negative = 0, 0
    for formula in model.formulas:
        if formula.hard:
            if any(quantified(formula.body)):
                return False
            for template in clause_templates(model, formula):
                atoms = [literal for literal in template if any(walk_atoms(literal))]
                below = sum(isinstance(literal, Not) for literal in atoms)
                positive, negative = max(positive, len(atoms) - below), max(negative, below)
    return min(positive, negative) <= 1 and not any(p.exclusive for p in model.predicates.values())


def require_possible(model: MarkovLogic) -> None:
    """Ask a solver before anything is compiled: about a few constants, then about all where that is small."""
    if few_clash(model) is not None:
        raise explain(model)
    if hard_size(model) > MOST_ASKED:
        return
    asked = [model, without_evidence(model)] if model.evidence or model.closed else [model]
    for one in asked:  # where evidence distinguishes constants, the formulas by themselves may decide
        try:
            found = legal(one).satisfiable()
        except TooLarge:  # a formula with too many clauses
            return
        if found is False:
            raise explain(one)
        if found:
            return


# --- without grounding ------------------------------------------------------------------------------------------------


def propagate_lifted(model: MarkovLogic) -> MarkovLogic:
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


# --- over ground clauses ----------------------------------------------------------------------------------------------


def propagate_ground(model: MarkovLogic) -> MarkovLogic:
    """Unit propagation over the ground hard formulas."""
    try:
        ground = hard_clauses(model, MOST_GROUND)
    except TooLarge:  # a formula with too many clauses
        return model
    value = np.zeros(ground.numbering.count + 1, dtype=np.int8)
    known = evidence_literals(model, ground.numbering)
    value[np.abs(known)] = np.sign(known)
    before = value.copy()
    _propagate(ground, value)
    forced = np.flatnonzero((value != 0) & (before == 0))
    if not len(forced):
        return model
    facts: Facts = defaultdict(list)
    numbers = ground.numbering
    for name in [name for name in model.predicates if name in numbers.start]:
        start, shape = numbers.start[name], model.shape(name)
        here = forced[(forced >= start) & (forced < start + int(np.prod(shape, dtype=np.int64)))]
        for sign in (1, -1):
            some = here[value[here] == sign] - start
            if len(some):
                rows = np.stack(np.unravel_index(some, shape), 1) if shape else np.zeros((len(some), 0), np.int64)
                facts[name, int(sign > 0)].append(rows)
    return with_facts(model, facts)


def _propagate(ground: HardClauses, value: np.ndarray) -> None:
    """Fills in what follows until nothing new does; `Unsatisfiable` at a clause whose literals are all false."""
    rows = [r for _, r in ground.groups]
    while True:
        units: list[np.ndarray] = []
        for k, clauses in enumerate(rows):
            truth = value[np.abs(clauses)] * np.sign(clauses).astype(np.int8)
            open_ = (truth <= 0).all(axis=1)
            if not open_.all():
                rows[k], truth = clauses[open_], truth[open_]
            free = (truth == 0).sum(axis=1)
            if (free == 0).any():
                raise Unsatisfiable("the evidence contradicts the hard formulas")
            unit = free == 1
            if unit.any():
                units.append(rows[k][unit][truth[unit] == 0])
        if not units:
            return
        literals = np.unique(np.concatenate(units))
        if np.isin(-literals, literals).any():
            raise Unsatisfiable("hard formulas and evidence force an atom to be true and to be false")
        value[np.abs(literals)] = np.sign(literals)


# --- as evidence ------------------------------------------------------------------------------------------------------


def with_facts(model: MarkovLogic, facts: Facts) -> MarkovLogic:
    evidence, unknown = dict(model.evidence), dict(model.unknown)
    for name in {name for name, _ in facts}:
        true, false = (_rows(facts.get((name, value), []), model, name) for value in (1, 0))
        keys_true, keys_false = (row_keys(model.shape(name), rows) for rows in (true, false))
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
        order = np.argsort(row_keys(model.shape(name), tuples), kind="stable")
        evidence[name] = Evidence(tuples[order], values[order])
        if name in unknown:
            decided = np.isin(row_keys(model.shape(name), unknown[name]), np.concatenate([keys_true, keys_false]))
            unknown[name] = unknown[name][~decided]
    return replace(model, evidence=evidence, unknown=unknown)


def _rows(parts: list[np.ndarray], model: MarkovLogic, name: str) -> np.ndarray:
    if not parts:
        return np.zeros((0, len(model.predicates[name].sorts)), np.int64)
    rows = np.concatenate(parts)
    return rows[np.unique(row_keys(model.shape(name), rows), return_index=True)[1]]
