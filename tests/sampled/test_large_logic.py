"""Markov logic beyond 1.6 M atoms: surveyed by sparse chains, and by bounds where no chain gets."""

from __future__ import annotations

import math

import numpy as np
import pytest

import definetti as dft
from definetti.inference.logic.denser_states import denser_states

CROWD = """
smokes(person)
cancer(person)
friends(person, person)
1.4 !smokes(x)
2.3 !cancer(x)
{prior} !friends(x,y)
1.5 smokes(x) => cancer(x)
1.1 friends(x,y) ^ smokes(x) => smokes(y)
1.0 friends(x,y) ^ friends(y,z) => friends(x,z)
"""


def test_a_calm_crowd_is_surveyed_and_trusted() -> None:
    n = 1300
    model = dft.markov_logic(CROWD.format(prior=round(math.log(n / 10), 6)), domain={"person": n})
    found = dft.marginals(model, sweeps=300, chains=4, seed=1)
    assert found.run["engine"] == "sparse"
    assert {notice.kind for notice in found.notices} <= {"note"}
    assert any("survey of modes was a short one" in notice.message for notice in found.notices)
    assert 2.2 < n * found["friends(Person1,Person2)"].probability < 2.4


def test_a_named_sampler_does_not_start_where_nothing_weighs() -> None:
    """Two of eight starts end where everybody smokes, for good: the survey leaves that region out."""
    n = 2000
    rules = CROWD.rsplit("\n", 2)[0]  # without transitivity
    model = dft.markov_logic(rules.format(prior=round(math.log(n / 10), 6)), domain={"person": n})
    found = dft.marginals(model, sampler="gibbs", sweeps=32, chains=8, seed=1)
    assert found.trusted and found["smokes(Person1)"].probability < 0.001


@pytest.mark.parametrize(
    ("triangle", "kinds"), [(5.4, []), (6.0, ["divided"]), (6.6, ["divided"]), (60.0, ["divided"])]
)
def test_degenerate_graphs_are_not_trusted(triangle: float, kinds: list[str]) -> None:
    """Chains from sparse starts agree on a mean degree of five; the complete graph weighs more."""
    n = 2000
    text = f"E(node,node)\n!E(x,x).\n-6 E(x,y)\n{triangle / n} E(x,y) ^ E(y,z) ^ E(x,z) ^ x!=y ^ y!=z ^ x!=z"
    group = dft.symmetries(dft.markov_logic(text, domain={"node": n}))
    said = denser_states(group, np.array([0.0025]))
    assert [notice.kind for notice in said] == kinds
    assert all("--domain" in notice.cure for notice in said)


@pytest.mark.slow  # a kernel of its own; what the notice advises is looked at above
def test_what_to_do_about_a_denser_phase_is_not_more_sweeps() -> None:
    n = 2000
    text = f"E(node,node)\n!E(x,x).\n-6 E(x,y)\n{6.6 / n} E(x,y) ^ E(y,z) ^ E(x,z) ^ x!=y ^ y!=z ^ x!=z"
    found = dft.marginals(dft.markov_logic(text, domain={"node": n}), sweeps=20, chains=4, seed=1)
    assert not found.trusted and "--domain" in found.run["advice"] and "--sweeps" not in found.run["advice"]
