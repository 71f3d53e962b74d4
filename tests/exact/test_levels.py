"""Levels of the relational kernel: laws that sweeps leave unchanged, the tally, looks, sweeps backwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from plain_kernels import plain_model, planted_model, start
from relational_worlds import World, atoms_of, energies, groundings, put_world, truth, world_of

from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.errors import ModelError
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.logic import levels
from definetti.samplers.logic.engine import Relational, advance, blank, compile_model
from definetti.samplers.logic.levels import (
    COUNTS,
    MODEL,
    Level,
    at_level,
    backwards,
    between,
    log_density,
    log_product,
    look,
    recount,
    violated,
)
from definetti.samplers.logic.tensors.data import Chain
from definetti.symmetry.logic.renaming import renaming

TWO = "thing = {A, B}\n"
THREE = "thing = {A, B, C}\n"
THEORIES = {
    "two predicates": TWO + "P(thing)\nE(thing,thing)\n0.7 P(x) ^ E(x,y) => P(y)\n-0.4 E(x,y)\n"
    "0.3 EXIST y E(x,y)\n",
    "weights": TWO + "kind = {K, L}\nP(thing)\nO(thing,kind)\n0.3 P(A)\n-0.6 P(B) ^ O(A,K)\n0.2 P(x) ^ O(x,+k)\n"
    "P(A) v O(B,K).\n",
    "hard": THREE + "P(thing)\nQ(thing)\n!P(x) v !P(y) v x = y v Q(x).\n0.6 P(x) ^ Q(y)\n-0.3 Q(x)\n",
    "tied": THREE + "P(thing)\nE(thing,thing)\nE(x,y) => E(y,x).\n!E(x,x).\n0.5 P(x) ^ E(x,y) => P(y)\n"
    "0.3 E(x,y) ^ E(y,z) ^ E(z,x)\nE(x,y) => P(x) v P(y).\n",
    "opposite": THREE + "P(thing)\nQ(thing)\nP(x) <=> !Q(x).\n0.3 P(x) ^ P(y) ^ x != y\n0.4 Q(x) v P(y)\n",
    "blocks": TWO + "kind = {K, L, M}\nO(thing,kind!)\nP(thing)\n0.4 O(x,+k)\n0.6 O(x,k) ^ O(y,k) ^ x != y\n"
    "0.5 O(x,K) ^ P(x)\n!O(x,L) v P(x).\n",
}  # fmt: skip
EVIDENCE = {"blocks": {"O(A,M)": False}, "two predicates": {"E(A,A)": True, "E(A,B)": False}}


class Case:
    """A theory with its states (all that ties, blocks and evidence leave), its sites, and one field per orbit."""

    def __init__(self, name: str, scan: str = "symmetric", ready: Callable[..., Relational] = plain_model) -> None:
        model = with_forced_atoms(read_mln_text(THEORIES[name]).condition(EVIDENCE.get(name, {})))
        self.model, self.group = model, renaming(model)
        self.r = ready(model, self.group.atom_orbits, scan=scan)
        self.field = np.random.default_rng(3).normal(size=self.r.orbit_count)
        self.sites = list(self._sites())
        for values, _ in self.sites:  # atoms tied within a predicate have equal marginals, and are given equal fields
            for a, b in itertools.pairwise(values[0]):
                if a[0] == b[0] and not model.predicates[a[0]].exclusive and self.orbit(a) >= 0:
                    self.field[self.orbit(b)] = self.field[self.orbit(a)]
        self.states = list(self._states())
        self.number = {tuple(w.values()): i for i, w in enumerate(self.states)}
        self.soft, self.broken = map(np.array, zip(*(energies(model, w) for w in self.states), strict=True))
        self.tilts = np.array([self._tilt(w) for w in self.states])

    def log_weights(self, level: Level) -> np.ndarray:
        cost = np.where(self.broken > 0, level.penalty * np.maximum(self.broken, 1), 0.0)
        return level.scale * self.soft - cost + level.share * self.tilts

    def log_q(self) -> np.ndarray:
        return self.tilts - np.logaddexp.reduce(self.tilts)

    def orbit(self, atom: tuple) -> int:
        return int(self.group.orbit_numbers(atom[0], np.array([atom[1:]]).reshape(1, -1))[0])

    def _sites(self) -> Iterator[tuple[list[World], tuple]]:
        """What every site can be, as values of its atoms, and its leading atom."""
        done: set[tuple] = set()
        known = {a: c for a in atoms_of(self.model) if (c := self._known(a)) is not None}
        tied = self.r.tied
        for a in sorted(atoms_of(self.model), key=lambda a: a[0] not in tied):
            predicate = self.model.predicates[a[0]]
            if a in done:
                continue
            if predicate.exclusive:
                (j,) = predicate.exclusive
                block = [(*a[: j + 1], k, *a[j + 2 :]) for k in range(self.model.shape(a[0])[j])]
                done.update(block)
                values = [{b: b == v for b in block} for v in block]
                yield [v for v in values if all(v[b] == known.get(b, v[b]) for b in block)], a
                continue
            images = [(i.predicate, *(a[1:][j] for j in i.places)) for i in tied.get(a[0], ())] or [a]
            signs = [i.sign for i in tied.get(a[0], ())] or [True]
            done.update(images)
            values = [dict(zip(images, [s == v for s in signs], strict=True)) for v in (False, True)]
            yield [v for v in values if all(v[b] == known.get(b, v[b]) for b in images)], a

    def _known(self, atom: tuple) -> bool | None:
        code = self.model.knowledge.codes(atom[0])[atom[1:]]
        return None if code not in (0, 1) else bool(code)

    def _states(self) -> Iterator[World]:
        atoms = atoms_of(self.model)
        for choice in itertools.product(*(values for values, _ in self.sites)):
            world = {a: v for part in choice for a, v in part.items()}
            yield {a: world[a] for a in atoms}

    def _tilt(self, world: World) -> float:
        """The fields of what is true; of a tied class that of its leading atom."""
        total = 0.0
        for values, leader in self.sites:
            if len(values) > 1:
                block = self.model.predicates[leader[0]].exclusive
                own = list(values[0]) if block else [leader]
                total += sum(self.field[self.orbit(a)] for a in own if world[a])
        return total


@cache
def case(name: str, scan: str = "symmetric") -> Case:
    return Case(name, scan)


LEVELS: dict[str, Callable[[np.ndarray], Level]] = {
    "model": lambda field: MODEL,
    "tempered": lambda field: Level(0.3, 2.0),
    "product": lambda field: between(0.0, field),
    "between": lambda field: between(0.6, field),
    "tilted model": lambda field: Level(1.0, math.inf, field, 0.7),
    "followed": lambda field: between(1.0, field),
}


# --- one update at a time ---


def branches(r: Relational, chain: Chain, world: World) -> Iterator[float]:
    """Every outcome of the chain's next update from a state: (its probability), the chain standing at the outcome."""
    saved = [(array, array.copy()) for array in (chain.clock, chain.order, chain.streams)]
    wanted, outcomes = 0, 1
    while wanted < outcomes:
        for array, copy in saved:
            array[:] = copy
        put_world(r, chain, world)
        recount(r, chain)
        outcomes = 2
        chances: list[float] = []

        def draw(uniform, chance, wanted=wanted, chances=chances):
            chances.append(chance if wanted else 1.0 - chance)
            return bool(wanted)

        def draw_value(uniform, values, first, count, wanted=wanted, chances=chances):
            chances.extend([values[first + wanted], count])
            return wanted

        r.kernel.draw, r.kernel.draw_value = draw, draw_value
        with np.errstate(over="ignore"):
            r.kernel.advance(r.data, chain, 1, 1 << 40, 0)
        assert chain.clock[4] < 0
        outcomes = int(chances[1]) if len(chances) > 1 else 2
        if chances[0] > 0:
            yield chances[0]
        wanted += 1


def update_matrices(c: Case, r: Relational, level: Level, steps: int) -> Iterator[np.ndarray]:
    """The matrices of the first updates of a sweep, over the states that are possible on the level."""
    chain = blank(r)
    chain.streams[:] = np.arange(1, 9)
    for _ in range(steps):
        matrix = np.zeros((len(c.states), len(c.states)))
        place = [(array, array.copy()) for array in (chain.clock, chain.order, chain.streams)]
        for i in np.flatnonzero(np.isfinite(c.log_weights(level))):
            for array, copy in place:
                array[:] = copy
            for chance in branches(r, chain, c.states[i]):
                matrix[i, c.number[tuple(world_of(r, chain).values())]] += chance
        yield matrix


def flow_error(c: Case, level: Level, matrix: np.ndarray) -> float:
    log = c.log_weights(level)
    w = np.exp(log - log.max())
    w /= w.sum()
    possible = w > 0
    return max(np.abs(w @ matrix - w).max(), np.abs(matrix[possible].sum(axis=1) - 1).max())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", THEORIES)
def test_updates_leave_the_law_of_the_level_unchanged(name: str, level: str) -> None:
    c = case(name)
    here = LEVELS[level](c.field)
    for matrix in update_matrices(c, at_level(c.r, here), here, c.r.free_sites):
        assert flow_error(c, here, matrix) < 1e-12


@pytest.mark.parametrize("name", ["two predicates", "tied", "blocks"])
def test_updates_of_the_random_scan(name: str) -> None:
    c = case(name, "random")
    here = between(0.6, c.field)
    for matrix in update_matrices(c, at_level(c.r, here), here, 3):
        assert flow_error(c, here, matrix) < 1e-12


@pytest.mark.parametrize("name", THEORIES)
def test_conditionals_by_counts_are_those_of_the_scale(name: str) -> None:
    """Tables of conditionals are made for the scale, and agree with what is computed where they are too long."""
    c = case(name)
    here = Level(0.3, 2.0)
    with patch("definetti.samplers.logic.tensors.data.LONGEST_TABLE", 0):
        other = plain_model(c.model, c.group.atom_orbits)
    for one, two in zip(
        update_matrices(c, at_level(c.r, here), here, 2),
        update_matrices(c, at_level(other, here), here, 2),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, atol=1e-13)


# --- the tally ---


@pytest.mark.parametrize("name", THEORIES)
def test_the_tally_follows_every_flip(name: str) -> None:
    c = case(name)
    here = between(0.6, c.field)
    r = at_level(c.r, here)
    chain = blank(r)
    log_q = c.log_q()
    rng = np.random.default_rng(1)
    for i in rng.choice(len(c.states), min(12, len(c.states)), replace=False):
        chain.clock[:] = blank(r).clock
        for _ in range(3):
            for _ in branches(r, chain, c.states[i]):
                j = c.number[tuple(world_of(r, chain).values())]
                assert abs(log_density(r, chain) - c.soft[j]) < 1e-12
                assert violated(chain) == c.broken[j]
                assert abs(log_product(chain) - log_q[j]) < 1e-12
                kept = chain.tally.copy()
                recount(r, chain)
                np.testing.assert_allclose(chain.tally, kept, atol=1e-12)


@pytest.mark.parametrize("name", ["tied", "blocks"])
def test_a_long_run_keeps_its_tally(name: str) -> None:
    """Compiled, so that thousands of flips are met."""
    c = Case(name, ready=compile_model)
    for t in (0.4, 1.0):
        r = at_level(c.r, between(t, c.field))
        chain = start(c.r, 5)
        recount(r, chain)
        advance(r, chain, 1 << 40, 200)
        kept, j = chain.tally.copy(), c.number[tuple(world_of(r, chain).values())]
        recount(r, chain)
        np.testing.assert_allclose(chain.tally, kept, atol=1e-9)
        assert abs(log_density(r, chain) - c.soft[j]) < 1e-9 and violated(chain) == c.broken[j]


def test_formula_counts_are_true_groundings() -> None:
    c = case("two predicates")
    chain = blank(c.r)
    for world in c.states[:: len(c.states) // 7]:
        put_world(c.r, chain, world)
        recount(c.r, chain)
        expected = []
        for f in c.model.formulas:
            sizes = {v: c.model.sorts[s].size for v, s in f.sorts.items()}
            expected.append(sum(truth(f.body, env, world, sizes) for env in groundings(c.model, f)))
        assert chain.tally[COUNTS:][[not s.hard for s in c.r.theory.shapes]].tolist() == expected


# --- looks ---


def expected_look(c: Case, i: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """(F, G, entropy, divergence from the product) at a state, by enumeration of the values of every site."""
    f, g, entropy, divergence = np.zeros(c.r.orbit_count), np.zeros(c.r.orbit_count), 0.0, 0.0
    log, world = c.log_weights(MODEL), c.states[i]
    for values, _ in c.sites:
        if len(values) == 1:
            continue
        outcomes = [c.number[tuple({**world, **v}.values())] for v in values]
        p, q = (np.exp(x[outcomes] - np.logaddexp.reduce(x[outcomes])) for x in (log, c.tilts))
        for a in values[0]:
            if c.orbit(a) >= 0:
                f[c.orbit(a)] += world[a]
                g[c.orbit(a)] += sum(p[k] for k, v in enumerate(values) if v[a])
        some = p > 0
        entropy -= (p[some] * np.log(p[some])).sum()
        divergence += (p[some] * np.log(p[some] / q[some])).sum()
    return f, g, entropy, divergence


def look_error(c: Case, r: Relational) -> float:
    chain, log_q, error = blank(r), c.log_q(), 0.0
    chain.streams[:] = np.arange(1, 9)
    legal = np.flatnonzero(c.broken == 0)
    for i in legal[:: max(1, len(legal) // 9)]:
        put_world(r, chain, c.states[i])
        before = {name: array.copy() for name, array in chain._asdict().items()}
        seen = look(r, chain, c.field)
        for name in ("bits", "clock", "streams", "order", "sum_f", "sum_g", "seen", "tally"):
            np.testing.assert_array_equal(getattr(chain, name), before[name], err_msg=name)
        f, g, entropy, divergence = expected_look(c, i)
        error = max(error, float(np.abs(seen.f - f).max()), float(np.abs(seen.g - g).max()))
        error = max(error, abs(seen.entropy - entropy), abs(seen.divergence - divergence))
        error = max(error, abs(seen.log_product - log_q[i]))
    return error


@pytest.mark.parametrize("scan", ["symmetric", "random"])
@pytest.mark.parametrize("name", THEORIES)
def test_a_look_equals_enumeration(name: str, scan: str) -> None:
    c = case(name, scan)
    assert look_error(c, c.r) < 1e-12


def test_a_look_is_at_the_model() -> None:
    c = case("hard")
    with pytest.raises(ModelError, match="no level"):
        look(at_level(c.r, Level(0.5, 1.0)), blank(c.r))


# --- backwards ---


def sweep_matrix(c: Case, r: Relational, level: Level) -> np.ndarray:
    """One sweep, averaged over the orders of all sorts' constants (and of listed sites)."""
    total, orders = 0.0, 0
    sizes = [(int(first), int(n)) for first, n in r.data.sorts]
    for e in r.data.entries:
        sizes += [(int(e[3]), int(e[1]))] if e[3] >= 0 else []
    original = blank(r).order
    for choice in itertools.product(*(itertools.permutations(range(n)) for _, n in sizes)):

        def shuffle(streams, scratch, items, first, n, choice=choice):
            k = sizes.index((first, n))
            items[first : first + n] = original[first : first + n][list(choice[k])]

        r.kernel.shuffle = shuffle
        product = np.eye(len(c.states))
        for matrix in update_matrices(c, r, level, r.free_sites):
            product = product @ matrix
        total, orders = total + product, orders + 1
    return total / orders


REVERSED = {
    "symmetric relation": THREE + "E(thing,thing)\nE(x,y) => E(y,x).\n!E(x,x).\n0.9 E(x,y) ^ E(y,z) ^ x != z\n"
    "-0.3 E(A,x)\n",
    "loops": TWO + "P(thing)\nE(thing,thing)\nE(x,y) => E(y,x).\n0.9 E(x,y) ^ P(x)\n-0.4 E(x,x) v P(x)\n",
    "three predicates": TWO + "P(thing)\nQ(thing)\nR(thing)\n0.8 P(x) ^ Q(y)\n-1.1 Q(x) ^ R(x)\n0.5 P(x) v R(y)\n",
    "two blocks": TWO + "kind = {K, L}\nO(thing,kind!)\nP(thing)\n0.4 O(x,+k)\n0.9 O(x,k) ^ O(y,k) ^ P(x)\n",
}  # fmt: skip


@pytest.mark.parametrize("name", REVERSED)
def test_a_sweep_backwards_is_the_time_reversal_of_a_sweep(name: str) -> None:
    with patch.dict(THEORIES, {name: REVERSED[name]}):
        c = Case(name)
    here = between(0.6, c.field)
    log = c.log_weights(here)
    w = np.exp(log - np.logaddexp.reduce(log))
    there, back = (sweep_matrix(c, r, here) for r in (at_level(c.r, here), at_level(backwards(c.r), here)))
    flow = w[:, None] * there
    assert np.abs(flow - (w[:, None] * back).T).max() < 1e-12
    if name in (
        "three predicates",
        "two blocks",
    ):  # a fresh order alone does not reverse a sweep over several predicates
        assert np.abs(flow - flow.T).max() > 1e-5


def test_a_fixed_scan_has_no_way_back() -> None:
    with pytest.raises(ModelError, match="backwards"):
        backwards(plain_model(case("hard").model, {}, scan="fixed"))


# --- mutants ---

MUTANTS = {
    "the scale is left out": (r"x = scale \* ", "x = 1.0 * ", "tempered"),
    "the orbit's field is left out": (r"x \+= share \* tilt\[i\]", "x += 0.0", "between"),
    "its share is left out": (r"x \+= share \* tilt\[i\]", "x += tilt[i]", "between"),
    "violations are free": (r"x -= penalty \* y", "x -= 0.0", "tempered"),
    "violations count for the other value": (r"x -= penalty \* y", "x += penalty * y", "tempered"),
    "tables know nothing of violations": (r" and \(y == 0 or not soft\)", "", "tempered"),
    "a flip is tallied the wrong way": (r"turn = 2 \* I\(new\) - 1", "turn = 1 - 2 * I(new)", "tally"),
    "violations are not tallied": (r"(tally\[BROKEN\]) \+= turn", r"\1 += 0 * turn", "tally"),
    "a formula is not tallied": (r"(tally\[COUNTS \+ \d\]) \+= turn", r"\1 += 0 * turn", "tally"),
    "fields are not tallied": (r"(tally\[TILTED\]) \+= turn", r"\1 += 0 * turn", "tally"),
    "a look moves": (r"old if greedy == LOOK else", "", "look"),
}


def tally_error(c: Case, made: Relational) -> float:
    r = at_level(made, between(0.6, c.field))
    chain, worst = blank(r), 0.0
    for world in c.states[::5]:
        for _ in branches(r, chain, world):
            kept = chain.tally.copy()
            recount(r, chain)
            worst = max(worst, float(np.abs(kept - chain.tally).max()))
    return worst


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    pattern, new, where = MUTANTS[name]
    c = case("hard")
    made = planted_model(c.model, pattern, new, c.group.atom_orbits)
    if where == "tally":
        error = tally_error(c, made)
    elif where == "look":
        with pytest.raises(AssertionError):
            look_error(c, made)
        return
    else:
        here = LEVELS[where](c.field)
        error = max(flow_error(c, here, m) for m in update_matrices(c, at_level(made, here), here, c.r.free_sites))
    assert error > 1e-4


def test_levels_are_checked() -> None:
    r = case("hard").r
    with pytest.raises(ModelError, match="one per orbit"):
        at_level(r, Level(1.0, 1.0, np.zeros(99)))
    with pytest.raises(ModelError, match="at least 0"):
        Level(1.0, -1.0)
    assert levels.STEEPNESS == 16.0
