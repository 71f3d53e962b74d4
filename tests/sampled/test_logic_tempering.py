"""Parallel tempering on Markov logic with two modes that single-site chains do not cross."""

from __future__ import annotations

import pytest

import definetti as dft
from definetti.inference.logic.question import logic_question
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries

CROWD = dft.markov_logic("P(thing)\n0.8 P(x) ^ P(y)\n-9.4 P(x)\n", domain={"thing": 12})
#: Everybody has one of two colours, like their neighbours: hard, and one move at a time leads nowhere.
COLOURS = dft.markov_logic(
    "R(thing)\nE(thing,thing)\nE(x,y) => (R(x) <=> R(y)).\n1.5 E(x,y)\n0.1 R(x)\n", domain={"thing": 4}
)


@pytest.mark.parametrize("model", [CROWD, COLOURS])
def test_tempering_crosses(model: dft.MarkovLogic) -> None:
    found = dft.marginals(model, sampler="tempering", sweeps=1500, seed=11)
    assert found.run["sampler"] == "tempering" and found.trusted, found.notices
    assert found.run["tempering"]["round_trips"] >= 10 and found.run["tempering"]["barrier"] > 0.5
    truth = dft.exact(model)
    for orbit in found.orbits:
        p = truth[orbit.representative].probability
        assert abs(orbit.probability - p) < 4.5 * orbit.mcse + 1e-9, (orbit, p)


def test_arrivals_are_states_of_the_top_level() -> None:
    """One row per round trip, spread over the modes as the model is."""
    question = logic_question(symmetries(CROWD), (), "orbit")
    sampling = question.sampling(dft.Tempering(), Plan(4, 50, 400, 3, 1), "orbit")
    for _ in sampling.steps():
        pass
    log, f = sampling.arrivals()
    unseen = sampling.report()["tempering"]["round_trips"] - len(log)
    assert 0 <= unseen <= 4 and f.shape == (len(log), 1)  # of each ladder one trip may end with the last exchange
    expected = 0.8 * (12 * f[:, 0]) ** 2 - 9.4 * 12 * f[:, 0]
    assert abs(log - expected).max() < 1e-9


def test_round_trips_that_miss_a_mode_are_not_trusted() -> None:
    """Hundreds of round trips, none of which ends in the mode that carries a third of the weight."""
    text = "P(thing)\nQ(thing)\n50.5 FORALL x (P(x) ^ Q(x))\n-1 P(x)\n-1 Q(x)\n"
    found = dft.marginals(dft.markov_logic(text, domain={"thing": 20}), sampler="tempering", sweeps=300, seed=1)
    assert found.run["tempering"]["round_trips"] > 100
    assert not found.trusted and any(n.kind == "divided" and "arrivals in them" in n.message for n in found.notices)
