"""Models that mix well, on which an alarm is a false one: `calm(seed)` gives sixty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import trap_truths as truths
from trap_models import Rng, Tables, Theory, Trap, agree, agreement, curie_weiss, ising, lattice, theory

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Bundled:
    """A file of `examples`."""

    file: str
    people: int = 0
    evidence: str = ""
    sort: str = "person"
    closed: tuple[str, ...] = ()

    def build(self) -> Any:
        import definetti as dft

        evidence = EXAMPLES / self.evidence if self.evidence else None
        options: dict[str, Any] = {"domain": {self.sort: self.people}} if self.people else {}
        if self.closed:
            options["closed_world"] = self.closed
        return dft.read(EXAMPLES / self.file, evidence, **options)


def _model(name: str, source: Any, **options: Any) -> Trap:
    return Trap(name, source, dict, options=options)


def bundled() -> Iterator[Trap]:
    for file in ("smokers", "smokers-transitive"):
        for n in (10, 50, 100):
            yield _model(f"{file} n={n}", Bundled(f"{file}.mln", n))
        yield _model(f"{file}, town", Bundled(f"{file}.mln", 30, "town.db"))
    yield _model("smokers n=1000", Bundled("smokers.mln", 1000), sweeps=200)
    yield _model("smokers-transitive n=1000", Bundled("smokers-transitive.mln", 1000), sweeps=200)
    for n in (5, 20, 50):
        yield _model(f"asthma-soft n={n}", Bundled("asthma-soft.mln", n))
    yield _model("citations", Bundled("citations.mln", evidence="citations.db", closed=("Wrote",)))
    yield _model("graph n=8", Bundled("graph.mln", 8, sort="node"))
    yield _model("graph n=15", Bundled("graph.mln", 15, sort="node"))
    yield _model("grid.uai", Bundled("grid.uai"))
    yield _model("grid.uai, a corner known", Bundled("grid.uai", evidence="grid.evid"))


def grids(rng: Rng) -> Iterator[Trap]:
    """Above the critical temperature (couplings of spins below .44)."""
    for side, coupling, single in ((8, 0.1, 0.0), (8, 0.3, 0.0), (8, 0.3, 0.05), (9, 0.2, 0.1)):
        yield ising(side, side, coupling, single)
    for side, coupling in ((16, 0.1), (16, 0.2), (16, 0.3), (32, 0.2), (32, 0.3), (50, 0.1), (50, 0.2)):
        for single in (0.0, round(float(rng.uniform(0.02, 0.2)), 6)):
            table, unary = agree(2 * coupling), np.array([-single, single])
            name = f"grid {side}×{side} {coupling:g} {single:g}"
            yield lattice(name, side, side, [table] * side, [table] * side, unary, solve=dict)
    for q, coupling in ((3, 0.3), (5, 0.4)):
        table = agree(coupling, q)
        yield lattice(f"Potts grid q={q}", 16, 16, [table] * 16, [table] * 16, np.arange(q) * 0.1, solve=dict)


def rings(rng: Rng) -> Iterator[Trap]:
    for n, q in ((12, 3), (200, 5), (1000, 3), (1000, 5)):
        pair, unary = agree(round(float(rng.uniform(0.4, 1.0)), 6), q), np.round(rng.normal(0.0, 0.3, q), 6)
        factors = [((i, (i + 1) % n), pair) for i in range(n)] + [((i,), unary) for i in range(n)]
        yield Trap(
            f"Potts ring n={n} q={q}",
            Tables([q] * n, factors),
            lambda n=n, pair=pair, unary=unary: {"X0=1": float(truths.ring(n, pair, unary)[1])},
        )


def sparse(rng: Rng) -> Iterator[Trap]:
    """Random graphs of mean degree 3, weak tables of every kind."""
    for n in (50, 100, 300, 1000, 3000):
        edges = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(3 * n // 2)}
        factors = [(edge, np.round(rng.normal(0.0, 0.4, (2, 2)), 6)) for edge in sorted(edges)]
        factors += [((i,), np.round(rng.normal(0.0, 0.5, 2), 6)) for i in range(n)]
        yield Trap(f"sparse graph n={n}", Tables([2] * n, factors), dict)
    for n in (100, 1000):
        cards = rng.integers(2, 5, n)
        scopes = [tuple(rng.choice(n, 3, replace=False).tolist()) for _ in range(n)]
        factors = [(scope, np.round(rng.normal(0.0, 0.4, cards[list(scope)]), 6)) for scope in scopes]
        yield Trap(f"random tables n={n}", Tables(cards.tolist(), factors), dict)


def mean_fields(rng: Rng) -> Iterator[Trap]:
    """Below the coupling at which a second mode appears, or repelling."""
    for n in (20, 200, 1000):
        pair = round(float(rng.uniform(0.5, 1.2)) / n, 7)
        yield curie_weiss(n, pair, round(-pair * n + float(rng.uniform(-0.5, 0.5)), 6))
    yield agreement(50, -0.02, 0.3)
    table = agree(-0.1)
    yield Trap("antiferromagnet n=20", Tables([2] * 20, [(pair, table) for pair in combinations(range(20), 2)]), dict)


FORMULAS = (
    "P(x) => Q(x)", "P(x) ^ R(x,y) => P(y)", "R(x,y) <=> R(y,x)", "R(x,y) ^ R(y,z) => R(x,z)", "Q(x) v R(x,y)",
    "P(x) ^ Q(y) ^ R(x,y)", "EXIST y R(x,y)", "P(x) <=> Q(x)",
)  # fmt: skip


def soft_theories(rng: Rng) -> Iterator[Trap]:
    """A few of many rules, all light beside the number of their groundings."""
    for n in (6, 10, 16, 24, 40, 60):
        chosen = rng.choice(len(FORMULAS), 4, replace=False)
        rules: list[tuple[float | None, str]] = []
        for i in sorted(chosen):
            variables = sum(v in FORMULAS[i] for v in ("y)", "z)"))  # beside x
            rules.append((round(float(rng.normal(0.0, 0.6)) / n**variables, 6), FORMULAS[i]))
        singles = [(round(float(rng.normal(-0.5, 0.7)), 6), f"{atom}") for atom in ("P(x)", "Q(x)", "R(x,y)")]
        source: Theory = theory(f"thing {n}", "P(thing); Q(thing); R(thing,thing)", *rules, *singles)
        yield Trap(f"soft theory n={n}", source, dict)


FAMILIES = (grids, rings, sparse, mean_fields, soft_theories)


def calm(seed: int = 1) -> list[Trap]:
    found = list(bundled())
    for number, family in enumerate(FAMILIES):
        found += family(np.random.default_rng([seed, 1000 + number]))
    return [replace(trap, family="calm") for trap in found]
