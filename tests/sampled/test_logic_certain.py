"""Numbers of Markov logic that no draw can change are exact and no alarm; those that merely did not change are told."""

from __future__ import annotations

from pathlib import Path

import pytest

import definetti as dft

TOPICS = """
Topic(paper, field!)
Cites(paper, paper)
1.0 Topic(x,f) ^ Cites(x,y) => Topic(y,f)
-0.5 Cites(x,y)
"""
ONE = """
S(p)
K(p)
EXIST x S(x).
S(x) ^ S(y) => x = y.
0.7 S(x) => K(x)
"""
ASTHMA = Path(__file__).parents[2] / "examples" / "asthma-hard.mln"


@pytest.fixture
def theory(tmp_path: Path):
    def make(text: str, evidence: str = "", **domain: int):
        (tmp_path / "theory.mln").write_text(text)
        (tmp_path / "known.db").write_text(evidence)
        return dft.read(tmp_path / "theory.mln", evidence=tmp_path / "known.db", domain=domain)

    return make


@pytest.mark.parametrize("sampler", ["auto", "mcsat"])
def test_an_orbit_of_whole_blocks_is_exact(theory, sampler: str) -> None:
    """In every state a third of the atoms Topic(p,f) is true."""
    found = dft.marginals(theory(TOPICS, paper=3, field=3), sampler=sampler, sweeps=400, seed=1)
    row = found["Topic(Paper1,Field1)"]
    assert found.trusted and row.mcse == 0.0 and row.probability == pytest.approx(1 / 3, abs=1e-15)


def test_a_block_with_values_of_two_kinds_is_not(theory) -> None:
    model = theory(TOPICS + "0.3 Topic(x,Logic)\n", paper=3, field=3)
    found = dft.marginals(model, sweeps=2000, seed=1)
    assert found["Topic(Paper1,Logic)"].mcse > 0 and found["Topic(Paper1,Field1)"].mcse > 0
    held = dft.marginals(theory(TOPICS, "!Topic(A,Logic)\n!Topic(B,Logic)\n", paper=3, field=3), sweeps=2000, seed=1)
    assert held["Topic(A,Field1)"].probability == 0.5 and held["Topic(A,Field1)"].mcse == 0.0
    assert held["Topic(Paper1,Field1)"].mcse > 0 and held.trusted


def test_a_number_of_true_atoms_that_hard_formulas_fix_is_exact(theory) -> None:
    model = theory(ONE, p=6)
    found = dft.marginals(model, sampler="mcsat", sweeps=400, seed=1)
    row = found["S(P1)"]
    assert found.trusted and row.mcse == 0.0 and row.probability == pytest.approx(1 / 6, abs=1e-15)
    assert found["K(P1)"].mcse > 0 and found.compare(dft.exact(model)).agrees


@pytest.mark.parametrize("sampler", ["gibbs", "mcsat"])
def test_queries_that_evidence_and_hard_formulas_decide_are_exact(theory, sampler: str) -> None:
    model = theory(ASTHMA.read_text(), "Smokes(A)", person=4)
    decided = {
        "Asthma(Person1) ^ Smokes(Person1)": 0.0,
        "Smokes(Person1) => Cancer(Person1)": 1.0,
        "Smokes(A) ^ Cancer(A)": 1.0,
        "Smokes(Person1) v !Smokes(Person1)": 1.0,
    }
    found = dft.marginals(model, [*decided, "Smokes(Person1) ^ Cancer(A)"], sampler=sampler, sweeps=400, seed=1)
    assert {text: (found[text].probability, found[text].mcse) for text in decided} == {
        text: (value, 0.0) for text, value in decided.items()
    }
    assert found["Smokes(Person1) ^ Cancer(A)"].mcse > 0 and found.trusted


def test_what_merely_was_the_same_in_all_draws_is_not_exact(theory) -> None:
    """A rare query that was not met, and orbits in a single state."""
    rare = theory("S(p)\n9.0 !S(x)\n", p=2)
    found = dft.marginals(rare, ["S(P1) ^ S(P2)"], sweeps=50, seed=1)
    assert found["S(P1) ^ S(P2)"].probability == 0.0 and found["S(P1) ^ S(P2)"].mcse is None and not found.trusted
    short = dft.marginals(theory("S(p)\nK(p)\nS(x) v K(x).\n0.1 S(x) ^ K(y)\n", p=4), sweeps=1, chains=1, seed=1)
    assert [row.mcse for row in short.orbits] == [None] and not short.trusted  # S and K can be exchanged: one orbit


def test_a_floor_error_has_no_effective_size(theory) -> None:
    """The conditionals of Cites(x,x) were the same in all draws: its error is one in the draws, not a rounding."""
    found = dft.marginals(theory(TOPICS, paper=3, field=3), sweeps=2000, seed=1)
    row = found["Cites(Paper1,Paper1)"]
    assert row.mcse > 0 and row.ess is None


def test_the_exact_answer_names_atoms_of_blocks(theory) -> None:
    """Of two values the block's number alone would not say which; and sampled answers are compared by atoms."""
    model = theory(TOPICS + "0.8 Topic(x,Logic)\n", paper=2, field=2)
    truth = dft.exact(model)
    logic, other = truth["Topic(Paper1,Logic)"], truth["Topic(Paper1,Field1)"]
    assert logic.probability > 0.6 and logic.probability + other.probability == pytest.approx(1.0)
    assert {row.representative for row in truth.orbits} == {
        "Topic(Paper1,Logic)", "Topic(Paper1,Field1)", "Cites(Paper1,Paper1)", "Cites(Paper1,Paper2)",
    }  # fmt: skip
    found = dft.marginals(model, sweeps=1000, seed=1).compare(truth)
    assert found.agrees and len(found.names) == len(truth.members) == 8


def test_an_estimator_that_does_not_apply_to_a_sampler_is_told(theory) -> None:
    model = theory("S(p)\n0.5 S(x) => S(y)\n", p=3)
    found = dft.marginals(model, sampler="mcsat", estimator="control", sweeps=200, seed=1)
    assert found.run["estimator"] == "orbit"
    (notice,) = [notice for notice in found.notices if notice.kind == "fallback"]
    assert "mcsat" in notice.message and "'control'" in notice.message
    assert not [n for n in dft.marginals(model, sampler="mcsat", sweeps=200, seed=1).notices if n.kind == "fallback"]


@pytest.mark.parametrize("fields", [2, 3])
def test_ground_runs_name_atoms_of_blocks_too(theory, fields: int) -> None:
    """On the ground model a block is one variable; what is told are its atoms, observed ones included."""
    model = theory(TOPICS + "0.8 Topic(x,Logic)\n", "Topic(Paper2,Logic)\n", paper=3, field=fields)
    truth = dft.exact(model)
    found = dft.marginals(model, sampler="tempering", sweeps=2000, seed=1)
    assert list(found) == list(truth) and len(found) == len(list(found))
    assert (found["Topic(Paper2,Logic)"].probability, found["Topic(Paper2,Field1)"].probability) == (1.0, 0.0)
    for name, estimate in found.variables():
        assert estimate.probability == pytest.approx(truth[name].probability, abs=5 * estimate.mcse + 1e-9), name
    assert sum(
        found[f"Topic(Paper1,{f})"].probability for f in ("Logic", "Field1", "Field2")[:fields]
    ) == pytest.approx(1)
    assert not any("!" in row.representative for row in found.orbits)
