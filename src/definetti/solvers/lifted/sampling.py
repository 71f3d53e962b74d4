"""Independent exact samples of a counted model: the counts, then who, then each one's cell, then the atoms over
two constants.

Only for positive weights: with quantifiers the terms of the count have signs and are no probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.solvers.lifted.count_vectors import Terms, _log_terms, _set_of
from definetti.solvers.lifted.counting import Lifted, Part, _split, lift, precision
from definetti.solvers.lifted.magnitudes import Scaled, correlate
from definetti.solvers.lifted.marginals import inside, part_weights
from definetti.solvers.lifted.polynomials import _power, _weights
from definetti.solvers.lifted.scene import Scene
from definetti.solvers.lifted.supercells import Problem, find_blocks, term_count
from definetti.solvers.lifted.tables import PairTable
from definetti.solvers.lifted.theory import NotLiftable

DIRECT = 20_000  #: vectors of counts that are listed rather than walked through

State = dict[str, np.ndarray]  #: predicate → bool, of its shape


@dataclass(eq=False)
class Sampler:
    """Draws states of a model, each from the exact distribution and independent of the others."""

    lifted: Lifted
    memory: dict[Any, Any] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator) -> State:
        lifted = self.lifted
        with precision(lifted.bits):
            weights = np.maximum(part_weights(lifted), 0.0)
            part = lifted.parts[int(rng.choice(len(weights), p=weights / weights.sum()))]
            cells = self._cells(part, rng)
            return self._atoms(part, cells, rng)

    # --- cells -----------------------------------------------------------------------------------------------

    def _cells(self, part: Part, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """The cell of every constant of every sort."""
        scene, classes = part.scene, part.scene.known.classes
        merged = {s: np.zeros(len(of), np.int64) for s, of in classes.of.items()}
        for c, m in scene.settled.items():
            merged[classes.sort[c]][classes.of[classes.sort[c]] == c] = m
        for c in scene.free:
            p = np.array([float(x.mid()) for x in scene.fields[c] / sum(scene.fields[c][1:], scene.fields[c][0])])
            who = np.flatnonzero(classes.of[classes.sort[c]] == c)
            merged[classes.sort[c]][who] = rng.choice(len(p), size=len(who), p=p / p.sum())
        for c, counts in part.way.counts.items():
            who = np.flatnonzero(classes.of[classes.sort[c]] == c)
            merged[classes.sort[c]][who] = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        for unit, found in self._units(part, rng).items():
            sort = classes.sort[part.plan.units[unit][0]]
            who = np.flatnonzero(np.isin(classes.of[sort], part.plan.units[unit]))
            merged[sort][who] = rng.permutation(found)
        return {s: self._inner(part, s, m, rng) for s, m in merged.items()}

    def _inner(self, part: Part, sort: str, merged: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Cells within merged cells."""
        scene, of = part.scene, part.scene.known.classes.of[sort]
        out = np.zeros(len(merged), np.int64)
        keys, back = np.unique(of * (int(merged.max(initial=0)) + 1) + merged, return_inverse=True)
        for k in range(len(keys)):
            who = np.flatnonzero(back == k)
            c, m = int(of[who[0]]), int(merged[who[0]])
            p = np.where(scene.merged(c) == m, inside(self.lifted, part, c), 0.0)
            out[who] = rng.choice(len(p), size=len(who), p=p / p.sum())
        return out

    def _units(self, part: Part, rng: np.random.Generator) -> dict[int, np.ndarray]:
        """For each unit the merged cells of its constants, in no particular order."""
        if part.way.problem is None:
            return {}
        found = {}
        for number, (units, problem) in enumerate(_split(part.way.problem, False)):
            key = (id(part), number)
            if key not in self.memory:
                self.memory[key] = _walker(problem)
            for unit, cells in zip(units, self.memory[key].draw(rng), strict=True):
                found[unit] = cells
        return found

    # --- atoms -----------------------------------------------------------------------------------------------

    def _atoms(self, part: Part, cells: dict[str, np.ndarray], rng: np.random.Generator) -> State:
        scene, model = part.scene, part.scene.known.theory.model
        state = {name: np.zeros(model.shape(name), dtype=bool) for name in model.predicates}
        for name, p in part.scene.known.theory.predicates.items():
            if name not in state:
                continue
            if not p.sorts:
                state[name][()] = scene.state[name]
            elif len(set(p.sorts)) == 1:
                bits = scene.cells[p.sorts[0]].column(name)[cells[p.sorts[0]]]
                if len(p.sorts) == 1:
                    state[name][:] = bits
                else:
                    np.fill_diagonal(state[name], bits)
        self._pairs(scene, cells, state, rng)
        for name in part.scene.known.theory.idle:
            state[name][...] = _coins(model, name, rng)
        return state

    def _pairs(self, scene: Scene, cells: dict[str, np.ndarray], state: State, rng: np.random.Generator) -> None:
        names = list(scene.cells)
        for k, s in enumerate(names):
            for t in names[k:]:
                n, m = len(cells[s]), len(cells[t])
                rows, columns = np.triu_indices(n, 1) if s == t else (x.ravel() for x in np.indices((n, m)))
                roles = scene.known.roles.of
                kinds = scene.known.kinds.of[roles[s][rows], roles[t][columns]]
                for kind in np.unique(kinds).tolist():
                    at = np.flatnonzero(kinds == kind)
                    self._fill(scene, kind, (rows[at], columns[at]), (cells[s], cells[t]), state, rng)

    def _fill(self, scene: Scene, kind: int, at: tuple, cells: tuple, state: State, rng: np.random.Generator) -> None:
        table, (i, j) = scene.pairs[kind], at
        for (side, name), code in table.known.items():
            if code != UNKNOWN and name in state:
                state[name][(i, j) if side == "ab" else (j, i)] = bool(code)
        if not table.slots:
            return
        key = (id(scene), kind)
        if key not in self.memory:
            self.memory[key] = _cumulative(table)
        steps = self.memory[key][cells[0][i], cells[1][j]]
        chosen = np.minimum((rng.random(len(i))[:, None] >= steps).sum(axis=1), steps.shape[1] - 1)
        for k, (side, name) in enumerate(table.slots):
            if name in state:
                bit = (chosen >> (len(table.slots) - 1 - k) & 1).astype(bool)
                state[name][(i, j) if side == "ab" else (j, i)] = bit


def _cumulative(table: PairTable) -> np.ndarray:
    """float[cell, cell, 2-table]: cumulative probabilities."""
    numbers = np.array([float(x.mid()) if hasattr(x, "mid") else float(x) for x in table.values])
    weights = numbers[table.ids]
    total = weights.sum(axis=2, keepdims=True)
    return np.cumsum(weights / np.where(total > 0, total, 1.0), axis=2)


def _coins(model: MarkovLogic, name: str, rng: np.random.Generator) -> np.ndarray:
    relation = model.knowledge.relation(name)
    shape = model.shape(name)
    found = np.full(shape, bool(relation.default))
    if relation.default == UNKNOWN:
        found[...] = rng.random(shape) < 0.5
    for row, code in zip(relation.tuples.tolist(), relation.codes.tolist(), strict=True):
        found[tuple(row)] = rng.random() < 0.5 if code == UNKNOWN else bool(code)
    return found


# --- counts --------------------------------------------------------------------------------------------------


def _walker(problem: Problem) -> Any:
    blocks = find_blocks(problem)
    if term_count(problem, blocks.sets) <= DIRECT or len(problem.cells) > 1:
        return _Listed(problem)
    return _Walked(problem)


class _Listed:
    """All vectors of counts with their probabilities."""

    def __init__(self, problem: Problem) -> None:
        self.terms = Terms(problem, find_blocks(problem))
        log, self.shares = _log_terms(self.terms)
        weight = log.relative(log.top)
        self.p = weight / weight.sum()

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        t = int(rng.choice(len(self.p), p=self.p))
        out = []
        for unit, counts, shares in zip(self.terms.problem.units, self.terms.counts, self.shares, strict=True):
            where, found = _set_of(self.terms.blocks, unit.group), []
            for u, k in enumerate(counts[t].tolist()):
                inner = np.flatnonzero(where == u)
                p = np.array([float(shares[s][t if len(shares[s]) > 1 else 0]) for s in inner])
                if k:
                    found.append(rng.choice(inner, size=k, p=p / p.sum()))
            out.append(np.concatenate(found))
        return out


class _Walked:
    """The table of the generating polynomials, walked backwards: one unit's counts after the other."""

    def __init__(self, problem: Problem) -> None:
        self.cells, n = problem.cells[0], problem.sizes[0]
        self.powers = [_power(u, u.size, self.cells) for u in problem.units]
        left, done = _weights(problem, n, self.cells), n
        self.after: list[Scaled] = []
        for unit, power in zip(reversed(problem.units), reversed(self.powers), strict=True):
            self.after.append(left)
            done -= unit.size
            left = correlate(left, power, (done + 1,) * (self.cells - 1))
        self.after.reverse()
        self.units = problem.units

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        at, out = np.zeros(self.cells - 1, np.int64), []
        for unit, power, after in zip(self.units, self.powers, self.after, strict=True):
            window = tuple(slice(int(k), int(k) + unit.size + 1) for k in at)
            product = power * after[window]
            p = np.ldexp(product.m, np.maximum(product.e - product.e.max(), -1100).astype(np.int32)).ravel()
            counts = np.array(np.unravel_index(int(rng.choice(len(p), p=p / p.sum())), product.shape), np.int64)
            at += counts
            out.append(np.repeat(np.arange(self.cells), [unit.size - int(counts.sum()), *counts.tolist()]))
        return out


def sampler_of(model: MarkovLogic) -> Sampler:
    try:
        lifted = lift(model)
    except NotLiftable as refusal:
        raise ModelError(f"this model cannot be sampled lifted: {refusal}; use another sampler") from None
    if lifted.signed:
        raise ModelError("a model with quantifiers cannot be sampled lifted (its count has signs); use another sampler")
    return Sampler(lifted)
