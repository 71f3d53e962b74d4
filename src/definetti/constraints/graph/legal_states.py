"""Satisfiability of the hard factors: legal states near preferred values, possible values, minimal unsatisfiable
subsets, and penalties that are so large that they act like hard factors.

A variable with two values is one Boolean of the solver (true = value 1); one with more values has a Boolean for each.
Forbidden combinations are clauses, made from cubes: a *cube* is a forbidden combination of some of a factor's
variables, whatever the others are. A large table has too many cubes: its decision diagram, read from the first
variable to the last, has a Boolean per node instead. Only `x is not v` occurs for variables with more values, so that
a solver's answer with several values true is a choice among legal ones. Searches have a conflict budget: a value for
which it is used up counts as possible, a legal state that is not found is an `Undecided` error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from definetti.constraints.graph.connectivity import components
from definetti.constraints.sat import SHRINK_SECONDS, SOME_CONFLICTS, decide, new_solver, shrink, undecided
from definetti.errors import Unsatisfiable
from definetti.integer_rows import distinct
from definetti.journal import Deadline
from definetti.model.checked_input import cancelling
from definetti.model.graph.factors import FREE, FactorGraph, frozen
from definetti.model.graph.simplify import LARGE, PRECISION

MOST_SPENT = 100_000  # conflicts: of a search for a legal state, of all questions about values together
SEARCHING = 2.0  # seconds spent on finding values that no legal state has
LARGE_TABLE = 4096  # entries: larger tables are encoded by decision diagrams
SHOWN = 12  # factors and observations of an unsatisfiable subset that are named


Cube = tuple[tuple[int, int], ...]  # (axis, value) pairs


class Encoding:
    """Numbers of the solver's Booleans, and the clauses of the hard factors.

    Booleans are numbered in a random order if `rng` is given: a solver that takes the lowest number first then favours
    no variable.
    """

    def __init__(self, model: FactorGraph, rng: np.random.Generator | None = None) -> None:
        self.model = model
        self.factors = model.hard_factors
        scopes = [scope for _, scope in factor_groups(model, self.factors)]
        self.variables = np.unique(np.concatenate([s.ravel() for s in scopes] or [np.zeros(0, np.int64)])).astype(
            np.int64
        )
        shuffled = self.variables if rng is None else rng.permutation(self.variables)
        wide = model.cards[shuffled] != 2
        width = np.where(wide, model.cards[shuffled], 1)
        first = np.zeros(model.n, dtype=np.int64)
        first[shuffled] = 1 + np.concatenate([[0], np.cumsum(width)[:-1]])
        self.first = first  # the Boolean of value 0 (of value 1 where there are two values); 0: in no hard factor
        self.count = int(width.sum())
        self.highest = self.count  # with the nodes of decision diagrams, once `clauses` was called

    def literal(self, variables: np.ndarray, value: int) -> np.ndarray:
        """The solver's literal for `variable = value`."""
        first = self.first[variables]
        return np.where(self.model.cards[variables] == 2, first if value else -first, first + value)

    def domain_clauses(self) -> list[list[int]]:
        """Some value of each variable with more than two; observed values."""
        out = []
        for card in np.unique(self.model.cards[self.variables]).tolist():
            if card != 2:
                mine = self.variables[self.model.cards[self.variables] == card]
                out += (self.first[mine][:, None] + np.arange(card)).tolist()
        return out

    def observed(self) -> tuple[np.ndarray, list[int]]:
        """The observed variables in hard factors, and the literals that say so."""
        seen = self.variables[self.model.evidence[self.variables] != FREE]
        literals = [int(self.literal(np.array([i]), int(self.model.evidence[i]))[0]) for i in seen]
        return seen, literals

    def clauses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(factors, clauses[m, k]): one clause per factor and forbidden combination, or edge of a diagram."""
        out = []
        self.highest = self.count
        for factors, scope in factor_groups(self.model, self.factors):
            forbidden = np.isneginf(self.model.table(int(factors[0])))
            if forbidden.size > LARGE_TABLE:
                out += [(factors, made) for made in self._diagram_clauses(scope, forbidden)]
                continue
            for cube in cubes(forbidden):
                parts = [-self.literal(scope[:, axis], value) for axis, value in cube]
                out.append((factors, np.stack(parts, axis=1) if parts else np.zeros((len(factors), 0), np.int64)))
        return out

    def _diagram_clauses(self, scope: np.ndarray, forbidden: np.ndarray) -> list[np.ndarray]:
        """For factors over scope[m, k]: the root holds, and a node and a value make the next node hold."""
        levels = decision_diagram(forbidden)
        start = np.concatenate([[0], np.cumsum([len(level) for level in levels])])
        first = self.highest + 1 + np.arange(len(scope)) * int(start[-1])  # Boolean of each factor's root
        self.highest += len(scope) * int(start[-1])
        out = [first[:, None]]
        for axis, level in enumerate(levels):
            last = axis + 1 == len(levels)
            for node, value in np.argwhere((level != ALLOWED) | (not last)).tolist():
                clause = [-(first + int(start[axis]) + node), -self.literal(scope[:, axis], value)]
                if not last:
                    clause.append(first + int(start[axis + 1]) + int(level[node, value]))
                out.append(np.stack(clause, axis=1))
        return out

    def solver(self) -> Any:
        """A solver that holds the hard factors and the evidence."""
        solver = new_solver()
        solver.append_formula(self.domain_clauses())
        for _, clauses in self.clauses():
            solver.append_formula(clauses.tolist())
        for literal in self.observed()[1]:
            solver.add_clause([literal])
        return solver

    def phases(self, state: np.ndarray) -> list[int]:
        """The literals that a state makes true."""
        signs = np.zeros(self.count + 1, dtype=bool)
        two = self.model.cards[self.variables] == 2
        signs[self.first[self.variables[two]]] = state[self.variables[two]] == 1
        many = self.variables[~two]
        signs[self.first[many] + state[many]] = True
        numbers = np.arange(1, self.count + 1)
        return np.where(signs[1:], numbers, -numbers).tolist()

    def decode(self, model: list[int], state: np.ndarray) -> None:
        """Put the solver's answer into a state: the preferred value where it is true, else the first true one."""
        true = np.zeros(self.count + 1, dtype=bool)
        answer = np.array(model[: self.count], dtype=np.int64)
        true[answer[answer > 0]] = True
        two = self.variables[self.model.cards[self.variables] == 2]
        state[two] = true[self.first[two]]
        for i in self.variables[self.model.cards[self.variables] != 2].tolist():
            values = true[self.first[i] + np.arange(int(self.model.cards[i]))]
            if not values[state[i]]:
                state[i] = int(np.argmax(values))


# --- forbidden combinations ------------------------------------------------------------------------------------------


def cubes(forbidden: np.ndarray) -> list[Cube]:
    """Cubes that cover exactly the true entries: each starts at an entry and lets go of every axis it can."""
    forbidden = np.asarray(forbidden)
    left = np.array(forbidden)
    out: list[Cube] = []
    for entry in np.argwhere(forbidden):
        if not left[tuple(entry)]:
            continue
        place: list[int | slice] = [int(v) for v in entry]
        for axis in range(forbidden.ndim):
            held, place[axis] = place[axis], slice(None)
            if not forbidden[tuple(place)].all():
                place[axis] = held
        left[tuple(place)] = False
        out.append(tuple((axis, v) for axis, v in enumerate(place) if not isinstance(v, slice)))
    return out


ALLOWED = 0  # where the last variable of a decision diagram leads to; 1 is forbidden


def decision_diagram(forbidden: np.ndarray) -> list[np.ndarray]:
    """Per axis int64[nodes, values]: the node of the next axis that a value leads to. The first axis has one node."""
    levels: list[np.ndarray] = []
    below = forbidden.ravel().astype(np.int64)
    for card in reversed(forbidden.shape):
        nodes, below, _ = distinct(below.reshape(-1, card))
        levels.append(nodes)
    return levels[::-1]


def factor_groups(model: FactorGraph, factors: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The factors that share a table and a shape, as (factors, scopes[m, k]), in the order of the tables."""
    chosen = np.zeros(model.factor_count, dtype=bool)
    chosen[factors] = True
    found: list[tuple[int, np.ndarray, np.ndarray]] = []
    for alike in model.by_shape:
        mine = alike.take(chosen[alike.factors])
        for table in np.unique(mine.tables).tolist():
            same = mine.take(mine.tables == table)
            found.append((table, same.factors, same.scopes))
    return [(mine, scopes) for _, mine, scopes in sorted(found, key=lambda group: group[0])]


# --- legal states ----------------------------------------------------------------------------------------------------


def legalise(model: FactorGraph, states: np.ndarray, rng: np.random.Generator) -> None:
    """Turn states[chains, n] into legal ones in place, each near what it was; `Unsatisfiable` if there are none."""
    encoding = Encoding(model, rng)
    if not len(encoding.factors):
        return
    wrong = np.flatnonzero(violated(model, states))
    if not len(wrong):
        return
    with encoding.solver() as solver:
        for k in wrong.tolist():
            solver.set_phases(encoding.phases(states[k]))
            found = decide(solver, (), MOST_SPENT)
            if found is None:
                raise undecided(MOST_SPENT, "leave out or soften hard factors")
            if not found:
                raise explain(model)
            encoding.decode(solver.get_model(), states[k])
    assert not violated(model, states).any()


def _may_be(solver: Any, literals: list[int]) -> bool:
    """Whether some legal state has these literals; if the search is not decided, it may be."""
    left = MOST_SPENT - solver.accum_stats()["conflicts"]
    return left <= 0 or decide(solver, literals, min(left, SOME_CONFLICTS)) is not False


def violated(model: FactorGraph, states: np.ndarray) -> np.ndarray:
    """bool[chains]: a hard factor forbids the state (or the evidence does)."""
    seen = model.evidence != FREE
    out = (states[:, seen] != model.evidence[seen]).any(axis=1)
    for factors, scope in factor_groups(model, model.hard_factors):
        table = np.isneginf(model.table(int(factors[0])))
        if table.ndim == 0:
            return np.ones(len(states), dtype=bool)
        for row in range(len(states)):
            out[row] |= bool(table[tuple(states[row][scope].T)].any())
    return out


def possible(model: FactorGraph, variables: np.ndarray, states: np.ndarray) -> np.ndarray:
    """bool[variables]: the variable has more than one value in legal states (of which some are given)."""
    encoding = Encoding(model)
    out = np.zeros(len(variables), dtype=bool)
    with encoding.solver() as solver:
        for k, i in enumerate(variables.tolist()):
            met = np.unique(states[:, i])
            if len(met) > 1 or not encoding.first[i]:
                out[k] = model.cards[i] > 1
                continue
            others = np.setdiff1d(np.arange(int(model.cards[i])), met)
            literals = [int(encoding.literal(np.array([i]), int(v))[0]) for v in others]
            out[k] = any(_may_be(solver, [literal]) for literal in literals)
    return out


def impossible_literals(model: FactorGraph, seconds: float = SEARCHING) -> np.ndarray:
    """Literals of free variables that no legal state has, as far as time goes; `Unsatisfiable` if there is no such
    state.

    Each solution shows many literals to be possible: it is asked for near what has not been seen yet.
    """
    encoding = Encoding(model)
    free = encoding.variables[model.evidence[encoding.variables] == FREE]
    seen = np.zeros(int(model.literal_start[-1]), dtype=bool)
    state = np.zeros(model.n, dtype=np.int64)
    deadline = Deadline("impossible values", seconds)
    out = []
    with encoding.solver() as solver:

        def look(literal: int | None) -> bool | None:
            for card in np.unique(model.cards[free]).tolist():  # prefer the first value that has not been seen
                mine = free[model.cards[free] == card]
                state[mine] = np.argmin(seen[model.literal_start[mine][:, None] + np.arange(card)], axis=1)
            solver.set_phases(encoding.phases(state))
            found = decide(solver, [] if literal is None else [literal], SOME_CONFLICTS)
            if not found:
                return found
            encoding.decode(solver.get_model(), state)
            seen[model.literal_start[encoding.variables] + state[encoding.variables]] = True
            return True

        for _ in range(int(model.cards[free].max(initial=1))):
            found = look(None)
            if found is None:
                return np.zeros(0, dtype=np.int64)
            if not found:
                raise explain(model)
        for i in free.tolist():
            for value in range(int(model.cards[i])):
                literal = int(model.literal_start[i]) + value
                if seen[literal]:
                    continue
                if deadline.passed():
                    return np.array(out, dtype=np.int64)
                if look(int(encoding.literal(np.array([i]), value)[0])) is False:
                    out.append(literal)
                else:
                    seen[literal] = True  # a solver's answer may have other values true beside it
    return np.array(out, dtype=np.int64)


def possible_tuples(model: FactorGraph, questions: Sequence[tuple[Sequence[int], np.ndarray]]) -> list[np.ndarray]:
    """For each (variables, tuples of their values): which tuples occur in legal states."""
    encoding = Encoding(model)
    out = []
    with encoding.solver() as solver:
        for variables, tuples in questions:
            mine = np.array(variables, dtype=np.int64)
            seen = model.evidence[mine]
            agrees = ((seen == FREE) | (tuples == seen)).all(axis=1)
            held = np.flatnonzero(encoding.first[mine])
            for row in np.flatnonzero(agrees).tolist():
                literals = [int(encoding.literal(mine[[c]], int(tuples[row, c]))[0]) for c in held.tolist()]
                agrees[row] = _may_be(solver, literals)
            out.append(agrees)
    return out


# --- large penalties -----------------------------------------------------------------------------------------------


def refuse_cancelling(model: FactorGraph) -> None:
    """`ModelError` if every state pays penalties so large that smaller log weights are lost beside them.

    `model` is simplified: tables that reach beyond LARGE have their largest entry at 0. If some state pays no large
    penalty, those that do have no weight and their rounding does not matter. Factors with large entries that are
    connected count together; a search that is not decided counts as no state.
    """
    reach = model.table_range
    factors = np.flatnonzero((reach > LARGE)[model.table_of])
    if not len(factors):
        return
    lost = _lost_by_penalties(model, factors, reach[model.table_of[factors]])
    factors, lost = factors[lost > PRECISION], lost[lost > PRECISION]
    if len(factors) and _solvable(model) and not _solvable(_hardened(model, factors)):
        k = int(factors[lost.argmax()])
        largest = float(reach[model.table_of[k]])
        raise cancelling((model.names[i] for i in model.variables(k)), largest, float(lost.max()))


def _lost_by_penalties(model: FactorGraph, factors: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """For each factor with large entries: spacing of doubles at the deepest × number of those connected with it."""
    parts = components([(tuple(model.variables(k).tolist()), np.array(f)) for f, k in enumerate(factors.tolist())])
    lost = np.zeros(len(factors))
    for part in parts:
        mine = [int(f) for _, f in part]
        lost[mine] = np.spacing(depth[mine].max()) * len(mine)
    return lost


def _hardened(model: FactorGraph, factors: np.ndarray) -> FactorGraph:
    """The model with the large penalties of these factors as impossible entries."""
    tables, which = np.unique(model.table_of[factors], return_inverse=True)
    made = [model.tables[model.table_start[t] : model.table_start[t + 1]] for t in tables.tolist()]
    made = [np.where(table < table.max() - LARGE, -np.inf, table) for table in made]
    table_of = model.table_of.copy()
    table_of[factors] = len(model.table_start) - 1 + which.ravel()
    ends = model.table_start[-1] + np.cumsum([len(table) for table in made])
    return replace(
        model,
        table_of=frozen(table_of),
        table_start=frozen(np.append(model.table_start, ends)),
        tables=frozen(np.concatenate([model.tables, *made])),
    )


def _solvable(model: FactorGraph) -> bool:
    with Encoding(model).solver() as solver:
        return decide(solver, (), MOST_SPENT) is True


# --- minimal unsatisfiable subsets ------------------------------------------------------------------------------------


def explain(model: FactorGraph) -> Unsatisfiable:
    """An error that names a small set of factors and observations that no state satisfies together."""
    factors, seen = unsat_core(model)
    over = [f"({', '.join(model.names[i] for i in model.variables(k).tolist())})" for k in factors]
    given = [f"{model.names[i]}={_value(model, i)}" for i in seen]
    parts = [f"the factor{'s' if len(over) > 1 else ''} over {_list(over)}"] if over else []
    parts += [f"the evidence {_list(given)}"] if given else []
    lone = len(over) == 1 and not given
    clashing = "allows no values" if lone else "contradict each other"
    return Unsatisfiable(f"no state has positive probability: {' and '.join(parts) or 'the factors'} {clashing}")


def _value(model: FactorGraph, variable: int) -> str:
    value = int(model.evidence[variable])
    return model.value_names[variable][value] if variable in model.value_names else str(value)


def _list(items: list[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more


def unsat_core(model: FactorGraph, seconds: float = SHRINK_SECONDS) -> tuple[list[int], list[int]]:
    """Factors and observed variables that cannot all hold; none can be left out, unless time ran out. None at all if
    there is a legal state, or if the search is not decided."""
    encoding = Encoding(model)
    chosen: dict[int, tuple[str, int]] = {}
    hard = encoding.clauses()
    number = encoding.highest
    with new_solver() as solver:
        solver.append_formula(encoding.domain_clauses())
        guard = {}
        for k in encoding.factors.tolist():
            number += 1
            guard[k], chosen[number] = number, ("factor", k)
        for factors, clauses in hard:
            guards = -np.array([guard[k] for k in factors.tolist()], dtype=np.int64)
            solver.append_formula(np.column_stack([guards, clauses]).tolist())
        for i, literal in zip(*encoding.observed(), strict=True):
            number += 1
            chosen[number] = ("evidence", int(i))
            solver.add_clause([-number, literal])
        if decide(solver, list(chosen), MOST_SPENT) is not False:
            return [], []
        core = shrink(solver, sorted(solver.get_core() or []), seconds=seconds)  # factors are tried first
    found = [chosen[a] for a in core]
    return sorted(k for kind, k in found if kind == "factor"), sorted(i for kind, i in found if kind == "evidence")
