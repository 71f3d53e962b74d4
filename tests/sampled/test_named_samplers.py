"""Samplers that are asked for by name, on models with modes that their chains do not leave."""

from __future__ import annotations

import numpy as np
import pytest

import definetti as dft

#: All true outweighs all false by 39 nats; what formulas on single atoms say is false.
CROWD = dft.markov_logic("P(thing)\n0.15 P(x) ^ P(y)\n-5 P(x)\n", domain={"thing": 40})
GRAPH = "E(node,node)\n-2 E(x,y)\n0.7 E(x,y) ^ E(y,x)\n0.06 E(x,y) ^ E(y,z) ^ E(z,x)\n!E(x,x).\n"


def row_of(found: dft.Marginals) -> tuple[float, float]:
    """The first orbit's probability and error."""
    row = found.orbits[0]
    return float(np.max(row.probability)), float(np.max(np.asarray(row.mcse, dtype=float)))


TRUTH = float(np.max(dft.exact(CROWD).orbits[0].probability))


@pytest.mark.parametrize("sampler", ["gibbs", "orbital", "orbital-metropolis", "mcsat", "tempering"])
def test_the_wrong_mode_is_not_trusted(sampler: str) -> None:
    """Chains begin where weight was found; of MC-SAT, whose starts are its own, it is said that they are elsewhere."""
    found = dft.marginals(CROWD, sampler=sampler, sweeps=300, seed=1)
    p, error = row_of(found)
    assert not found.trusted or abs(p - TRUTH) < 5 * error + 1e-9, (p, error, found.notices)
    if sampler == "mcsat":
        assert any(n.kind == "divided" and "ended in regions" in n.message for n in found.notices)
    else:
        assert found.trusted, found.notices


def test_a_ladder_without_round_trips_counts_where_bounds_leave_one_region() -> None:
    """No replica goes from the uniform graph to the dense one and back; that the sparse graphs weigh nothing beside it
    is known from bounds, and the chains are in the dense one."""
    model = dft.markov_logic(GRAPH, domain={"node": 30})
    found = dft.marginals(model, sampler="tempering", sweeps=100, seed=1)
    truth, tiny = row_of(dft.marginals(model, chains=8, seed=1))
    assert tiny < 1e-3  # places that were weighed are not doubted again
    p, error = row_of(found)
    assert found.trusted and found.run["tempering"]["round_trips"] < 10, found.notices
    assert abs(p - truth) < 5 * error


PAIRS = "P(thing)\n0.12 P(x) <=> P(y)\n"


@pytest.mark.parametrize(("query", "estimator", "trusted"), [
    ((), None, True), ((), "standard", False), ("P(Thing1) ^ P(Thing2)", None, False)
])  # fmt: skip
def test_modes_that_are_images_of_each_other_are_no_doubt(query: str, estimator: str | None, trusted: bool) -> None:
    """An average over the group is the same in each of them; a question that is none stays in doubt."""
    model = dft.markov_logic(PAIRS, domain={"thing": 30})
    found = dft.marginals(model, query, sampler="gibbs", estimator=estimator, sweeps=300, seed=1)
    assert found.trusted is trusted, found.notices
    if trusted:
        assert found.orbits[0].probability == 0.5 and any("images of each other" in n.message for n in found.notices)


def test_modes_that_are_no_images_stay_in_doubt() -> None:
    """A weak field, and a predicate that is free to be turned: the group negates, and does not carry the modes of P
    into each other."""
    text = "P(thing)\nQ(thing)\n0.12 P(x) <=> P(y)\n0.001 P(x)\n0.1 Q(x) <=> Q(y)\n"
    found = dft.marginals(dft.markov_logic(text, domain={"thing": 30}), sampler="gibbs", sweeps=300, seed=1)
    assert not found.trusted and any(n.kind == "divided" for n in found.notices), found.notices
