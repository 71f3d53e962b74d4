"""MC-SAT through `marginals`: factor graphs of many values, `!` predicates, wide formulas, against exact marginals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from definetti import MCSat, Tempering, exact, marginals
from definetti.errors import Notice
from definetti.inference.logic.mcsat_fallback import may_cross, prefer
from definetti.model.graph.factors import factor_graph
from definetti.model.logic.ground import ground
from definetti.model.marginals import Estimate, Marginals
from definetti.readers.logic.mln import read_mln_text

Z = 5.0  # of about thirty numbers


def close(found, truth) -> bool:
    return bool((np.abs(np.subtract(found.probability, truth.probability)) <= Z * np.array(found.mcse) + 1e-12).all())


def test_a_factor_graph_of_many_values():
    """All four different and a chain of soft tables behind: components are drawn exactly and by SampleSAT."""
    rng = np.random.default_rng(3)
    differ = [((i, j), 1.0 - np.eye(4)) for i in range(4) for j in range(i)]
    soft = [((i, i + 1), np.exp(0.4 * rng.normal(size=(4, 4 if i < 3 else 3)))) for i in (0, 3)]
    rest = [((i, i + 1), np.exp(0.3 * rng.normal(size=(3, 3)))) for i in range(4, 9)]
    model = factor_graph([4] * 4 + [3] * 6, [*differ, *soft, *rest])
    found, truth = marginals(model, sampler="mcsat", chains=8, sweeps=4000, seed=5), exact(model)
    assert found.run["sampler"] == "mcsat" and not any(notice.fails for notice in found.notices)
    assert all(close(found[name], truth[name]) for name in model.names)
    assert max(np.max(found[name].mcse) for name in model.names) < 0.02


def test_blocks_and_wide_formulas():
    text = (
        "n={A,B,D}\nc={R,G,B}\nC(n,c!)\nP(n)\nQ(n)\n0.8 C(x,R) => P(x)\n0.5 C(x,d) ^ C(y,d) ^ x != y\nP(A) v C(B,G).\n"
    )
    text += "1.5 P(A) ^ P(B) ^ P(D) ^ C(A,R) => Q(A) ^ Q(B) ^ Q(D) ^ C(B,R)\n"
    asked = ["C(A,R)", "C(B,G)", "P(A)", "Q(D)", "C(A,R) ^ C(B,R)"]
    model = read_mln_text(text)
    found, truth = marginals(model, asked, sampler=MCSat(), sweeps=3000, seed=4), exact(model, asked)
    assert all(close(found.queries[query], truth.queries[query]) for query in asked)
    assert max(estimate.mcse or 0 for estimate in found.queries.values()) < 0.03


def test_tempering_over_slices():
    model = factor_graph([2, 3], [((0, 1), [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])])
    found = marginals(model, sampler=Tempering(MCSat(), (0.0, 1.0)), estimator="control", sweeps=500, seed=1)
    assert all(close(found[name], exact(model)[name]) for name in model.names)


def test_evidence_on_a_block_is_kept():
    """Values that evidence rules out have a hard factor of one variable: chains start elsewhere, and stay there."""
    text = "n={A,B}\nc={R,G,B}\nC(n,c!)\n5.0 C(x,R)\n0.4 C(x,G)\n0.7 C(x,d) ^ C(y,d) ^ x != y\n"
    known = read_mln_text(text, evidence={"C(A,R)": False})
    asked = [f"C({a},{c})" for a in "AB" for c in "RGB"]
    found, truth = marginals(known, asked, sampler="mcsat", sweeps=2000, seed=2), exact(known, asked)
    assert found.queries["C(A,R)"].probability == 0
    assert all(close(found.queries[query], truth.queries[query]) for query in asked)


def test_long_components_are_drawn_exactly():
    """A path of 40 of which no two neighbours are true, with fields: components of up to 2^40 assignments."""
    pairs = [((i, i + 1), [[1.0, 1.0], [1.0, 0.0]]) for i in range(39)]
    model = factor_graph([2] * 40, [*pairs, *(((i,), [1.0, 1.0 + 0.05 * i]) for i in range(40))])
    found, truth = marginals(model, sampler="mcsat", chains=8, sweeps=1500, seed=5), exact(model)
    assert found.run["approximate_share"] == 0 and found.trusted
    assert all(close(found[name], truth[name]) for name in model.names)


def test_what_cannot_be_counted_is_approximate():
    """Asthma, all hard, 12 people: SampleSAT's solutions are far from uniform, and the answer says that they may be."""
    text = "p={1,...,12}\nS(p)\nA(p)\nF(p,p)\n!A(x) v !S(x).\n!A(x) v !F(x,y) v !S(y).\n"
    model = read_mln_text(text)
    found = marginals(model, ["S(1)"], sampler="mcsat", sweeps=50, seed=1)
    assert found.run["approximate_share"] > 0.9 and not found.trusted
    assert any(notice.kind == "approximate" for notice in found.notices)
    over = marginals(ground(model), sampler=Tempering(MCSat(), (0.5, 1.0)), chains=2, sweeps=20, burn_in=5, seed=1)
    assert any(notice.kind == "approximate" for notice in over.notices)


@pytest.mark.parametrize("share, kind", [(0.0, "note"), (0.01, "divided")])
def test_doubts_about_gibbs_sampling_stay_with_an_answer_that_is_not_exact(share, kind):
    doubt = Notice("divided", "the chains see different parts")
    stuck, crossed = (Marginals((), {}, notices=(doubt,)), Marginals((), {}, run={"approximate_share": share}))
    assert prefer(stuck, crossed).notices[0].kind == kind
    survey = {"regions": [{"dropped": True}, {"dropped": False}]}  # one counts, and the survey does not trust that
    assert prefer(replace(stuck, run=survey), crossed).notices[0].kind == "divided"
    unmixed = replace(crossed, notices=(Notice("not-mixed", "R-hat is above 1.05"),))
    assert prefer(stuck, unmixed).notices[0].kind == "divided"


@pytest.mark.parametrize(
    "doubt, slow, kind",
    [
        ("not-mixed", Estimate(0.90, mcse=0.02, half_width=0.04), "note"),  # of chains that cross slowly: they agree
        (
            "not-mixed",
            Estimate(0.60, mcse=0.02, half_width=0.04),
            "not-mixed",
        ),  # they do not: one of both misses something
        ("frozen", Estimate(0.60, mcse=0.02, half_width=0.04), "note"),  # where no chain crosses, errors say nothing
    ],
)
def test_an_answer_that_chains_which_cross_contradict_leaves_the_doubt(doubt, slow, kind):
    gibbs = Marginals((), {}, queries={"P(A)": slow}, notices=(Notice(doubt, "the chains cross rarely"),))
    exactly = Marginals(
        (), {}, queries={"P(A)": Estimate(0.93, mcse=0.001, half_width=0.002)}, run={"approximate_share": 0.0}
    )
    found = prefer(gibbs, exactly)
    assert found.notices[0].kind == kind and found.queries == exactly.queries


@pytest.mark.parametrize(
    "hard, asked",
    [
        ("!E(x,x).", False),
        ("E(A,B).\n!E(x,x).", False),
        ("E(x,y) ^ x != y => P(x).", True),
        ("EXIST y E(x,y).", True),
    ],
)
def test_formulas_that_force_single_atoms_are_in_nobodys_way(hard, asked):
    """A graph with soft formulas and no loops has soft modes alone: MC-SAT crosses between them no better."""
    model = read_mln_text(f"n={{A,B,D}}\nE(n,n)\nP(n)\n0.7 E(x,y) ^ E(y,x)\n{hard}\n")
    assert may_cross(model) == asked
