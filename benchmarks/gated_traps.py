"""Traps in which a few sites gate many: relations that predicates switch on, propositions over a whole domain, hidden
units, mixtures of many components, trees of hubs, soft parities. Truths are sums over what gates, without definetti."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import exp, log

import numpy as np
import trap_truths as truths
from trap_tables import Answers, Tables, Theory, Trap

Rng = np.random.Generator


def _theory(n: int, declared: str, *formulas: tuple[float, str]) -> Theory:
    lines = [f"thing = {{1,...,{n}}}", *declared.split("; "), *(f"{w:.9f} {text}" for w, text in formulas if w)]
    return Theory("\n".join(lines) + "\n")


def _round(rng: Rng, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 6)


# --- relations that unary predicates switch on ------------------------------------------------------------------------


def gated_edges(n: int, gain: float, edge: float, single: float) -> Trap:
    """E(x,y) is likelier where P(x) and P(y): a crowd that is worth its edges."""
    open_, shut = np.logaddexp(0.0, gain + edge), np.logaddexp(0.0, edge)

    def solve() -> Answers:
        logs = np.array([single * k + open_ * k * k + shut * (n * n - k * k) for k in range(n + 1)])
        p = truths.normalised(logs + truths.choices(n))
        k = np.arange(n + 1)
        inside = float(p @ (k * (k - 1.0))) / (n * (n - 1))
        likely = truths.logistic(gain + edge) * inside + truths.logistic(edge) * (1 - inside)
        return {"P(1)": float(p @ k) / n, "E(1,2)": likely}

    model = _theory(n, "P(thing); E(thing,thing)", (gain, "E(x,y) ^ P(x) ^ P(y)"), (edge, "E(x,y)"), (single, "P(x)"))
    return Trap(f"gated edges n={n} {gain:g} {edge:g} {single:g}", model, solve)


def sided_edges(n: int, gain: float, edge: float, single: float) -> Trap:
    """E(x,y) is likelier where P(x) and P(y) agree."""
    same, other = np.logaddexp(0.0, gain + edge), np.logaddexp(0.0, edge)

    def solve() -> Answers:
        k = np.arange(n + 1.0)
        alike = k * k + (n - k) ** 2
        p = truths.normalised(single * k + same * alike + other * (n * n - alike) + truths.choices(n))
        pairs = float(p @ (k * (k - 1) + (n - k) * (n - k - 1))) / (n * (n - 1))
        likely = truths.logistic(gain + edge) * pairs + truths.logistic(edge) * (1 - pairs)
        return {"P(1)": float(p @ k) / n, "E(1,2)": likely}

    model = _theory(
        n, "P(thing); E(thing,thing)", (gain, "E(x,y) ^ (P(x) <=> P(y))"), (edge, "E(x,y)"), (single, "P(x)")
    )
    return Trap(f"sided edges n={n} {gain:g} {edge:g} {single:g}", model, solve)


def crossed(n: int, weight: float, first: float, second: float, edge: float) -> Trap:
    """E(x,y) follows P(x) and Q(y)."""
    on, off = np.logaddexp(weight + edge, 0.0), np.logaddexp(edge, weight)

    def solve() -> Answers:
        k, m = np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0), indexing="ij")
        logs = first * k + second * m + on * k * m + off * (n * n - k * m)
        choices = truths.choices(n)
        p = truths.normalised((logs + choices[:, None] + choices[None]).ravel()).reshape(logs.shape)
        return {"P(1)": float((p * k).sum()) / n, "Q(1)": float((p * m).sum()) / n}

    model = _theory(
        n, "P(thing); Q(thing); E(thing,thing)", (weight, "E(x,y) <=> (P(x) ^ Q(y))"), (edge, "E(x,y)"),
        (first, "P(x)"), (second, "Q(x)"),
    )  # fmt: skip
    return Trap(f"crossed n={n} {weight:g} {first:g} {second:g} {edge:g}", model, solve)


def rows(n: int, weight: float, single: float) -> Trap:
    """Every row of a relation has a true atom, or most have none."""

    def solve() -> Answers:
        some, all_ = log(expm1_power(n, single)), n * np.logaddexp(0.0, single)
        full = weight + n * some  # every row has one
        total = np.logaddexp(n * all_ + log(-np.expm1(n * (some - all_))), full)
        inside = exp(single + (n - 1) * np.logaddexp(0.0, single) - some)  # P of an atom in a row that has one
        p = truths.logistic(single)
        share = exp(full - total)
        # without the weight all atoms are independent: take the part with every row full out, and put it in again
        without = n * all_ - total
        rest = exp(without) * p - exp(n * some - total) * inside
        return {"R(1,2)": rest + share * inside}

    model = _theory(n, "R(thing,thing)", (weight, "FORALL x EXIST y R(x,y)"), (single, "R(x,y)"))
    return Trap(f"rows n={n} {weight:g} {single:g}", model, solve)


def expm1_power(n: int, single: float) -> float:
    """(1 + e^single)^n − 1"""
    return float(np.expm1(n * np.logaddexp(0.0, single)))


def proposition(n: int, on: float, off: float, single: float, pair: float) -> Trap:
    """A proposition that pulls every thing its way, one side of which also has pairs."""

    def solve() -> Answers:
        k = np.arange(n + 1.0)
        choices = truths.choices(n)
        sides = [on * k + choices, off * (n - k) + pair * k * k + choices]
        z = [np.logaddexp.reduce(side) for side in sides]
        rain = truths.logistic(single + z[0] - z[1])
        means = [float(truths.normalised(side) @ k) / n for side in sides]
        return {"Rain()": rain, "P(1)": rain * means[0] + (1 - rain) * means[1]}

    model = _theory(
        n, "Rain(); P(thing)", (on, "Rain() ^ P(x)"), (off, "!Rain() ^ !P(x)"), (single, "Rain()"),
        (pair, "!Rain() ^ P(x) ^ P(y)"),
    )  # fmt: skip
    return Trap(f"proposition n={n} {on:g} {off:g} {single:g} {pair:g}", model, solve)


def open_pairs(pairs: int, gates: int, fields: Sequence[float], lighter: float, tie: float = 12.0) -> Trap:
    """Where gates, which are alike, are open, the two things of a pair are: 2^pairs modes, each this much lighter than
    the one where gates are closed. Hard pairs beside them, which nothing else touches, widen the bounds on weights."""
    bonus = round(log(4.0) - lighter / pairs, 6)
    names = {kind: [f"{kind}{i}" for i in range(n)] for kind, n in (("A", gates), ("B", pairs))}
    lines = [f"gate = {{{','.join(names['A'])}}}", f"thing = {{{','.join(names['B'])}}}", "G(gate)"]
    lines += [*(f"{name}(thing)" for name in "PQHK"), "1.0 G(x) <=> G(y)", "H(x) => K(x)."]
    for i, field in enumerate(fields):
        g, p, q = f"G(A{i % gates})", f"P(B{i})", f"Q(B{i})"
        lines += [f"{bonus - field:.9f} {g} ^ !{p} ^ !{q}", f"{bonus + field:.9f} {g} ^ {p} ^ {q}"]
        lines.append(f"{-tie:.9f} {g} ^ !({p} <=> {q})")

    def solve() -> Answers:
        logs = np.full(2**gates, 0.0)
        open_ = (np.arange(2**gates)[:, None] >> np.arange(gates)) & 1
        logs += (open_[:, :, None] == open_[:, None]).sum(axis=(1, 2))
        for i, field in enumerate(fields):
            one = np.logaddexp.reduce([bonus - field, bonus + field, log(2.0) - tie])
            logs += np.where(open_[:, i % gates] == 1, one, log(4.0))
        return {"G(A0)": float(truths.normalised(logs) @ open_[:, 0]), "H(B0)": 1 / 3}

    return Trap(f"open pairs n={pairs} gates={gates} {lighter:g}", Theory("\n".join(lines) + "\n"), solve)


# --- factor graphs ----------------------------------------------------------------------------------------------------


def components(prior: np.ndarray, chance: np.ndarray, name: str) -> Trap:
    """A mixture: the component is one variable of many values, and chance[k, i] that of leaf i in component k."""
    k, n = chance.shape
    factors = [((0,), np.round(np.log(prior), 6))]
    factors += [((0, i + 1), np.round(np.log(np.stack([1 - chance[:, i], chance[:, i]], axis=1)), 6)) for i in range(n)]

    def solve() -> Answers:
        tables = [table for _, table in factors[1:]]
        logs = factors[0][1] + sum(np.logaddexp(t[:, 0], t[:, 1]) for t in tables)
        p = truths.normalised(logs)
        found = {f"X0={k - 1}": float(p[-1]), f"X0={int(p.argmax())}": float(p.max())}
        for i in range(3):
            found[f"X{i + 1}"] = float(p @ (1 / (1 + np.exp(tables[i][:, 0] - tables[i][:, 1]))))
        return found

    return Trap(f"{name} k={k} n={n}", Tables([k] + [2] * n, factors), solve)


def machine(hidden: int, visible: int, weights: np.ndarray, fields: np.ndarray, name: str) -> Trap:
    """A restricted Boltzmann machine in spins: hidden units first."""
    factors = [
        ((h, hidden + v), np.round(weights[h, v] * np.array([[1.0, -1.0], [-1.0, 1.0]]), 6))
        for h, v in product(range(hidden), range(visible))
    ]
    factors += [((i,), np.array([-f, f])) for i, f in enumerate(np.round(fields, 6).tolist())]

    def solve() -> Answers:
        spins = np.array(list(product((-1.0, 1.0), repeat=hidden)))
        pull = spins @ np.round(weights, 6) + np.round(fields[hidden:], 6)
        logs = spins @ np.round(fields[:hidden], 6) + np.logaddexp(pull, -pull).sum(axis=1)
        p = truths.normalised(logs)
        seen = p @ (1 / (1 + np.exp(-2 * pull)))
        found = {f"X{h}": float(p @ (spins[:, h] > 0)) for h in range(hidden)}
        return found | {f"X{hidden + v}": float(seen[v]) for v in range(2)}

    return Trap(f"{name} {hidden}×{visible}", Tables([2] * (hidden + visible), factors), solve)


def tree(depth: int, branches: int, couplings: Sequence[float], fields: Sequence[float]) -> Trap:
    """Hubs of hubs, in spins; one coupling and one field a level."""
    parents, levels = [-1], [0]
    for level in range(1, depth + 1):
        above = [i for i, at in enumerate(levels) if at == level - 1]
        for i in above:
            parents += [i] * branches
            levels += [level] * branches
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    tables = [np.round(c, 6) * signs for c in couplings]
    fields = np.round(fields, 6).tolist()
    factors = [((parents[i], i), tables[levels[i] - 1]) for i in range(1, len(parents))]
    factors += [((i,), np.array([-fields[at], fields[at]])) for i, at in enumerate(levels)]

    def solve() -> Answers:
        up = np.array([-fields[depth], fields[depth]])
        for level in range(depth, 0, -1):
            message = np.logaddexp.reduce(tables[level - 1] + up[None], axis=1)
            up = np.array([-fields[level - 1], fields[level - 1]]) + branches * message
        return {"X0": truths.logistic(float(up[1] - up[0]))}

    name = f"tree {depth}/{branches} {'/'.join(f'{c:g}' for c in couplings)} {'/'.join(f'{f:g}' for f in fields)}"
    return Trap(name, Tables([2] * len(parents), factors), solve)


def soft_parity(n: int, weight: float, fields: np.ndarray) -> Trap:
    """One wide factor that wants an even number of ones: every even state is a mode of its own."""
    even = np.indices((2,) * n).sum(axis=0) % 2 == 0
    fields = np.round(fields, 6)
    factors = [(tuple(range(n)), weight * even), *(((i,), np.array([0.0, f])) for i, f in enumerate(fields.tolist()))]

    def solve() -> Answers:
        p = 1 / (1 + np.exp(-fields))

        def balance(some: np.ndarray) -> float:
            return float(np.prod(1 - 2 * some))  # P(even) − P(odd)

        even_share = (1 + balance(p)) / 2
        z = exp(weight) * even_share + 1 - even_share
        out = {}
        for i in range(2):
            rest = np.delete(p, i)
            odd = (1 - balance(rest)) / 2  # with X_i = 1 the others must be odd
            out[f"X{i}"] = float(p[i] * (exp(weight) * odd + 1 - odd) / z)
        return out

    return Trap(f"soft parity n={n} {weight:g}", Tables([2] * n, factors), solve)


# --- families ---------------------------------------------------------------------------------------------------------


def _balanced(make: object, rng: Rng, low: float, high: float) -> Trap:
    """The last parameter so that the first answer is somewhere between .1 and .9."""
    first = lambda f: next(iter(make(round(f, 6)).truth.values()))[0]  # type: ignore[operator]  # noqa: E731
    return make(round(truths.tuned(first, float(rng.uniform(0.1, 0.9)), low, high), 6))  # type: ignore[operator]


def gated_family(rng: Rng) -> Iterator[Trap]:
    for n in (6, 12, 20, 30):
        gain, edge = _round(rng, 2.0, 4.0), _round(rng, -2.5, -0.5)
        yield _balanced(lambda s, n=n, g=gain, e=edge: gated_edges(n, g, e, s), rng, -60.0, 5.0)
    for n in (8, 16, 24):
        yield sided_edges(n, _round(rng, 0.5, 2.0), _round(rng, -2.0, 0.0), round(float(rng.uniform(-1, 1)) / n, 6))
    for n in (5, 10, 16):
        weight, second, edge = _round(rng, 1.0, 3.0), _round(rng, -2.0, 2.0), _round(rng, -0.5, 1.5)
        yield _balanced(lambda f, n=n, w=weight, s=second, e=edge: crossed(n, w, f, s, e), rng, -40.0, 40.0)


def proposition_family(rng: Rng) -> Iterator[Trap]:
    for n in (10, 25, 60):
        on, off = _round(rng, 0.5, 3.0), _round(rng, 0.5, 3.0)
        yield _balanced(lambda s, n=n, a=on, b=off: proposition(n, a, b, s, 0.0), rng, -100.0, 100.0)
    for n in (12, 20):
        on, off, pair = _round(rng, 1.0, 2.0), _round(rng, 2.0, 3.0), round(3.0 / n, 6)
        yield _balanced(lambda s, n=n, a=on, b=off, p=pair: proposition(n, a, b, s, p), rng, -200.0, 200.0)
    for n in (4, 8, 12):
        single = _round(rng, -5.0, -2.5)
        empty = -np.log(-np.expm1(-n * np.logaddexp(0.0, single)))  # what a full row costs
        yield rows(n, round(float(n * empty + rng.uniform(-2.0, 2.0)), 6), single)
    for pairs, lighter in ((16, 10.0), (24, 12.0), (30, 13.0), (60, 25.0)):
        yield open_pairs(pairs, 8, np.round(rng.normal(0, 0.1, pairs), 6).tolist(), lighter)


def components_family(rng: Rng) -> Iterator[Trap]:
    for k, n in ((12, 20), (30, 25), (60, 30)):
        prior = rng.dirichlet(np.full(k, 0.5)) * 0.95 + 0.05 / k
        yield components(prior, rng.choice([0.03, 0.97], (k, n)), "patterns")
    for k, n in ((20, 16), (40, 24)):
        prior = np.full(k, 0.5 / (k - 1))
        chance = rng.uniform(0.35, 0.65, (k, n))
        place = int(rng.integers(k // 2, k))
        prior[place], chance[place] = 0.5, rng.choice([0.002, 0.998], n)
        yield components(prior, chance, "one sharp pattern")


def machine_family(rng: Rng) -> Iterator[Trap]:
    for hidden, visible in ((2, 16), (3, 24), (4, 20)):
        weights = rng.choice([-1.0, 1.0], (hidden, visible)) * rng.uniform(0.4, 1.2)
        yield machine(hidden, visible, weights, rng.normal(0, 0.15, hidden + visible), "machine")
    for depth, branches in ((2, 4), (3, 3), (4, 2)):
        couplings = rng.uniform(1.0, 2.5, depth)
        yield tree(depth, branches, couplings.tolist(), (rng.normal(0, 0.1, depth + 1)).tolist())
    for n in (8, 12):
        yield soft_parity(n, _round(rng, 8.0, 20.0), rng.normal(0, 0.7, n))


FAMILIES = {
    "gated relations": gated_family,
    "propositions": proposition_family,
    "components": components_family,
    "machines": machine_family,
}
