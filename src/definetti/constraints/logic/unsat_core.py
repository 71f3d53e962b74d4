"""A small unsatisfiable subset of the hard formulas and the evidence of a Markov logic network without legal states.

Each formula's clauses have a selector literal and evidence enters as assumptions, so that an unsatisfiable core is a
set of formulas and known atoms. It is shrunk by leaving out one element after the other: given enough time, to a
minimal unsatisfiable subset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.constraints.logic.clauses import HardClauses, Numbering, evidence_literals, hard_clauses, hard_size
from definetti.constraints.logic.legal_states import CURE, add_shorter
from definetti.constraints.logic.symmetry_breaking import Classes, interchangeable
from definetti.constraints.sat import (
    FEW_CONFLICTS,
    MOST_CONFLICTS,
    SOME_CONFLICTS,
    decide,
    new_solver,
    shrink,
    undecided,
)
from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.formulas import map_terms, quantified, terms
from definetti.model.logic.text import atom_name, format_formula
from definetti.model.logic.theory import Constant, Evidence, MarkovLogic, Sort, Term

MOST_EXPLAINED = 2_000_000  #: literals; beyond, a clash is looked for among a few constants
SHOWN = 12


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
    cure = "soften a formula or correct the evidence"
    found = Unsatisfiable(f"no state is possible: {what}:\n" + "\n".join(lines) + f"\n{cure}")
    found.explained = model
    return found


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

    def moved(term: Term) -> Term:
        return Constant(term.sort, new[term.sort][term.index]) if isinstance(term, Constant) else term

    def rows(name: str, tuples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sorts = model.predicates[name].sorts
        inside = np.array(
            [all(int(c) in new[s] for c, s in zip(row, sorts, strict=True)) for row in tuples], dtype=bool
        )
        found = [[new[s][int(c)] for c, s in zip(row, sorts, strict=True)] for row in tuples[inside]]
        return inside, np.array(found, dtype=np.int32).reshape(int(inside.sum()), len(sorts))

    evidence, unknown = {}, {}
    for name, known in model.evidence.items():
        inside, tuples = rows(name, known.tuples)
        evidence[name] = Evidence(tuples, known.values[inside])
    for name, tuples in model.unknown.items():
        unknown[name] = rows(name, tuples)[1]
    formulas = tuple(replace(f, body=map_terms(f.body, moved)) if f.hard else f for f in model.formulas)
    sorts = {s.name: Sort(s.name, tuple(s.constants[c] for c in keep[s.name].tolist())) for s in model.sorts.values()}
    return replace(model, sorts=sorts, formulas=formulas, evidence=evidence, unknown=unknown)


def _core(model: MarkovLogic) -> tuple[list[int], list[str]] | None:
    """A clash among all constants, or None if there is a legal state; `TooLarge` if neither is found."""
    ground = hard_clauses(model)
    with new_solver() as solver:
        selectors = _load(solver, ground)
        for way in _ways(model, ground, solver, selectors):
            found = decide(solver, [*way.guard, *selectors.values(), *way.stated], way.conflicts)
            if found and way.whole:
                return None
            if found is not False:
                continue
            core = shrink(solver, [a for a in solver.get_core() or [] if a not in way.guard], way.guard)
            known = [literal for a in core for literal in way.stated.get(a, ())]
            formulas = sorted(k for k, selector in selectors.items() if selector in core)
            return formulas, sorted(_literal_text(model, ground.numbering, literal) for literal in known)
    raise undecided(MOST_CONFLICTS, CURE)


def _load(solver: Any, ground: HardClauses) -> dict[int, int]:
    """formula → the selector that its clauses hang on."""
    selectors: dict[int, int] = {}
    for k, rows in ground.groups:
        selector = selectors.setdefault(k, ground.numbering.count + 1 + len(selectors))
        solver.append_formula(np.concatenate([rows, np.full((len(rows), 1), -selector)], 1).tolist())
    return selectors


@dataclass(frozen=True)
class Way:
    """A search: `guard` cuts witnesses short, `stated` has the evidence that each of its assumptions stands for."""

    guard: tuple[int, ...]
    stated: Mapping[int, list[int]]
    conflicts: int
    whole: bool = True  # all evidence is stated


def _ways(model: MarkovLogic, ground: HardClauses, solver: Any, selectors: Mapping[int, int]) -> Iterator[Way]:
    """As in `Legal` a short plain search, then witnesses cut short, then a long plain search. Witnesses are cut short
    by what is interchangeable: in the formulas alone, then with the evidence, where evidence that is alike is left out
    together, or what is left would not be symmetric."""
    known = evidence_literals(model, ground.numbering)
    alone = {literal: [literal] for literal in known.tolist()}
    yield Way((), alone, FEW_CONFLICTS)
    used = ground.numbering.count + len(selectors)
    if len(known):
        classes = interchangeable(without_evidence(model))
        guards = add_shorter(solver, classes, ground.choices, known[:0], used, selectors)
        yield from (Way((guard,), {}, SOME_CONFLICTS, whole=False) for guard in guards)
        used += len(guards)
    classes, alike = interchangeable(model), {}
    for literals in _alike(ground.numbering, classes, known):
        used += 1
        alike[used] = literals
        solver.append_formula([[-used, literal] for literal in literals])
    for guard in add_shorter(solver, classes, ground.choices, known, used, selectors):
        yield Way((guard,), alike, SOME_CONFLICTS)
    yield Way((), alone, MOST_CONFLICTS)


def without_evidence(model: MarkovLogic) -> MarkovLogic:
    """The model without its evidence."""
    return replace(model, evidence={}, closed=frozenset(), unknown={})


def _alike(numbers: Numbering, classes: Mapping[str, Classes], known: np.ndarray) -> Iterable[list[int]]:
    """Known atoms together with all those that renamings may turn them into."""
    found: dict[tuple, list[int]] = {}
    for literal in known.tolist():
        name, constants = numbers.atom(abs(literal))
        sorts = numbers.model.predicates[name].sorts
        kinds = [
            (int(classes[s].of[c]), c if classes[s].of[c] < 0 else -1) for s, c in zip(sorts, constants, strict=True)
        ]
        found.setdefault((name, literal > 0, *kinds), []).append(literal)
    return found.values()


def _literal_text(model: MarkovLogic, numbers: Numbering, literal: int) -> str:
    name, constants = numbers.atom(abs(literal))
    words = [model.sorts[s].constants[c] for s, c in zip(model.predicates[name].sorts, constants, strict=True)]
    closed = "  (closed world)" if name in model.closed and literal < 0 else ""
    return f"{'' if literal > 0 else '!'}{atom_name(name, words)}{closed}"
