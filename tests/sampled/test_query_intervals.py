"""Whether 95 % intervals of conditional, quantified and counted queries hold, on models with exact answers.

Slow: outside the gate. `python tests/sampled/test_query_intervals.py 400 ground` prints the shares of one of `PATHS`.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import definetti as dft

FRIENDS = (
    "person = {A,B,C,D,E,G}\nS(person)\nF(person,person)\n"
    "0.4 S(x)\n0.6 F(x,y) ^ S(x) => S(y)\n-0.8 F(x,y)\n0.3 S(x) ^ S(y)\n"
)
CHAIN = "time = {1,...,8}\nRain(time)\nWet(time)\n0.9 Rain(i) ^ Rain(i+1)\n1.1 Rain(i) => Wet(i)\n-0.4 Rain(i)\n"
PAPERS = (
    "paper = {P1,P2,P3,P4}\ntopic = {AI,DB}\nTopic(paper,topic!)\nCites(paper,paper)\nGood(paper)\n"
    "0.8 Cites(p,q) ^ Topic(p,t) => Topic(q,t)\n-0.9 Cites(p,q)\n0.5 Good(p) ^ Topic(p,AI)\n0.3 Cites(p,q) ^ Good(q)\n"
)
CASES = {
    "friends": (FRIENDS, "S(G)", ["S(A) | F(A,B)", "S(x) | F(x,A) ^ S(A)", "EXIST x (F(A,x) ^ !S(x))", "#S",
                                  "#{x,y: F(x,y) ^ S(x)}", "F(x,y) ^ S(y)"]),
    "chain": (CHAIN, "Wet(3)", ["Rain(2) | Wet(2)", "Rain(4) | !Wet(5)", "EXIST x (Rain(x) ^ !Wet(x))", "#Rain",
                                "Rain(x) ^ Wet(x)"]),
    "papers": (PAPERS, "Topic(P1,AI)\n!Cites(P2,P2)", ["Good(P2) | Topic(P2,AI)", "Topic(p,AI) | Cites(p,q) ^ Good(q)",
                       "EXIST p (Good(p) ^ Cites(p,P1))", "#Cites", "#{p: Good(p) ^ Topic(p,DB)}"]),
}  # fmt: skip


PATHS = {
    "gibbs": {"sampler": "gibbs"},
    "ground": {"sampler": "gibbs", "symmetries": "literals", "chains": 8},
    "mcsat": {"sampler": "mcsat"},
}
EVENTS = ["X0=1 | X1=1", "X2=0 | X3=1 ^ X0=0", "X0=1 v X1=1 v X2=1", "X4=1 ^ X5=0", "X1=1 | X5=1 v X4=1"]


def graph() -> dft.FactorGraph:
    """A ring of eight variables with a factor of three across it."""
    rng = np.random.default_rng(7)
    factors = [([i], rng.uniform(0.3, 1.0, 2)) for i in range(8)]
    factors += [([i, (i + 1) % 8], rng.uniform(0.3, 1.5, (2, 2))) for i in range(8)]
    return dft.factor_graph([2] * 8, [*factors, ([0, 3, 5], rng.uniform(0.3, 1.5, (2, 2, 2)))])


def shares(case: str, repetitions: int, path: str = "gibbs", sweeps: int = 300) -> dict[str, float]:
    """The share of runs whose interval holds the truth, by query."""
    if case == "graph":
        model, queries = graph(), EVENTS
    else:
        text, evidence, queries = CASES[case]
        model = dft.markov_logic(text, evidence)
    truth = dft.exact(model, queries)
    held = dict.fromkeys(queries, 0)
    for seed in range(repetitions):
        found = dft.marginals(model, queries, sweeps=sweeps, seed=seed, workers=1, **PATHS[path])
        for query in queries:
            low, high = found[query].interval
            held[query] += low <= truth[query].probability <= high
    return {query: count / repetitions for query, count in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "path"), [*((case, "gibbs") for case in CASES), ("papers", "ground"), ("graph", "gibbs")]
)
def test_intervals_hold(case: str, path: str) -> None:
    """Of 120 runs at least 88 % and not all: 95 % ± three standard errors of the share."""
    for query, share in shares(case, 120, path).items():
        assert 0.88 <= share <= 1.0, (query, share)


if __name__ == "__main__":
    for name in [*CASES, "graph"] if sys.argv[2:] in ([], ["gibbs"]) else CASES:
        for query, share in shares(name, int(sys.argv[1]), *sys.argv[2:3]).items():
            print(f"{name}: {query}: {share:.4f}", flush=True)
