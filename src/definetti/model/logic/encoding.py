"""A Markov logic network as a tree of arrays, numbers and texts, and back.

A formula is a list that begins with the name of its connective: ["Or", ["Atom", "Smokes", ["x"]], …]; a constant is
its sort and its number there.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Evidence,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Sort,
    Term,
    Truth,
    Variable,
    WeightedFormula,
)

LARGEST_WEIGHT = 1e100  # as in files
SEVERAL = {"And": And, "Or": Or}
PAIRS = {"Implies": Implies, "Iff": Iff}
QUANTIFIERS = {"Exist": Exist, "Forall": Forall}


def encoded(model: MarkovLogic) -> dict[str, Any]:
    return {
        "sorts": [[sort.name, list(sort.constants)] for sort in model.sorts.values()],
        "predicates": [[p.name, list(p.sorts), list(p.exclusive), p.function] for p in model.predicates.values()],
        "formulas": [_weighted(formula) for formula in model.formulas],
        "evidence": [[name, known.tuples, known.values] for name, known in model.evidence.items()],
        "closed": sorted(model.closed),
        "unknown": [[name, rows] for name, rows in model.unknown.items()],
        "sized": sorted(model.sized),
        "dialect": model.dialect,
        "unweighted": list(model.unweighted),
        "computed": sorted(model.computed),
    }


def _weighted(formula: WeightedFormula) -> dict[str, Any]:
    return {
        "body": _tree(formula.body),
        "weight": formula.weight if formula.weight is None else np.asarray(formula.weight, dtype=np.float64),
        "sorts": [[variable, sort] for variable, sort in formula.sorts.items()],
        "free": list(formula.free),
        "plus": list(formula.plus),
        "source": formula.source,
        "line": formula.line,
    }


def _tree(formula: Formula) -> list[Any]:
    name = type(formula).__name__
    match formula:
        case Truth(value):
            return [name, value]
        case Atom(predicate, args):
            return [name, predicate, [_term(t) for t in args]]
        case Equal(left, right):
            return [name, _term(left), _term(right)]
        case Not(part):
            return [name, _tree(part)]
        case And(parts) | Or(parts):
            return [name, *map(_tree, parts)]
        case Implies(left, right) | Iff(left, right):
            return [name, _tree(left), _tree(right)]
        case Exist(variables, body) | Forall(variables, body):
            return [name, list(variables), _tree(body)]


def _term(term: Term) -> str | list[Any]:
    return term.name if isinstance(term, Variable) else [term.sort, term.index]


# --- and back ---------------------------------------------------------------------------------------------------------


def decoded(tree: Any) -> MarkovLogic:
    sorts = {_text(name): Sort(name, tuple(map(_text, constants))) for name, constants in tree["sorts"]}
    for sort in sorts.values():
        _require(sort.size == len(sort.numbers))
    predicates = {_text(name): _predicate(name, *rest, sorts) for name, *rest in tree["predicates"]}
    shapes = {name: tuple(sorts[s].size for s in p.sorts) for name, p in predicates.items()}
    evidence = {_text(name): _evidence(rows, values, shapes[name]) for name, rows, values in tree["evidence"]}
    unknown = {_text(name): _rows(rows, shapes[name]) for name, rows in tree["unknown"]}
    formulas = tuple(_Reader(sorts, predicates, row).formula() for row in tree["formulas"])
    closed, sized, computed = (frozenset(map(_text, tree[part])) for part in ("closed", "sized", "computed"))
    _require((closed | computed) <= predicates.keys() and sized <= sorts.keys() and len(sorts) == len(tree["sorts"]))
    unweighted, dialect = tuple(map(operator.index, tree["unweighted"])), _text(tree["dialect"])
    _require(all(0 <= k < len(formulas) for k in unweighted))
    return MarkovLogic(sorts, predicates, formulas, evidence, closed, unknown, sized, dialect, unweighted, computed)


def _require(fine: Any) -> None:
    if not fine:
        raise ValueError


def _text(name: Any) -> str:
    _require(isinstance(name, str))
    return name


def _predicate(name: str, *rest: Any) -> Predicate:
    sorts, exclusive, function, known = rest
    _require(all(s in known for s in sorts) and all(type(k) is int and 0 <= k < len(sorts) for k in exclusive))
    _require(isinstance(function, bool))
    return Predicate(name, tuple(sorts), tuple(exclusive), function)


def _rows(rows: Any, shape: tuple[int, ...]) -> np.ndarray:
    _require(isinstance(rows, np.ndarray) and rows.dtype == np.int32 and rows.shape == (len(rows), len(shape)))
    _require(((rows >= 0) & (rows < np.array(shape, dtype=np.int64).reshape(1, -1))).all())
    return rows


def _evidence(rows: Any, values: Any, shape: tuple[int, ...]) -> Evidence:
    rows = _rows(rows, shape)
    _require(isinstance(values, np.ndarray) and values.dtype == np.int8 and values.shape == (len(rows),))
    _require(((values == 0) | (values == 1)).all() and len(np.unique(rows, axis=0)) == len(rows))
    return Evidence(rows, values)


class _Reader:
    """One formula, with the sorts of its variables."""

    def __init__(self, sorts: Mapping[str, Sort], predicates: Mapping[str, Predicate], row: Any) -> None:
        self.known, self.predicates, self.row = sorts, predicates, row
        self.sorts = {_text(variable): _text(sort) for variable, sort in row["sorts"]}
        self.bound: list[str] = []  # by quantifiers
        self.seen = set(map(_text, row["free"]))  # variables that may stand here

    def formula(self) -> WeightedFormula:
        row, names = self.row, set(self.sorts)
        body, free, plus = self.tree(row["body"]), tuple(row["free"]), tuple(row["plus"])
        _require(all(s in self.known for s in self.sorts.values()) and set(free) | set(self.bound) == names)
        _require(len(free) + len(self.bound) == len(names) and set(plus) <= set(free))
        _require(isinstance(row["source"], str) and (row["line"] is None or type(row["line"]) is int))
        weight = self.weight(row["weight"], tuple(self.known[self.sorts[v]].size for v in plus))
        return WeightedFormula(body, weight, self.sorts, free, plus, row["source"], row["line"])

    def weight(self, weight: Any, shape: tuple[int, ...]) -> float | np.ndarray | None:
        if weight is None:
            return None
        _require(isinstance(weight, np.ndarray) and weight.dtype == np.float64 and weight.shape == shape)
        _require((np.abs(weight) < LARGEST_WEIGHT).all())
        return weight if weight.ndim else float(weight)

    def tree(self, tree: list[Any]) -> Formula:
        name, *rest = tree
        if name == "Truth":
            _require(isinstance(rest[0], bool))
            return Truth(rest[0])
        if name == "Atom":
            places = zip(rest[1], self.predicates[rest[0]].sorts, strict=True)
            return Atom(rest[0], tuple(self.term(term, sort) for term, sort in places))
        if name == "Equal":
            sort = next(self.sort(term) for term in rest)
            return Equal(self.term(rest[0], sort), self.term(rest[1], sort))
        if name == "Not":
            return Not(self.tree(rest[0]))
        if name in SEVERAL:
            return SEVERAL[name](tuple(map(self.tree, rest)))
        if name in PAIRS:
            return PAIRS[name](self.tree(rest[0]), self.tree(rest[1]))
        variables = tuple(map(_text, rest[0]))
        self.bound += variables
        self.seen |= set(variables)
        body = self.tree(rest[1])
        self.seen -= set(variables)
        return QUANTIFIERS[name](variables, body)

    def sort(self, term: Any) -> str:
        return self.sorts[term] if isinstance(term, str) else term[0]

    def term(self, term: Any, sort: str) -> Term:
        if isinstance(term, str):
            _require(term in self.seen and self.sorts[term] == sort)
            return Variable(term)
        _require(term[0] == sort and type(term[1]) is int and 0 <= term[1] < self.known[sort].size)
        return Constant(sort, term[1])
