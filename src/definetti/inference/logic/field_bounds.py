"""Bounds on the local field of an atom over all states of a Markov logic network, from the formulas alone.

The field is the sum over formulas of weight × (true groundings with the atom true − with it false). A place where the
atom unifies with a formula takes part in as many groundings as the formula's other free variables have values, each of
which changes by one of a few numbers that a truth table shows. Sums of such intervals need no state. A hard formula
that the atom may satisfy or violate by itself has an infinite weight and bounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from definetti.model.logic.formulas import atoms, equalities, evaluate, quantified
from definetti.model.logic.theory import Atom, Constant, Formula, MarkovLogic, WeightedFormula

MOST_ATOMS = 8  #: of a formula whose truth table is looked at


def field_bounds(model: MarkovLogic, predicate: str, constants: Sequence[int]) -> tuple[float, float]:
    """(lowest, highest) field of an atom; one of a `!` block has none."""
    if model.predicates[predicate].exclusive:
        return -inf, inf
    low = high = 0.0
    for formula in model.formulas:
        for atom, groundings in _places(model, formula, predicate, constants):
            least, most = _changes(formula.body, atom)
            ends = [w * change * groundings if change else 0.0 for w in _weights(formula) for change in (least, most)]
            low, high = low + min(ends), high + max(ends)
    return low, high


def _weights(formula: WeightedFormula) -> tuple[float, ...]:
    """The weight; for one with `+` the lowest and the highest, since every grounding has one in between."""
    if formula.weight is None:
        return (inf,)
    weights = np.asarray(formula.weight, dtype=float)
    return float(weights.min()), float(weights.max())


def _places(
    model: MarkovLogic, formula: WeightedFormula, predicate: str, constants: Sequence[int]
) -> Iterator[tuple[Atom, int]]:
    """The atoms of a formula that unify with a ground one, and in how many groundings at most each does."""
    bound = set(quantified(formula.body))
    for atom in dict.fromkeys(atoms(formula.body)):
        if atom.predicate != predicate:
            continue
        at: dict[str, int] = {}
        fits = True
        for term, constant in zip(atom.args, constants, strict=True):
            if isinstance(term, Constant):
                fits = fits and term.index == constant
            elif term.name not in bound:
                fits = fits and at.setdefault(term.name, constant) == constant
        if fits:
            yield atom, prod(model.sorts[formula.sorts[name]].size for name in formula.free if name not in at)


def _changes(body: Formula, atom: Atom) -> tuple[int, int]:
    """The least and the greatest change of a grounding's truth as the atom becomes true."""
    others = [other for other in dict.fromkeys(atoms(body)) if other != atom]
    if any(True for _ in quantified(body)) or any(True for _ in equalities(body)) or len(others) >= MOST_ATOMS:
        return -1, 1
    found = set()
    for values in product((False, True), repeat=len(others)):
        truth: dict[Formula, Any] = dict(zip(others, values, strict=True))
        found.add(int(evaluate(body, truth | {atom: True})) - int(evaluate(body, truth | {atom: False})))
    return min(found), max(found)
