"""States of a Markov logic network that its formulas, predicates and orbits describe: where chains begin to look for
modes.

A needle is a mode that single moves find only from nearby, such as all true under `FORALL x (P(x) ^ Q(x))`. Most of
them are wholly true or false in each predicate; a tournament under `FORALL x,y (x = y v (E(x,y) <=> !E(y,x)))` is not,
and a satisfiability solver finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from definetti.constraints.logic.clauses import hard_size
from definetti.constraints.logic.legal_states import legal
from definetti.errors import TooLarge
from definetti.model.logic.formulas import parts, quantified, with_body
from definetti.model.logic.normal_forms import negation_normal
from definetti.model.logic.theory import Atom, Formula, MarkovLogic, Not, WeightedFormula
from definetti.modes.walkers import SHARES

MOST_TOGETHER = 3  # predicates of which every combination of all true and all false is tried
MOST_VALUES = 8  # of an exactly-one block, or orbits, that are tried in turn
MOST_NAMED = 8  # formulas that are solved for
WIDE = 4  # atoms: formulas of fewer are met by single moves
MOST_LITERALS = 100_000  # of the ground clauses of all that is solved

Atoms = dict[str, np.ndarray]  # predicate → bool of every atom
Pattern = Mapping[str, Any]  # predicate → bool, or bool of every atom


def predicate_patterns(model: MarkovLogic, free: Sequence[str]) -> list[Pattern]:
    """Predicates that a start has wholly true or wholly false, the others being drawn: as each formula wants them, and
    as it does not; every combination of few predicates; each one in turn. All true and all false are not among
    them."""
    found: list[dict[str, bool]] = []
    for formula in model.formulas:
        sides: dict[str, set[bool]] = {}
        for name, positive in polarities(negation_normal(formula.body)):
            sides.setdefault(name, set()).add(positive)
        wanted = {name: next(iter(side)) for name, side in sides.items() if len(side) == 1 and name in free}
        found += [wanted, {name: not value for name, value in wanted.items()}]
    if len(free) <= MOST_TOGETHER:
        found += [dict(zip(free, values, strict=True)) for values in product((True, False), repeat=len(free))]
    found += [{name: value} for value in (True, False) for name in free]
    same = [pattern for pattern in found if len(pattern) == len(free) and len(set(pattern.values())) == 1]
    distinct = {tuple(sorted(pattern.items())): pattern for pattern in found if pattern and pattern not in same}
    return list(distinct.values())


def polarities(formula: Formula) -> Iterator[tuple[str, bool]]:
    """(predicate, positive) of every literal of a formula in negation normal form."""
    if isinstance(formula, Atom):
        yield formula.predicate, True
    elif isinstance(formula, Not) and isinstance(formula.part, Atom):
        yield formula.part.predicate, False
    else:
        for part in parts(formula):
            yield from polarities(part)


def value_patterns(model: MarkovLogic, free: Sequence[str]) -> list[Pattern]:
    """Each value of an exactly-one block everywhere."""
    out: list[Pattern] = []
    for name in free:
        places, shape = model.predicates[name].exclusive, model.shape(name)
        if len(places) == 1 and shape[places[0]] <= MOST_VALUES:
            value = np.indices(shape)[places[0]]
            out += [{name: value == v} for v in range(shape[places[0]])]
    return out[:MOST_VALUES]


def orbit_patterns(group: Any, free: Sequence[str]) -> list[Pattern]:
    """Each orbit of atoms true and the others false, and the other way round, where there are few of them: things of
    which other things are known may be in other modes."""
    numbers = {}
    for name in free:
        shape = group.model.shape(name)
        tuples = np.stack([axis.ravel() for axis in np.indices(shape)], axis=1) if shape else np.zeros((1, 0), int)
        numbers[name] = group.orbit_numbers(name, tuples).reshape(shape)
    kinds = np.unique(np.concatenate([number.ravel() for number in numbers.values()])) if numbers else np.zeros(0)
    kinds = kinds[kinds >= 0]
    if not 1 < len(kinds) <= MOST_VALUES or len(kinds) <= len(free):
        return []  # one orbit a predicate: `predicate_patterns`
    one = [{name: number == k for name, number in numbers.items()} for k in kinds.tolist()]
    return [*one, *({name: ~tensor for name, tensor in pattern.items()} for pattern in one if len(kinds) > 2)]


def named_states(model: MarkovLogic, wish: Callable[[], Mapping[str, np.ndarray]]) -> list[Pattern]:
    """States in which a wide formula is true of everything, states in which it is true of nothing, and one in which
    as many such formulas as possible have what they want, one after the other. `wish`: what such states are near."""
    wide = [f for f in model.formulas if f.weight is not None and is_wide(f.body)][:MOST_NAMED]
    wide.sort(key=lambda f: -float(np.max(np.abs(f.weight))))  # pyright: ignore[reportArgumentType, reportCallIssue]
    left, out, together = MOST_LITERALS, list[Pattern](), list[WeightedFormula]()

    def solve(*more: WeightedFormula) -> bool:
        """Whether a legal state was found in which further formulas hold."""
        nonlocal left
        asked = replace(model, formulas=(*(f for f in model.formulas if f.hard), *more))
        size = hard_size(asked)
        if size > left:
            return False
        left -= size
        found = _solved(asked, wish())
        out.extend([] if found is None else [found])
        return found is not None

    for formula in wide:
        wanted, other = (with_body(formula, side, None) for side in _sides(formula))
        possible = solve(wanted)
        solve(other)
        if possible and (not together or solve(*together, wanted)):
            together.append(wanted)
    return out


def _sides(formula: WeightedFormula) -> tuple[Formula, Formula]:
    """What the weight wants, and the opposite."""
    yes, no = formula.body, Not(formula.body)
    return (yes, no) if float(np.sum(formula.weight)) >= 0 else (no, yes)  # pyright: ignore[reportArgumentType, reportCallIssue]


def is_wide(formula: Formula) -> bool:
    """Whether a ground formula has many atoms."""
    return any(quantified(formula)) or _atoms(formula) >= WIDE


def _atoms(formula: Formula) -> int:
    return isinstance(formula, Atom) + sum(map(_atoms, parts(formula)))


def _solved(model: MarkovLogic, wish: Mapping[str, np.ndarray]) -> Pattern | None:
    """A legal state; None where there is none, or where that is hard to say."""
    solver = legal(model)
    try:
        return solver.solve(wish) if solver.satisfiable() else None
    except TooLarge:
        return None


def mixed_atoms(
    model: MarkovLogic, group: Any, way: int, first: Atoms, second: Atoms, rng: np.random.Generator
) -> Atoms:
    """Of two states: each constant, or each class of them, takes the atoms in which it comes first from one of them;
    or each predicate does (`way`: a number of `SHARES`)."""
    differ = [name for name in first if not np.array_equal(first[name], second[name])]
    if SHARES[way] is None and way % 2 and len(differ) > 1:
        taken = rng.permutation(differ)[: int(rng.integers(1, len(differ)))].tolist()
        return first | {name: second[name] for name in taken}
    take, out = _some_constants(model, group, SHARES[way], rng), dict(first)
    for name, predicate in model.predicates.items():
        if predicate.sorts and 0 not in predicate.exclusive:
            mask = take[predicate.sorts[0]].reshape(-1, *[1] * (len(predicate.sorts) - 1))
            out[name] = np.where(mask, second[name], first[name])
    return out


def _some_constants(
    model: MarkovLogic, group: Any, share: float | None, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """bool of the constants of each sort: this share of them; None: where they fall into classes, some of the
    classes."""
    if share is not None:
        return {s: rng.random(sort.size) < share for s, sort in model.sorts.items()}
    known = group.constants.nodes.start  # without the sorts that queries bring
    classes = {s: group.constants.of_sort(s) for s in model.sorts if s in known}
    out = {s: rng.random(sort.size) < 0.5 for s, sort in model.sorts.items() if s not in known}
    out |= {s: rng.random(len(of)) < 0.5 for s, of in classes.items()}
    for s, of in classes.items():
        if (count := int(of.max(initial=0)) + 1) > 1:
            out[s] = np.isin(of, rng.permutation(count)[: int(rng.integers(1, count))])
    return out
