"""Satisfiability searches with a conflict budget, and minimal unsatisfiable subsets, for both kinds of model.

A search returns true, false, or None if its budget was used up; where an answer is needed, that is `Undecided`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from definetti.errors import Undecided

SOLVER = "minisat22"  # it takes preferred values, and keeps to a number of conflicts exactly (glucose does not)
FEW_CONFLICTS = 5_000  #: of a plain search before symmetries are broken
SOME_CONFLICTS = 10_000  #: of a search with symmetries broken
MOST_CONFLICTS = 30_000  #: of a plain search after that
PROPAGATIONS = 2_000  #: for each conflict that is allowed: large theories have slow ones
SHRINK_SECONDS = 3.0  #: spent on making an unsatisfiable subset smaller


def new_solver() -> Any:
    """A solver without clauses, to be used in a `with` statement or deleted."""
    from pysat.solvers import Solver

    return Solver(name=SOLVER)


def decide(solver: Any, assumptions: Sequence[int], conflicts: int) -> bool | None:
    """Whether there is a solution; None if so many conflicts do not decide it."""
    solver.conf_budget(conflicts)
    solver.prop_budget(conflicts * PROPAGATIONS)
    return solver.solve_limited(assumptions=list(assumptions))


def undecided(conflicts: int, cure: str) -> Undecided:
    """The error of a search that used up its budget."""
    return Undecided("the search for a state that satisfies all constraints", conflicts, "conflicts", cure)


def shrink(solver: Any, core: Sequence[int], fixed: Sequence[int] = (), seconds: float = SHRINK_SECONDS) -> list[int]:
    """A smaller unsatisfiable subset of `core` (minimal if time and budgets suffice); `fixed` is assumed throughout.

    Elements are left out one after the other while the rest is still unsatisfiable.
    """
    until, kept = time.monotonic() + seconds, list(core)
    for element in core:
        if time.monotonic() > until:
            break
        if element not in kept:
            continue
        if decide(solver, [*fixed, *(x for x in kept if x != element)], FEW_CONFLICTS) is False:
            needed = set(solver.get_core() or [])
            kept = [x for x in kept if x in needed]
    return kept
