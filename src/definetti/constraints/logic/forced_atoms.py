"""Atoms that hard formulas and evidence force, made evidence before symmetries are sought: unit propagation.

Formulas of one or two variables are propagated over kinds of constants, without grounding (`entail`). Others (three
variables, constants, quantifiers, `!` blocks) are grounded, hard ones alone, where that is small; where it is not,
the samplers hold such atoms by the hard formulas themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from definetti.constraints.logic.clauses import (
    HardClauses,
    clause_templates,
    evidence_literals,
    hard_clauses,
    hard_size,
)
from definetti.constraints.logic.legal_states import legal
from definetti.constraints.logic.lifted_propagation import Facts, entailed, with_facts
from definetti.constraints.logic.unsat_core import bare, explain, few_clash
from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.formulas import atoms as walk_atoms
from definetti.model.logic.formulas import quantified
from definetti.model.logic.residuals import is_simple
from definetti.model.logic.theory import MarkovLogic, Not

MOST_GROUND = 6_000_000  #: literals of ground hard formulas that are propagated
MOST_ASKED = 4_000_000  #: and that a solver is asked about before sampling


def settled(model: MarkovLogic) -> MarkovLogic:
    """The model with forced atoms as evidence; `Unsatisfiable`, naming what clashes, where propagation shows it."""
    if not any(f.hard for f in model.formulas):
        return model
    try:
        found = entailed(model)
        if not all(is_simple(model, f) for f in model.formulas if f.hard) and hard_size(model) <= MOST_GROUND:
            found = propagated(found)
    except Unsatisfiable as clash:
        raise explain(model, str(clash)) from None
    if not one_sided(model):
        require_possible(model)
    return found


@contextmanager
def told_in_formulas(model: MarkovLogic) -> Iterator[None]:
    """An `Unsatisfiable` of what was made of the model names its formulas and evidence instead of factors."""
    try:
        yield
    except Unsatisfiable as clash:
        raise explain(model, str(clash)) from None


def one_sided(model: MarkovLogic) -> bool:
    """All hard clauses have at most one positive literal, or all at most one negative: then propagation decides."""
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
    asked = [model, bare(model)] if model.evidence or model.closed else [model]
    for one in asked:  # where evidence sets constants apart that are alike, the formulas by themselves may tell
        try:
            found = legal(one).satisfiable()
        except TooLarge:  # a formula with too many clauses
            return
        if found is False:
            raise explain(one)
        if found:
            return


def propagated(model: MarkovLogic) -> MarkovLogic:
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
