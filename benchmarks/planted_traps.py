"""Traps with states that formulas or tables describe and no single move finds: tournaments and functions under one
formula, groups with a needle each, exactly-one blocks at coexistence, lattice gases, clocks, codes of tables, mixtures
with unknown levels. Truths are sums over counts, transfer matrices or all states, without definetti."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import trap_truths as truths
from scipy.special import gammaln
from trap_tables import Answers, Tables, Theory, Trap

Rng = np.random.Generator
Factors = list[tuple[tuple[int, ...], np.ndarray]]
#: the affine plane of order 3: two of its lines share one point at most
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8),
         (0, 4, 8), (1, 5, 6), (2, 3, 7), (0, 5, 7), (1, 3, 8), (2, 4, 6))  # fmt: skip


def _round(rng: Rng, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 6)


def _soft(x: float) -> float:
    return float(np.logaddexp(0.0, x))


# --- relations that one formula describes -----------------------------------------------------------------------------


def tournament(n: int, weight: float, single: float) -> Trap:
    """Of every two nodes one has an edge to the other, all at once."""
    lines = [f"node = {{1,...,{n}}}", "E(node,node)", f"{single:.9f} E(x,y)"]
    lines.append(f"{weight:.9f} FORALL x,y (x = y v (E(x,y) <=> !E(y,x)))")

    def solve() -> Answers:
        pairs = n * (n - 1) // 2
        share = truths.logistic(pairs * (np.log(2) + single) + np.log(np.expm1(weight)) - 2 * pairs * _soft(single))
        return {"E(1,2)": share * 0.5 + (1 - share) * truths.logistic(single)}

    return Trap(f"tournament n={n} {weight:g} {single:g}", Theory("\n".join(lines) + "\n"), solve)


def function(n: int, some: float, one: float, single: float) -> Trap:
    """Two formulas, each met by all true or by all false, together only by functions."""
    lines = [f"node = {{1,...,{n}}}", "E(node,node)", f"{some:.9f} FORALL x EXIST y E(x,y)"]
    lines += [f"{one:.9f} FORALL x,y,z (!E(x,y) v !E(x,z) v y = z)", f"{single:.9f} E(x,y)"]

    def solve() -> Answers:
        k = np.arange(n + 1)
        weight = np.exp(truths.choices(n) + single * k)  # of a row with k edges
        total = inside = 0.0
        for factor, rows in (
            (1.0, k >= 0),
            (np.expm1(some), k > 0),
            (np.expm1(one), k < 2),
            (np.expm1(some) * np.expm1(one), k == 1),
        ):
            row = float(weight[rows].sum())
            total += factor * row**n
            inside += factor * row ** (n - 1) * float(weight[rows] @ k[rows]) / n
        return {"E(1,2)": inside / total}

    return Trap(f"function n={n} {some:g} {one:g} {single:g}", Theory("\n".join(lines) + "\n"), solve)


def star(n: int, weight: float, single: float) -> Trap:
    """Some node has an edge to everyone."""
    lines = [f"node = {{1,...,{n}}}", "E(node,node)", f"{weight:.9f} EXIST x FORALL y E(x,y)", f"{single:.9f} E(x,y)"]

    def solve() -> Answers:
        p, full = truths.logistic(single), truths.logistic(single) ** n
        others, gain = (1 - full) ** (n - 1), float(np.exp(weight))
        total = (1 - full) * others + gain * (1 - (1 - full) * others)
        return {"E(1,2)": ((p - full) * others + gain * (full + (p - full) * (1 - others))) / total}

    return Trap(f"star n={n} {weight:g} {single:g}", Theory("\n".join(lines) + "\n"), solve)


# --- things of which the group is known -------------------------------------------------------------------------------


def _members(sizes: Sequence[int]) -> tuple[int, np.ndarray]:
    return sum(sizes), np.cumsum([0, *sizes])


def group_needles(sizes: Sequence[int], weight: float, single: float) -> Trap:
    """A needle in each group: any set of groups may be all true."""
    n, first = _members(sizes)
    lines = [f"thing = {{1,...,{n}}}", f"group = {{1,...,{len(sizes)}}}", "In(thing,group)", "P(thing)"]
    lines += [f"{weight:.9f} FORALL x (In(x,g) => P(x))", f"{single:.9f} P(x)"]
    known = {f"In({x},{g + 1})": bool(first[g] < x <= first[g + 1]) for x in range(1, n + 1) for g in range(len(sizes))}

    def solve() -> Answers:
        return {f"P({first[g] + 1})": truths.needle(s, weight, (True,), (single,))[0] for g, s in enumerate(sizes)}

    name = f"group needles {'+'.join(map(str, sizes))} {weight:g} {single:g}"
    return Trap(name, Theory("\n".join(lines) + "\n", known), solve)


def group_cubes(sizes: Sequence[int], triples: Sequence[float], singles: Sequence[float], cross: float) -> Trap:
    """Triples within a group, so that less than half of it is not enough; pairs across the first two."""
    n, first = _members(sizes)
    kinds = "ABCD"[: len(sizes)]
    lines = [f"thing = {{1,...,{n}}}", "P(thing)", *(f"{k}(thing)" for k in kinds)]
    lines += [f"{t:.9f} {k}(x) ^ {k}(y) ^ {k}(z) ^ P(x) ^ P(y) ^ P(z)" for k, t in zip(kinds, triples, strict=True)]
    lines += [f"{s:.9f} {k}(x) ^ P(x)" for k, s in zip(kinds, singles, strict=True)]
    lines.append(f"{cross:.9f} A(x) ^ B(y) ^ P(x) ^ P(y)")
    known = {f"{k}({x})": bool(first[g] < x <= first[g + 1]) for g, k in enumerate(kinds) for x in range(1, n + 1)}

    def solve() -> Answers:
        counts = np.meshgrid(*(np.arange(s + 1.0) for s in sizes), indexing="ij")
        logs = cross * counts[0] * counts[1]
        for g, c in enumerate(counts):
            logs = logs + triples[g] * c**3 + singles[g] * c + truths.choices(sizes[g])[c.astype(int)]
        p = truths.normalised(logs.ravel()).reshape(logs.shape)
        return {f"P({first[g] + 1})": float((p * c).sum()) / sizes[g] for g, c in enumerate(counts)}

    name = f"group cubes {'+'.join(map(str, sizes))} {triples[0]:g} {singles[0]:g} {cross:g}"
    return Trap(name, Theory("\n".join(lines) + "\n", known), solve)


# --- exactly-one blocks -----------------------------------------------------------------------------------------------


def _counts(n: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """How many things have each of q values, and the logarithms of in how many ways."""
    rows = np.array([row for row in product(range(n + 1), repeat=q - 1) if sum(row) <= n], dtype=float)
    rows = np.column_stack([rows, n - rows.sum(axis=1)])
    return rows, gammaln(n + 1) - gammaln(rows + 1).sum(axis=1)


def colours(n: int, q: int, pair: float, field: float) -> Trap:
    """Potts's model as Markov logic with a `!` argument."""
    lines = [f"thing = {{1,...,{n}}}", f"colour = {{1,...,{q}}}", "C(thing,colour!)"]
    lines += [f"{pair:.9f} C(x,k) ^ C(y,k)", f"{field:.9f} C(x,1)"]

    def solve() -> Answers:
        counts, ways = _counts(n, q)
        p = truths.normalised(pair * (counts**2).sum(axis=1) + field * counts[:, 0] + ways)
        first = counts[:, 0]
        return {"C(1,1)": float(p @ first) / n, "C(1,1) ^ C(2,1)": float(p @ (first * (first - 1))) / (n * (n - 1))}

    return Trap(f"colours n={n} q={q} {pair:g} {field:g}", Theory("\n".join(lines) + "\n"), solve)


def alike(n: int, q: int, gain: float, edge: float, field: float) -> Trap:
    """A block model: edges are likelier between things of one kind."""
    lines = [f"thing = {{1,...,{n}}}", f"kind = {{1,...,{q}}}", "T(thing,kind!)", "F(thing,thing)"]
    lines += [f"{gain:.9f} F(x,y) ^ T(x,t) ^ T(y,t)", f"{edge:.9f} F(x,y)", f"{field:.9f} T(x,1)"]

    def solve() -> Answers:
        counts, ways = _counts(n, q)
        same = (counts**2).sum(axis=1)
        logs = field * counts[:, 0] + _soft(gain + edge) * same + _soft(edge) * (n * n - same) + ways
        p = truths.normalised(logs)
        pairs = float(p @ (same - n)) / (n * (n - 1))
        likely = truths.logistic(gain + edge) * pairs + truths.logistic(edge) * (1 - pairs)
        return {"T(1,1)": float(p @ counts[:, 0]) / n, "F(1,2)": likely}

    return Trap(f"alike n={n} q={q} {gain:g} {edge:g} {field:g}", Theory("\n".join(lines) + "\n"), solve)


# --- factor graphs ----------------------------------------------------------------------------------------------------


def strip(name: str, pair: np.ndarray, own: np.ndarray, asked: Sequence[tuple[int, int, int]]) -> Trap:
    """A strip with open ends: own[row, column, value], and what is asked of (row, column): the chance of a value."""
    pair, own = np.round(pair, 6), np.round(own, 6)
    length, width, q = own.shape
    factors: Factors = [((width * r + c, width * r + c + 1), pair) for r in range(length) for c in range(width - 1)]
    factors += [((width * r + c, width * (r + 1) + c), pair) for r in range(length - 1) for c in range(width)]
    factors += [((width * r + c,), own[r, c]) for r in range(length) for c in range(width)]

    def solve() -> Answers:
        rows = np.array(list(product(range(q), repeat=width)))
        inside = np.sum([pair[rows[:, c], rows[:, c + 1]] for c in range(width - 1)], axis=0)
        rows, inside = rows[np.isfinite(inside)], inside[np.isfinite(inside)]
        across = np.sum([pair[rows[:, None, c], rows[None, :, c]] for c in range(width)], axis=0)
        mine = [inside + np.sum([own[r, c][rows[:, c]] for c in range(width)], axis=0) for r in range(length)]
        before, after = [mine[0]], [np.zeros(len(rows))]
        for r in range(1, length):
            before.append(mine[r] + np.logaddexp.reduce(before[-1][:, None] + across, axis=0))
            after.append(np.logaddexp.reduce((after[-1] + mine[length - r])[None] + across, axis=1))
        out = {}
        for r, c, value in asked:
            p = truths.normalised(before[r] + after[length - 1 - r])
            out[f"X{width * r + c}" + ("" if q == 2 else f"={value}")] = float(p @ (rows[:, c] == value))
        return out

    return Trap(name, Tables([q] * (length * width), factors), solve)


def hard_squares(length: int, width: int, fugacity: float, odd: float) -> Trap:
    """No two neighbours are occupied: even and odd sites compete."""
    pair = np.array([[0.0, 0.0], [0.0, -np.inf]])
    sides = np.indices((length, width)).sum(axis=0) % 2
    own = np.stack([np.zeros((length, width)), fugacity + odd * sides], axis=2)
    at = (length // 2, width // 2, 1)
    return strip(f"hard squares {length}×{width} {fugacity:g} {odd:g}", pair, own, [at, (0, 0, 1), (0, 1, 1)])


def two_gases(length: int, width: int, fugacity: float, more: float) -> Trap:
    """Particles of two kinds that are never neighbours."""
    pair = np.zeros((3, 3))
    pair[1, 2] = pair[2, 1] = -np.inf
    own = np.tile(np.array([0.0, fugacity, fugacity + more]), (length, width, 1))
    at = (length // 2, width // 2)
    return strip(f"two gases {length}×{width} {fugacity:g} {more:g}", pair, own, [(*at, 1), (*at, 2)])


def clock(length: int, width: int, q: int, coupling: float, noise: np.ndarray) -> Trap:
    """Hands of a clock that want to agree."""
    angle = 2 * np.pi * np.arange(q) / q
    pair = coupling * np.cos(angle[:, None] - angle[None])
    return strip(f"clock {length}×{width} q={q} {coupling:g}", pair, noise, [(0, 0, 0), (length // 2, 0, 1)])


def code(q: int, bonus: float, rng: Rng) -> Trap:
    """Every table has q large entries, no two of which share a value; one state has a large entry in all of them."""
    planted, bonus, points = rng.integers(0, q, 9), round(bonus, 6), 9
    factors: Factors = []
    for line in LINES:
        table = np.zeros((q,) * 3)
        values = [np.delete(np.arange(q), planted[i]) for i in line]
        table[values[0], rng.permutation(values[1]), rng.permutation(values[2])] = bonus
        table[tuple(planted[list(line)])] = bonus
        factors.append((line, table))
    factors += [((i,), np.round(rng.normal(0, 0.1, q), 6)) for i in range(2)]

    def solve() -> Answers:
        logs = np.zeros((q,) * points)
        for scope, table in factors:
            logs += table.reshape([q if i in scope else 1 for i in range(points)])
        p = np.exp(logs - logs.max())
        total = p.sum()
        return {f"X{i}={planted[i]}": float(np.take(p, planted[i], i).sum() / total) for i in (0, 5)}

    return Trap(f"code q={q} {bonus:g} #{planted[:4]}", Tables([q] * points, factors), solve)


def _rewarded(n: int, q: int, share: float, cost: float) -> tuple[float, np.ndarray]:
    """What a pair of things that both have their own values weighs, so that this share of things has, and the chances
    of how many have; `cost`: of a pair of which one has."""
    k = np.arange(n + 1.0)
    own = truths.choices(n) + (n - k) * np.log(q - 1) - cost * k * (n - k)

    def chances(pair: float) -> np.ndarray:
        return truths.normalised(own + pair * k * (k - 1) / 2)

    pair = round(truths.tuned(lambda pair: float(chances(pair) @ k) / n, share, 0.0, 10.0), 6)
    return pair, chances(pair)


def planted_pairs(n: int, q: int, share: float, rng: Rng) -> Trap:
    """Values of one state, which pairs reward; beside others they cost: ascents lead away from it."""
    cost, values = 0.3, rng.integers(0, q, n)
    pair, chances = _rewarded(n, q, share, cost)
    factors: Factors = []
    for j in range(n):
        for i in range(j):
            table = np.zeros((q, q))
            table[values[i]], table[:, values[j]] = -cost, -cost
            table[values[i], values[j]] = pair
            factors.append(((i, j), table))
    has = float(chances @ np.arange(n + 1)) / n
    asked = {f"X{i}={values[i]}": has for i in range(2)}
    return Trap(f"planted pairs n={n} q={q} {pair:g} #{values[:4]}", Tables([q] * n, factors), lambda: asked)


def planted_formulas(n: int, q: int, share: float, named: bool, rng: Rng) -> Trap:
    """The same as ground formulas, or by evidence on which value is whose."""
    cost, values = 0.3, rng.integers(1, q + 1, n)
    pair, chances = _rewarded(n, q, share, cost)
    pair = round(pair + 2 * cost, 6)
    lines = [f"thing = {{1,...,{n}}}", f"colour = {{1,...,{q}}}", "C(thing,colour!)", "Own(thing,colour)"]
    if named:
        lines += [f"{pair:.9f} C({i + 1},{values[i]}) ^ C({j + 1},{values[j]})" for j in range(n) for i in range(j)]
        lines.append(f"{-cost * (n - 1):.9f} Own(x,c) ^ C(x,c)")
    else:
        lines.append(f"{pair / 2:.9f} Own(x,c) ^ Own(y,d) ^ C(x,c) ^ C(y,d)")
        lines.append(f"{-cost * (n - 1) - pair / 2:.9f} Own(x,c) ^ C(x,c)")
    known = {f"Own({i + 1},{c})": bool(values[i] == c) for i in range(n) for c in range(1, q + 1)}
    has = float(chances @ np.arange(n + 1)) / n
    asked = {f"C({i + 1},{values[i]})": has for i in range(2)}
    name = f"planted {'names' if named else 'evidence'} n={n} q={q} {pair:g} #{values[:4]}"
    return Trap(name, Theory("\n".join(lines) + "\n", known), lambda: asked)


def levels(items: int, kinds: int, count: int, rng: Rng) -> Trap:
    """A mixture whose components have unknown levels: which component has which is nearly open."""
    chance, share = np.linspace(0.08, 0.92, count), rng.dirichlet(np.full(kinds, 4.0))
    seen = rng.binomial(6, rng.uniform(0.1, 0.9, kinds)[rng.choice(kinds, items, p=share)])
    logs = np.round(seen[:, None] * np.log(chance) + (6 - seen[:, None]) * np.log(1 - chance), 6)
    prior, share = np.round(rng.normal(0, 0.3, (kinds, count)), 6), np.round(np.log(share), 6)
    factors: Factors = [((k,), prior[k]) for k in range(kinds)]
    factors += [((kinds + i,), share) for i in range(items)]
    for i, k in product(range(items), range(kinds)):
        table = np.zeros((count, kinds))
        table[:, k] = logs[i]
        factors.append(((k, kinds + i), table))

    def solve() -> Answers:
        states = np.array(list(product(range(count), repeat=kinds)))
        total = np.sum([prior[k][states[:, k]] for k in range(kinds)], axis=0)
        for own in logs:
            total = total + np.logaddexp.reduce([share[k] + own[states[:, k]] for k in range(kinds)], axis=0)
        p, out = truths.normalised(total), {}
        for k in range(kinds):
            likely = np.bincount(states[:, k], weights=p, minlength=count)
            out[f"X{k}={int(likely.argmax())}"] = float(likely.max())
        return out

    return Trap(f"levels {items} items {kinds} of {count}", Tables([count] * kinds + [kinds] * items, factors), solve)


# --- families ---------------------------------------------------------------------------------------------------------


def described_family(rng: Rng) -> Iterator[Trap]:
    for n in (4, 5, 6, 7, 9):
        single, pairs = _round(rng, -2.5, -0.5), n * (n - 1) // 2
        balance = 2 * pairs * _soft(single) - pairs * (np.log(2) + single)
        yield tournament(n, round(balance + float(rng.uniform(-2, 3)), 6), single)
    for n in (5, 7):
        single = _round(rng, -2.5, -1.5)
        yield function(n, _round(rng, 8.0, 16.0), _round(rng, 8.0, 16.0), single)
    for n in (6, 9, 12):
        single = _round(rng, -2.0, -1.0)
        yield star(n, round(n * (_soft(single) - single) - np.log(n) + float(rng.uniform(-2, 2)), 6), single)


def group_family(rng: Rng) -> Iterator[Trap]:
    for _ in range(6):
        sizes = (int(rng.integers(5, 10)), int(rng.integers(8, 15)))
        single = _round(rng, -1.5, -0.3)
        yield group_needles(sizes, round(sizes[1] * (_soft(single) - single) + float(rng.uniform(-3, 2)), 6), single)
    yield group_needles((6, 9, 13), 14.0, -1.0)
    for sizes, cross in (((16, 24), 0.0), ((20, 30), -0.02), ((12, 18), 0.01)):
        strength = rng.uniform(2.5, 4.5)
        singles = np.round(-strength + rng.uniform(-0.1, 0.1, len(sizes)), 6)
        yield group_cubes(sizes, [round(strength / s**2, 9) for s in sizes], singles.tolist(), cross)


def block_family(rng: Rng) -> Iterator[Trap]:
    for n, q in ((24, 4), (40, 3), (30, 4), (60, 3)):
        strength = 2 * (q - 1) * np.log(q - 1) / (q - 2) * rng.uniform(0.97, 1.15)
        yield colours(n, q, round(float(strength) / (2 * n), 9), _round(rng, -0.1, 0.2))
    for n, q in ((10, 3), (14, 3), (12, 4)):
        gain, edge = _round(rng, 0.5, 2.0), _round(rng, -2.5, -1.0)
        yield alike(n, q, gain, edge, _round(rng, -0.3, 0.3))


def lattice_family(rng: Rng) -> Iterator[Trap]:
    for length, width in ((7, 7), (6, 6), (9, 5)):
        yield hard_squares(length, width, _round(rng, 2.5, 4.0), _round(rng, -0.1, 0.2))
    for length, width in ((8, 5), (6, 6)):
        yield two_gases(length, width, _round(rng, 2.0, 3.0), _round(rng, 0.02, 0.06))
    for length, width, q in ((20, 3, 5), (12, 3, 6), (30, 2, 8)):
        yield clock(length, width, q, _round(rng, 2.0, 3.5), rng.normal(0, 0.05, (length, width, q)))


def code_family(rng: Rng) -> Iterator[Trap]:
    for bonus in (2.2, 2.4, 2.7, 3.0):
        yield code(6, bonus, rng)
    for items, kinds, count in ((40, 2, 10), (80, 2, 10), (60, 3, 8), (150, 2, 12)):
        yield levels(items, kinds, count, rng)


def pairs_family(rng: Rng) -> Iterator[Trap]:
    for n, q in ((12, 8), (16, 6), (20, 8), (24, 12), (30, 6)):
        yield planted_pairs(n, q, float(rng.uniform(0.2, 0.9)), rng)
    for n, q, named in ((12, 6, True), (16, 6, True), (14, 9, False), (20, 6, False)):
        yield planted_formulas(n, q, float(rng.uniform(0.2, 0.9)), named, rng)


FAMILIES = {
    "planted pairs": pairs_family,
    "described relations": described_family,
    "groups": group_family,
    "blocks": block_family,
    "gases and clocks": lattice_family,
    "codes and levels": code_family,
}
