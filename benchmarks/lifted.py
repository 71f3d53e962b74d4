"""Lifted counting: friends and smokers and asthma at growing sizes, with the paper's evidence, theories of more cells,
and with a quantifier. Beside: what the tools of the field take (Forclift, WFOMC; orders of magnitude, like machine)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from measuring import Row, best_of, cpu_seconds

import definetti as dft
from definetti.model.logic.theory import Evidence, MarkovLogic
from definetti.readers.logic.mln import read_mln_text

EXAMPLES = Path(__file__).parent.parent / "examples"
SORTS = "P(a)\nQ(a)\nR(a,a)\n"
THEORIES = {  # interacting cells → formulas
    3: "P(a)\nQ(a)\nR(a,a)\n!P(x) v !Q(x).\n!P(x) v !R(x,y) v !Q(y).\n",
    4: SORTS + "0.3 P(x)\n0.2 P(x) ^ R(x,y) => P(y)\n-0.4 R(x,y) ^ Q(y)\n0.1 Q(x) ^ P(y)\n0.1 R(x,y) ^ Q(x) => Q(y)\n",
    8: SORTS + "S(a)\n0.2 P(x) ^ R(x,y) => Q(y)\n-0.4 R(x,y) ^ S(y) => P(x)\n0.3 R(x,y) ^ Q(x) => S(y)\n",
}
EXIST = SORTS + "0.3 P(x)\n0.2 R(x,y) ^ P(x) => P(y)\n-0.4 R(x,y) ^ Q(y)\n0.01 P(x) <=> Q(y)\nEXIST y R(x,y) ^ Q(y).\n"
SORTED = "P(a)\nU(b)\nS(a,b)\n0.3 P(x)\n0.2 S(x,u) ^ P(x) => U(u)\nEXIST u S(x,u).\n"


def paper_evidence(model: MarkovLogic, n: int, smokers: int, seed: int = 0) -> MarkovLogic:
    """A random 10 % of people, each with known smokes and 10 known friends."""
    from dataclasses import replace

    rng = np.random.default_rng(seed)
    people = np.sort(rng.choice(n, size=n // 10, replace=False))
    values = rng.permutation((np.arange(len(people)) < smokers).astype(np.int8))
    pairs = [(p, q) for p in people for q in rng.choice([q for q in range(n) if q != p], 10, replace=False)]
    friends = np.array(sorted(pairs), dtype=np.int32)
    known = {"Smokes": Evidence(people[:, None].astype(np.int32), values)}
    return replace(model, evidence=known | {"Friends": Evidence(friends, np.ones(len(friends), np.int8))})


def read(name: str, n: int) -> MarkovLogic:
    model = dft.read(EXAMPLES / name, domain={"person": n})
    assert isinstance(model, MarkovLogic)
    return model


def theory(text: str, **sizes: int) -> MarkovLogic:
    return read_mln_text(text, domain=sizes)


def timed(name: str, model: MarkovLogic, limit: float | None = None, note: str = "") -> Row:
    found = []
    took = best_of({name: lambda: cpu_seconds(lambda: found.append(dft.exact(model)))}, 2)[name]
    method = str(found[-1].method).removeprefix("lifted counting ").strip("()")
    return Row(name, took, "CPU s", limit, at_least=False, note="; ".join(filter(None, [note, method])))


def rows(quick: bool) -> list[Row]:
    dft.exact(read("smokers.mln", 3))  # imports
    out = []
    peers = {100: "Forclift 0.4 s for one marginal; WFOMC (Z alone) not in 270 s"}
    peers[1000] = "Forclift 0.6 s for one marginal"
    for n, limit in ((100, 0.1), (1000, 2.0), (10_000, None)):
        out.append(timed(f"friends & smokers, all marginals, n={n}", read("smokers.mln", n), limit, peers.get(n, "")))
    for n, limit, smokers in ((50, 0.1, 2), (1000, 5.0, 30)):
        model = paper_evidence(read("smokers.mln", n), n, smokers)
        out.append(timed(f"friends & smokers with the paper's evidence, n={n}", model, limit))
    model = paper_evidence(read("asthma-hard.mln", 50), 50, 1)
    out.append(timed("asthma (hard) with the paper's evidence, n=50", model, 1.0))
    for cells, text in THEORIES.items():
        for n in {3: (50, 100, 200), 4: (20, 40, 80), 8: (10, 20, 40)}[cells][: 2 if quick else 3]:
            out.append(timed(f"{cells} cells, n={n}", theory(text, a=n)))
    out.append(timed("two unary predicates and EXIST, n=40", theory(EXIST, a=40), 10.0))
    out.append(timed("two sorts and EXIST, n=40 each", theory(SORTED, a=40, b=40), 10.0))
    model, took = read("smokers.mln", 50), None
    took = cpu_seconds(lambda: dft.exact(model, cardinality={"Friends": 120}))
    out.append(Row("friends & smokers, |Friends| = 120, n=50", took, "CPU s", 10.0, at_least=False))
    return out


if __name__ == "__main__":
    import sys

    for row in rows("--quick" in sys.argv):
        verdict = {True: "ok", False: "MISSED", None: ""}[row.passed]
        print(f"{row.name:58s} {row.value:9.3f} {row.unit:6s} {row.wanted:8s} {verdict:7s} {row.note}")
