"""Small sorts, named constants and `EXIST` in the sparse sampler: the law of every visit, F and G, by brute force."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted import planted
from small_theories import with_evidence
from sparse_worlds import ROUNDING, chain_at, exact_theories, plain, random_world, world_of, worst_error

import definetti as dft
from definetti.cli.main import run
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse import split
from definetti.samplers.sparse.choice import verdict
from definetti.samplers.sparse.engine import blank, truth_of
from definetti.samplers.sparse.text import shapes
from definetti.samplers.sparse.text.shapes import shared

BASE = "P(n)\nR(n,n,k)\n0.2 P(x)\n-0.5 R(x,y,v)\n"
FORMS = {
    "a prior for each value": "R(n,n,k)\n-0.5 R(x,y,K1)\n-0.3 R(x,y,K2)\n0.4 R(x,y,v) ^ R(y,x,v)",
    "transitive for each value": "R(n,n,k)\n-0.5 R(x,y,v)\n0.3 R(x,y,v) ^ R(y,z,v) => R(x,z,v)",
    "two values of a pair": "R(n,n,k)\n-0.5 R(x,y,v)\n0.4 R(x,y,v) ^ R(x,y,w) ^ v != w\n0.2 R(x,y,v) ^ R(y,x,w)",
    "along a relation": BASE + "0.4 R(x,y,v) ^ P(x) => P(y)",
    "undirected for each value": "R(n,n,k)\n-0.5 R(x,y,v)\n0.3 R(x,y,v) ^ R(y,z,v) ^ R(x,z,v)\n"
    "R(x,y,v) => R(y,x,v).\n!R(x,x,v).",
    "one value of a pair": "R(n,n,k)\n-0.5 R(x,y,v)\nR(x,y,v) ^ R(x,y,w) => v = w.\nR(x,y,v) => !R(y,x,v).",
    "values of nodes": "P(n,k)\nE(n,n)\n0.2 P(x,K1)\n-0.5 E(x,y)\n0.4 E(x,y) ^ P(x,v) => P(y,v)",
    "some value": "R(n,n,k)\n-0.5 R(x,y,v)\n0.4 EXIST v R(x,y,v)",
    "named constants": "G(n)\nE(n,n)\n0.2 G(x)\n-0.5 E(x,y)\n0.4 E(N1,y)\n0.3 E(x,y) ^ E(y,z) => E(x,z)\n"
    "0.7 E(x,N2) => G(x)\n-0.3 G(N1)\n0.2 E(N1,N2)",
    "a hard formula on a named constant": "E(n,n)\n-0.5 E(x,y)\n0.3 E(x,y) ^ E(y,x)\nE(N1,x) => E(x,N1).",
    "some neighbour, by columns": "E(n,n)\n-0.5 E(x,y)\n0.7 EXIST y E(x,y)",
    "some neighbour before": "E(n,n)\n-0.5 E(x,y)\n0.7 EXIST y E(y,x)",
    "who has some neighbour, by columns": "P(n)\nE(n,n)\n0.3 P(x)\n-0.5 E(x,y)\n0.7 P(x) => EXIST y E(x,y)\n"
    "0.3 E(x,y) ^ E(y,z) => E(x,z)",
    "another neighbour, by columns": "P(n)\nE(n,n)\n0.3 P(x)\n-0.5 E(x,y)\n0.7 P(x) ^ EXIST y (E(x,y) ^ x != y)",
    "no neighbour, by columns": "E(n,n)\n-0.5 E(x,y)\n0.2 E(x,y) ^ E(y,x)\n0.7 FORALL y !E(x,y)",
    "must have a neighbour, by columns": "E(n,n)\n-0.5 E(x,y)\n!E(x,x).\nEXIST y E(x,y).",
    "what has some, by columns": "L(u,i)\nP(u)\n-0.5 L(x,y)\n0.7 (EXIST y L(x,y)) <=> P(x)\n0.2 P(x) ^ L(x,y)",
    "some of any value, by columns": "R(n,n,k)\n-0.5 R(x,y,v)\n0.4 EXIST y,w R(x,y,w)",
}
SIZES = {"n": 3, "k": 2, "u": 2, "i": 3}


def theory(name: str) -> MarkovLogic:
    return dft.markov_logic(
        FORMS[name], domain={s: n for s, n in SIZES.items() if re.search(rf"[(,]{s}[,)].*\n", FORMS[name])}
    )


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_exact(name: str) -> None:
    """Against the theory as given, not against what became of it."""
    r, group = plain(theory(name))
    assert worst_error(r, group, 1, 1) < ROUNDING
    assert {s.side for s in r.plan.systems} == {1 if "columns" in name else 0}


def test_evidence() -> None:
    """Splits into that of each value; values and constants that it sets apart have orbits of their own."""
    model = with_evidence(theory("along a relation"), {"R": {(0, 1, 0): True, (1, 0, 1): False}, "P": {(2,): True}})
    r, group = plain(model)
    assert r.free_sites == 9 * 2 - 2 + 2
    assert worst_error(r, group, 2, 2) < ROUNDING


def test_a_weight_for_each_value() -> None:
    """`+v`: each value takes its own weight."""
    text = "P(n)\nR(n,n,k)\n0.2 P(x)\n-0.5 R(x,y,+v)\n0.3 P(x) ^ R(x,y,+v) ^ R(y,x,+w)"
    model = dft.markov_logic(text, domain={"n": 3, "k": 2})
    weights = {("v",): np.array([-0.7, 0.4]), ("v", "w"): np.array([[0.1, -0.6], [0.9, 0.3]])}
    formulas = tuple(replace(f, weight=weights[f.plus]) if f.plus else f for f in model.formulas)
    assert sum(f.plus != () for f in formulas) == 2
    r, group = plain(replace(model, formulas=formulas))
    assert len(group.sizes) == 5
    assert worst_error(r, group, 2, 3) < ROUNDING


@pytest.mark.parametrize(
    ("name", "k", "first"),
    [
        ("transitive for each value", 4, (0, 0, 0, 0)),
        ("along a relation", 2, (0, 0)),
        ("one value of a pair", 2, (0, 0)),
        ("some of any value, by columns", 2, (0, 0)),
        ("two values of a pair", 2, (0, 1)),  # joins in another order, which the draws depend on
    ],
)
def test_values_of_one_shape_share_their_functions(name: str, k: int, first: tuple[int, ...]) -> None:
    """What differs is data; each row loop takes seconds to compile."""
    model = dft.markov_logic(FORMS[name], domain={"n": 9, "k": k})
    r, _ = plain(model)
    assert r.shapes == first
    assert [hasattr(r.kernel, f"row_{i}") for i in range(k)] == [i in first for i in range(k)]
    assert all(system.own.size > 0 for system in blank(r).systems) == (len(set(first)) == 1)


def test_predicates_of_other_sorts_may_have_one_shape() -> None:
    text = "E(u,u)\nL(i,i)\n-0.5 E(x,y)\n0.3 E(x,y) ^ E(y,x)\n-0.7 L(x,y)\n0.4 L(x,y) ^ L(y,x)"
    r, group = plain(dft.markov_logic(text, domain={"u": 2, "i": 3}))
    assert r.shapes == (0, 0)
    assert worst_error(r, group, 2, 1) < ROUNDING


def test_functions_are_shared_with_those_that_they_call() -> None:
    """Texts that are alike call functions of texts that are not."""
    texts = [f"@helper\ndef class_key_{r}(s):\n    return row_{2 + r}(s) + {7 + r}\n" for r in range(2)]
    texts += [f"@helper\ndef row_{r}(s):\n    return {r}{'' if r == 2 else ' + s'}\n" for r in (2, 3)]
    assert shared(texts, range(4)).first == (0, 1, 2, 3)
    texts[3] = texts[3].replace(" + s", "")
    found = shared(texts, range(4))
    assert found.first == (0, 0, 2, 2)
    assert [own.tolist() for own in found.own] == [[7], [8], [2], [3]]
    assert "row_2(s) + own0" in found.texts[0] and "row_2(s)" in found.renamed("row_3(s)")
    sides = [f"@helper\ndef row_{r}(s):\n    return reclass_{r}_{1 - r}(s)\n" for r in range(2)]
    assert shared(sides, range(2)).first == (0, 1)


def random_theory(seed: int) -> str:
    """A ternary relation, a binary and a unary one; constants, `EXIST` and up to three variables of the large sort."""
    rng = np.random.default_rng(seed)

    def literal() -> str:
        x, y = rng.choice(list("xyz"[: rng.integers(1, 4)]), 2)
        v, c = rng.choice(["v", "w", "K1"]), rng.choice(["N1", y])
        atom = rng.choice([f"P({x})", f"R({x},{y},{v})", f"R({y},{x},{v})", f"D({x},{c})", f"(EXIST u D({x},u))"])
        return f"{'!' if rng.random() < 0.4 else ''}{atom}"

    lines = ["P(n)", "R(n,n,k)", "D(n,n)", f"{rng.normal():.3f} R(x,y,v)", f"{rng.normal():.3f} D(x,y)"]
    for _ in range(rng.integers(1, 3)):
        lines.append(f"{rng.normal():.3f} " + f" {rng.choice(['v', '^'])} ".join(literal() for _ in range(2)))
    return "\n".join(lines)


@pytest.mark.parametrize("block", range(3))
def test_random_theories(block: int) -> None:
    assert len(exact_theories(random_theory, {"n": 2, "k": 2}, range(12 * block, 12 * block + 12))) >= 2


# --- planted mistakes ------------------------------------------------------------------------------------------------

KERNEL_MUTANTS = {
    "the only atom counts itself": ("+ LENGTH] == 1:", "+ LENGTH] == 7:"),
    "a first atom is not seen": ("+ LENGTH] == 0:", "+ LENGTH] == 7:"),
    "a bit that reads the wrong way": ("+ LENGTH] > 0)", "+ LENGTH] > 1)"),
    "classes do not follow the first atom": ("    change_class(c.pool, c.blocks, s, x,", "    max(0,"),
}  # fmt: skip
SHAPE_MUTANTS = {
    "the numbers of the first value": ("numbers[:, k]", "numbers[:, 0]"),
    "a number that differs is left as it is": (
        "len(set(numbers)) > 1 and not in_name",
        "numbers[0] > 1 and not in_name",
    ),
}
SPLIT_MUTANTS = {
    "a mark restricts nothing": ("[[constant.index]]", "[[1 - constant.index]]"),
    "the orbits of the first value": ("orbits.classes[j][at[j]]", "orbits.classes[j][0]"),
    "values are all alike": ("return Truth(left == right)", "return Truth(True)"),
    "the first value's atoms": (
        "return Atom(self.names[name, fixed]",
        "return Atom(self.names[name, tuple((j, 0) for j, _ in fixed)]",
    ),
}


@pytest.mark.parametrize("name", KERNEL_MUTANTS)
def test_planted_mistakes_in_kernels_are_seen(name: str) -> None:
    forms = ("some neighbour before", "another neighbour, by columns")
    assert any(
        worst_error(*plain(theory(form), KERNEL_MUTANTS[name]), 8, 1) > 1e-6 for form in forms if seen_in(form, name)
    )


def seen_in(form: str, name: str) -> bool:
    """Only theories with a unary predicate read the bit."""
    return "P(" in FORMS[form] or "reads" not in name


@pytest.mark.parametrize("name", SHAPE_MUTANTS)
def test_planted_mistakes_in_shapes_are_seen(name: str) -> None:
    with planted(shapes, *SHAPE_MUTANTS[name]):
        r, group = plain(theory("along a relation"))
    try:
        error = worst_error(r, group, 2, 1)
    except (AssertionError, IndexError):  # lists that no longer fit the state
        error = 1.0
    assert r.shapes == (0, 0) and error > 1e-6


@pytest.mark.parametrize("name", SPLIT_MUTANTS)
def test_planted_mistakes_in_splitting_are_seen(name: str) -> None:
    form = {"a mark restricts nothing": "named constants", "values are all alike": "two values of a pair"}
    model = theory(form.get(name, "a prior for each value"))
    try:
        with planted(split, *SPLIT_MUTANTS[name]):
            r, group = plain(model)
        assert worst_error(r, group, 2, 1) > 1e-6
    except IndexError:  # orbits that no longer fit the atoms
        assert "orbits" in name


# --- around it -------------------------------------------------------------------------------------------------------


def test_values_take_their_turns_in_random_order() -> None:
    """Interchangeable values are drawn in an order that says nothing of their numbers."""
    model = dft.markov_logic(FORMS["transitive for each value"], domain={"n": 3, "k": 3})
    r, group = plain(model)
    assert r.data.families.tolist() == [[0, 3]]
    chain = chain_at(r, group, random_world(model, np.random.default_rng(0)) or {})
    data, seen = r.data._replace(shuffled=np.array([1])), set()
    for _ in range(60):
        with np.errstate(over="ignore"):
            r.kernel.begin_sweep(data, chain)
        seen.add(tuple(chain.turns.tolist()))
    assert len(seen) == 6


def test_atoms_are_read_by_the_names_of_the_theory() -> None:
    model = theory("along a relation")
    r, group = plain(model)
    world = random_world(model, np.random.default_rng(5))
    assert world is not None
    chain = chain_at(r, group, world)
    assert world_of(r, chain) == world
    rows = np.argwhere(np.ones(model.shape("R"), bool))
    assert truth_of(r, chain, "R", rows).tolist() == [world["R", *row] for row in rows.tolist()]


@pytest.mark.parametrize(
    ("text", "sizes", "reason"),
    [
        ("R(n,n,k)\n1 R(x,y,v)", {"n": 50, "k": 20}, "3 arguments"),
        ("Z\nR(n,n,k)\n-1 R(x,y,v)\n1 R(x,y,v) ^ Z", {"n": 30, "k": 2}, "Z has 0 arguments"),
        ("Z\nR(n,n,k)\n-3 R(x,y,v)", {"n": 30, "k": 2}, "Z has 0 arguments"),
        ("R(n,n,k)\n1 R(x,y,v)", {"n": 50, "k": 8, "m": 2}, ""),
        ("Q(k)\nR(n,n,k)\n1 R(x,y,v) ^ Q(v)", {"n": 50, "k": 2}, "small sort alone"),
        ("E(n,n)\n1 EXIST y (E(x,y) ^ E(y,x))", {"n": 50}, "quantifier"),
        ("E(n,n)\n1 EXIST y E(x,y)\n1 EXIST y E(y,x)", {"n": 50}, "count each other"),
        ("E(n,n)\n1 E(x,z) ^ EXIST y E(x,y)", {"n": 50}, "ties whether there is an atom"),
        ("E(n,n)\n1 E(x,+y)", {"n": 50}, "`+`"),
    ],
)
def test_why_not(text: str, sizes: dict[str, int], reason: str) -> None:
    sizes = {s: n for s, n in sizes.items() if s in ("n", "k")}
    found = verdict(dft.markov_logic(text, domain=sizes if "k" in text else {"n": 50}))
    assert reason in found.reason
    assert found.engine == "dense"


def test_info_names_the_predicates_of_the_theory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.mln"
    path.write_text("R(n,n,k)\n-6 R(x,y,v)\n0.1 R(x,y,v) ^ R(y,z,v) => R(x,z,v)\n")
    assert run(["info", str(path), "--domain", "n=2000", "--domain", "k=3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["engines"]
    assert list(found) == ["R"]
    assert found["R"].startswith("sparse (")
