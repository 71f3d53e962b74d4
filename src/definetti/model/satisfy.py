"""Legal states of a Markov logic network by a satisfiability solver, and what clashes where there are none.

Only hard formulas are grounded. Each formula's clauses hang on a selector and evidence enters as assumptions, so that
a core of an unsatisfiable theory is a set of formulas and known atoms; it is made small by leaving out one after the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.formulas import quantified, terms
from definetti.model.hard_clauses import HardClauses, Numbering, evidence_literals, hard_clauses, hard_size
from definetti.model.logic import Constant, Evidence, MarkovLogic, Sort
from definetti.model.logic_text import atom_name, format_formula

SOLVER = "glucose4"
SHRINK_SECONDS = 3.0
MOST_CONFLICTS = 100_000  #: of one search
MOST_EXPLAINED = 2_000_000  #: literals; beyond, a clash is looked for among a few constants
SHOWN = 12

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Legal:
    """A solver loaded with the hard formulas of a model and its evidence."""

    model: MarkovLogic
    numbering: Numbering
    known: np.ndarray  # signed numbers of known atoms
    solver: Any

    def solve(self, wish: Mapping[str, bool | np.ndarray] | None = None) -> Values | None:
        """A legal state, or None. `wish` names values to prefer: one for a predicate, or one for each of its atoms."""
        if wish:
            self.solver.set_phases(self._phases(wish))
        if not answer(self.solver):
            return None
        truth = np.zeros(self.numbering.count + 1, dtype=bool)
        found = np.array(self.solver.get_model() or [], dtype=np.int64)
        truth[found[(found > 0) & (found <= self.numbering.count)]] = True
        if wish:  # variables that no clause mentions are as wished
            seen = np.zeros(self.numbering.count + 1, dtype=bool)
            seen[np.abs(found)[np.abs(found) <= self.numbering.count]] = True
            phases = np.array(self._phases(wish), dtype=np.int64)
            loose = phases[~seen[np.abs(phases)]]
            truth[np.abs(loose)] = loose > 0
        truth[np.abs(self.known)] = self.known > 0
        return {name: self._tensor(name, truth) for name in self.model.predicates}

    def possible(self, predicate: str, constants: Sequence[int], value: bool) -> bool:
        """Whether some legal state gives the atom this value."""
        literal = int(self.numbering.of(predicate, np.array([constants], dtype=np.int64).reshape(1, -1))[0])
        return answer(self.solver, [literal if value else -literal])

    def _phases(self, wish: Mapping[str, bool | np.ndarray]) -> list[int]:
        out: list[int] = []
        for name, value in wish.items():
            if name in self.numbering.start:
                shape = self.model.shape(name)
                sign = np.where(np.broadcast_to(value, shape), 1, -1).ravel()
                out += ((self.numbering.start[name] + np.arange(prod(shape))) * sign).tolist()
        return out

    def _tensor(self, name: str, truth: np.ndarray) -> np.ndarray:
        shape = self.model.shape(name)
        if name not in self.numbering.start:
            return np.zeros(shape, dtype=bool)
        start = self.numbering.start[name]
        return truth[start : start + prod(shape)].reshape(shape)


def answer(solver: Any, assumptions: Sequence[int] = ()) -> bool:
    """Whether there is a solution; a search that takes too long is `TooLarge`."""
    solver.conf_budget(MOST_CONFLICTS)
    found = solver.solve_limited(assumptions=list(assumptions))
    if found is None:
        raise TooLarge("the search for a legal state (conflicts)", MOST_CONFLICTS, MOST_CONFLICTS, "give a start")
    return bool(found)


def legal(model: MarkovLogic) -> Legal:
    """The solver; `TooLarge` before anything is built if the hard formulas have too many groundings."""
    from pysat.solvers import Solver

    ground = hard_clauses(model)
    known = evidence_literals(model, ground.numbering)
    solver = Solver(SOLVER)
    for _, rows in ground.groups:
        solver.append_formula(unresolved(rows, known, ground.numbering.count))
    solver.append_formula(known[:, None].tolist())
    return Legal(model, ground.numbering, known, solver)


def unresolved(rows: np.ndarray, known: np.ndarray, count: int) -> list[list[int]]:
    """Clauses that evidence does not make true."""
    value = np.zeros(count + 1, dtype=np.int8)
    value[np.abs(known)] = np.sign(known)
    done = (value[np.abs(rows)] * np.sign(rows) > 0).any(axis=1)
    return rows[~done].tolist()


# --- clashes ---------------------------------------------------------------------------------------------------------


def explain(model: MarkovLogic, reason: str = "") -> Unsatisfiable:
    """The error for a model without legal states: it names a small set of formulas and evidence that clash."""
    try:
        core = _clash(model)
    except TooLarge:
        core = None
    if core is None:
        return Unsatisfiable(reason or "the hard formulas and the evidence allow no state")
    formulas, atoms = core
    lines = [f"  {_formula_text(model, k)}" for k in formulas[:SHOWN]]
    lines += [f"  evidence {text}" for text in atoms[:SHOWN]]
    more = len(formulas) + len(atoms) - len(lines)
    lines += [f"  and {more} more"] if more > 0 else []
    what = "these hard formulas and this evidence clash" if atoms else "these hard formulas clash"
    return Unsatisfiable(
        f"no state is possible: {what}:\n" + "\n".join(lines) + "\nsoften a formula or correct the evidence"
    )


def _formula_text(model: MarkovLogic, k: int) -> str:
    if k < 0:
        names = ", ".join(p.name for p in model.predicates.values() if p.exclusive)
        return f"the `!` of {names}: exactly one value is true"
    formula = model.formulas[k]
    text = formula.source or f"{format_formula(formula.body, model.sorts)}."
    return f"{text}  (line {formula.line})" if formula.line else text


def _clash(model: MarkovLogic) -> tuple[list[int], list[str]] | None:
    """(formulas, evidence) that clash, or None if there is a legal state after all."""
    return few_clash(model, (1, 2, 3, 5, 9)) or _core(model)


def few_clash(model: MarkovLogic, sizes: Sequence[int] = (1, 3)) -> tuple[list[int], list[str]] | None:
    """A clash among a few constants: what a few cannot satisfy, all cannot, if nothing is existential."""
    if _universal(model):
        for few in sizes:
            small = _restricted(model, few)
            if small is not None and hard_size(small) <= MOST_EXPLAINED and (found := _core(small)) is not None:
                return found
    return None


def _universal(model: MarkovLogic) -> bool:
    hard = [f for f in model.formulas if f.hard]
    return not any(any(quantified(f.body)) for f in hard) and not any(p.exclusive for p in model.predicates.values())


def _restricted(model: MarkovLogic, few: int) -> MarkovLogic | None:
    """The model over the constants that hard formulas name and a few of each sort, those with evidence first."""
    keep: dict[str, np.ndarray] = {}
    for sort in model.sorts.values():
        named = {
            t.index
            for f in model.formulas
            if f.hard
            for t in terms(f.body)
            if isinstance(t, Constant) and t.sort == sort.name
        }
        seen = np.zeros(sort.size, dtype=np.int64)
        for name, known in model.evidence.items():
            for place, s in enumerate(model.predicates[name].sorts):
                if s == sort.name:
                    seen += np.bincount(known.tuples[:, place], minlength=sort.size)
        order = [i for i in np.argsort(-seen, kind="stable").tolist() if i not in named]
        keep[sort.name] = np.array(sorted(named | set(order[:few])), dtype=np.int64)
    if all(len(keep[s]) == model.sorts[s].size for s in model.sorts):
        return None
    return restrict(model, keep)


def restrict(model: MarkovLogic, keep: Mapping[str, np.ndarray]) -> MarkovLogic:
    """The hard part of a model over some of its constants."""
    new = {s: {int(c): i for i, c in enumerate(kept)} for s, kept in keep.items()}

    def rows(name: str, tuples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sorts = model.predicates[name].sorts
        inside = np.array(
            [all(int(c) in new[s] for c, s in zip(row, sorts, strict=True)) for row in tuples], dtype=bool
        )
        moved = [[new[s][int(c)] for c, s in zip(row, sorts, strict=True)] for row in tuples[inside]]
        return inside, np.array(moved, dtype=np.int32).reshape(int(inside.sum()), len(sorts))

    evidence, unknown = {}, {}
    for name, known in model.evidence.items():
        inside, tuples = rows(name, known.tuples)
        evidence[name] = Evidence(tuples, known.values[inside])
    for name, tuples in model.unknown.items():
        unknown[name] = rows(name, tuples)[1]
    formulas = tuple(replace(f, body=_renumbered(f.body, new)) if f.hard else f for f in model.formulas)
    sorts = {s.name: Sort(s.name, tuple(s.constants[c] for c in keep[s.name].tolist())) for s in model.sorts.values()}
    return replace(model, sorts=sorts, formulas=formulas, evidence=evidence, unknown=unknown)


def _renumbered(body: Any, new: Mapping[str, Mapping[int, int]]) -> Any:
    from definetti.model.formulas import parts, rebuild
    from definetti.model.logic import Atom, Equal, Truth

    def moved(term: Any) -> Any:
        return Constant(term.sort, new[term.sort][term.index]) if isinstance(term, Constant) else term

    match body:
        case Atom(predicate, args):
            return Atom(predicate, tuple(moved(t) for t in args))
        case Equal(left, right):
            return Equal(moved(left), moved(right))
        case Truth():
            return body
    return rebuild(body, tuple(_renumbered(part, new) for part in parts(body)))


def _core(model: MarkovLogic) -> tuple[list[int], list[str]] | None:
    from pysat.solvers import Solver

    ground = hard_clauses(model)
    known = evidence_literals(model, ground.numbering)
    with Solver(SOLVER) as solver:
        selectors = _load(solver, ground)
        if answer(solver, [*selectors, *known.tolist()]):
            return None
        core = list(solver.get_core() or [])
        core = _shrunk(core, lambda some: not answer(solver, some))
    formulas = sorted(selectors[s] for s in core if s in selectors)
    atoms = [_literal_text(model, ground.numbering, literal) for literal in core if literal not in selectors]
    return formulas, sorted(atoms)


def _load(solver: Any, ground: HardClauses) -> dict[int, int]:
    """selector → formula."""
    selectors: dict[int, int] = {}
    of: dict[int, int] = {}
    for k, rows in ground.groups:
        if k not in of:
            of[k] = ground.numbering.count + 1 + len(of)
            selectors[of[k]] = k
        solver.append_formula(np.concatenate([rows, np.full((len(rows), 1), -of[k])], 1).tolist())
    return selectors


def _shrunk(core: list[int], clashes: Callable[[list[int]], bool]) -> list[int]:
    """Leave out one element after the other while the rest still clashes, for a few seconds."""
    began, kept = perf_counter(), list(core)
    for element in core:
        if perf_counter() - began > SHRINK_SECONDS:
            break
        rest = [x for x in kept if x != element]
        try:
            if clashes(rest):
                kept = rest
        except TooLarge:
            continue
    return kept


def _literal_text(model: MarkovLogic, numbers: Numbering, literal: int) -> str:
    name, constants = numbers.atom(abs(literal))
    words = [model.sorts[s].constants[c] for s, c in zip(model.predicates[name].sorts, constants, strict=True)]
    closed = "  (closed world)" if name in model.closed and literal < 0 else ""
    return f"{'' if literal > 0 else '!'}{atom_name(name, words)}{closed}"
