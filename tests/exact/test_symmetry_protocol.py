"""The groups of both kinds of model keep the protocol `Symmetries`: rows, orbits, generators and random elements."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import product

import logic_worlds as lw
import numpy as np
import pytest
from relational_worlds import literal_image
from small_models import hard_pairs, ising_ring, moved, potts_ring, triples

from definetti import groups
from definetti.errors import ModelError
from definetti.lumping.atom_generators import atom_image
from definetti.model.graph.factors import FactorGraph
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import MarkovLogic
from definetti.readers.logic.mln import read_mln_text
from definetti.symmetry.find import symmetries
from definetti.symmetry.protocol import Symmetries

SMOKERS = "person = {A, B, C}\nS(person)\nF(person, person)\n1.1 S(x) ^ F(x,y) => S(y)\n0.4 S(x)\n"
BLOCKS = "node = {A, B, C}\nkind = {K, L}\nQ(node, kind!)\nP(node)\n0.8 P(x) ^ Q(x,k)\n"
PAIRS = "a = {A, B, C, D}\nR(a)\nT(a)\n1 R(A) ^ R(B)\n1 R(C) ^ R(D)\n0.5 R(x) ^ T(x)\n"
EXCHANGE = "a = {A, B, C}\nR(a)\nS(a)\n0.5 R(x) v S(y)\n"
MIRROR = "a = {A, B, C}\nE(a, a)\nP(a)\n0.5 P(x) <=> P(y)\n0.3 E(x,y) ^ E(y,z)\n"
MODELS: dict[str, Callable[[], FactorGraph | MarkovLogic]] = {
    "ring": lambda: ising_ring(5),
    "ring in a field": lambda: ising_ring(4, field=0.3),
    "potts": lambda: potts_ring(3, 3),
    "triples": triples,
    "hard": hard_pairs,
    "observed": lambda: ising_ring(5).condition({2: 1}),
    "smokers": lambda: read_mln_text(SMOKERS),
    "smokers observed": lambda: read_mln_text(SMOKERS, {"S(A)": True, "F(A,B)": True}),
    "blocks": lambda: read_mln_text(BLOCKS),
    "blocks observed": lambda: read_mln_text(BLOCKS, {"Q(A,K)": True}),
    "pairs": lambda: read_mln_text(PAIRS),
    "exchange": lambda: read_mln_text(EXCHANGE),
    "exchange observed": lambda: read_mln_text(EXCHANGE, {"R(A)": True, "S(B)": True}),
    "mirror": lambda: read_mln_text(MIRROR),
    "mirror observed": lambda: read_mln_text(MIRROR, {"P(A)": True, "P(B)": False}),
}


@pytest.fixture(params=[(name, kind) for name in MODELS for kind in ("auto", "none")], ids=lambda p: "-".join(p))
def group(request: pytest.FixtureRequest) -> Symmetries:
    name, kind = request.param
    return symmetries(MODELS[name](), kind)


def free_names(group: Symmetries) -> list[str]:
    model = group.model
    if model.kind == "graph":
        return [model.names[i] for i in model.free.tolist()]
    atoms = [(name, row) for name in model.predicates for row in np.ndindex(model.shape(name))]
    return [atom_text(model, *atom) for atom in atoms if model.knowledge.value(*atom) is None]


def test_it_is_one_protocol(group: Symmetries) -> None:
    assert isinstance(group, Symmetries)
    assert group.kind in ("literals", "theory", "renaming", "none") and group.seconds >= 0.0
    assert (group.order == 1) == (group.generator_count == 0)
    assert group.kind != "none" or group.order == 1


def test_orbits_partition_the_free_variables(group: Symmetries) -> None:
    names, orbits = free_names(group), list(group.orbits)
    assert sum(orbit.size for orbit in orbits) == len(names)
    for name in names:
        number, members = group.row_number(name), group.orbit_of(name)
        assert name in members and len(members) == orbits[number].size
        assert {group.row_number(other) for other in members} == {number}
        assert orbits[number].representative in members
    assert {group.row_number(name) for name in names} == set(range(len(orbits)))


def test_observed_variables_are_alone() -> None:
    for name, variable in (("observed", "2"), ("smokers observed", "S(A)"), ("blocks observed", "Q(A,L)")):
        group = symmetries(MODELS[name]())
        variable = group.model.names[2] if name == "observed" else variable
        assert group.row_number(variable) == -1 and list(group.orbit_of(variable)) == [variable]


def test_order_is_the_number_of_elements(group: Symmetries) -> None:
    degree = len(group.random_element(np.random.default_rng(0)))
    generators = [groups.dense(generator, degree) for generator in group.generators]
    assert len(generators) == group.generator_count
    found, waiting = {tuple(range(degree))}, [np.arange(degree)]
    while waiting:
        element = waiting.pop()
        for generator in generators:
            image = generator[element]
            if tuple(image) not in found:
                found.add(tuple(image))
                waiting.append(image)
    assert len(found) == group.order
    rng = np.random.default_rng(1)
    drawn = {tuple(group.random_element(rng).tolist()) for _ in range(40)}
    assert drawn <= found and len(drawn) >= min(len(found), 4)


def test_random_elements_preserve_the_density(group: Symmetries) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        element = group.random_element(rng)
        if group.model.kind == "graph":
            _preserves_states(group.model, element)
        else:
            _preserves_worlds(group, element)


def _preserves_states(model: FactorGraph, element: np.ndarray) -> None:
    choices = [range(int(c)) if e < 0 else [int(e)] for c, e in zip(model.cards, model.evidence, strict=True)]
    states = np.array(list(product(*choices)))
    np.testing.assert_allclose(model.log_density(moved(states, model, element)), model.log_density(states), atol=1e-11)


def _preserves_worlds(group: Symmetries, element: np.ndarray) -> None:
    free, state, log = lw.worlds(group.model)
    place, mirror = {a: k for k, a in enumerate(free)}, group.mirror  # type: ignore[attr-defined]
    if group.kind == "theory":  # no atom of these models is pendant or isolated
        images = {a: literal_image(group, element, a) for a in free}  # type: ignore[arg-type]
    else:
        renamed = atom_image(group, element)  # type: ignore[arg-type]
        images = {a: (renamed.get(a, a), True) for a in free}
    assert sorted(b for b, _ in images.values()) == sorted(free)
    moved_to = np.zeros(len(log), dtype=np.int64)
    for a, (b, sign) in images.items():
        moved_to |= (state[a] == sign).astype(np.int64) << place[b]
    assert (np.isclose(log[moved_to], log, atol=1e-11) | (np.isneginf(log[moved_to]) & np.isneginf(log))).all()
    for a, (b, sign) in images.items():
        row, other = (group.row_number(atom_text(group.model, *atom)) for atom in (a, b))
        assert other == (row if sign else mirror[row])


def test_only_models_have_symmetries() -> None:
    with pytest.raises(ModelError, match="got a str"):
        symmetries("grid.uai")


GRAPH = "from definetti.model.graph.factors import factor_graph\nmodel = factor_graph([2, 2], [([0], [1, 2])])"
LOGIC = "from definetti.readers.logic.mln import read_mln_text\nmodel = read_mln_text('a = {A, B}\\nP(a)\\n1 P(x)\\n')"


@pytest.mark.parametrize(("make", "never"), [(GRAPH, ".logic"), (LOGIC, ".graph")], ids=["graph", "logic"])
def test_a_group_loads_nothing_of_the_other_kind(make: str, never: str) -> None:
    code = f"{make}\nfrom definetti.symmetry.find import symmetries\nimport sys\nsymmetries(model)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    rooms = ("definetti.symmetry", "definetti.constraints")
    assert not [m for m in loaded if m.startswith(rooms) and (m + ".").find(never + ".") > 0]
