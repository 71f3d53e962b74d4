"""Whether 95 % intervals of conditional, quantified and counted queries hold, on models with exact answers.

Slow: outside the gate. `python tests/sampled/test_query_intervals.py 400` prints the shares.
"""

from __future__ import annotations

import sys

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


def shares(case: str, repetitions: int, sweeps: int = 400) -> dict[str, float]:
    """The share of runs whose interval holds the truth, by query."""
    text, evidence, queries = CASES[case]
    model = dft.markov_logic(text, evidence)
    truth = dft.exact(model, queries)
    held = dict.fromkeys(queries, 0)
    for seed in range(repetitions):
        found = dft.marginals(model, queries, sampler="gibbs", sweeps=sweeps, seed=seed, workers=1)
        for query in queries:
            low, high = found[query].interval
            held[query] += low <= truth[query].probability <= high
    return {query: count / repetitions for query, count in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", list(CASES))
def test_intervals_hold(case: str) -> None:
    """Of 120 runs at least 88 % and not all: 95 % ± three standard errors of the share."""
    for query, share in shares(case, 120).items():
        assert 0.88 <= share <= 1.0, (query, share)


if __name__ == "__main__":
    for name in CASES:
        for query, share in shares(name, int(sys.argv[1])).items():
            print(f"{name}: {query}: {share:.4f}", flush=True)
