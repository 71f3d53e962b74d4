"""The exact numbers of the paper's relational models, by plain enumeration of the ground model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mln_oracle import ground_marginals, ground_states

from definetti.model.logic.ground import ground
from definetti.readers.logic.mln import read_mln

EXAMPLES = Path(__file__).parents[2] / "examples"

SMOKERS = {
    ("smokers.mln", 2): (0.0672195515, 0.1058374928, 0.0095372574),
    ("smokers-transitive.mln", 2): (0.0672226226, 0.1058381651, 0.0094599192),
    ("smokers.mln", 3): (0.0668586338, 0.1057584870, 0.0095393223),
    ("smokers-transitive.mln", 3): (0.0668733900, 0.1057617171, 0.0093533167),
}


@pytest.mark.parametrize(("name", "n"), SMOKERS)
def test_friends_and_smokers(name: str, n: int) -> None:
    graph = ground(read_mln(EXAMPLES / name, domain={"person": n}))
    p = ground_marginals(graph)
    found = [p[graph.index(v)][1] for v in ("Smokes(Person1)", "Cancer(Person2)", "Friends(Person1,Person2)")]
    assert found == pytest.approx(SMOKERS[name, n], abs=6e-11)


def test_asthma_hard() -> None:
    graph = ground(read_mln(EXAMPLES / "asthma-hard.mln", domain={"person": 3}))
    assert int(np.isfinite(graph.log_density(ground_states(graph))).sum()) == 50_944
    p = ground_marginals(graph)
    found = [p[graph.index(f"{v}(Person1)")][1] for v in ("Asthma", "Smokes", "Cancer")]
    found.append(p[graph.index("Friends(Person1,Person2)")][1])
    assert found == pytest.approx([0.3869346734, 0.1507537688, 0.5753768844, 0.4824120603], abs=6e-11)
