"""Normal forms: quantifiers written out, negations pushed in, clauses, and a hard formula's independent parts.

`weights="alchemy"` needs clauses: Alchemy turns each formula into conjunctive normal form and gives every clause an
equal share of the weight, so the result depends on how a formula is written. What happens here, in this order:
1. negations are pushed to the atoms; `=>` and `<=>` are written with `^`, `v`, `!`;
2. FORALL is dropped, its variables become universal variables of the clauses they occur in;
3. EXIST becomes the disjunction over the constants of its sort (and FORALL under EXIST the conjunction);
4. `v` is distributed over `^`; repeated literals, clauses that are always true and repeated clauses are dropped;
5. each of the k clauses gets weight / k. A negative weight is divided in the same way (samplers may negate ground
   clauses of negative weight, which changes no probability). Hard formulas stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.formulas import free_variables, parts, rebuild, substitute, with_body
from definetti.model.logic.theory import (
    And,
    Constant,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Sort,
    Truth,
    WeightedFormula,
)

MOST_PARTS = 100_000  # atoms written out for one formula
MOST_CLAUSES = 10_000


def negation_normal(formula: Formula, positive: bool = True) -> Formula:
    """Only atoms, equalities, their negations, And, Or, Exist and Forall are left."""
    match formula:
        case Truth(value):
            return Truth(value == positive)
        case Not(part):
            return negation_normal(part, not positive)
        case Implies(left, right):
            return negation_normal(Or((Not(left), right)), positive)
        case Iff(left, right):
            both = And((Or((Not(left), right)), Or((left, Not(right)))))
            neither = And((Or((left, right)), Or((Not(left), Not(right)))))
            return negation_normal(both if positive else neither)
        case And(inner) | Or(inner):
            kind = And if isinstance(formula, And) == positive else Or
            return kind(tuple(negation_normal(part, positive) for part in inner))
        case Exist(variables, body) | Forall(variables, body):
            kind = Exist if isinstance(formula, Exist) == positive else Forall
            return kind(variables, negation_normal(body, positive))
    return formula if positive else Not(formula)


def _normal_size(formula: Formula) -> int:
    """The atoms of `negation_normal(formula)`: every equivalence doubles what it holds."""
    inner = parts(formula)
    return (2 if isinstance(formula, Iff) else 1) * sum(map(_normal_size, inner)) if inner else 1


def written_out(formula: Formula, sizes: Mapping[str, tuple[str, int]]) -> Formula:
    """EXIST as a disjunction, FORALL as a conjunction over constants; `sizes`: variable → its sort and size."""
    size = written_size(formula, {name: count for name, (_, count) in sizes.items()})
    if size > MOST_PARTS:
        cure = "sample without grounding"
        raise TooLarge("a formula with its quantifiers written out", size, MOST_PARTS, cure, unit="atoms")
    return _write_out(formula, sizes)


def written_size(formula: Formula, sizes: Mapping[str, int]) -> int:
    """The number of atoms and equalities once quantifiers are written out."""
    inner = parts(formula)
    copies = prod(sizes[name] for name in formula.variables) if isinstance(formula, Exist | Forall) else 1
    return copies * sum(written_size(part, sizes) for part in inner) if inner else 1


def _write_out(formula: Formula, sizes: Mapping[str, tuple[str, int]]) -> Formula:
    inner = tuple(_write_out(part, sizes) for part in parts(formula))
    if not isinstance(formula, Exist | Forall):
        return rebuild(formula, inner)
    choices = product(*([Constant(sizes[name][0], i) for i in range(sizes[name][1])] for name in formula.variables))
    copies = tuple(substitute(inner[0], dict(zip(formula.variables, choice, strict=True))) for choice in choices)
    return Or(copies) if isinstance(formula, Exist) else And(copies)


def sizes_of(formula: WeightedFormula, sorts: Mapping[str, Sort]) -> dict[str, tuple[str, int]]:
    """What `written_out` needs to know of a formula's variables."""
    return {name: (sort, sorts[sort].size) for name, sort in formula.sorts.items()}


def hard_parts(formula: WeightedFormula) -> list[WeightedFormula]:
    """A hard formula as hard formulas that each say less: outer FORALL becomes universal, conjunctions fall apart."""
    found: list[WeightedFormula] = []
    waiting = [formula.body]
    while waiting:
        body = waiting.pop()
        if isinstance(body, And):
            waiting.extend(reversed(body.parts))
        elif isinstance(body, Forall):
            waiting.append(body.body)
        elif isinstance(body, Not | Implies | Iff) and isinstance(_outer(body), And | Forall):
            waiting.append(_outer(body))
        else:
            found.append(with_body(formula, body))
    return found


def _outer(formula: Formula) -> Formula:
    """The formula with its outermost negation or equivalence resolved, one step."""
    match formula:
        case Not(Or(inner)):
            return And(tuple(Not(part) for part in inner))
        case Not(Implies(left, right)):
            return And((left, Not(right)))
        case Not(Exist(variables, body)):
            return Forall(variables, Not(body))
        case Not(Not(part)):
            return part
    return formula


# --- clauses ----------------------------------------------------------------------------------------------------------


def clauses(formula: Formula) -> list[Formula]:
    """The clauses of a formula in negation normal form without quantifiers."""
    found = [_clause(literals) for literals in _distribute(formula)]
    return list(dict.fromkeys(clause for clause in found if clause != Truth(True)))


def _distribute(formula: Formula) -> list[tuple[Formula, ...]]:
    if isinstance(formula, And):
        return [clause for part in formula.parts for clause in _distribute(part)]
    if not isinstance(formula, Or):
        return [(formula,)]
    lists = [_distribute(part) for part in formula.parts]
    count = 1
    for some in lists:
        count *= len(some)
    if count > MOST_CLAUSES:
        cure = "rewrite it, or use the weights of whole formulas"
        raise TooLarge("the number of clauses of one formula", count, MOST_CLAUSES, cure)
    return [tuple(literal for clause in chosen for literal in clause) for chosen in product(*lists)]


def _clause(literals: tuple[Formula, ...]) -> Formula:
    """A disjunction without repetitions; Truth(True) if it says nothing."""
    kept = dict.fromkeys(known for literal in literals if (known := _decided(literal)) != Truth(False))
    if Truth(True) in kept or any(Not(literal) in kept for literal in kept):
        return Truth(True)
    if not kept:
        return Truth(False)
    return Or(tuple(kept)) if len(kept) > 1 else next(iter(kept))


def _decided(literal: Formula) -> Formula:
    match literal:
        case Equal(left, right) if left == right or (isinstance(left, Constant) and isinstance(right, Constant)):
            return Truth(left == right)
        case Not(Equal(left, right)) if left == right or (isinstance(left, Constant) and isinstance(right, Constant)):
            return Truth(left != right)
    return literal


def split_weights(formula: WeightedFormula, sorts: Mapping[str, Sort]) -> list[WeightedFormula]:
    """The formula's clauses with an equal share of the weight each (see the top of this file)."""
    if formula.weight is None:
        return [formula]
    size = _normal_size(formula.body)
    if size > MOST_PARTS:
        cure = "use the weights of whole formulas"
        raise TooLarge("a formula in normal form", size, MOST_PARTS, cure, unit="atoms")
    universal = _without_forall(negation_normal(formula.body))
    found = clauses(written_out(universal, sizes_of(formula, sorts)))
    if not found:
        return []
    share = formula.weight / len(found)
    plus = set(formula.plus)
    out = []
    for clause in found:
        part = with_body(formula, clause, share)
        lost = [axis for axis, name in enumerate(formula.plus) if name not in free_variables(clause)]
        if lost:  # the clause is the same for all constants of a lost `+` variable: their weights add up
            part = replace(
                part,
                weight=np.sum(np.asarray(share), axis=tuple(lost)),
                plus=tuple(name for axis, name in enumerate(formula.plus) if axis not in lost),
                free=tuple(name for name in part.free if name not in plus or name in free_variables(clause)),
            )
        out.append(part)
    return out


def _without_forall(formula: Formula) -> Formula:
    """FORALL dropped, except under EXIST, where the copies of an existential would wrongly share its variables."""
    if isinstance(formula, Forall):
        return _without_forall(formula.body)
    if isinstance(formula, Exist):
        return formula
    return rebuild(formula, tuple(_without_forall(part) for part in parts(formula)))
