"""Traps whose modes differ at single sites, mostly without any symmetry: classes behind observations, causes, random
and planted tables, communities. Small enough for truths by enumeration of all states, without definetti."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
from trap_tables import Tables, Trap

Rng = np.random.Generator
Factors = list[tuple[tuple[int, ...], np.ndarray]]
SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])
ASKED = 6  # variables of each model


def listed(cards: Sequence[int], factors: Factors) -> dict[str, float]:
    """P of the last value of every variable, from all states."""
    logs = np.zeros(tuple(cards))
    for scope, table in factors:
        shape = [cards[i] if i in scope else 1 for i in range(len(cards))]
        logs = logs + np.transpose(table, np.argsort(scope)).reshape(shape)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    axes = range(len(cards))
    return {
        f"X{i}" + ("" if cards[i] == 2 else f"={cards[i] - 1}"): float(p.sum(tuple(a for a in axes if a != i))[-1])
        for i in axes
    }


def made(name: str, cards: Sequence[int], factors: Factors) -> Trap:
    factors = [(scope, np.round(table, 6)) for scope, table in factors]
    return Trap(name, Tables(list(cards), factors), lambda: dict(list(listed(cards, factors).items())[:ASKED]))


def unary(fields: np.ndarray) -> Factors:
    return [((i,), np.array([-h, h])) for i, h in enumerate(fields.tolist())]


def classes_family(rng: Rng) -> Iterator[Trap]:
    """One hidden class, and observations that it nearly decides; a light class is often at a place of its own."""
    for number in range(6):
        n, k = int(rng.integers(8, 15)), int(rng.choice([2, 3, 4]))
        prior = rng.dirichlet(np.full(k, 0.7)) * 0.98 + 0.02 / k
        factors: Factors = [((0,), np.log(prior))]
        for i in range(1, n + 1):
            p = rng.uniform(0.01, 0.15, k)
            p = np.where(rng.random(k) < 0.5, p, 1 - p)
            factors.append(((0, i), np.log(np.stack([1 - p, p], axis=1))))
        yield made(f"classes #{number} n={n} k={k}", [k] + [2] * n, factors)
    for number in range(4):
        n, share, sharp = int(rng.integers(10, 16)), float(rng.uniform(0.02, 0.9)), float(rng.uniform(0.001, 0.02))
        factors = [((0,), np.log([1 - share, share]))]
        for i in range(1, n + 1):
            p = np.array([0.5 + rng.normal(0, 0.08), sharp if rng.random() < 0.5 else 1 - sharp])
            factors.append(((0, i), np.log(np.stack([1 - p, p], axis=1))))
        yield made(f"a narrow class #{number} n={n}", [2] * (n + 1), factors)


def causes_family(rng: Rng) -> Iterator[Trap]:
    """Effects that either of two causes brings about, most of them wished for: which causes it is, is undecided."""
    for number in range(6):
        causes, effects = int(rng.integers(3, 6)), int(rng.integers(8, 11))
        leak, missed = rng.uniform(0.002, 0.05), rng.uniform(0.02, 0.2)
        factors: Factors = [((i,), np.log([0.9, 0.1])) for i in range(causes)]
        for e in range(effects):
            parents = tuple(int(i) for i in rng.choice(causes, 2, replace=False))
            table = np.zeros((2, 2, 2))
            for a, b in product((0, 1), repeat=2):
                p = 1 - (1 - leak) * missed ** (a + b)
                table[a, b] = np.log([1 - p, p])
            factors.append(((*parents, causes + e), table))
            factors.append(((causes + e,), np.array([0.0, rng.uniform(0.0, 4.0)])))
        yield made(f"causes #{number} {causes} of {effects}", [2] * (causes + effects), factors)


def random_tables_family(rng: Rng) -> Iterator[Trap]:
    """Strong random tables, a needle in a wide table, two planted states."""
    for number in range(5):
        n, strength = int(rng.integers(8, 14)), rng.uniform(1.0, 4.0)
        scopes = [tuple(int(i) for i in rng.choice(n, 3, replace=False)) for _ in range(int(n * rng.uniform(1.0, 2.0)))]
        yield made(f"random tables #{number} n={n}", [2] * n, [(s, rng.normal(0, strength, (2, 2, 2))) for s in scopes])
    for number in range(3):
        wide = int(rng.integers(7, 12))
        table = rng.normal(0, 0.3, (2,) * wide)
        table[tuple(rng.integers(0, 2, wide))] = wide * np.log(2) + rng.uniform(-3, 3)
        chain: Factors = [((i, i + 1), rng.normal(0, 0.3, (2, 2))) for i in range(wide + 2)]
        yield made(f"a needle in a table #{number} {wide}", [2] * (wide + 3), [(tuple(range(wide)), table), *chain])
    for number in range(4):
        n = int(rng.integers(7, 11))
        cards, strength = rng.integers(2, 4, n), rng.uniform(1.5, 4.0)
        planted = [rng.integers(0, card, 2) for card in cards]
        factors: Factors = []
        for i, j in combinations(range(n), 2):
            table = rng.normal(0, 0.2, (cards[i], cards[j]))
            for state in (0, 1):
                table[planted[i][state], planted[j][state]] += 4 * strength / n * (1.1 - 0.1 * state)
            factors.append(((i, j), table))
        yield made(f"two planted states #{number} n={n}", cards.tolist(), factors)


def glasses_family(rng: Rng) -> Iterator[Trap]:
    """Remembered patterns, glasses, communities, and a magnet with another field at every site."""
    for number in range(4):
        n, count = int(rng.integers(10, 16)), int(rng.integers(1, 4))
        patterns, strength = rng.choice([-1, 1], (count, n)), rng.uniform(1.2, 3.0)
        pairs = patterns.T @ patterns / n
        factors: Factors = [((i, j), strength * pairs[i, j] * SIGNS) for i, j in combinations(range(n), 2)]
        yield made(f"{count} patterns #{number} n={n}", [2] * n, factors + unary(rng.normal(0, 0.1, n)))
    for number in range(3):
        n, strength = int(rng.integers(10, 16)), rng.uniform(1.0, 3.0)
        factors = [((i, j), strength * rng.normal() / n**0.5 * SIGNS) for i, j in combinations(range(n), 2)]
        yield made(f"glass #{number} n={n}", [2] * n, factors + unary(rng.normal(0, 0.3, n)))
    for number in range(4):
        n, strength = int(rng.integers(10, 16)), rng.uniform(1.2, 3.0)
        factors = [((i, j), strength / n * SIGNS) for i, j in combinations(range(n), 2)]
        fields = rng.uniform(0.0, 0.15) + rng.uniform(0.0, 0.5) * rng.normal(size=n)
        yield made(f"fields at sites #{number} n={n}", [2] * n, factors + unary(fields))
    for number in range(3):
        sizes = rng.integers(4, 8, 2)
        number_of, inside = np.repeat([0, 1], sizes), rng.uniform(1.2, 3.0) / sizes.mean()
        link, fields = rng.normal(0, 0.3) / sizes.mean(), rng.normal(0, 0.1, 2)
        factors = [
            ((i, j), (inside if number_of[i] == number_of[j] else link) * SIGNS)
            for i, j in combinations(range(int(sizes.sum())), 2)
        ]
        name = f"communities #{number} {sizes[0]}+{sizes[1]}"
        yield made(name, [2] * int(sizes.sum()), factors + unary(fields[number_of]))


FAMILIES = {
    "classes": classes_family,
    "causes": causes_family,
    "random tables": random_tables_family,
    "glasses": glasses_family,
}
