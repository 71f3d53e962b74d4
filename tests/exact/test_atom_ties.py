"""Tied atoms as one site: the kernel's conditionals against the plain log-density with the whole class flipped."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from plain_kernels import plain_model, start
from relational_worlds import chances, dense_log_density

from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.constraints.logic.ties import Image, ties
from definetti.errors import Unsatisfiable
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.logic.engine import advance
from definetti.samplers.logic.tensors.known_bits import pack, unpack
from definetti.samplers.logic.tensors.tied_sites import spread
from definetti.symmetry.logic.renaming import renaming

GRAPH = "E(node,node)\nP(node)\nE(x,y) => E(y,x).\n"
TRIANGLES = "-0.4 E(x,y)\n0.3 E(x,y) ^ E(y,z) ^ E(z,x)\n"
THEORIES = {
    "graph": GRAPH + "!E(x,x).\n" + TRIANGLES,
    "unequal": GRAPH + "!E(x,x).\n0.3 E(x,y) ^ E(y,z) ^ E(x,z) ^ x != y ^ y != z ^ x != z\n-0.2 E(x,y) ^ E(x,z)\n",
    "loops": GRAPH + TRIANGLES + "0.7 E(x,x) v P(x)\n",
    "mixed": GRAPH + "!E(x,x).\n0.5 P(x) ^ E(x,y) => P(y)\n0.2 EXIST y E(x,y)\n0.3 E(x,N2) ^ !P(x)\n-0.4 E(N1,N2)\n",
    "pairs": GRAPH + "0.2 E(x,y) ^ E(z,w) ^ P(x) ^ P(w)\n0.1 !E(x,y) v E(y,z) v E(x,z)\n",
    "guarded": "E(node,node)\nx != y ^ E(x,y) => E(y,x).\n" + TRIANGLES,
    "two": "P(node)\nQ(node)\nR(node,node)\nP(x) <=> Q(x).\n0.3 P(x) ^ R(x,y) => Q(y)\n-0.5 Q(x)\n0.2 P(x) ^ Q(y)\n",
    "opposite": "P(node)\nQ(node)\nP(x) <=> !Q(x).\n0.3 P(x) ^ P(y) ^ x != y\n0.4 Q(x) v P(y)\n-0.2 Q(x)\n",
    "turned": "R(node,node)\nS(node,node)\nR(x,y) <=> S(y,x).\n0.3 R(x,y) ^ S(x,z)\n-0.2 S(x,y) ^ R(y,x)\n0.1 S(x,x)\n",
    "three": "T(node,node,node)\nT(x,y,z) => T(y,x,z).\n0.3 T(x,y,z) ^ T(z,y,x)\n-0.2 T(x,x,z)\n",
    "ring": "P(node)\nQ(node)\nR(node)\nP(x) => Q(x).\nQ(x) => R(x).\nR(x) => P(x).\n0.4 P(x) ^ Q(y)\n-0.3 R(x)\n",
}


def theory(name: str, n: int = 4):
    nodes = ",".join(f"N{i + 1}" for i in range(n))
    return with_forced_atoms(read_mln_text("node = {" + nodes + "}\n" + THEORIES[name]))


def soft(model):
    return replace(model, formulas=tuple(f for f in model.formulas if not f.hard))


def tied_state(model, r, rng, density: float = 0.4) -> dict[str, np.ndarray]:
    words = {}
    for name in model.predicates:
        tensor = rng.random(model.shape(name)) < density
        known = r.known[name]
        if known.mask is not None:
            tensor = (tensor & ~unpack(known.mask, tensor.shape)) | unpack(known.truth, tensor.shape)
        words[name] = pack(tensor)
    return {name: unpack(w, model.shape(name)) for name, w in spread(model, r.tied, words).items()}


def flipped(r, state: dict[str, np.ndarray], name: str, at: tuple[int, ...], value: bool) -> dict[str, np.ndarray]:
    new = {p: tensor.copy() for p, tensor in state.items()}
    new[name][at] = value
    for image in r.tied.get(name, ()):
        new[image.predicate][tuple(at[j] for j in image.places)] = value == image.sign
    return new


def test_what_is_tied():
    assert ties(theory("graph")) == {"E": (Image("E", (0, 1)), Image("E", (1, 0)))}
    assert ties(theory("opposite")) == {"P": (Image("P", (0,)), Image("Q", (0,), False))}
    assert ties(theory("turned")) == {"R": (Image("R", (0, 1)), Image("S", (1, 0)))}
    assert ties(theory("ring")) == {"P": (Image("P", (0,)), Image("Q", (0,)), Image("R", (0,)))}
    assert ties(theory("guarded")) == ties(theory("graph"))
    one_way = read_mln_text(
        "P(node)\nQ(node)\nR(node,node)\nnode={A,B}\nP(x) => Q(x).\nx != y ^ R(x,y) => R(y,x) v P(x).\n"
    )
    assert ties(one_way) == {}


@pytest.mark.parametrize("name", THEORIES)
@pytest.mark.parametrize("short", [0, 4])
def test_conditionals_of_classes(name, short):
    model = theory(name)
    r = plain_model(model, {}, short=short)
    assert r.tied
    rng = np.random.default_rng(5)
    for _ in range(3):
        state = tied_state(model, r, rng)
        for p in model.predicates:
            if not r.known[p].free:
                continue
            known = r.known[p].mask
            barred = np.zeros(model.shape(p), bool) if known is None else unpack(known, model.shape(p))
            for at in np.argwhere(~barred).tolist():
                fields = [dense_log_density(soft(model), flipped(r, state, p, tuple(at), v)) for v in (False, True)]
                expected = 1 / (1 + np.exp(fields[0] - fields[1]))
                assert chances(r, state, p, tuple(at))[0] == pytest.approx(expected, abs=1e-12)


def test_equal_places_are_one():
    r = plain_model(theory("graph"), {})
    assert sorted(place.times for place in r.written.places[0]) == [2, 6]
    r = plain_model(theory("unequal"), {})
    assert max(place.times for place in r.written.places[0]) == 6


@pytest.mark.parametrize("name", THEORIES)
@pytest.mark.parametrize("scan", ["symmetric", "random", "fixed"])
def test_a_sweep_visits_each_class_once(name, scan):
    model = theory(name, 5)
    group = renaming(model)
    r = plain_model(model, group.atom_orbits, scan=scan)
    chain = start(r, 3)
    assert advance(r, chain, 10**9, 1) == r.free_sites
    for p, images in r.tied.items():
        for image in images:
            expected = r.atoms(chain, p) == image.sign
            assert (r.atoms(chain, image.predicate) == expected.transpose(image.places)).all()
    if scan != "random":
        total = sum(r.atoms(chain, p)[group.orbit_grid(p) >= 0].sum() for p in model.predicates)
        assert chain.sum_f[1, 1:].sum() == total  # F at the sweep's end, every image counted once


def test_marginals_match_enumeration():
    """Six nodes, 15 edges: all 2^15 graphs."""
    from definetti.inference.marginals import marginals

    text = (
        "node = {1,...,6}\n" + GRAPH.replace("P(node)\n", "") + "!E(x,x).\n-0.5 E(x,y)\n0.1 E(x,y) ^ E(y,z) ^ E(z,x)\n"
    )
    model = read_mln_text(text)
    edges = {pair: k for k, pair in enumerate(combinations(range(6), 2))}
    x = (np.arange(1 << 15)[:, None] >> np.arange(15)) & 1
    triangles = sum(x[:, edges[a, b]] * x[:, edges[b, c]] * x[:, edges[a, c]] for a, b, c in combinations(range(6), 3))
    weight = np.exp(-1.0 * x.sum(1) + 0.6 * triangles)
    weight /= weight.sum()
    found = marginals(model, ["E(1,2)", "E(1,2) ^ E(2,3) ^ E(3,1)"], seed=4, sweeps=4000)
    assert not found.notices
    edge, triangle = found.queries.values()
    assert abs(edge.probability - weight @ x[:, 0]) < 4 * edge.mcse < 0.02
    assert abs(triangle.probability - weight @ triangles / 20) < 4 * triangle.mcse < 0.02


def test_a_given_start_must_respect_ties():
    model = theory("graph")
    r = plain_model(model, {})
    wrong = np.zeros((4, 4), bool)
    wrong[0, 1] = True
    with pytest.raises(Unsatisfiable, match="given start"):
        start(r, 1, atoms={"E": wrong})
    assert r.atoms(start(r, 1, atoms={"E": wrong | wrong.T}), "E").sum() == 2
