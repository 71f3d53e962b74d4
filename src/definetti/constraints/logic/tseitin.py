"""Tseitin variables for the inner parts of existential formulas, so that their clauses stay few.

`EXIST y (R(x,y) ^ P(y))` has 2^n clauses over n constants. With a predicate W for the inner part, `EXIST y W(x,y)` and
`W(x,y) => R(x,y) ^ P(y)` have 1 + 2n for each x, and the same solutions but for W, of which they say only what it
implies (existential parts are positive in the normal form).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from definetti.model.logic.formulas import free_variables, parts, rebuild, with_body
from definetti.model.logic.normal_forms import clauses, hard_parts, negation_normal
from definetti.model.logic.theory import And, Atom, Exist, Forall, Formula, MarkovLogic, Not, Or, Predicate, Variable
from definetti.model.logic.theory import WeightedFormula as Weighted

MOST_WRITTEN = 100  #: clauses of a formula that are written out without names
ENDLESS = 10**9


def with_definitions(model: MarkovLogic) -> tuple[MarkovLogic, list[tuple[int, Weighted]]]:
    """The model with the new predicates, and its hard formulas as clauses whose literals may be quantified, each with
    the place of the formula it comes from."""
    predicates, found = dict(model.predicates), []
    sizes = {sort.name: sort.size for sort in model.sorts.values()}
    for k, formula in enumerate(model.formulas):
        said = hard_parts(formula) if formula.hard else []
        waiting = [with_body(part, clause) for part in said for clause in clauses(negation_normal(part.body))]
        while waiting:
            piece = waiting.pop(0)
            if clause_count(piece.body, piece.sorts, sizes) > MOST_WRITTEN:
                piece, more = _named(piece, predicates)
                waiting += more
            found.append((k, piece))
    return replace(model, predicates=predicates), found


def clause_count(formula: Formula, sorts: Mapping[str, str], sizes: Mapping[str, int]) -> int:
    """The clauses of a formula in negation normal form with its quantifiers written out; ENDLESS stands for more."""
    inner = [clause_count(part, sorts, sizes) for part in parts(formula)]
    if isinstance(formula, And):
        return min(sum(inner), ENDLESS)
    if isinstance(formula, Or):
        return min(prod(inner), ENDLESS)
    if isinstance(formula, Exist | Forall):
        copies = prod(sizes[sorts[name]] for name in formula.variables)
        if isinstance(formula, Forall):
            return min(inner[0] * copies, ENDLESS)
        return min(inner[0] ** min(copies, 30), ENDLESS)  # 2^30 is beyond ENDLESS already
    return 1


def _named(piece: Weighted, predicates: dict[str, Predicate]) -> tuple[Weighted, list[Weighted]]:
    """The piece with a new predicate in each existential formula that is no disjunction, and what these imply."""
    more: list[Weighted] = []

    def walk(formula: Formula) -> Formula:
        if not isinstance(formula, Exist) or is_disjunction(formula.body):
            return rebuild(formula, tuple(walk(part) for part in parts(formula)))
        names = tuple(free_variables(formula.body))
        name = f"witness {len(predicates)}"  # no name that can be read has a space
        predicates[name] = Predicate(name, tuple(piece.sorts[v] for v in names))
        atom = Atom(name, tuple(Variable(v) for v in names))
        more.extend(with_body(piece, clause) for clause in clauses(Or((Not(atom), formula.body))))
        return Exist(formula.variables, atom)

    return with_body(piece, walk(piece.body)), more


def is_disjunction(formula: Formula) -> bool:
    """Whether a formula in negation normal form becomes one clause when its quantifiers are written out."""
    return not isinstance(formula, And | Forall) and all(is_disjunction(part) for part in parts(formula))
