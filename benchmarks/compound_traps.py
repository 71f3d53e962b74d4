"""Traps made of parts: a narrow one with two modes beside a large calm one, or one that orders by itself; patterns that
several predicates remember together. Truths are sums over counts of each part, and a Gaussian integral."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import planted_traps
import trap_truths as truths
from trap_tables import Answers, Tables, Theory, Trap

Rng = np.random.Generator
SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


def _up(n: int, coupling: float, field: float) -> float:
    """P(spin up) of n spins of which all pairs are coupled."""
    ups = np.arange(n + 1)
    m = 2.0 * ups - n
    p = truths.normalised(truths.choices(n) + coupling * (m**2 - n) / 2 + field * m)
    return float(p @ ups) / n


def beside_a_magnet(n: int, q: int, share: float, spins: int, coupling: float, field: float, rng: Rng) -> Trap:
    """Planted values, which few of many pairs reward, beside spins that order: starts are taken up by these."""
    planted = planted_traps.planted_pairs(n, q, share, rng)
    assert isinstance(planted.source, Tables)
    pair, own = coupling * SIGNS, field * np.array([-1.0, 1.0])
    factors = [*planted.source.factors]
    factors += [((n + i, n + j), pair) for j in range(spins) for i in range(j)]
    factors += [((n + i,), own) for i in range(spins)]

    def solve() -> Answers:
        return {**planted.solve(), f"X{n}": _up(spins, coupling, field)}

    name = f"magnet {spins} {coupling:g} {field:g}, {planted.name}"
    return Trap(name, Tables([*planted.source.cards, *[2] * spins], factors), solve)


def in_a_chain(spins: int, coupling: float, field: float, length: int, chains: int | None, rng: Rng) -> Trap:
    """Few spins with two modes, and a chain of variables of three values: the survey sees projections."""
    factors = [((i, j), coupling * SIGNS) for j in range(spins) for i in range(j)]
    factors += [((i,), field * np.array([-1.0, 1.0])) for i in range(spins)]
    factors += [((spins + i, spins + i + 1), rng.normal(0, 0.3, (3, 3))) for i in range(length - 1)]
    name = f"{spins} spins {coupling:g} {field:g} in a chain of {length}" + f", {chains} chains" * bool(chains)
    options = {"chains": chains} if chains else {}
    cards = [2] * spins + [3] * length
    return Trap(name, Tables(cards, factors), lambda: {"X0": _up(spins, coupling, field)}, options=options)


def patterns(kinds: int, n: int, strengths: tuple[float, float], fields: tuple[float, float], rng: Rng) -> Trap:
    """Predicates of n things that remember two patterns (Hopfield): modes are combinations that no formula names."""
    signs = np.array([[1] * kinds, [1] * (kinds // 2) + [-1] * (kinds - kinds // 2)]) * rng.choice([-1, 1], kinds)
    total, own = kinds * n, np.array(fields) @ signs
    couple = sum(j / (2 * total) * np.outer(s, s) for j, s in zip(strengths, signs, strict=True))
    names = "ABCDEFGHIJKL"[:kinds]
    lines = [f"thing = {{1,...,{n}}}", *(f"{name}(thing)" for name in names)]
    for u, name in enumerate(names):  # a spin is 2 · atom − 1
        lines.append(f"{2 * own[u] - 4 * n * couple[u].sum():.12f} {name}(x)")
    for u, v in product(range(kinds), repeat=2):
        if u <= v and abs(couple[u, v]) > 1e-12:
            lines.append(f"{(4 if u == v else 8) * couple[u, v]:.12f} {names[u]}(x) ^ {names[v]}(y)")

    def solve() -> Answers:
        axes = [np.linspace(-1.0, 1.0, 601) * (j + 9 * np.sqrt(j / total)) for j in strengths]
        z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        local = own + z @ signs
        logs = n * np.logaddexp(local, -local).sum(axis=1) - total * (z**2 / (2 * np.array(strengths))).sum(axis=1)
        p = truths.normalised(logs)
        return {f"{name}(1)": float(p @ (1 + np.tanh(local[:, u])) / 2) for u, name in enumerate(names[:2])}

    name = f"patterns of {kinds}, n={n} {strengths[0]:g} {strengths[1]:g} {fields[0]:g} {fields[1]:g}"
    return Trap(name, Theory("\n".join(lines) + "\n"), solve)


def _round(rng: Rng, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 6)


def parts_family(rng: Rng) -> Iterator[Trap]:
    for n, q, spins in ((9, 9, 40), (10, 10, 40), (11, 10, 60)):
        share, coupling, field = float(rng.uniform(0.2, 0.8)), _round(rng, 1.1, 1.5), _round(rng, 0.1, 0.5)
        yield beside_a_magnet(n, q, share, spins, round(coupling / spins, 6), round(field / spins, 6), rng)
    for spins, length, chains in ((7, 300, None), (6, 500, 4), (8, 400, 1), (6, 800, 1)):
        yield in_a_chain(spins, _round(rng, 0.4, 0.6), _round(rng, 0.01, 0.1), length, chains, rng)


def patterns_family(rng: Rng) -> Iterator[Trap]:
    for kinds, n in ((4, 20), (6, 40), (8, 60), (8, 60), (8, 100)):
        strengths = _round(rng, 1.2, 1.6), _round(rng, 1.2, 1.6)
        fields = tuple(round(_round(rng, 0.5, 3.0) / (kinds * n), 6) for _ in strengths)
        yield patterns(kinds, n, strengths, (fields[0], fields[1]), rng)


FAMILIES = {"parts": parts_family, "patterns": patterns_family}
