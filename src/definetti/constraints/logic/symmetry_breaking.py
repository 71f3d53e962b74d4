"""Symmetry breaking for existential formulas: the least number heuristic of finite model finders, as shorter clauses.

Let T be a theory that renamings within classes of interchangeable constants leave alone. Its clauses that ask for
witnesses (an existential formula, a value of each `!` block) have ground instances, *cells*; put all of them, or
some, into one order t₁, t₂, … Let e be the number of witnesses in a class S = {c₁, c₂, …} that tₖ may ask for, pₖ the
highest number of a member of S that its universal variables take, m₀ = 0 and mₖ = max(pₖ, mₖ₋₁) + e.

**Lemma.** T has a model if and only if it has one in which each cell tₖ is true by a literal whose witnesses in S are
among c₁ … c_mₖ, for every class S; other constants serve everywhere.

*Proof.* Given a model M, choose for each class an injection τ of its names c₁, c₂, … into its members, step by step.
Before tₖ it is defined on the first mₖ₋₁ names at most; define it on the names up to pₖ as well, by members not taken
yet. The cell that tₖ becomes under τ is true in M by some literal. Let τ take those of its witnesses that it does not
take yet, at most e of them, as the next names: these are not beyond mₖ. In the end let τ be a permutation. M renamed by
the inverse of τ satisfies T, which the renaming leaves alone, and tₖ by the literal chosen: its witnesses are up to
c_mₖ. ∎

The order is ours to choose. One formula after the other, its cells by the highest number in them, without those that
evidence makes true: the first formula is cut short most, `EXIST y R(x,y)` at the k-th x to the first k + 1 constants
(the first k if y is of another sort), and a formula that follows only where numbers are left. Each formula is taken
as the first one in turn. The order without a last element and the pigeonhole are then refuted by unit propagation.

A state that satisfies the shorter clauses is a legal state, but a special one: it is asked for where a plain search
does not end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from definetti.constraints.logic.clauses import Choices
from definetti.integer_rows import distinct
from definetti.model.logic.formulas import atoms, terms
from definetti.model.logic.theory import Constant, MarkovLogic

Shorter = list[tuple[int, list[list[int]]]]  # (formula, clauses that replace longer ones)


@dataclass(frozen=True, eq=False)
class Classes:
    """Of the constants of a sort: the class (-1: in none) and the number within it, from 1."""

    of: np.ndarray
    number: np.ndarray
    sizes: np.ndarray


def interchangeable(model: MarkovLogic) -> dict[str, Classes]:
    """Constants that no hard formula names and evidence mentions only alone, P(a) or P(a,a), by what it says of them.

    `model/logic/interchangeable.py` knows more such constants; these need no search and are most of them here.
    """
    codes = {name: [np.zeros(sort.size, dtype=np.int64)] for name, sort in model.sorts.items()}
    named = {name: np.zeros(sort.size, dtype=bool) for name, sort in model.sorts.items()}
    for term in (t for f in model.formulas if f.hard for t in terms(f.body)):
        if isinstance(term, Constant):
            named[term.sort][term.index] = True
    held = {atom.predicate for f in model.formulas if f.hard for atom in atoms(f.body)}
    for name, predicate in model.predicates.items():
        stated = model.knowledge.stated(name)
        if not predicate.sorts or not len(stated.codes) or not (name in held or predicate.exclusive):
            continue
        rows, sorts = stated.tuples, predicate.sorts
        alone = (rows == rows[:, :1]).all(axis=1) & (len(set(sorts)) == 1)
        for place, sort in enumerate(sorts):
            named[sort][rows[~alone, place]] = True
        column = np.full(model.sorts[sorts[0]].size, stated.default, dtype=np.int64)
        column[rows[alone, 0]] = stated.codes[alone]
        codes[sorts[0]].append(column)
    return {name: _classes(np.stack(codes[name], axis=1), named[name]) for name in model.sorts}


def _classes(codes: np.ndarray, named: np.ndarray) -> Classes:
    of = np.full(len(codes), -1, dtype=np.int64)
    number = np.zeros(len(codes), dtype=np.int64)
    _, of[~named], sizes = distinct(codes[~named])
    for k in range(len(sizes)):
        number[of == k] = np.arange(1, sizes[k] + 1)
    return Classes(of, number, sizes)


def shorter_clauses(classes: Mapping[str, Classes], choices: Sequence[Choices], known: np.ndarray) -> Iterator[Shorter]:
    """For each choice of what comes first: the clauses that become shorter. Each is sound, several together are not.

    `known`: the atoms that evidence decides, as signed numbers.
    """
    left = [_undecided(asking, known) for asking in choices]
    for k, first in enumerate(left):
        used: dict[tuple[str, int], int] = {}
        found = [(c.formula, _cut(classes, c, used)) for c in (first, *left[:k], *left[k + 1 :])]
        if found[0][1]:
            yield found


def _undecided(asking: Choices, known: np.ndarray) -> Choices:
    """The rows that evidence does not make true."""
    rest = ~np.isin(asking.rows, known).any(axis=1)
    return replace(asking, rows=asking.rows[rest], cells=tuple((sort, values[rest]) for sort, values in asking.cells))


def _cut(classes: Mapping[str, Classes], asking: Choices, used: dict[tuple[str, int], int]) -> list[list[int]]:
    """The rows that lose literals, without them; `used` (sort, class) → m, as far as it has come."""
    highest = np.zeros(len(asking.rows), dtype=np.int64)
    for sort, constants in asking.cells:
        highest = np.maximum(highest, classes[sort].number[constants])
    order = np.argsort(highest, kind="stable")
    kept = np.ones(asking.rows.shape, dtype=bool)
    for sort, known in classes.items():
        for k in range(len(known.sizes)):
            most = _bounds(asking, sort, known, k, order, used)
            if asking.asked.get(sort, 0):
                kept &= most[:, None] >= _needed(asking, sort, known, k)[None, :]
    shorter = np.flatnonzero(~kept.all(axis=1))
    return [asking.rows[i][kept[i]].tolist() for i in shorter.tolist()]


def _bounds(
    asking: Choices, sort: str, known: Classes, k: int, order: np.ndarray, used: dict[tuple[str, int], int]
) -> np.ndarray:
    """mₖ of each row for a class: mₖ = e (k + 1) + max(m₀, max over j ≤ k of pⱼ − e j), rows counted from 0."""
    highest = np.zeros(len(order), dtype=np.int64)
    for other, constants in asking.cells:
        if other == sort:
            mine = known.of[constants] == k
            highest = np.maximum(highest, np.where(mine, known.number[constants], 0))
    e = asking.asked.get(sort, 0)
    steps = np.arange(len(order))
    before = np.maximum.accumulate(np.maximum(highest[order] - e * steps, used.get((sort, k), 0)))
    most = np.empty(len(order), dtype=np.int64)
    most[order] = before + e * (steps + 1)
    if len(order):
        used[sort, k] = int(most[order[-1]])
    return most


def _needed(asking: Choices, sort: str, known: Classes, k: int) -> np.ndarray:
    """For each column the highest number of a member of the class in it."""
    numbers = [
        [int(known.number[t.index]) for t in column if t.sort == sort and known.of[t.index] == k]
        for column in asking.columns
    ]
    return np.array([max(some, default=0) for some in numbers], dtype=np.int64)
