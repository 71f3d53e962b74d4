"""Traps with classes of unlike sites: observed groups, two sorts, triples, hard formulas that switch a whole predicate,
lattices with random fields. Truths are sums over counts of each class, or transfer matrices, without definetti."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import trap_truths as truths
from trap_tables import Answers, Tables, Theory, Trap

Rng = np.random.Generator


def _round(rng: Rng, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 6)


def observed_groups(sizes: Sequence[int], pair: float, fields: Sequence[float]) -> Trap:
    """Things whose class is known; a field for each class, pairs of all."""
    n, first = sum(sizes), np.cumsum([0, *sizes])
    kinds = "ABCD"[: len(sizes)]
    lines = [f"thing = {{1,...,{n}}}", "P(thing)", *(f"{k}(thing)" for k in kinds), f"{pair:.9f} P(x) ^ P(y)"]
    lines += [f"{f:.9f} {k}(x) ^ P(x)" for k, f in zip(kinds, fields, strict=True)]
    evidence = {f"{k}({x})": first[g] < x <= first[g + 1] for g, k in enumerate(kinds) for x in range(1, n + 1)}

    def solve() -> Answers:
        counts = np.meshgrid(*(np.arange(s + 1.0) for s in sizes), indexing="ij")
        logs = pair * sum(counts) ** 2
        for g, c in enumerate(counts):
            logs = logs + fields[g] * c + truths.choices(sizes[g])[c.astype(int)]
        p = truths.normalised(logs.ravel()).reshape(logs.shape)
        return {f"P({first[g] + 1})": float((p * c).sum()) / sizes[g] for g, c in enumerate(counts)}

    name = f"observed groups {'+'.join(map(str, sizes))} {pair:g} {'/'.join(f'{f:g}' for f in fields)}"
    return Trap(name, Theory("\n".join(lines) + "\n", evidence), solve)


def two_sorts(n: int, m: int, weight: float, first: float, second: float, own: float) -> Trap:
    lines = [f"left = {{1,...,{n}}}", f"right = {{1,...,{m}}}", "P(left)", "Q(right)", f"{weight:.9f} P(x) ^ Q(y)"]
    lines += [f"{first:.9f} P(x)", f"{second:.9f} Q(y)", f"{own:.9f} P(x) ^ P(y)"]

    def solve() -> Answers:
        k, j = np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij")
        logs = weight * k * j + first * k + second * j + own * k * k
        logs = logs + truths.choices(n)[:, None] + truths.choices(m)[None]
        p = truths.normalised(logs.ravel()).reshape(logs.shape)
        return {"P(1)": float((p * k).sum()) / n, "Q(1)": float((p * j).sum()) / m}

    name = f"two sorts {n}×{m} {weight:g} {first:g} {second:g} {own:g}"
    return Trap(name, Theory("\n".join(lines) + "\n"), solve)


def triples(n: int, gain: float, triple: float, single: float) -> Trap:
    """T(x,y,z) is likelier where P of all three."""
    lines = [f"thing = {{1,...,{n}}}", "P(thing)", "T(thing,thing,thing)"]
    lines += [f"{gain:.9f} T(x,y,z) ^ P(x) ^ P(y) ^ P(z)", f"{triple:.9f} T(x,y,z)", f"{single:.9f} P(x)"]

    def solve() -> Answers:
        k = np.arange(n + 1.0)
        open_, shut = np.logaddexp(0.0, gain + triple), np.logaddexp(0.0, triple)
        p = truths.normalised(single * k + open_ * k**3 + shut * (n**3 - k**3) + truths.choices(n))
        return {"P(1)": float(p @ k) / n}

    return Trap(f"triples n={n} {gain:g} {triple:g} {single:g}", Theory("\n".join(lines) + "\n"), solve)


def all_or_none(n: int, first: float, second: float) -> Trap:
    """One P needs every Q."""
    lines = [
        f"thing = {{1,...,{n}}}",
        "P(thing)",
        "Q(thing)",
        "P(x) => Q(y).",
        f"{first:.9f} P(x)",
        f"{second:.9f} Q(x)",
    ]

    def solve() -> Answers:
        none, some = n * np.logaddexp(0.0, second), second * n + np.log(np.expm1(n * np.logaddexp(0.0, first)))
        share = truths.logistic(float(some - none))
        each = truths.logistic(first) / -np.expm1(-n * np.logaddexp(0.0, first))
        return {"P(1)": share * float(each), "Q(1)": share + (1 - share) * truths.logistic(second)}

    return Trap(f"all or none n={n} {first:g} {second:g}", Theory("\n".join(lines) + "\n"), solve)


def random_fields(width: int, length: int, coupling: float, fields: np.ndarray) -> Trap:
    """A strip with open ends and a field of its own at each site, in spins: no symmetry at all."""
    fields = np.round(fields, 6)
    table = np.round(coupling, 6) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    factors = [((width * r + c, width * r + c + 1), table) for r in range(length) for c in range(width - 1)]
    factors += [((width * r + c, width * (r + 1) + c), table) for r in range(length - 1) for c in range(width)]
    factors += [((i,), np.array([-f, f])) for i, f in enumerate(fields.ravel().tolist())]

    def solve() -> Answers:
        spins = np.array(list(product((-1.0, 1.0), repeat=width)))
        inside = np.round(coupling, 6) * (spins[:, 1:] * spins[:, :-1]).sum(axis=1)
        across = np.round(coupling, 6) * spins @ spins.T
        own = [inside + spins @ fields[r] for r in range(length)]
        below, above = [np.zeros(len(spins))], [np.zeros(len(spins))]
        for r in range(length - 1):
            below.append(np.logaddexp.reduce((below[-1] + own[r])[:, None] + across, axis=0))
            above.append(np.logaddexp.reduce((above[-1] + own[length - 1 - r])[:, None] + across, axis=0))
        out = {}
        for r in (0, length // 2, length - 1):
            p = truths.normalised(below[r] + own[r] + above[length - 1 - r])
            out[f"X{width * r}"] = float(p @ (spins[:, 0] > 0))
        return out

    name = f"random fields {width}×{length} {coupling:g} #{abs(int(1e6 * fields[0, 0]))}"
    return Trap(name, Tables([2] * (width * length), factors), solve)


def classes_of_things_family(rng: Rng) -> Iterator[Trap]:
    for sizes in ((6, 8), (10, 5, 12), (20, 15), (8, 8, 8, 8)):
        n = sum(sizes)
        pair = round(float(rng.uniform(3.0, 6.0)) / n, 6)
        fields = -pair * n + rng.uniform(-1.5, 1.5, len(sizes)) + rng.normal(0.0, 1.0) / n
        yield observed_groups(sizes, pair, np.round(fields, 6).tolist())
    for n, m in ((5, 40), (12, 12), (3, 60), (20, 30)):
        weight = round(float(rng.uniform(3.0, 6.0)) / max(n, m), 6)
        first, second = (round(-weight * other / 2 + _round(rng, -0.3, 0.3), 6) for other in (m, n))
        yield two_sorts(n, m, weight, first, second, round(float(rng.uniform(0, 1)) / n, 6))
    for n in (4, 6, 8):
        gain, triple = _round(rng, 1.5, 3.0), _round(rng, -2.5, -1.0)
        worth = np.logaddexp(0.0, gain + triple) - np.logaddexp(0.0, triple)
        yield triples(n, gain, triple, round(float(-worth * n**2 + rng.uniform(-2.0, 2.0) / n), 6))
    for n in (5, 12, 25):
        first, second = _round(rng, -1.0, 1.0), _round(rng, -1.0, 1.5)
        balance = n * np.logaddexp(0.0, second) - second * n - np.log(np.expm1(n * np.logaddexp(0.0, first)))
        yield all_or_none(n, first, round(second + float(balance) / n + float(rng.uniform(-1.5, 1.5)) / n, 6))


def random_fields_family(rng: Rng) -> Iterator[Trap]:
    for width, length in ((4, 10), (6, 12), (6, 40), (8, 30)):
        fields = rng.normal(0.0, rng.uniform(0.1, 0.5), (length, width))
        yield random_fields(width, length, float(rng.uniform(0.5, 1.1)), fields - fields.mean() * rng.uniform(0.8, 1.0))


FAMILIES = {"classes of things": classes_of_things_family, "random fields": random_fields_family}
