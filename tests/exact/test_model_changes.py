"""Models from text, changed without reading them again, and written: the same as what is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti.errors import DefinettiError, ModelError, ParseError, UnknownName
from definetti.model.logic.theory import MarkovLogic

SMOKERS = """
Smokes(person)
Friends(person, person)
Likes(person, food!)
food = {Apple, Bread, Cheese}
1.5 Smokes(Zoe)
0.5 Friends(x,y) ^ Smokes(x) => Smokes(y)
0.25 Likes(x,+f)
-1 EXIST y Friends(x,y)
"""
EVIDENCE = {"Smokes(Anna)": True, "Friends(Anna,Bob)": False, "Likes(Bob,Apple)": True, "Likes(Anna,Bread)": False}


def same(a: MarkovLogic, b: MarkovLogic) -> bool:
    """The same theory, evidence and constants, in one order."""
    if a.sorts != b.sorts or a.closed != b.closed or a.predicates != b.predicates:
        return False
    formulas = zip(a.formulas, b.formulas, strict=True)
    if any(f.body != g.body or not np.array_equal(np.array(f.weight), np.array(g.weight)) for f, g in formulas):
        return False
    pairs = [({k: v.tuples for k, v in m.evidence.items()}, {k: v.values for k, v in m.evidence.items()}, m.unknown)
             for m in (a, b)]  # fmt: skip
    return all(one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)
               for one, two in zip(*pairs, strict=True))  # fmt: skip


def test_evidence_as_text_path_and_mapping(tmp_path: Path) -> None:
    text = "Smokes(Anna)\n!Friends(Anna, Bob)\nLikes(Bob,Apple) // an apple\n!Likes(Anna,Bread)\n"
    (tmp_path / "e.db").write_text(text)
    wanted = dft.markov_logic(SMOKERS, EVIDENCE)
    for evidence in (text, tmp_path / "e.db", str(tmp_path / "e.db"), [tmp_path / "e.db"]):
        assert same(dft.markov_logic(SMOKERS, evidence), wanted)
    assert not dft.markov_logic(SMOKERS, "", domain={"person": 2}).evidence
    with pytest.raises(ParseError, match="<evidence>:1:1: no predicate is called Smoks; did you mean Smokes"):
        dft.markov_logic(SMOKERS, "Smoks(Anna)")
    with pytest.raises(ModelError, match=r"dft.read\('smokers.mln'\)"):
        dft.markov_logic("smokers.mln")
    with pytest.raises(ModelError, match="dft.read takes a path"):
        dft.markov_logic(Path("smokers.mln"))  # type: ignore[arg-type]


@pytest.mark.parametrize("closed", [(), ("Smokes", "Friends")])
def test_conditioning_is_reading_with_evidence(closed: tuple[str, ...]) -> None:
    read = dft.markov_logic(SMOKERS, {**EVIDENCE, "Friends(Bob,Bob)": None}, closed_world=closed, domain={"person": 4})
    plain = dft.markov_logic(SMOKERS, {"Smokes(Anna)": True, "Friends(Bob,Anna)": None},
                             closed_world=closed, domain={"person": 4})  # fmt: skip
    changed = plain.condition(EVIDENCE).condition({"Friends(Bob,Bob)": None})
    if closed:
        changed = changed.condition({"Friends(Bob,Anna)": False})
        read = read.condition({"Friends(Bob,Anna)": False})
    assert same(read, changed)
    assert not plain.evidence.keys() - {"Smokes"}  # the model itself is as it was
    assert not changed.evidence["Smokes"].tuples.flags.writeable


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"Smokes(Anna)": False}, r"contradicting evidence: Smokes\(Anna\) is true already and cannot be false"),
        ({"Smokes(Anna)": None}, "is true already and cannot be unknown"),
        ({"Smokes(Zoe)": True, 'Smokes("Zoe")': False}, r"Smokes\(Zoe\) is true already and cannot be false"),
        ({"Likes(Bob,Bread)": True}, r"Likes\(Bob,Bread\) is false already"),
        ({"Likes(Anna,Apple)": False, "Likes(Anna,Cheese)": False}, r"in Likes\(Anna,!\) no atom can be true"),
        ({"Smoks(Anna)": True}, "no predicate 'Smoks'; did you mean Smokes"),
        ({"Smokes(Ana)": True}, "no constant 'Ana'; did you mean Anna"),
        ({"Smokes(Anna,Bob)": True}, "has 1 arguments"),
        ({"Smokes(Anna)": "yes"}, "must be True, False or None"),
        (["Smokes(Anna)"], "evidence is a mapping"),
    ],
)
def test_evidence_that_cannot_be(evidence, message: str) -> None:
    with pytest.raises((ModelError, UnknownName), match=message):
        dft.markov_logic(SMOKERS, EVIDENCE).condition(evidence)


def test_domains_grow_and_shrink() -> None:
    model = dft.markov_logic("Smokes(person)\n0.5 Smokes(+x)\n1 Smokes(Anna)", {"Smokes(Bob)": True})
    assert model.sorts["person"].constants == ("Anna", "Bob")
    large = model.with_domain(person=4)
    assert same(large, dft.markov_logic("Smokes(person)\n0.5 Smokes(+x)\n1 Smokes(Anna)", {"Smokes(Bob)": True},
                                        domain={"person": 4}))  # fmt: skip
    assert same(large.with_domain(person=2), model)
    larger = dft.exact(model.with_domain(person=9))["Smokes(Person1)"]
    assert larger.probability == pytest.approx(dft.exact(large)["Smokes(Person1)"].probability)
    between = dft.markov_logic("person = {A, B, C, D}\nSmokes(person)\n1 Smokes(D)", {"Smokes(B)": False})
    small = between.with_domain(person=2)  # B and D are named, A and C are not
    assert small.sorts["person"].constants == ("B", "D")
    for name in ("Smokes(B)", "Smokes(D)"):
        assert dft.exact(small)[name].probability == pytest.approx(dft.exact(between)[name].probability)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"person": 2}, r"name 3 constants of sort person \(Anna, Bob, Zoe\): its domain cannot shrink to 2"),
        ({"persons": 5}, "no sort 'persons'; did you mean person"),
        ({"person": 0}, "at least 1"),
        ({"person": 10**9}, "domain of person"),
        ({"food": 4}, r"evidence on Likes is about the 3 values of food; read it again with domain=\{'food': 4\}"),
    ],
)
def test_domains_that_cannot_be(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(DefinettiError, match=message):
        dft.markov_logic(SMOKERS, EVIDENCE).with_domain(**sizes)


def test_a_domain_in_the_formulas_is_not_changed() -> None:
    """Alchemy's weights are split over clauses in which EXIST is written out."""
    text = "Smokes(person)\nFriends(person, person)\n1 EXIST y Friends(x,y)"
    with pytest.raises(ModelError, match="were written out for the 2 constants"):
        dft.markov_logic(text, domain={"person": 2}, weights="alchemy").with_domain(person=3)
    assert dft.markov_logic(text, domain={"person": 2}).with_domain(person=3).atom_count == 12
    closed = dft.markov_logic("T(p, t!)\nt = {X, Y}", {"T(A,X)": True}, closed_world=["T"])
    with pytest.raises(ModelError, match=r"T\(P1,!\) no value"):
        closed.with_domain(p=2)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    logic = dft.markov_logic(SMOKERS, EVIDENCE)
    assert dft.write(logic, tmp_path / "m.mln", evidence=tmp_path / "m.db") == tmp_path / "m.mln"
    assert same(dft.read(tmp_path / "m.mln", tmp_path / "m.db"), logic)  # type: ignore[arg-type]
    graph = dft.factor_graph([2, 3], [([0, 1], np.arange(1.0, 7.0))]).condition({"X1": 2})
    dft.write(graph, tmp_path / "m.uai", evidence=tmp_path / "m.evid")
    dft.write(graph, tmp_path / "again.evid")
    back = dft.read(tmp_path / "m.uai", tmp_path / "again.evid")
    assert back.evidence.tolist() == [-1, 2] and np.allclose(back.tables, graph.tables)  # type: ignore[union-attr]
    for model, name, message in (
        (logic, "m.uai", "a MarkovLogic or its evidence ends in .mln or .db"),
        (graph, "m.mln", "a FactorGraph or its evidence ends in .uai or .evid"),
        (logic, "x.mln", "give evidence='….db'"),
        (graph, "x.uai", "give evidence='….evid'"),
        ("m.uai", "x.uai", "write needs a model"),
    ):
        with pytest.raises(ModelError, match=message):
            dft.write(model, tmp_path / name)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="the evidence ends in .db"):
        dft.write(logic, tmp_path / "x.mln", evidence=tmp_path / "x.evid")
    assert not (tmp_path / "x.mln").exists() and not (tmp_path / "x.uai").exists()


def test_values_named_by_numbers() -> None:
    """A query, a condition and a file of samples mean the same by a number: a name, where values have names."""
    from dataclasses import replace

    model = replace(dft.factor_graph([3], [([0], [1.0, 2.0, 5.0])]), value_names={0: ("1", "2", "3")})
    p = dft.exact(model, ["X0=2", "X0=1"])
    assert p["X0=2"].probability == pytest.approx(0.25) and p["X0=1"].probability == pytest.approx(0.125)
    for two in (2, "2", np.int64(2)):
        assert model.condition({"X0": two}).evidence.tolist() == [1]
    for wrong in (0, "0", 4):
        with pytest.raises(UnknownName, match="its values are 1, 2, 3"):
            model.condition({"X0": wrong})
    assert model.condition({"X0": True}).evidence.tolist() == [0]  # a column of bools
    yes = replace(dft.factor_graph([2], []), value_names={0: ("True", "False")})
    assert yes.condition({"X0": True}).evidence.tolist() == [0] and yes.condition({0: 1}).evidence.tolist() == [1]
