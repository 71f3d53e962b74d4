"""Conditional, counted and quantified queries that evidence and hard formulas decide are exact, however sampled."""

from __future__ import annotations

import pytest

import definetti as dft

SPEAKERS = """
person = {Anna, Bob, Eve}
mood = {Sad, Glad}
Smokes(person)
Friends(person, person)
Feels(person, mood!)
0.5 Friends(x,y) ^ Smokes(x) => Smokes(y)
0.3 Feels(x,Glad) ^ Smokes(x)
!Friends(x,x).
-9.5 Smokes(Eve)
"""
DECIDED = {
    "EXIST y Friends(Anna,y)": 1.0,
    "EXIST y Friends(Anna,y) | Smokes(Anna)": 1.0,
    "FORALL x !Friends(x,x)": 1.0,
    "Smokes(x) | Smokes(x) ^ Feels(x,Sad)": 1.0,
    "Friends(x,x) | Smokes(x)": 0.0,
    "Feels(x,Sad) ^ Feels(x,Glad)": 0.0,
    "FORALL x EXIST m Feels(x,m)": 1.0,
    "#Feels": 3.0,
    "#{x: Friends(x,x)}": 0.0,
    "#{x: EXIST m Feels(x,m)}": 3.0,
}
RARE = [
    "EXIST x (Smokes(Eve) ^ Friends(Eve,x))",
    "Friends(Anna,Bob) ^ Smokes(Eve) | Smokes(Anna)",
    "#{x: Smokes(Eve) ^ Smokes(x)}",
]


@pytest.mark.parametrize("symmetries", ["auto", "literals"])
def test_what_hard_formulas_decide_of_ratios_counts_and_quantifiers_is_exact(symmetries: str) -> None:
    """And what was only never met is not."""
    model = dft.markov_logic(SPEAKERS, "Friends(Anna,Bob)\n")
    found = dft.marginals(model, list(DECIDED), sampler="gibbs", symmetries=symmetries, sweeps=60, chains=8, seed=1)
    for text, value in DECIDED.items():
        row = found[text]
        assert (row.mcse, row.half_width) == (0.0, 0.0) and row.probability == pytest.approx(value, abs=1e-12), text
    assert not any("EXIST" in n.message or "#" in n.message for n in found.notices)
    unmet = dft.marginals(model, RARE, sampler="gibbs", symmetries=symmetries, sweeps=60, chains=8, seed=1)
    assert not unmet.trusted and all(unmet[text].probability == 0 and unmet[text].mcse != 0 for text in RARE)
