"""Exact lifted counting for theories of at most two logical variables: log Z and the probability of any formula
over at most two constants, at any size of the sorts.

Z = Σ over counts of cells (`lifted_direct`), after everything that needs no counting has been summed
(`lifted_scene`). Given the merged cells of two constants their own cells and the atoms over both are
independent of everybody else, so the joint distribution of two merged cells answers every query about two
constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.solvers.lifted.classes import Known, known_of
from definetti.solvers.lifted.conditioning import Plan, Way, make_plan, ways_of
from definetti.solvers.lifted.count_vectors import Counted, count_positive, count_signed
from definetti.solvers.lifted.polynomials import count_polynomial, polynomial_cost
from definetti.solvers.lifted.scene import Scene, make_scene
from definetti.solvers.lifted.supercells import Problem, find_blocks, term_count
from definetti.solvers.lifted.tables import State, cells_of, global_states, is_zero
from definetti.solvers.lifted.theory import Theory, theory_of
from definetti.solvers.work import (
    CELLS,
    COEFFICIENT,
    MERGE,
    PAIR,
    PRODUCT,
    SIGNED,
    TERM,
    Budget,
)

IMPOSSIBLE = "no state has positive probability: the hard formulas contradict each other or the evidence"
MOST_TERMS = 2_000_000
MOST_SIGNED_TERMS = 150_000
PRECISION = 256  #: bits
MOST_PRECISION = 1 << 14
WANTED = 1e-13  #: relative radius


@contextmanager
def precision(bits: int) -> Iterator[None]:
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


@dataclass(frozen=True, eq=False)
class Part:
    """One choice of propositions and of the conditioned constants' cells; `pieces` are groups of units that do not
    meet."""

    scene: Scene
    plan: Plan
    way: Way
    pieces: tuple[Counted, ...]
    piece_of: tuple[tuple[int, int], ...]  # of each unit: its piece and its number there
    z: Any


@dataclass(frozen=True, eq=False)
class Lifted:
    """The counted model. `z` is a ball, or a fraction if everything was exact."""

    known: Known
    parts: tuple[Part, ...]
    z: Any
    bits: int
    signed: bool
    exact: bool
    cost: str
    memory: dict[Any, Any] = field(default_factory=dict)

    def _log_ball(self) -> Any:
        from flint import arb

        return arb(self.z).log() + arb(idle_atoms(self.known.theory)) * arb.const_log2()

    @property
    def log_z(self) -> float:
        """With the fair coins that no rule mentions."""
        with precision(self.bits):
            return float(self._log_ball().mid())

    def share_of(self, whole: Lifted) -> float:
        """Z / Z of another model."""
        with precision(max(self.bits, whole.bits)):
            return min(1.0, float((self._log_ball() - whole._log_ball()).exp().mid()))


def idle_atoms(theory: Theory) -> int:
    """Free atoms of predicates that no rule mentions."""
    model = theory.model
    return sum(model.knowledge.free_count(name) for name in theory.idle if not model.predicates[name].exclusive)


def lift(model: MarkovLogic, bits: int = PRECISION, budget: Budget | None = None) -> Lifted:
    """Count a model, with as many bits as its signs need. `NotLiftable`, `TooLarge` or `Unsatisfiable` otherwise;
    `TooMuch` where the work passes the budget."""
    theory = theory_of(model)
    known = known_of(theory)
    while True:
        found = _count(known, bits, exact=False, budget=budget)
        if not theory.signed:
            break
        if found is not None and _sharp(found.z):
            break
        if found is None or bits >= MOST_PRECISION or _impossible(model):
            found = None
            break
        bits *= 2
    if found is None:
        raise Unsatisfiable(IMPOSSIBLE)
    return found


def _sharp(z: Any, wanted: float = WANTED) -> bool:
    return bool(z > 0) and bool(z.rad() <= wanted * abs(z.mid()))


def _impossible(model: MarkovLogic) -> bool:
    """Whether no world is possible, decided by counting worlds without soft formulas in integers."""
    hard = replace(model, formulas=tuple(f for f in model.formulas if f.hard))
    return count_worlds(hard) == 0


def count_worlds(model: MarkovLogic, weights: Mapping[str, tuple[Any, Any]] | None = None) -> int | Fraction:
    """The exact weighted count of the worlds of hard formulas; `weights` gives a predicate's atoms (true, false)."""
    pairs = {name: (Fraction(a), Fraction(b)) for name, (a, b) in (weights or {}).items()}
    if any(not f.hard for f in model.formulas):
        raise TypeError("a count of worlds is exact for hard formulas only; give weights of atoms instead")
    theory = theory_of(model, pairs)
    found = _count(known_of(theory), PRECISION, exact=True)
    z = Fraction(0) if found is None else Fraction(int(found.z.p), int(found.z.q))
    z *= 2 ** idle_atoms(theory)
    return int(z) if z.denominator == 1 else z


def _count(known: Known, bits: int, exact: bool, budget: Budget | None = None) -> Lifted | None:
    signed, budget = known.theory.signed, budget or Budget()
    with precision(bits):
        parts: list[Part] = []
        notes: list[str] = []
        states = list(global_states(known.theory))
        for number, state in enumerate(states):
            left = len(states) - number
            budget.charge(scene_work(known, state), left)
            scene = make_scene(known, state, exact)
            if scene is None:
                continue
            plan = make_plan(scene)
            for k, way in enumerate(ways_of(scene, plan)):
                if k == 0 and way.problem is not None:
                    budget.charge(plan.ways * problem_work(way.problem, signed, bits), left)
                part = _part(scene, plan, way, signed or exact, notes)
                if signed or not is_zero(part.z):
                    parts.append(part)
        if not parts:
            return None
        z = sum((p.z for p in parts[1:]), parts[0].z)
    if exact and is_zero(z):
        return None
    return Lifted(known, tuple(parts), z, bits, signed, exact, _cost(parts, notes, bits, signed))


def _cost(parts: list[Part], notes: list[str], bits: int, signed: bool) -> str:
    classes = len(parts[0].scene.known.classes.sort)
    cells = sum(parts[0].scene.reduced.counts.values())
    text = f"{classes} {'class' if classes == 1 else 'classes'} of constants, {cells} interacting cells"
    if notes:
        text += f", {notes[0]}"
    conditioned = sum(parts[0].scene.size(c) for c in parts[0].plan.conditioned)
    if conditioned:
        text += f", {parts[0].plan.ways} ways of {conditioned} constants with binary evidence"
    return text + (f", {bits} bits" if signed else "")


def _part(scene: Scene, plan: Plan, way: Way, signed: bool, notes: list[str]) -> Part:
    if way.problem is None:
        return Part(scene, plan, way, (), (), way.constant)
    pieces, piece_of, z = [], [(0, 0)] * len(way.problem.units), way.constant
    for units, problem in _split(way.problem, signed):
        found = _solve(problem, signed, notes)
        for k, unit in enumerate(units):
            piece_of[unit] = (len(pieces), k)
        pieces.append(found)
        z = z * found.z
    return Part(scene, plan, way, tuple(pieces), tuple(piece_of), z)


def _split(problem: Problem, signed: bool) -> Iterator[tuple[list[int], Problem]]:
    """Groups that do not interact are counted apart (with signs: all together, since a part may vanish)."""
    count = len(problem.cells)
    label = list(range(count))
    for (g, h), table in problem.tables.items():
        if signed or any(x != 1 for x in table.reshape(-1)):
            a, b = label[g], label[h]
            label = [a if x == b else x for x in label]
    if signed:
        label = [0] * count
    for name in dict.fromkeys(label):
        groups = [g for g in range(count) if label[g] == name]
        units = [k for k, u in enumerate(problem.units) if u.group in groups]
        number = {g: k for k, g in enumerate(groups)}
        moved = tuple(replace(u, group=number[u.group]) for u in (problem.units[k] for k in units))
        tables = {(number[g], number[h]): t for (g, h), t in problem.tables.items() if g in number and h in number}
        yield units, Problem(moved, tuple(problem.cells[g] for g in groups), tables)


def scene_work(known: Known, state: State) -> float:
    """Of the tables of pairs of cells, and of merging cells."""
    cells = {sort: len(cells_of(known, sort, state).bits) for sort in known.theory.model.sorts}
    entries = 0.0
    for kind, (a, b) in enumerate(known.kinds.sorts):
        free = sum(code == UNKNOWN for code in known.kinds.codes[kind].values())
        entries += cells[a] * cells[b] * (1 << free) * (1 + len(known.kinds.weights[kind]))
    classes = len(known.classes.sort) * max(cells.values(), default=1)
    return CELLS * (entries + sum(n * n for n in cells.values()) + classes)


def problem_work(problem: Problem, signed: bool, bits: int) -> float:
    """Of `_solve`, for one way; `TooLarge` where it would be refused."""
    cells = max(problem.cells)
    work = MERGE * (0 if cells < 2 else 12 * sum(n**3 for n in problem.cells))
    for _, part in _split(problem, signed):
        work += _part_work(part, signed, bits)
    return work


def _part_work(problem: Problem, signed: bool, bits: int) -> float:
    count = term_count(problem, find_blocks(problem).sets)
    units, cells = len(problem.units), max(problem.cells)
    cost = _by_polynomial(problem, count, signed)
    if cost is not None:
        kept = sum(min(u.size, 2) for u in problem.units)
        return PRODUCT * cost + units * (units + 1) / 2 * (PAIR + COEFFICIENT * kept ** max(1, cells - 1))
    _refuse(count, signed)
    if signed:
        return SIGNED * count * (units * cells) ** 2 * bits / PRECISION
    return TERM * count * units * (1 + units * cells / 16)


def _by_polynomial(problem: Problem, count: int, signed: bool) -> float | None:
    """The cost of generating polynomials, where they are the better way."""
    cost = None if signed else polynomial_cost(problem)
    return cost if cost is not None and (count > MOST_TERMS or cost < count * len(problem.units)) else None


def _refuse(count: int, signed: bool) -> None:
    limit = MOST_SIGNED_TERMS if signed else MOST_TERMS
    if count > limit:
        raise TooLarge("lifted counting", count, limit, "sample instead", unit="vectors of counts")


def _solve(problem: Problem, signed: bool, notes: list[str]) -> Counted:
    blocks = find_blocks(problem)
    count = term_count(problem, blocks.sets)
    if _by_polynomial(problem, count, signed) is not None:
        notes.append(f"generating polynomials of {max(problem.sizes)} constants with {len(problem.units)} fields")
        return count_polynomial(problem)
    _refuse(count, signed)
    notes.append(f"{count} vectors of counts")
    return count_signed(problem, blocks) if signed else count_positive(problem, blocks)
