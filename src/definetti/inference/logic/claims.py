"""What hard formulas and evidence alone decide of a query: a solver is asked for a legal state that says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from definetti.constraints.logic.clauses import hard_size
from definetti.constraints.logic.legal_states import legal
from definetti.constraints.sat import FEW_CONFLICTS, decide
from definetti.errors import TooLarge
from definetti.model.logic.theory import And, Atom, Exist, Formula, Implies, MarkovLogic, Not, WeightedFormula
from definetti.readers.logic.queries import LogicQuery

MOST_GROUND = 300_000  #: literals of ground hard formulas


@dataclass(frozen=True)
class Claim:
    """A query as a statistic: the share of the values of `free` for which a formula is true."""

    formula: Formula
    free: tuple[str, ...] = ()
    sorts: Mapping[str, str] = field(default_factory=dict)  # of all its variables
    fixed: bool = False  # by its form: all atoms of a predicate with `!` blocks

    def otherwise(self, value: float) -> WeightedFormula:
        """The hard formula that the share is not 0, or not 1."""
        body = Not(self.formula) if value else self.formula
        return WeightedFormula(Exist(self.free, body) if self.free else body, None, dict(self.sorts), ())

    def holds(self, model: MarkovLogic, value: float) -> bool:
        """Whether every legal state gives it this value; False where that could not be decided."""
        if self.fixed:
            return True
        if value not in (0.0, 1.0):
            return False
        hard = [formula for formula in model.formulas if formula.hard]
        other = replace(model, formulas=(*hard, self.otherwise(value)))
        try:
            return hard_size(other) <= MOST_GROUND and decide(legal(other).solver, (), FEW_CONFLICTS) is False
        except TooLarge:
            return False


def claim_of(model: MarkovLogic, query: LogicQuery, formula: Formula) -> Claim:
    """What is asked of a formula of a query."""
    names = tuple(name for name, _ in query.free)
    fixed = False
    if query.count and isinstance(formula, Atom) and model.predicates[formula.predicate].exclusive:
        fixed = len({str(term) for term in formula.args}) == len(formula.args) == len(names)
    return Claim(formula, names, {**dict(query.free), **query.sorts}, fixed)


def ratio_proofs(model: MarkovLogic, query: LogicQuery) -> Callable[[float], bool]:
    """Whether a probability given a condition is 0 or 1 in every legal state that fulfils the condition."""
    assert query.condition is not None
    never = claim_of(model, query, And((query.formula, query.condition)))
    always = claim_of(model, query, Implies(query.condition, query.formula))

    @cache
    def proved(value: float) -> bool:
        return always.holds(model, 1.0) if value == 1.0 else value == 0.0 and never.holds(model, 0.0)

    return proved
