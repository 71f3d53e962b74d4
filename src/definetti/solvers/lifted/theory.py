"""A Markov logic network as rules over at most two terms: what lifted counting works on.

Quantifiers become predicates of their own by Skolemisation (Van den Broeck, Meert and Darwiche 2014): Z(x)
stands for EXIST y f(x,y), held to it by Z(x) v !f(x,y), S(x) v !f(x,y), Z(x) v S(x), with the weight -1 where
S(x) is false. A constant beside two other terms is taken into a predicate of its own: `Friends(x,Anna)` becomes
a property of x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from definetti.model.logic.formulas import atoms, free_variables, parts, rebuild, substitute, terms
from definetti.model.logic.normal_forms import hard_parts, negation_normal
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Term,
    Variable,
    WeightedFormula,
)

MOST_GLOBAL = 10  #: predicates without arguments: each doubles the work


class NotLiftable(Exception):
    """Inside the package: lifted counting does not apply; the text says why."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A formula without quantifiers over at most two terms. `weight`: None for a hard rule, logarithms of weights (one
    axis per place in `plus`), or a factor of the weight itself."""

    body: Formula
    terms: tuple[Term, ...]
    sorts: tuple[str, ...]
    weight: float | np.ndarray | Fraction | None
    plus: tuple[int, ...] = ()  # places among the terms

    @cached_property
    def values(self) -> tuple[list[float], np.ndarray]:
        """The different logarithms of weights, and which of them each element of `weight` is."""
        weight = np.asarray(self.weight, dtype=float)
        values, places = np.unique(weight, return_inverse=True)
        return values.tolist(), places.reshape(weight.shape)

    def letter(self, place: int) -> float | Fraction | None:
        """The weight at a place among `values`: a logarithm, a factor, or None for a hard rule."""
        return self.weight if self.weight is None or isinstance(self.weight, Fraction) else self.values[0][place]


@dataclass(frozen=True, eq=False)
class Theory:
    """Rules, and the predicates that they mention: those of the model and those made here."""

    model: MarkovLogic
    rules: tuple[Rule, ...]
    predicates: Mapping[str, Predicate]
    signed: bool  # a weight is negative: sums cancel

    @property
    def idle(self) -> tuple[str, ...]:
        """Predicates that no rule mentions: their free atoms are fair coins."""
        return tuple(name for name in self.model.predicates if name not in self.predicates)


@dataclass
class _Work:
    model: MarkovLogic
    predicates: dict[str, Predicate]
    rules: list[Rule] = field(default_factory=list)
    made: dict[Any, str] = field(default_factory=dict)
    signed: bool = False

    def new(self, kind: str, sorts: tuple[str, ...]) -> str:
        name = f"{kind} {len(self.predicates)}"  # a space: no name of the user's has one
        self.predicates[name] = Predicate(name, sorts)
        return name


def theory_of(model: MarkovLogic, weights: Mapping[str, tuple[Fraction, Fraction]] | None = None) -> Theory:
    """The rules of a model; `weights` gives atoms of a predicate factors (true, false)."""
    work = _Work(model, dict(model.predicates))
    for number, formula in enumerate(model.formulas, start=1):
        if formula.weight is not None and not np.any(formula.weight):
            continue
        for piece in hard_parts(formula) if formula.hard else [formula]:
            _take(work, piece, number)
    for name, pair in (weights or {}).items():
        _weigh(work, name, pair)
    used = {atom.predicate for rule in work.rules for atom in atoms(rule.body)}
    predicates = {name: p for name, p in work.predicates.items() if name in used}
    for p in predicates.values():
        if p.exclusive:
            raise NotLiftable(f"{p.name} has an argument with !")
        if len(p.sorts) > 2:
            raise NotLiftable(f"{p.name} has {len(p.sorts)} arguments")
    if sum(not p.sorts for p in predicates.values()) > MOST_GLOBAL:
        raise NotLiftable(f"more than {MOST_GLOBAL} propositions or constants tied across formulas")
    return Theory(model, tuple(work.rules), predicates, work.signed)


def _weigh(work: _Work, name: str, pair: tuple[Fraction, Fraction]) -> None:
    predicate = work.model.predicates[name]
    variables = tuple(Variable(f"x{k}") for k in range(len(predicate.sorts)))
    atom = Atom(name, variables)
    for body, factor in ((atom, pair[0]), (Not(atom), pair[1])):
        work.signed |= factor < 0
        work.rules.append(Rule(body, variables, predicate.sorts, Fraction(factor)))


def _take(work: _Work, formula: WeightedFormula, number: int) -> None:
    body = formula.body
    if any(isinstance(f, Exist | Forall) for f in _subformulas(body)):
        body = _without_quantifiers(work, _scoped(negation_normal(body)), formula.sorts, number)
    _add(work, replace(formula, body=body), number)


def _add(work: _Work, formula: WeightedFormula, number: int) -> None:
    """A rule of the formula; constants beside too many other terms become predicates first."""
    free = tuple(Variable(name) for name in formula.free)
    if len(free) > 2:
        words = {3: "three", 4: "four", 5: "five"}
        raise NotLiftable(f"{words.get(len(free), len(free))} variables in formula {number}")
    named = tuple(dict.fromkeys(t for t in terms(formula.body) if isinstance(t, Constant)))
    body = formula.body
    if len(free) + len(named) > 2:
        body, named = _loose(work, body, formula.sorts), ()
    sorts = tuple(formula.sorts[v.name] for v in free) + tuple(c.sort for c in named)
    plus = tuple(formula.free.index(name) for name in formula.plus)
    work.rules.append(Rule(body, (*free, *named), sorts, formula.weight, plus))


def _loose(work: _Work, body: Formula, sorts: Mapping[str, str]) -> Formula:
    """Atoms and equalities with constants as predicates of their variables alone."""
    if isinstance(body, Atom | Equal):
        args = body.args if isinstance(body, Atom) else (body.left, body.right)
        if not any(isinstance(t, Constant) for t in args):
            return body
        names = tuple(dict.fromkeys(t.name for t in args if isinstance(t, Variable)))
        plain = {name: Variable(f"x{k}") for k, name in enumerate(names)}
        key = substitute(body, plain)
        if key not in work.made:
            work.made[key] = work.new("named", tuple(sorts[name] for name in names))
            same = Iff(Atom(work.made[key], tuple(plain.values())), key)
            named = tuple(dict.fromkeys(t for t in terms(key) if isinstance(t, Constant)))
            own = tuple(sorts[name] for name in names)
            rule = Rule(same, (*plain.values(), *named), own + tuple(c.sort for c in named), None)
            work.rules.append(rule)
        return Atom(work.made[key], tuple(Variable(name) for name in names))
    return rebuild(body, tuple(_loose(work, part, sorts) for part in parts(body)))


# --- quantifiers ---------------------------------------------------------------------------------------------


def _subformulas(formula: Formula) -> list[Formula]:
    return [formula, *(f for part in parts(formula) for f in _subformulas(part))]


def _scoped(formula: Formula) -> Formula:
    """Quantifiers as far inside as they go: over the parts that mention their variable (negation normal form)."""
    if not isinstance(formula, Exist | Forall):
        return rebuild(formula, tuple(_scoped(part) for part in parts(formula)))
    kind, body = type(formula), _scoped(formula.body)
    for name in reversed(formula.variables):
        body = _scope_one(kind, name, body)
    return body


def _scope_one(kind: type, name: str, body: Formula) -> Formula:
    if name not in free_variables(body):
        return body  # no sort is empty
    splits, keeps = (Or, And) if kind is Exist else (And, Or)
    if isinstance(body, splits):
        return splits(tuple(_scope_one(kind, name, part) for part in body.parts))
    if isinstance(body, keeps):
        inside = tuple(part for part in body.parts if name in free_variables(part))
        outside = tuple(part for part in body.parts if name not in free_variables(part))
        if outside:
            return keeps((*outside, _scope_one(kind, name, inside[0] if len(inside) == 1 else keeps(inside))))
    return kind((name,), body)


def _without_quantifiers(work: _Work, body: Formula, sorts: Mapping[str, str], number: int) -> Formula:
    if isinstance(body, Forall):
        return Not(_without_quantifiers(work, Exist(body.variables, Not(body.body)), sorts, number))
    if not isinstance(body, Exist):
        return rebuild(body, tuple(_without_quantifiers(work, part, sorts, number) for part in parts(body)))
    names, inner = list(body.variables), body.body
    while isinstance(inner, Exist) and len(free_variables(inner.body)) <= 2:
        names, inner = [*names, *inner.variables], inner.body
    inner = _without_quantifiers(work, inner, sorts, number)
    return _skolem(work, tuple(names), inner, sorts, number)


def _skolem(work: _Work, names: tuple[str, ...], inner: Formula, sorts: Mapping[str, str], number: int) -> Formula:
    """The atom that stands for EXIST names inner, after adding what ties it to that."""
    free = tuple(name for name in free_variables(inner) if name not in names)
    if len({*free_variables(inner)}) > 2:
        raise NotLiftable(f"three variables in formula {number}, under a quantifier")
    order = {name: f"x{k}" for k, name in enumerate(dict.fromkeys([*free, *free_variables(inner)]))}
    plain = {new: sorts[old] for old, new in order.items()}
    canonical = substitute(inner, {old: Variable(new) for old, new in order.items()})
    key = ("exist", canonical, tuple(plain.items()), len(free))
    if key not in work.made:
        own = tuple(sorts[name] for name in free)
        holder, sign = work.new("exist", own), work.new("sign", own)
        work.made[key], work.signed = holder, True
        args = tuple(Variable(order[name]) for name in free)
        z, s = Atom(holder, args), Atom(sign, args)
        for rule in (Or((z, Not(canonical))), Or((s, Not(canonical))), Or((z, s))):
            kept = {name: plain[name] for name in plain if name in free_variables(rule)}
            _add(work, WeightedFormula(rule, None, kept, tuple(kept)), number)
        work.rules.append(Rule(Not(s), args, own, Fraction(-1)))
    return Atom(work.made[key], tuple(Variable(name) for name in free))
