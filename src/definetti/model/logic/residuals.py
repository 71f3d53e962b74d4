"""Evidence put into formulas without grounding them: what is left of one grounding, as a Boolean function of free
atoms.

This serves formulas of one or two variables. A grounding at constants a ≠ b involves atoms over a alone, over b
alone and over both; which of them are known decides what is left, so one computation serves all pairs of constants
of a kind. Atoms are named by slots: ("a", P) and ("b", P) stand for P(a) or P(a,a) and for P(b) or P(b,b), ("ab",
R) for R(a,b), ("ba", R) for R(b,a). A soft function is normalised to be 0 where all its atoms are false (the weight
changes sign).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import fsum

import numpy as np

from definetti.model.logic import formulas as walk
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import Atom, MarkovLogic, Variable, WeightedFormula

Slot = tuple[str, str]

MOST_ATOMS = 10  #: of a formula whose truth table is made


@dataclass(frozen=True, slots=True)
class Function:
    """weight · [f], or the hard condition f: `bits` is f's truth table over `support`, the first slot slowest."""

    support: tuple[Slot, ...]
    bits: int
    weight: float
    hard: bool = False


@dataclass(frozen=True, eq=False)
class Instance:
    """A formula at one choice of sides for its variables: its truth table over the slots of its different atoms."""

    slots: tuple[Slot, ...]
    table: np.ndarray  # bool[2, …]
    weight: float | None


def is_simple(model: MarkovLogic, formula: WeightedFormula) -> bool:
    """One or two variables, atoms of one or two arguments, no constants, quantifiers, `+` or `!`: can be simplified."""
    atoms = set(walk.atoms(formula.body))
    return (
        1 <= len(formula.free) <= 2
        and not formula.plus
        and not any(walk.quantified(formula.body))
        and all(isinstance(term, Variable) for term in walk.terms(formula.body))
        and all(1 <= len(atom.args) <= 2 and not model.predicates[atom.predicate].exclusive for atom in atoms)
        and len(atoms) <= MOST_ATOMS
        and (formula.weight is None or np.ndim(formula.weight) == 0)
    )


def instance(formula: WeightedFormula, sides: Mapping[str, str]) -> Instance:
    """The formula with each variable at constant "a" or "b"; two variables may stand at the same constant."""
    slots = tuple(dict.fromkeys(_slot(atom, sides) for atom in walk.atoms(formula.body)))
    number = {side: k for k, side in enumerate("ab")}
    binding = {v: number[side] for v, side in sides.items()}
    table = np.zeros((2,) * len(slots), dtype=bool)
    for values in product((0, 1), repeat=len(slots)):
        truth = dict(zip(slots, values, strict=True))
        table[values] = walk.holds(formula.body, binding, lambda p, c, t=truth: bool(t[_slot_at(p, c)]), {})
    return Instance(slots, table, None if formula.weight is None else float(formula.weight))


def _slot(atom: Atom, sides: Mapping[str, str]) -> Slot:
    return _slot_at(atom.predicate, tuple("ab".index(sides[t.name]) for t in atom.args if isinstance(t, Variable)))


def _slot_at(predicate: str, places: tuple[int, ...]) -> Slot:
    where = "".join("ab"[k] for k in places)
    return ("a" if where in ("a", "aa") else "b" if where in ("b", "bb") else where), predicate


def order_of(slot: Slot) -> tuple[int, str, str]:
    """Atoms over both constants come first."""
    return (3 - len(slot[0]), slot[1], slot[0])


def residual(inst: Instance, codes: Mapping[Slot, int]) -> Function | None:
    """What is left of an instance where `codes` gives the values of its known atoms; None if it is true, or
    constant and soft. A violated hard formula is the hard function without atoms that is false."""
    index = tuple(slice(None) if (code := codes[slot]) == UNKNOWN else code for slot in inst.slots)
    table = inst.table[index]
    free = [slot for slot in inst.slots if codes[slot] == UNKNOWN]
    for axis in reversed(range(len(free))):  # drop atoms on which the truth does not depend
        off, on = table.take(0, axis), table.take(1, axis)
        if np.array_equal(off, on):
            table = off
            del free[axis]
    if not free:
        if inst.weight is None and not table:
            return Function((), 0, 0.0, True)
        return None
    order = sorted(range(len(free)), key=lambda k: order_of(free[k]))
    flat = table.transpose(order).reshape(-1)
    support = tuple(free[k] for k in order)
    if inst.weight is None:
        return Function(support, _bits(flat), 0.0, True)
    if flat[0]:
        return Function(support, _bits(~flat), -inst.weight)
    return Function(support, _bits(flat), inst.weight)


def _bits(flat: np.ndarray) -> int:
    return sum(1 << k for k, value in enumerate(flat.tolist()) if value)


def gathered(functions: Iterable[Function | None]) -> tuple[Function, ...]:
    """Equal functions as one with the sum of their weights, in a fixed order."""
    weights: dict[tuple, list[float]] = defaultdict(list)
    for f in functions:
        if f is not None:
            weights[f.support, f.bits, f.hard].append(f.weight)
    made = (Function(s, b, fsum(w), hard) for (s, b, hard), w in weights.items())
    return tuple(sorted((f for f in made if f.hard or f.weight), key=lambda f: (f.support, f.bits, f.hard)))
