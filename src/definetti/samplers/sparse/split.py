"""Theories with a small sort, as theories without it: R(x,y,k) is one binary predicate for each k.

Formulas are written out over the constants of a small sort, so that `+k`, named constants and quantifiers over it are
gone too. A constant of another sort that a formula names becomes a variable with a mark, a unary predicate that is true
of this constant only: w f(C) = Σ_x w [mark(x) ^ f(x)]. Both are the same distribution, atom by atom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from definetti.model.logic.atom_orbits import AtomOrbits, pattern_pairs
from definetti.model.logic.formulas import atoms, parts, rebuild, substitute, terms
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Evidence,
    Exist,
    Forall,
    Formula,
    Implies,
    MarkovLogic,
    Or,
    Predicate,
    Term,
    Truth,
    Variable,
    WeightedFormula,
)
from definetti.samplers.sparse.normal_form import Unfit

MOST_VALUES = 8  # of a small sort
MOST_PREDICATES, MOST_FORMULAS, MOST_NAMED = 32, 1024, 6
MOST_BINARY = 8  # predicates: those of different shapes have row loops of their own, and compiling one takes seconds
HIDDEN = "\0"  # no name of a file holds this character


@dataclass(frozen=True, eq=False)
class Part:
    """A predicate of the split theory: an old one with some arguments fixed."""

    name: str  # of the old predicate
    fixed: tuple[tuple[int, int], ...]  # (argument, constant)
    kept: tuple[int, ...]  # arguments

    def inside(self, tuples: np.ndarray) -> np.ndarray:
        """bool: which rows of the old predicate are its atoms."""
        out = np.ones(len(tuples), bool)
        for j, k in self.fixed:
            out &= tuples[:, j] == k
        return out

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the old predicate from its own."""
        out = np.empty((len(rows), len(self.fixed) + len(self.kept)), rows.dtype)
        out[:, self.kept] = rows
        for j, k in self.fixed:
            out[:, j] = k
        return out

    def index(self) -> tuple[int | slice, ...]:
        """Of its atoms among those of the old predicate."""
        at = dict(self.fixed)
        return tuple(at.get(j, slice(None)) for j in range(len(self.fixed) + len(self.kept)))

    def cells(self, sorts: Sequence[str], orbits: AtomOrbits, values: np.ndarray) -> np.ndarray:
        """Values by the old predicate's classes and patterns, as values by its own."""
        pairs, at = pattern_pairs(sorts), dict(self.fixed)
        own = [pair for pair in pairs if set(pair) <= set(self.kept)]
        here = tuple(int(orbits.classes[j][at[j]]) if j in at else slice(None) for j in range(len(sorts)))
        base = sum(1 << b for b, (i, j) in enumerate(pairs) if i in at and j in at and at[i] == at[j])
        patterns = [
            base + sum(1 << pairs.index(pair) for b, pair in enumerate(own) if p >> b & 1) for p in range(1 << len(own))
        ]
        return values[here][..., patterns]


@dataclass(frozen=True, eq=False)
class Split:
    """`model` has no argument of a small sort; `parts` are its predicates, but for marks of constants."""

    source: MarkovLogic
    model: MarkovLogic
    parts: Mapping[str, Part]

    def of(self, name: str) -> Iterator[tuple[str, Part]]:
        """The predicates that an old one became."""
        return ((new, part) for new, part in self.parts.items() if part.name == name)

    def orbits(self, found: Mapping[str, AtomOrbits]) -> dict[str, AtomOrbits]:
        """Orbit numbers of the split predicates, those of the old ones."""
        out = {}
        for new, part in self.parts.items():
            if part.name in found:
                old, sorts = found[part.name], self.source.predicates[part.name].sorts
                classes = tuple(old.classes[j] for j in part.kept)
                out[new] = AtomOrbits(classes, part.cells(sorts, old, old.lookup)) if part.fixed else old
        return out

    def by_cells(self, found: Mapping[str, AtomOrbits], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The same for other values by classes and patterns."""
        return {
            new: part.cells(self.source.predicates[part.name].sorts, found[part.name], values[part.name])
            for new, part in self.parts.items()
            if part.name in values and part.name in found
        }


def split_sorts(model: MarkovLogic) -> Split:
    """The split theory; the theory itself where it has nothing to split. Raises `Unfit` where it would be too large."""
    if any(predicate.exclusive for predicate in model.predicates.values()):
        name = next(name for name, predicate in model.predicates.items() if predicate.exclusive)
        raise Unfit(f"{name} has exactly-one (`!`) arguments")
    small = small_sorts(model)
    named = named_constants(model, small)
    if not small and not named:
        whole = {n: Part(n, (), tuple(range(len(p.sorts)))) for n, p in model.predicates.items()}
        return Split(model, model, whole)
    found = dict(split_predicates(model, small))
    binary = sum(len(part.kept) == 2 for part in found.values())
    if len(found) > MOST_PREDICATES or len(named) > MOST_NAMED or (small and binary > MOST_BINARY):
        raise Unfit("written out over its small sorts and named constants the theory is too large")
    names = {(part.name, part.fixed): new for new, part in found.items() if part.kept}
    written = _Writing(model, small, names, {constant: f"{HIDDEN}{i}" for i, constant in enumerate(named)})
    formulas = tuple(made for formula in model.formulas for made in written.formulas(formula))
    if len(formulas) > MOST_FORMULAS:
        raise Unfit("written out over its small sorts the theory has too many formulas")
    kept = {new: part for new, part in found.items() if part.kept}
    return Split(model, _with_evidence(model, kept, written.marks, formulas), kept)


def small_sorts(model: MarkovLogic) -> frozenset[str]:
    """The sorts to write out: of arguments that are too many, and of `+`, named constants and quantifiers."""
    sizes = {name: sort.size for name, sort in model.sorts.items()}
    small = set()
    for predicate in model.predicates.values():
        for sort in sorted(set(predicate.sorts), key=lambda s: (sizes[s], predicate.sorts.count(s), s)):
            if sum(s not in small for s in predicate.sorts) > 2 and sizes[sort] <= MOST_VALUES:
                small.add(sort)
    for f in model.formulas:
        said = {f.sorts[x] for x in (*f.plus, *(set(f.sorts) - set(f.free)))}
        said |= {t.sort for t in terms(f.body) if isinstance(t, Constant)}
        for sort in sorted(said):
            if sizes[sort] <= MOST_VALUES and some_stay(model, small | {sort}):
                small.add(sort)
    return frozenset(small)


def some_stay(model: MarkovLogic, small: set[str]) -> bool:
    """Whether some predicate of two arguments would be left."""
    return any(sum(s not in small for s in predicate.sorts) == 2 for predicate in model.predicates.values())


def named_constants(model: MarkovLogic, small: frozenset[str]) -> list[Constant]:
    found = [t for f in model.formulas for t in terms(f.body) if isinstance(t, Constant) and t.sort not in small]
    return list(dict.fromkeys(found))


def split_predicates(model: MarkovLogic, small: frozenset[str]) -> Iterator[tuple[str, Part]]:
    for name, predicate in model.predicates.items():
        if not predicate.sorts:
            raise Unfit(f"{name} has 0 arguments")
        at = [j for j, sort in enumerate(predicate.sorts) if sort in small]
        kept = tuple(j for j in range(len(predicate.sorts)) if j not in at)
        if not kept and model.knowledge.free_count(name):
            raise Unfit(f"{name} is about constants of a small sort alone")
        for values in product(*(range(model.sorts[predicate.sorts[j]].size) for j in at)):
            new = name + "".join(f"{HIDDEN}{k}" for k in values)
            yield new, Part(name, tuple(zip(at, values, strict=True)), kept)


@dataclass
class _Writing:
    """Formulas over the split predicates."""

    model: MarkovLogic
    small: frozenset[str]
    names: Mapping[tuple[str, tuple[tuple[int, int], ...]], str]
    marks: Mapping[Constant, str]

    def formulas(self, f: WeightedFormula) -> Iterator[WeightedFormula]:
        out = [x for x in f.free if f.sorts[x] in self.small]
        for values in product(*(range(self.model.sorts[f.sorts[x]].size) for x in out)):
            at = dict(zip(out, values, strict=True))
            body = self.body(substitute(f.body, {x: Constant(f.sorts[x], k) for x, k in at.items()}), f.sorts)
            weight = f.weight
            if weight is not None and f.plus:
                weight = np.asarray(weight)[tuple(at.get(x, slice(None)) for x in f.plus)]
            body, more = self.marked(body, f.hard)
            kept = tuple(x for x in f.free if x not in at)
            sorts = {x: s for x, s in f.sorts.items() if s not in self.small} | more
            plus = tuple(x for x in f.plus if x not in at)
            yield replace(f, body=body, weight=weight, sorts=sorts, free=(*kept, *more), plus=plus)

    def body(self, f: Formula, sorts: Mapping[str, str]) -> Formula:
        match f:
            case Atom(name, args):
                fixed = tuple((j, t.index) for j, t in enumerate(args) if isinstance(t, Constant) and self.is_small(t))
                if fixed and len(fixed) == len(args):
                    return Truth(bool(self.model.knowledge.value(name, [k for _, k in fixed])))
                return Atom(self.names[name, fixed], tuple(t for t in args if not self.is_small(t)))
            case Equal(left, right) if self.is_small(left) and self.is_small(right):
                return Truth(left == right)
            case Exist(names, inner) | Forall(names, inner):
                out = [x for x in names if sorts[x] in self.small]
                values = product(*(range(self.model.sorts[sorts[x]].size) for x in out))
                each = tuple(
                    self.body(substitute(inner, {x: Constant(sorts[x], k) for x, k in zip(out, v, strict=True)}), sorts)
                    for v in values
                )
                left = tuple(x for x in names if x not in out)
                whole = Or(each) if isinstance(f, Exist) else And(each)
                return whole if not left else type(f)(left, each[0] if len(each) == 1 else whole)
        return rebuild(f, tuple(self.body(part, sorts) for part in parts(f)))

    def is_small(self, term: Term) -> bool:
        return isinstance(term, Constant) and term.sort in self.small

    def marked(self, body: Formula, hard: bool) -> tuple[Formula, dict[str, str]]:
        """The named constants as variables that are marked."""
        named = list(dict.fromkeys(t for t in terms(body) if isinstance(t, Constant)))
        if not named:
            return body, {}
        variable = {constant: Variable(f"{HIDDEN}{i}") for i, constant in enumerate(named)}
        said = And(tuple(Atom(self.marks[c], (variable[c],)) for c in named))
        body = _renamed(body, variable)
        return Implies(said, body) if hard else And((said, body)), {variable[c].name: c.sort for c in named}


def _renamed(f: Formula, variable: Mapping[Constant, Variable]) -> Formula:
    def new(t: Term) -> Term:
        return variable[t] if isinstance(t, Constant) else t

    match f:
        case Atom(name, args):
            return Atom(name, tuple(new(t) for t in args))
        case Equal(left, right):
            return Equal(new(left), new(right))
    return rebuild(f, tuple(_renamed(part, variable) for part in parts(f)))


def _with_evidence(
    model: MarkovLogic, found: Mapping[str, Part], marks: Mapping[Constant, str], formulas: tuple[WeightedFormula, ...]
) -> MarkovLogic:
    used = {atom.predicate for f in formulas for atom in atoms(f.body)}
    marks = {constant: name for constant, name in marks.items() if name in used}
    predicates = {
        new: Predicate(new, tuple(model.predicates[p.name].sorts[j] for j in p.kept)) for new, p in found.items()
    }
    predicates |= {name: Predicate(name, (constant.sort,)) for constant, name in marks.items()}
    evidence, unknown = {}, {}
    for new, part in found.items():
        if part.name in model.evidence:
            known = model.evidence[part.name]
            rows = part.inside(known.tuples)
            evidence[new] = Evidence(np.ascontiguousarray(known.tuples[rows][:, part.kept]), known.values[rows])
        if part.name in model.unknown:
            open_rows = model.unknown[part.name]
            unknown[new] = np.ascontiguousarray(open_rows[part.inside(open_rows)][:, part.kept])
    for constant, name in marks.items():
        evidence[name] = Evidence(np.array([[constant.index]], np.int32), np.ones(1, np.int8))
    closed = frozenset({new for new, part in found.items() if part.name in model.closed} | set(marks.values()))
    return MarkovLogic(model.sorts, predicates, formulas, evidence, closed, unknown)
