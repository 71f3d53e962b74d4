"""Every sampler of the registry, each with a small model of every kind that it runs on."""

from __future__ import annotations

from typing import Any

import numpy as np
from small_models import hard_pairs, implications, ising_ring, triples

import definetti as dft
from definetti.samplers.registry import named

THEORY = """
P(thing)
R(thing, thing)
0.7 P(x)
-0.5 R(x,y) ^ P(x) => P(y)
!R(x,x).
P(x) v R(x,y) v R(y,x).
"""


def theory(folder: Any) -> dft.MarkovLogic:
    path = folder / "theory.mln"
    path.write_text(THEORY)
    return dft.read(path, domain={"thing": 3})  # type: ignore[return-value]


def hard_triples() -> dft.FactorGraph:
    """Several values, hard factors, two joint parts."""
    table = np.ones((3, 2))
    table[0, 1] = table[2, 0] = 0.0
    pairs = [([0, 1], table), ([2, 3], table), ([0, 2], np.exp(0.3 * np.eye(3)))]
    return dft.factor_graph([3, 2, 3, 2], pairs)


#: (sampler, model) of every kind; more chains where lanes are packed into words.
GRAPHS: dict[str, tuple[Any, Any, int]] = {
    "gibbs": (named("gibbs", "symmetric"), hard_pairs(), 5),
    "gibbs-words": (named("gibbs", "random"), ising_ring(6, 0.5, 0.3), 70),
    "gibbs-tables": (named("gibbs", "random"), triples(), 40),
    "gibbs-polynomial": (named("gibbs", "random"), implications(), 40),
    "gibbs-fixed": (named("gibbs", "fixed"), hard_triples(), 5),
    "blocks": (named("blocks", "symmetric"), hard_triples(), 20),
    "swendsen-wang": (named("swendsen-wang", "symmetric"), ising_ring(6, 0.5, 0.3), 20),
    "tempering": (named("tempering", "symmetric"), hard_triples(), 5),
    "tempering-mcsat": (dft.Tempering(dft.MCSat()), hard_triples(), 5),
    "mcsat": (named("mcsat", "symmetric"), hard_triples(), 10),
    "orbital": (named("orbital", "symmetric"), ising_ring(6, 0.5), 70),
    "orbital-bytes": (dft.Orbital(dft.Blocks()), hard_triples(), 20),
    "orbital-metropolis": (named("orbital-metropolis", "symmetric"), ising_ring(6, 0.5, 0.3), 5),
}
LOGIC: dict[str, tuple[Any, str]] = {
    "gibbs": (named("gibbs", "symmetric"), ""),
    "gibbs-random": (named("gibbs", "random"), ""),
    "gibbs-fixed": (named("gibbs", "fixed"), ""),
    "mcsat": (named("mcsat", "symmetric"), ""),
    "orbital": (named("orbital", "symmetric"), ""),
    "orbital-mcsat": (named("orbital:mcsat", "symmetric"), ""),
    "orbital-tempering": (dft.Orbital(dft.Tempering(levels=(0.0, 0.5, 1.0))), ""),
    "orbital-metropolis": (named("orbital-metropolis", "symmetric"), ""),
    "lifted": (named("lifted", "symmetric"), ""),
    "tempering": (named("tempering", "symmetric"), ""),
    "tempering-random": (dft.Tempering(dft.Gibbs("random"), levels=(0.0, 0.5, 1.0)), ""),
}

COEXISTING = """
P(t)
Q(t)
0.12 P(x) <=> P(y)
0.02 P(x)
0.3 P(x) <=> Q(x)
"""


def coexisting(kind: str) -> Any:
    """Two modes that chains do not leave, both of which count."""
    if kind == "logic":
        return dft.markov_logic(COEXISTING, domain={"t": 30})
    pairs = [([i, j], [[1.3, 1.0], [1.0, 1.3]]) for i in range(26) for j in range(i)]
    return dft.factor_graph([2] * 26, [*pairs, *(([i], [1.0, 1.01]) for i in range(26))])
