"""Legal states of a Markov logic network by a satisfiability solver.

Only hard formulas are grounded. Searches have a conflict budget. One that exceeds it is tried again with symmetry
breaking (`symmetry_breaking.py`), which changes no theory's satisfiability and refutes at once what has no short proof
by resolution: more pigeons than holes, orders without a last element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from definetti.constraints.logic.clauses import Choices, Numbering, evidence_literals, hard_clauses
from definetti.constraints.logic.symmetry_breaking import Classes, interchangeable, shorter_clauses
from definetti.constraints.sat import (
    FEW_CONFLICTS,
    MOST_CONFLICTS,
    SOME_CONFLICTS,
    decide,
    new_solver,
    undecided,
)
from definetti.model.logic.theory import MarkovLogic

CURE = "give a start, or soften a formula"

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Legal:
    """A solver loaded with the hard formulas of a model and its evidence."""

    model: MarkovLogic
    numbering: Numbering
    known: np.ndarray  # signed numbers of known atoms
    solver: Any
    choices: tuple[Choices, ...]
    classes: Mapping[str, Classes]

    def solve(self, wish: Mapping[str, bool | np.ndarray] | None = None) -> Values | None:
        """A legal state, or None. `wish` names values to prefer: one for a predicate, or one for each of its atoms."""
        if wish:
            self.solver.set_phases(self._phases(wish))
        possible = self.satisfiable()
        if possible is None:
            possible = decide(self.solver, (), MOST_CONFLICTS)
        if possible is None:
            raise undecided(MOST_CONFLICTS, CURE)
        if not possible:
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

    @cached_property
    def _shorter(self) -> list[int]:
        return add_shorter(self.solver, self.classes, self.choices, self.known, self.numbering.count)

    def satisfiable(self) -> bool | None:
        """Whether there is a legal state, None if a short search does not decide.

        It is plain at first: what is found with witnesses cut short is legal, but always much the same.
        """
        found = decide(self.solver, (), FEW_CONFLICTS)
        if found is None:
            every = (decide(self.solver, (guard,), SOME_CONFLICTS) for guard in self._shorter)
            found = next((one for one in every if one is not None), None)
        return found

    def possible(self, predicate: str, constants: Sequence[int], value: bool) -> bool:
        """Whether some legal state gives the atom this value."""
        literal = int(self.numbering.of(predicate, np.array([constants], dtype=np.int64).reshape(1, -1))[0])
        found = decide(self.solver, [literal if value else -literal], MOST_CONFLICTS)
        if found is None:
            raise undecided(MOST_CONFLICTS, CURE)
        return found

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


def legal(model: MarkovLogic, source: MarkovLogic | None = None) -> Legal:
    """The solver; `TooLarge` before anything is built if the hard formulas have too many groundings.

    `source`: the model before forced atoms became evidence. It has the same states, and what is interchangeable there
    is seen more easily.
    """
    ground = hard_clauses(model)
    known = evidence_literals(model, ground.numbering)
    solver = new_solver()
    for _, rows in ground.groups:
        solver.append_formula(unresolved(rows, known, ground.numbering.count))
    solver.append_formula(known[:, None].tolist())
    return Legal(model, ground.numbering, known, solver, ground.choices, interchangeable(source or model))


def add_shorter(
    solver: Any,
    classes: Mapping[str, Classes],
    choices: Sequence[Choices],
    known: np.ndarray,
    used: int,
    selectors: Mapping[int, int] | None = None,
) -> list[int]:
    """Load each way to cut witnesses short; it holds where the guard that is returned for it is assumed.

    `used`: the highest number taken; `selectors`: formula → the selector its clauses hang on.
    """
    guards = []
    for guard, found in enumerate(shorter_clauses(classes, choices, known), used + 1):
        guards.append(guard)
        for formula, rows in found:
            tail = [-guard] if selectors is None else [-guard, -selectors[formula]]
            solver.append_formula([row + tail for row in rows])
    return guards


def unresolved(rows: np.ndarray, known: np.ndarray, count: int) -> list[list[int]]:
    """Clauses that evidence does not make true."""
    value = np.zeros(count + 1, dtype=np.int8)
    value[np.abs(known)] = np.sign(known)
    done = (value[np.abs(rows)] * np.sign(rows) > 0).any(axis=1)
    return rows[~done].tolist()
