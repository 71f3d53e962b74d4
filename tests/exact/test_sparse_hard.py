"""Hard formulas in the sparse sampler: the law of every visit, what is watched, violations, starts."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from relational_worlds import World, atoms_of, log_density, truth
from small_theories import with_evidence
from sparse_worlds import ROUNDING, chain_at, exact_theories, literal, plain, random_world, worst_error

import definetti as dft
from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse import watch
from definetti.samplers.sparse.choice import verdict
from definetti.samplers.sparse.starts import first_chain, violations
from definetti.samplers.sparse.stuck import held

EDGES = "G(node)\nE(node,node)\n-0.5 E(x,y)\n0.3 G(x)\n"
FORMS = {
    "transitivity": "E(node,node)\n-0.5 E(x,y)\nE(x,y) ^ E(y,z) => E(x,z).",
    "asymmetry": "E(node,node)\n-0.5 E(x,y)\n0.4 E(x,y) ^ E(y,z) => E(x,z)\nE(x,y) => !E(y,x).",
    "ties of nodes and edges": EDGES + "0.4 E(x,y) ^ E(y,z) => E(x,z)\nE(x,y) => G(x).",
    "ties of both ends": EDGES + "E(x,y) ^ G(x) => G(y).",
    "edges that must be": "E(node,node)\nD(node,node)\n-0.5 E(x,y)\n-0.2 D(x,y)\nE(x,y) => D(y,x).\nE(x,x).",
    "two relations": "E(node,node)\nD(node,node)\n-0.5 E(x,y)\n0.2 D(x,y)\n0.3 D(x,y) ^ D(y,x)\nE(x,y) => D(x,y).",
    "one out-edge, by columns": "E(node,node)\n-0.5 E(x,y)\nE(x,y) ^ E(x,z) => y = z.",
    "undirected, no triangle": "E(node,node)\n-0.4 E(x,y)\nE(x,y) => E(y,x).\n!E(x,x).\n!E(x,y) v !E(y,z) v !E(x,z).",
}


def theory(name: str, size: int = 3) -> MarkovLogic:
    return dft.markov_logic(FORMS[name], domain={"node": size})


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_exact(name: str) -> None:
    """Law, F, G, and which sites are watched on along every path."""
    r, group = plain(theory(name))
    assert r.plan.held_pairs
    assert worst_error(r, group, 3, 1) < ROUNDING
    assert [s.side for s in r.plan.systems] == [1 if "columns" in name else 0] * len(r.plan.systems)


def test_evidence() -> None:
    known = {"E": {(0, 1): True, (1, 0): False, (2, 1): True}, "G": {(2,): True}}
    r, group = plain(with_evidence(theory("ties of nodes and edges"), known))
    assert worst_error(r, group, 3, 2) < ROUNDING


def random_hard_theory(seed: int) -> str:
    """Some soft formulas and one or two hard ones, each with a literal that all-false states satisfy."""
    rng = np.random.default_rng(seed)
    lines = ["P(node)", "Q(node)", "E(node,node)", "D(node,node)", f"{rng.normal():.3f} E(x,y)"]
    for k in range(rng.integers(2, 4)):
        names = "xyz"[: rng.integers(1, 4)]
        parts = [literal(rng, names) for _ in range(rng.integers(2, 4))]
        soft = f"{rng.normal():.3f} " + f" {rng.choice(['v', '^'])} ".join(parts)
        lines.append(soft if k == 0 else " v ".join([f"!{parts[0].lstrip('!')}", *parts[1:]]) + ".")
    return "\n".join(lines)


@pytest.mark.parametrize("block", range(3))
def test_random_theories(block: int) -> None:
    found = exact_theories(random_hard_theory, {"node": 2}, range(30 * block, 30 * block + 30))
    assert sum(r.plan.hard for r in found) >= 4


# --- violations and starts -------------------------------------------------------------------------------------------


def broken(model: MarkovLogic, world: World) -> int:
    """By the interpreter: groundings of hard formulas that a state violates."""
    sizes, count = {name: sort.size for name, sort in model.sorts.items()}, 0
    for f in model.formulas:
        for at in product(*(range(sizes[f.sorts[x]]) for x in f.free)) if f.hard else ():
            count += not truth(f.body, dict(zip(f.free, at, strict=True)), world, sizes)
    return count


@pytest.mark.parametrize("name", [name for name in FORMS if "undirected" not in name])
def test_violations_are_counted(name: str) -> None:
    r, group = plain(theory(name))
    rng, seen = np.random.default_rng(3), set()
    for _ in range(12):
        world = {atom: bool(rng.random() < 0.5) for atom in atoms_of(r.model)}
        for atom in world:
            known = r.model.knowledge.value(atom[0], atom[1:])
            world[atom] = world[atom] if known is None else bool(known)
        seen.add(broken(r.model, world))
        assert violations(r, chain_at(r, group, world)) == broken(r.model, world)
    assert len(seen) > 1


@pytest.mark.parametrize("name", FORMS)
def test_starts_are_legal(name: str) -> None:
    """Also where a state without edges is not, and where a start has random edges."""
    r, _ = plain(theory(name, 6))
    for number in range(4):
        chain = first_chain(r, 7, number)
        assert violations(r, chain) == 0
        assert int(chain.clock[0]) == 0


def test_a_given_start_is_not_mended() -> None:
    class Full:
        def atoms(self, name: str) -> np.ndarray:
            return np.ones(r.model.shape(name), bool)

    r, _ = plain(theory("transitivity"))
    chain = first_chain(r, 1, 0, Full())
    assert int(chain.true_atoms.sum()) == 9


# --- the watch -------------------------------------------------------------------------------------------------------


def test_what_cannot_move_is_seen() -> None:
    """All edges between four nodes: every one is held by two others, for ever."""
    r, group = plain(theory("transitivity", 4))
    chain = chain_at(r, group, dict.fromkeys(atoms_of(r.model), True))
    with np.errstate(over="ignore"):
        r.kernel.advance(r.data, chain, 1 << 40, 3)
    found = {name: (len(rows), values.all()) for name, rows, values in [next(iter(held(r, [chain])))]}
    assert found == {"E": (4, True)}  # loops
    pairs = [rows for _, rows, _ in held(r, [chain])][1]
    assert sorted(map(tuple, pairs.tolist())) == [(x, y) for x in range(4) for y in range(4) if x != y]


def test_some_of_each_orbit_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_WATCHED", 100)
    monkeypatch.setattr(watch, "SAMPLED", 64)
    model = with_evidence(theory("transitivity", 20), {"E": {(0, 1): True}})
    r, group = plain(model)
    start, sites = r.shared[0][-1], r.watched[0]
    rows = np.repeat(np.arange(20), np.diff(start))
    assert 20 < len(sites) < 64
    orbits = set(group.orbit_numbers("E", np.stack([rows, sites], axis=1)).tolist())
    assert len(orbits) > 5
    assert -1 not in orbits


MUTANTS = {
    "held sites are no longer watched": ("s.watch_keys[i] + change) == 0", "s.watch_keys[i] + change) != 5"),
    "the key of the end of the row": ("= base_key_0(s, I(s.watched", "= 0 * base_key_0(s, I(s.watched"),
    "changes before the visit are forgotten": ("        change = s.node[b, CHANGE]", "        change = 0"),
    "a held site is drawn": ("return 1.0 if hard > 0 else 0.0", "return logistic(h)"),
    "loops are not watched": ("        c.live[d.type_start[0] + a] |=", "        max(0, 0) +"),
    "what must be true has no tick": ("math.inf if p == 1.0 and hard > 0 else", "0.5 if p == 1.0 and hard > 0 else"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_mistakes_are_seen(name: str) -> None:
    old, new = MUTANTS[name]
    for form in ("transitivity", "edges that must be"):
        try:
            r, group = plain(theory(form), (old, new))
        except SyntaxError:  # the mutant has another meaning in this text
            continue
        try:
            if worst_error(r, group, 4, 1) > 1e-6:
                return
        except (AssertionError, IndexError, ZeroDivisionError):
            return
    pytest.fail("not seen")


# --- which engine ----------------------------------------------------------------------------------------------------


def test_they_may_be_swept_at_the_cost_of_true_atoms() -> None:
    text = FORMS["transitivity"].replace("-0.5", "-6")
    assert verdict(with_forced_atoms(dft.markov_logic(text, domain={"node": 1000}))).engine == "sparse"


def test_worlds_are_legal() -> None:
    """The judge meets states that hard formulas allow, and others would be refused."""
    model = theory("transitivity")
    world = random_world(model, np.random.default_rng(0))
    assert world is not None
    assert log_density(model, world) > -math.inf
    assert replace(model).formulas[1].hard
