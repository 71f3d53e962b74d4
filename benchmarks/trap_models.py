"""Models that mix badly, with known answers: `traps(seed)` draws their parameters.

A maker (`curie_weiss(12, 0.8, -9.0)`) gives one model with its truth, which `trap_truths.py` computes without
definetti; a family (`FAMILIES`) draws parameters near the place where modes weigh alike. Weights are rounded as they
are written before the truth is computed. `beyond_exact` says that lifted counting, elimination and enumeration all
refuse the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp, log
from typing import Any

import class_traps
import compound_traps
import gated_traps
import numpy as np
import planted_traps
import site_traps
import trap_truths as truths
from trap_tables import Answers, Tables, Theory, Trap

HARD = -np.inf


def theory(sorts: str, declared: str, *formulas: tuple[float | None, str], **rest: Any) -> Theory:
    """From sorts ("thing 12"), predicates and weighted formulas; None is a hard one, 0 is left out."""
    lines = [f"{name} = {{1,...,{size}}}" for name, size in (sort.split() for sort in sorts.split(", "))]
    lines += declared.split("; ")
    for weight, formula in formulas:
        if weight is None:
            lines.append(f"{formula}.")
        elif weight:
            lines.append(f"{weight:.9f} {formula}")
    return Theory("\n".join(lines) + "\n", **rest)


def agree(weight: float, q: int = 2) -> np.ndarray:
    return weight * np.eye(q)


# --- theories of unary predicates ----------------------------------------------------------------------------------


def curie_weiss(n: int, pair: float, single: float) -> Trap:
    model = theory(f"thing {n}", "P(thing)", (pair, "P(x) ^ P(y)"), (single, "P(x)"))
    return Trap(
        f"Curie–Weiss n={n} {pair:g} {single:g}",
        model,
        lambda: {"P(1)": truths.counted(n, lambda k: pair * k * k + single * k, 1)[0]},
    )


def agreement(n: int, weight: float, single: float) -> Trap:
    model = theory(f"thing {n}", "P(thing)", (weight, "P(x) <=> P(y)"), (single, "P(x)"))
    return Trap(
        f"agreement n={n} {weight:g} {single:g}",
        model,
        lambda: {"P(1)": truths.counted(n, lambda k: weight * (k * k + (n - k) ** 2) + single * k, 1)[0]},
    )


#: three-variable formulas over P, and how many of the n³ groundings are true with k of n
CUBIC: dict[str, Callable[[Any, int], Any]] = {
    "P(x) ^ P(y) ^ P(z)": lambda k, n: k**3,
    "P(x) ^ P(y) <=> P(z)": lambda k, n: k**3 + (n * n - k * k) * (n - k),
    "P(x) v P(y) v P(z)": lambda k, n: n**3 - (n - k) ** 3,
    "P(x) ^ P(y) => P(z)": lambda k, n: n**3 - k * k * (n - k),
}


def cubic(n: int, formula: str, triple: float, pair: float, single: float) -> Trap:
    model = theory(f"thing {n}", "P(thing)", (triple, formula), (pair, "P(x) ^ P(y)"), (single, "P(x)"))
    count = CUBIC[formula]
    return Trap(
        f"{formula} n={n} {triple:g} {pair:g} {single:g}",
        model,
        lambda: {
            "P(1)": truths.counted(n, lambda k: triple * count(k, n) + pair * k * k + single * k, 1)[0]
        },
        beyond_exact=n >= 34,
    )  # fmt: skip


def either(n: int, weight: float, fields: tuple[float, ...]) -> Trap:
    """A disjunction over different constants: one predicate is true of everyone, the others are free."""
    names = "RST"[: len(fields)]
    formula = " v ".join(f"{p}({x})" for p, x in zip(names, "xyz", strict=False))
    singles = [(f, f"{p}(x)") for p, f in zip(names, fields, strict=True)]
    model = theory(f"thing {n}", "; ".join(f"{p}(thing)" for p in names), (weight, formula), *singles)

    def energy(*counts: np.ndarray) -> np.ndarray:
        missing = np.prod([n - k for k in counts], axis=0)
        return -weight * missing + sum(f * k for f, k in zip(fields, counts, strict=True))

    def solve() -> Answers:
        return {f"{p}(1)": v for p, v in zip(names, truths.counted(n, energy, len(names)), strict=True)}

    title = f"{formula} n={n} {weight:g} {' '.join(f'{f:g}' for f in fields)}"
    return Trap(title, model, solve, beyond_exact=len(names) == 3 and 3 * n > 33)


def needle(n: int, weight: float, signs: tuple[bool, ...], fields: tuple[float, ...]) -> Trap:
    names = "PQS"[: len(signs)]
    atoms = " ^ ".join(f"{'' if s else '!'}{p}(x)" for p, s in zip(names, signs, strict=True))
    model = theory(
        f"thing {n}", "; ".join(f"{p}(thing)" for p in names), (weight, f"FORALL x ({atoms})"),
        *((f, f"{p}(x)") for p, f in zip(names, fields, strict=True)),
    )  # fmt: skip
    return Trap(
        f"needle {atoms} n={n} {weight:g}",
        model,
        lambda: {f"{p}(1)": v for p, v in zip(names, truths.needle(n, weight, signs, fields), strict=True)},
    )


def graph_needle(n: int, weight: float, single: float) -> Trap:
    """All edges at once, under three variables."""
    model = theory(
        f"node {n}", "E(node,node)", (weight, "FORALL x,y,z (E(x,y) ^ E(y,z))"), (single, "E(x,y)")
    )  # fmt: skip
    return Trap(
        f"needle of edges n={n} {weight:g} {single:g}",
        model,
        lambda: {"E(1,2)": truths.needle(n * n, weight, (True,), (single,))[0]},
    )


def two_predicates(
    n: int, pairs: tuple[float, float, float], singles: tuple[float, float], joint: float = 0.0, triple: float = 0.0
) -> Trap:
    """P(x)^P(y), Q(x)^Q(y), P(x)^Q(y), fields; P(x)^Q(x) with `joint`, P(x)^P(y)^Q(z) with `triple`."""
    (pp, qq, pq), (p, q) = pairs, singles
    model = theory(
        f"thing {n}", "P(thing); Q(thing)", (pp, "P(x) ^ P(y)"), (qq, "Q(x) ^ Q(y)"), (pq, "P(x) ^ Q(y)"),
        (joint, "P(x) ^ Q(x)"), (triple, "P(x) ^ P(y) ^ Q(z)"), (p, "P(x)"), (q, "Q(x)"),
    )  # fmt: skip

    def energy(k: np.ndarray, m: np.ndarray) -> np.ndarray:
        return pp * k * k + qq * m * m + pq * k * m + triple * k * k * m + p * k + q * m

    def solve() -> Answers:
        if joint:
            found = truths.celled(n, lambda both, a, b: energy(both + a, both + b) + joint * both)
        else:
            found = truths.counted(n, energy, 2)
        return {"P(1)": found[0], "Q(1)": found[1]}

    extra = "".join(f" {w:g} {what}" for w, what in ((joint, "joint"), (triple, "triple")) if w)
    name = f"two predicates n={n} {pp:g} {qq:g} {pq:g} {p:g} {q:g}{extra}"
    return Trap(name, model, solve, beyond_exact=bool(triple) and 2 * n > 33)


def equivalence(n: int, weight: float, first: float, second: float, triple: float = 0.0) -> Trap:
    """Nearly equal pairs; with `triple` the pairs attract each other through P(x) ^ P(y) ^ Q(z)."""
    model = theory(
        f"thing {n}", "P(thing); Q(thing)", (weight, "P(x) <=> Q(x)"), (first, "P(x)"), (second, "Q(x)"),
        (triple, "P(x) ^ P(y) ^ Q(z)"),
    )  # fmt: skip

    def energy(both: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        k, m = both + a, both + b
        return -weight * (a + b) + first * k + second * m + triple * k * k * m

    def solve() -> Answers:
        found = truths.celled(n if triple else 1, energy)  # without, the pairs are independent
        return {"P(1)": found[0], "Q(1)": found[1]}

    name = f"P <=> Q n={n} {weight:g} {first:g} {second:g}" + (f" {triple:g}" if triple else "")
    return Trap(name, model, solve, beyond_exact=bool(triple) and n > 26)


# --- graphs --------------------------------------------------------------------------------------------------------


def _graph(n: int, edge: float, mutual: float, *more: tuple[float | None, str]) -> Theory:
    return theory(
        f"node {n}", "E(node,node)", (None, "!E(x,x)"), (edge, "E(x,y)"), (mutual, "E(x,y) ^ E(y,x)"), *more
    )  # fmt: skip


def digraph(n: int, edge: float, mutual: float, triangle: float, cyclic: bool = False) -> Trap:
    """Four or five nodes: listed."""
    last = "E(z,x)" if cyclic else "E(x,z)"
    return Trap(
        f"{'cycles' if cyclic else 'triangles'} n={n} {edge:g} {mutual:g} {triangle:g}",
        _graph(n, edge, mutual, (triangle, f"E(x,y) ^ E(y,z) ^ {last}")),
        lambda: {"E(1,2)": truths.small_graph(n, edge, mutual, triangle, cyclic)},
    )


def large_digraph(n: int, edge: float, mutual: float, triangle: float) -> Trap:
    """Bounds decide."""
    return Trap(
        f"triangles n={n} {edge:g} {mutual:g} {triangle:g}",
        _graph(n, edge, mutual, (triangle, "E(x,y) ^ E(y,z) ^ E(x,z)")),
        lambda: {"E(1,2)": truths.graph_bounds(n, edge, mutual, triangle)},
        beyond_exact=n >= 7,
    )


def counted_edges(n: int, square: float, edge: float, mutual: float) -> Trap:
    """Every two edges attract each other, wherever they are."""
    return Trap(
        f"edges squared n={n} {square:g} {edge:g} {mutual:g}",
        _graph(n, edge, mutual, (square, "E(x,y) ^ E(s,t)")),
        lambda: {"E(1,2)": truths.counted_graph(n, square, edge, mutual)},
        beyond_exact=n >= 7,
    )


def stars(n: int, square: float, edge: float) -> Trap:
    """Edges of one node attract each other: each node is a Curie–Weiss model of its own, 2^n modes."""
    model = theory(f"node {n}", "E(node,node)", (square, "E(x,y) ^ E(x,z)"), (edge, "E(x,y)"))
    return Trap(
        f"stars n={n} {square:g} {edge:g}",
        model,
        lambda: {"E(1,2)": truths.counted(n, lambda k: square * k * k + edge * k, 1)[0]},
        beyond_exact=n >= 27,
    )


# --- several values ------------------------------------------------------------------------------------------------


def colours(n: int, q: int, coupling: float, single: float) -> Trap:
    """Mean-field Potts as Markov logic."""
    model = theory(
        f"thing {n}, colour {q}", "C(thing,colour!)", (coupling, "C(x,c) ^ C(y,c)"), (single, "C(x,1)")
    )  # fmt: skip

    def solve() -> Answers:
        one, two = truths.mean_field_potts(n, q, coupling, single)
        return {"C(1,1)": one, "C(1,1) ^ C(2,1)": two}

    return Trap(f"colours n={n} q={q} {coupling:g} {single:g}", model, solve, beyond_exact=n >= 24)


def mean_field_potts(n: int, q: int, coupling: float, single: float) -> Trap:
    """The same as tables of pairs."""
    table, unary = agree(2 * coupling, q), single * (np.arange(q) == 0)
    factors = [((i, j), table) for i, j in combinations(range(n), 2)] + [((i,), unary) for i in range(n)]

    def solve() -> Answers:
        one, two = truths.mean_field_potts(n, q, coupling, single)
        return {"X0=0": one, "X0=0 ^ X1=0": two}

    return Trap(f"mean-field Potts n={n} q={q} {coupling:g} {single:g}", Tables([q] * n, factors), solve,
                beyond_exact=n >= 24)  # fmt: skip


def split_mean_field(n: int, parts: int, coupling: float, single: float) -> Trap:
    """Ising's second value in `parts` that nothing tells apart."""
    kind = np.array([0] + [1] * parts)
    table = 2 * coupling * (kind[:, None] == kind[None])
    unary = single * (kind == 0)
    factors = [((i, j), table) for i, j in combinations(range(n), 2)] + [((i,), unary) for i in range(n)]

    def energy(k: np.ndarray) -> np.ndarray:
        return coupling * (k * k + (n - k) ** 2) + single * k + log(parts) * (n - k)

    return Trap(
        f"split mean field n={n} parts={parts} {coupling:g} {single:g}",
        Tables([parts + 1] * n, factors),
        lambda: {"X0=0": truths.counted(n, energy, 1)[0]},
        beyond_exact=n >= 30,
    )


# --- lattices ------------------------------------------------------------------------------------------------------


def lattice(
    name: str, width: int, length: int, across: Sequence[np.ndarray], along: Sequence[np.ndarray], unary: np.ndarray,
    diagonal: np.ndarray | None = None, *, asked: int = 1, closed: bool = True, beyond: bool = False,
    solve: Callable[[], Answers] | None = None,
) -> Trap:  # fmt: skip
    """Rows of `width` sites that close across; `length` of them, closing along unless `closed` is False."""
    q = len(unary)
    factors: list[tuple[tuple[int, ...], np.ndarray]] = [((i,), unary) for i in range(width * length)]
    for r in range(length):
        for c in range(width):
            right, below = (c + 1) % width, (r + 1) % length
            factors.append(((r * width + c, r * width + right), across[c]))
            if closed or r + 1 < length:
                factors.append(((r * width + c, below * width + c), along[c]))
                if diagonal is not None:
                    factors.append(((r * width + c, below * width + right), diagonal))
    query = "X0" if q == 2 else f"X0={asked}"

    def computed() -> Answers:
        if closed:
            return {query: float(truths.torus(width, length, across, along, unary, diagonal)[asked])}
        return {query: float(truths.cylinder(width, length, across[0], unary, 0)[asked])}

    return Trap(name, Tables([q] * (width * length), factors), solve or computed, beyond)


def ising(width: int, length: int, coupling: float, single: float, closed: bool = True) -> Trap:
    """In spins: exp(coupling · s s′ + single · s)."""
    table, unary = agree(2 * coupling), np.array([-single, single])
    name = f"Ising {width}×{length}{'' if closed else ' open'} {coupling:g} {single:g}"
    return lattice(name, width, length, [table] * width, [table] * width, unary, closed=closed)


def large_ising(side: int, coupling: float, single: float) -> Trap:
    """A torus too wide for transfer matrices. Couplings only raise the magnetisation (Griffiths), so the middle of a
    narrow open strip within it is a lower bound; the strongest local field gives an upper one."""
    table, unary = agree(2 * coupling), np.array([-single, single])

    def solve() -> Answers:
        low = strip_middle(side, min(side, 11), coupling, single)
        return {"X0": (low, truths.logistic(2 * (4 * coupling + single)))}

    name = f"Ising {side}×{side} {coupling:g} {single:g}"
    return lattice(name, side, side, [table] * side, [table] * side, unary, beyond=side >= 16, solve=solve)


def strip_middle(length: int, width: int, coupling: float, single: float) -> float:
    """P(up) of the middle of an open strip."""
    spins = 2.0 * truths.rows_of(width, 2) - 1
    inside = coupling * (spins[:, 1:] * spins[:, :-1]).sum(axis=1) + single * spins.sum(axis=1)
    weight = np.exp(inside - inside.max())
    step = np.array([[1.0, exp(-2 * coupling)], [exp(-2 * coupling), 1.0]])

    def passed(rows: int) -> np.ndarray:
        vector = np.ones((2,) * width)
        for _ in range(rows):
            vector = vector * weight.reshape(vector.shape)
            for axis in range(width):
                vector = np.moveaxis(np.tensordot(step, vector, axes=(1, axis)), 0, axis)
            vector /= vector.max()
        return vector.ravel()

    middle = length // 2
    total = passed(middle) * passed(length - 1 - middle) * weight
    return float(total[spins[:, width // 2] > 0].sum() / total.sum())


def potts(width: int, length: int, q: int, coupling: float, single: float) -> Trap:
    table, unary = agree(coupling, q), single * (np.arange(q) == 0)
    name = f"Potts {width}×{length} q={q} {coupling:g} {single:g}"
    return lattice(name, width, length, [table] * width, [table] * width, unary, asked=0)


def split_torus(width: int, length: int, parts: int, coupling: float, single: float) -> Trap:
    """Ising's second value in parts; `single` beside what balances their number."""
    kind = np.array([0] + [1] * parts)
    table = 2 * coupling * (kind[:, None] == kind[None])
    unary = (single + log(parts)) * (kind == 0)
    two = agree(2 * coupling)

    def solve() -> Answers:
        found = truths.torus(width, length, [two] * width, [two] * width, np.array([single, 0.0]), None)
        return {"X0=0": float(found[0]), "X0=1": float(found[1]) / parts}

    name = f"split torus {width}×{length} parts={parts} {coupling:g} {single:g}"
    return lattice(name, width, length, [table] * width, [table] * width, unary, solve=solve)


def triangular(width: int, length: int, coupling: float, single: float) -> Trap:
    """An antiferromagnet on triangles."""
    table, unary = agree(-2 * coupling), np.array([-single, single])
    name = f"triangular antiferromagnet {width}×{length} {coupling:g} {single:g}"
    return lattice(name, width, length, [table] * width, [table] * width, unary, table)


def villain(width: int, length: int, coupling: float, single: float) -> Trap:
    """Every square frustrated: along every second column neighbours like to differ."""
    like, differ = agree(2 * coupling), agree(-2 * coupling)
    along = [like if c % 2 else differ for c in range(width)]
    name = f"fully frustrated {width}×{length} {coupling:g} {single:g}"
    return lattice(name, width, length, [like] * width, along, np.array([-single, single]))


def groups(size: int, inside: float, links: tuple[float, ...], fields: tuple[float, ...]) -> Trap:
    """A ring of groups: variables of one group like to agree, with those of the next one as the link says."""
    count = len(links)
    members = [range(g * size, (g + 1) * size) for g in range(count)]
    like = agree(inside)
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    for g in range(count):
        between, unary = agree(links[g]), np.array([0.0, fields[g]])
        factors += [((i, j), like) for i, j in combinations(members[g], 2)]
        factors += [((i, j), between) for i in members[g] for j in members[(g + 1) % count]]
        factors += [((i,), unary) for i in members[g]]

    def solve() -> Answers:
        found = truths.ring_of_groups(size, inside, links, fields)
        return {f"X{g * size}": p for g, p in enumerate(found)}

    signs = "".join("+" if link > 0 else "-" for link in links)
    name = f"groups {count}×{size} {signs} {inside:g} {max(map(abs, links)):g} {fields[0]:g}"
    return Trap(name, Tables([2] * (size * count), factors), solve, beyond_exact=2 * size > 26)


# --- hard constraints and penalties --------------------------------------------------------------------------------


def one_hot(n: int, values: int, penalty: float, first: float, pair: float) -> Trap:
    """Groups of bits of which a penalty wants exactly one, as annealers are given them; first bits attract."""
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    off, attract = np.array([[0.0, 0.0], [0.0, -2 * penalty]]), np.array([[0.0, 0.0], [0.0, pair]])
    on, own = np.array([0.0, penalty]), np.array([0.0, first])
    for g in range(n):
        bits = range(g * values, (g + 1) * values)
        factors += [((i,), on) for i in bits]
        factors += [((i, j), off) for i, j in combinations(bits, 2)]
        factors.append(((g * values,), own))
    factors += [((g * values, h * values), attract) for g, h in combinations(range(n), 2)]

    def solve() -> Answers:
        one, two = truths.one_hot(n, values, penalty, first, pair)
        return {"X0": one, "X1": two}

    name = f"one-hot n={n} values={values} {penalty:g} {first:g} {pair:g}"
    return Trap(name, Tables([2] * (n * values), factors), solve, beyond_exact=n >= 27)


def permutations(n: int, single: float, pair: float, involutions: bool = False) -> Trap:
    """One-to-one maps, or matchings (maps that are their own inverse), which like to stay in place together."""
    rule = "M(x,y) => M(y,x)" if involutions else "M(x,z) ^ M(y,z) => x = y"
    model = theory(
        f"thing {n}", "M(thing,thing!)", (None, rule), (single, "M(x,x)"), (pair, "M(x,x) ^ M(y,y)")
    )  # fmt: skip

    def solve() -> Answers:
        stays = truths.fixed_points(n, single, pair, involutions)
        return {"M(1,1)": stays, "M(1,2)": (1 - stays) / (n - 1)}

    name = f"{'matching' if involutions else 'permutation'} n={n} {single:g} {pair:g}"
    return Trap(name, model, solve, beyond_exact=n >= 9)


def injection(pigeons: int, holes: int, weight: float) -> Trap:
    model = theory(
        f"pigeon {pigeons}, hole {holes}", "In(pigeon,hole!)", (None, "In(p,h) ^ In(q,h) => p = q"),
        (weight, "In(p,1)"),
    )  # fmt: skip
    return Trap(
        f"pigeons {pigeons} of {holes} {weight:g}",
        model,
        lambda: {"In(1,1)": truths.injection(pigeons, holes, weight)},
        beyond_exact=pigeons >= 9,
    )


def latin(order: int, weight: float, pair: float) -> Trap:
    """Latin squares whose diagonal likes zeros."""
    differ = np.where(np.eye(order, dtype=bool), HARD, 0.0)
    zero = np.arange(order) == 0
    own, both = weight * zero, pair * np.outer(zero, zero)
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    for r in range(order):
        for a, b in combinations(range(order), 2):
            factors += [((r * order + a, r * order + b), differ), ((a * order + r, b * order + r), differ)]
    diagonal = [r * (order + 1) for r in range(order)]
    factors += [((i,), own) for i in diagonal] + [((i, j), both) for i, j in combinations(diagonal, 2)]

    def solve() -> Answers:
        corner, beside = truths.latin_diagonal(order, weight, pair)
        return {"X0=0": corner, "X1=0": beside}

    return Trap(f"Latin square {order} {weight:g} {pair:g}", Tables([order] * order**2, factors), solve)


def parities(variables: int, free: int, seed: int) -> Trap:
    """Random independent parities of three variables that leave so many free, with fields: solutions lie far
    apart."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 2, variables)
    scopes: list[tuple[int, ...]] = []
    while len(scopes) < variables - free:
        scope = tuple(int(i) for i in rng.choice(variables, 3, replace=False))
        scopes += [scope] if truths.independent(variables, [*scopes, scope]) else []
    system = [(scope, int(hidden[list(scope)].sum() % 2)) for scope in scopes]
    fields = np.round(rng.normal(0.0, 0.7, variables), 6)
    parity = np.indices((2, 2, 2)).sum(axis=0) % 2
    tables = [np.where(parity == side, 0.0, HARD) for side in (0, 1)]
    factors: list[tuple[tuple[int, ...], np.ndarray]] = [(scope, tables[side]) for scope, side in system]
    factors += [((i,), np.array([0.0, fields[i]])) for i in range(variables)]

    def solve() -> Answers:
        states = truths.parity_solutions(variables, system)
        p = truths.normalised(states @ fields) @ states
        return {f"X{i}": float(p[i]) for i in range(variables)}

    return Trap(f"parities {variables - free} of {variables} #{seed}", Tables([2] * variables, factors), solve)


ASTHMA = (
    "Smokes(person); Cancer(person); Asthma(person); Friends(person,person)",
    (None, "!Asthma(x) v !Smokes(x)"), (None, "!Asthma(x) v !Friends(x,y) v !Smokes(y)"),
    (None, "!Smokes(x) v Cancer(x)"),
)  # fmt: skip


def asthma(n: int, known_smoker: bool = False, two_steps: bool = False) -> Trap:
    more = [(None, "!Asthma(x) v !Friends(x,y) v !Friends(y,z) v !Smokes(z)")] if two_steps else []
    evidence = {f"Smokes({n})": True} if known_smoker else {}
    name = f"asthma n={n}{', a known smoker' if known_smoker else ''}{', two steps' if two_steps else ''}"
    return Trap(
        name,
        theory(f"person {n}", *ASTHMA, *more, evidence=evidence),
        lambda: {f"{what}(1)": p for what, p in truths.asthma(n, known_smoker, two_steps).items()},
        beyond_exact=two_steps and n >= 6,
    )


def sociable(n: int, influence: float, single: float) -> Trap:
    """Everyone has a friend."""
    model = theory(
        f"person {n}", "smokes(person); friends(person,person)", (influence, "friends(x,y) ^ smokes(x) => smokes(y)"),
        (single, "smokes(x)"), (None, "friends(x,y) => friends(y,x)"), (None, "!friends(x,x)"),
        (None, "FORALL x EXIST y friends(x,y)"),
    )  # fmt: skip

    def solve() -> Answers:
        smokes, friends = truths.sociable(n, influence, single)
        return {"smokes(1)": smokes, "friends(1,2)": friends}

    return Trap(f"everyone has a friend n={n} {influence:g} {single:g}", model, solve)


# --- families: parameters near coexistence -------------------------------------------------------------------------

Rng = np.random.Generator


def _near(rng: Rng, low: float, high: float) -> float:
    return round(float(rng.uniform(low, high)), 6)


def _target(rng: Rng) -> float:
    """A marginal to which more than one mode contributes; sometimes a light one."""
    return float(
        rng.choice([rng.uniform(0.15, 0.85), rng.uniform(0.02, 0.1), rng.uniform(0.95, 0.995)], p=[0.7, 0.15, 0.15])
    )


def _first(trap: Trap) -> float:
    return next(iter(trap.truth.values()))[0]


def _at_target(rng: Rng, make: Callable[[float], Trap], low: float, high: float) -> Trap:
    return make(truths.tuned(lambda f: _first(make(f)), _target(rng), low, high))


def curie_weiss_family(rng: Rng) -> Iterator[Trap]:
    yield curie_weiss(12, 0.8, -9.0)
    for n in (10, 12, 16, 20, 30, 40, 60, 100, 200, 500, 1000, 2000):
        pair = round(rng.uniform(4.0, 9.0) / n, 7)
        yield _at_target(rng, lambda b, n=n, pair=pair: curie_weiss(n, pair, b), -pair * n - 3, -pair * n + 3)


def agreement_family(rng: Rng) -> Iterator[Trap]:
    for n in (10, 24, 40, 80, 200):
        weight = round(rng.uniform(1.8, 4.0) / n, 7)
        yield agreement(n, weight, 0.0)
        yield _at_target(rng, lambda h, n=n, weight=weight: agreement(n, weight, h), -2.0, 2.0)


def cubic_family(rng: Rng) -> Iterator[Trap]:
    for formula in CUBIC:
        for n in (36, 50, 60, 80, 120):
            # the field at all true less that at all false, in units that do not depend on n
            strength = {"P(x) v P(y) v P(z)": (-5.0, -3.0), "P(x) ^ P(y) => P(z)": (4.0, 7.0)}.get(formula, (2.5, 5.0))
            triple = round(rng.uniform(strength[0], strength[1]) / n**2, 9)
            pair = round(rng.uniform(0.0, 1.0) / n, 7) if "<=>" not in formula else 0.0
            yield _at_target(
                rng, lambda b, n=n, f=formula, t=triple, p=pair: cubic(n, f, t, p, b), -30.0, 30.0
            )  # fmt: skip


def either_family(rng: Rng) -> Iterator[Trap]:
    yield either(50, 0.5, (0.0, 0.0))
    for n in (20, 50, 100, 200, 500):
        weight = round(rng.uniform(15.0, 30.0) / n, 6)
        yield either(n, weight, (0.0, 0.0))
        yield either(n, weight, (_near(rng, -2.0, 2.0) / n, 0.0))
    for n in (16, 24, 32, 50):
        weight = round(rng.uniform(30.0, 60.0) / n**2, 8)
        yield either(n, weight, (0.0, 0.0, 0.0))
        yield either(n, weight, (_near(rng, -1.5, 1.5) / n, 0.0, _near(rng, -1.5, 1.5) / n))


def needle_family(rng: Rng) -> Iterator[Trap]:
    yield needle(6, 18.0, (True, True), (-1.0, -1.0))
    for n in (5, 8, 12, 20):
        for count in (1, 2, 3):
            signs = tuple(bool(rng.random() < 0.75) for _ in range(count))
            fields = tuple(_near(rng, -1.5, 0.5) if s else _near(rng, -0.5, 1.5) for s in signs)
            rest = sum(n * float(np.logaddexp(0.0, -f if s else f)) for s, f in zip(signs, fields, strict=True))
            yield needle(n, round(rest + rng.uniform(-3.0, 3.0), 6), signs, fields)
    for n in (6, 7, 8, 10):
        single = _near(rng, -1.5, 0.0)
        rest = n * n * float(np.logaddexp(0.0, -single))
        yield graph_needle(n, round(rest + rng.uniform(-3.0, 3.0), 6), single)


def two_predicates_family(rng: Rng) -> Iterator[Trap]:
    for n in (9, 14, 30, 45, 66):
        for crossed in (1.0, -1.0):
            pairs = (
                round(rng.uniform(2.5, 6.0) / n, 6), round(rng.uniform(1.0, 5.0) / n, 6),
                round(crossed * rng.uniform(1.0, 4.0) / n, 6),
            )  # fmt: skip
            q = _near(rng, -4.0, 0.0)
            yield _at_target(
                rng, lambda p, n=n, pairs=pairs, q=q: two_predicates(n, pairs, (p, q)), -15.0, 15.0
            )  # fmt: skip
    for n in (10, 16, 24):
        pairs = (round(rng.uniform(3.0, 6.0) / n, 6), 0.0, round(rng.uniform(1.0, 3.0) / n, 6))
        joint, q = _near(rng, 0.5, 2.0), _near(rng, -3.0, 0.0)
        yield _at_target(
            rng, lambda p, n=n, pairs=pairs, q=q, j=joint: two_predicates(n, pairs, (p, q), j), -15.0, 15.0
        )  # fmt: skip
    for n in (18, 24, 32, 40, 60, 80, 100, 150):
        triple = round(rng.uniform(4.0, 8.0) / n**2, 8)
        pairs = (round(rng.uniform(-1.0, 1.0) / n, 6), round(rng.uniform(0.0, 2.0) / n, 6), 0.0)
        q = _near(rng, -2.0, 0.0)
        yield _at_target(
            rng, lambda p, n=n, pairs=pairs, q=q, t=triple: two_predicates(n, pairs, (p, q), triple=t), -15.0, 15.0
        )  # fmt: skip


def equivalence_family(rng: Rng) -> Iterator[Trap]:
    yield equivalence(5, 40.0, -6.0, 6.0)
    for n in (2, 6, 10, 20, 50):
        lean = _near(rng, 3.0, 8.0)
        yield equivalence(n, _near(rng, 25.0, 60.0), -lean, round(lean + rng.uniform(-1.0, 1.0), 6))
        yield equivalence(n, _near(rng, 12.0, 20.0), _near(rng, -1.0, 1.0), 0.0)
    for n in (28, 32, 36, 40):
        triple, weight = round(rng.uniform(5.0, 9.0) / n**2, 8), _near(rng, 12.0, 30.0)
        yield _at_target(
            rng, lambda p, n=n, w=weight, t=triple: equivalence(n, w, p, -1.0, t), -15.0, 5.0
        )  # fmt: skip


def digraph_family(rng: Rng) -> Iterator[Trap]:
    yield digraph(5, -6.0, 0.7, 1.85)
    for nodes in (4, 5):
        for i in range(6):
            edge, mutual, most = _near(rng, -7.0, -4.0), _near(rng, 0.2, 1.0), nodes * (nodes - 1)
            triangle = (rng.uniform(-4.0, 5.0) - (edge + mutual) * most) / (most * (nodes - 2))
            yield digraph(nodes, edge, mutual, round(float(triangle), 6), cyclic=i % 3 == 2)


def large_digraph_family(rng: Rng) -> Iterator[Trap]:
    yield large_digraph(30, -2.0, 0.7, 0.06)
    for nodes in (20, 22, 24, 26, 28, 30):
        # all edges weigh as much as none where triangle · (n − 2) = −edge − mutual
        edge, mutual = _near(rng, -2.6, -1.8), _near(rng, 0.3, 0.8)
        yield large_digraph(nodes, edge, mutual, round(rng.uniform(1.35, 1.6) * (-edge - mutual) / (nodes - 2), 6))
        edge = _near(rng, -4.0, -3.0)
        yield large_digraph(nodes, edge, mutual, round(rng.uniform(0.6, 0.7) * (-edge - mutual) / (nodes - 2), 6))


def edges_family(rng: Rng) -> Iterator[Trap]:
    for nodes in (7, 8, 9, 10, 12, 14):
        most, mutual = nodes * (nodes - 1), _near(rng, 0.0, 0.8)
        square = round(rng.uniform(4.0, 8.0) / most, 7)
        yield _at_target(
            rng, lambda b, n=nodes, s=square, m=mutual: counted_edges(n, s, b, m), -12.0, 0.0
        )  # fmt: skip


def stars_family(rng: Rng) -> Iterator[Trap]:
    for nodes in (8, 12, 30, 32, 36, 40, 48):
        square = round(rng.uniform(4.0, 8.0) / nodes, 7)
        yield _at_target(rng, lambda b, n=nodes, s=square: stars(n, s, b), -12.0, 0.0)


def mean_field_potts_family(rng: Rng) -> Iterator[Trap]:
    for q, n in ((3, 60), (4, 80), (5, 60), (6, 60), (8, 100)):
        critical = 2 * (q - 1) / (q - 2) * log(q - 1)
        coupling = round(critical * rng.uniform(1.0, 1.06) / (2 * n), 8)
        yield mean_field_potts(n, q, coupling, 0.0)
        yield _at_target(
            rng, lambda h, n=n, q=q, c=coupling: mean_field_potts(n, q, c, h), -1.0, 1.0
        )  # fmt: skip
        yield _at_target(rng, lambda h, n=n, q=q, c=coupling: colours(n, q, c, h), -1.0, 1.0)
    for parts, n in ((2, 30), (2, 60), (3, 40), (5, 60)):
        coupling = round(rng.uniform(1.5, 3.0) / n, 7)
        yield _at_target(
            rng, lambda h, n=n, p=parts, c=coupling: split_mean_field(n, p, c, h), -1.0, 4.0
        )  # fmt: skip


def potts_lattice_family(rng: Rng) -> Iterator[Trap]:
    for q, width, length in ((3, 6, 6), (4, 4, 8), (5, 4, 6), (6, 3, 10), (7, 3, 8), (8, 3, 9)):
        critical = log(1 + q**0.5)
        sites = width * length
        for stretch in (rng.uniform(1.0, 1.1), rng.uniform(1.4, 2.2)):
            yield potts(width, length, q, round(critical * stretch, 6), round(rng.uniform(0.3, 3.0) / sites, 6))


def ising_family(rng: Rng) -> Iterator[Trap]:
    yield ising(8, 8, 1.0, 0.02)
    for width, length in ((6, 6), (8, 8), (8, 12), (9, 9)):
        for coupling in (rng.uniform(0.5, 0.7), rng.uniform(0.8, 1.3)):
            single = rng.uniform(0.3, 2.0) / (2 * width * length)
            yield ising(width, length, round(coupling, 6), round(single, 6))
    for coupling in (0.6, 1.0):
        yield ising(16, 16, coupling, round(rng.uniform(0.3, 2.0) / 512, 6), closed=False)
    for side in (16, 20, 24, 32):
        yield large_ising(side, _near(rng, 0.6, 1.0), round(rng.uniform(10.0, 14.0) / (2 * 11 * side), 6))


def split_torus_family(rng: Rng) -> Iterator[Trap]:
    yield split_torus(4, 4, 2, 1.0, 0.0)
    for width, length, parts in ((4, 4, 2), (4, 4, 3), (4, 6, 2), (5, 5, 2), (5, 6, 4), (6, 6, 2)):
        yield split_torus(width, length, parts, _near(rng, 0.7, 1.2), round(rng.uniform(-2, 2) / (width * length), 6))


def frustrated_family(rng: Rng) -> Iterator[Trap]:
    for width, length in ((4, 6), (6, 6), (6, 8), (8, 8)):
        yield triangular(width, length, _near(rng, 0.8, 2.0), _near(rng, 0.0, 0.3))
        yield villain(width, length, _near(rng, 0.8, 1.5), _near(rng, 0.005, 0.1))
    for count, size in ((3, 14), (4, 14), (5, 14), (6, 16), (7, 14)):
        for kind in ("like", "odd", "mixed"):
            inside, link = rng.uniform(1.5, 3.5) / size, rng.uniform(0.3, 1.2) / size
            sign = {"like": np.ones(count), "odd": -np.ones(count), "mixed": rng.choice([-1.0, 1.0], count)}[kind]
            fields = [0.0] * count
            fields[0] = round(float(rng.uniform(-1.5, 1.5)) / size, 6)
            yield groups(size, round(inside, 6), tuple(np.round(sign * link, 6).tolist()), tuple(fields))


def one_hot_family(rng: Rng) -> Iterator[Trap]:
    for n, values in ((8, 3), (12, 4), (28, 3), (30, 4), (32, 3), (40, 3), (50, 4)):
        pair, penalty = round(rng.uniform(6.0, 12.0) / n, 6), _near(rng, 4.0, 15.0)
        yield _at_target(
            rng, lambda f, n=n, v=values, c=penalty, p=pair: one_hot(n, v, c, f, p), -12.0, 12.0
        )  # fmt: skip


def permutation_family(rng: Rng) -> Iterator[Trap]:
    for n in (5, 6, 10, 14, 20):
        for involutions in (False, True):
            pair = round(rng.uniform(0.5, 1.5) * log(n) / n, 6)
            make = lambda s, n=n, p=pair, i=involutions: permutations(n, s, p, i)  # noqa: E731
            yield _at_target(rng, make, -20.0, 20.0)
    for pigeons, holes in ((5, 6), (10, 10), (10, 12), (16, 17)):
        yield injection(pigeons, holes, _near(rng, -1.0, 3.0))


def hard_family(rng: Rng) -> Iterator[Trap]:
    for n in (5, 10, 20, 30, 40, 50):
        yield asthma(n)
        yield asthma(n, known_smoker=True)
    for n in (6, 8, 10, 14, 20, 30):
        yield asthma(n, two_steps=True)
    yield sociable(6, 2.7, 0.0)
    for n in (5, 8, 12, 16):
        yield sociable(n, _near(rng, 2.0, 4.0), round(rng.uniform(-1.0, 1.0) / n, 6))


def satisfiability_family(rng: Rng) -> Iterator[Trap]:
    for order in (4, 5):
        yield latin(order, _near(rng, -1.5, 0.0), _near(rng, 0.3, 0.7))
    for variables, free in ((20, 6), (30, 8), (40, 10), (60, 10), (80, 12), (100, 12)):
        yield parities(variables, free, int(rng.integers(1 << 16)))


def reported_family(rng: Rng) -> Iterator[Trap]:
    """Models that were once answered wrongly without a warning, as they were reported."""
    found = [
        asthma(30),
        either(50, 0.5, (0.0, 0.0)),
        curie_weiss(12, 0.8, -9.0),
        needle(6, 18.0, (True, True), (-1.0, -1.0)),
        digraph(5, -6.0, 0.7, 1.85),
        large_digraph(30, -2.0, 0.7, 0.06),
        sociable(6, 2.7, 0.0),
        equivalence(10, 40.0, -6.0, 6.0),
        split_torus(4, 4, 2, 1.0, 0.0),
        *(replace(ising(8, 8, 1.0, 0.02), options={"chains": chains}) for chains in (4, 1)),
    ]
    for trap in found:
        yield replace(trap, name=f"{trap.name}{''.join(f', {n} {k}' for k, n in trap.options.items())} (reported)")


FAMILIES: dict[str, Callable[[Rng], Iterator[Trap]]] = {
    "Curie–Weiss": curie_weiss_family,
    "agreement": agreement_family,
    "cubic": cubic_family,
    "either": either_family,
    "needle": needle_family,
    "two predicates": two_predicates_family,
    "equivalence": equivalence_family,
    "digraph": digraph_family,
    "large digraph": large_digraph_family,
    "edges squared": edges_family,
    "stars": stars_family,
    "mean-field Potts": mean_field_potts_family,
    "Potts lattice": potts_lattice_family,
    "Ising": ising_family,
    "split torus": split_torus_family,
    "frustrated": frustrated_family,
    "one-hot": one_hot_family,
    "permutation": permutation_family,
    "hard": hard_family,
    "satisfiability": satisfiability_family,
    **site_traps.FAMILIES,
    **gated_traps.FAMILIES,
    **class_traps.FAMILIES,
    "reported": reported_family,
    **planted_traps.FAMILIES,
    **compound_traps.FAMILIES,
}


def traps(seed: int = 1, families: Sequence[str] = ()) -> list[Trap]:
    """All traps, or those of some families; each family draws from a stream of its own."""
    out: list[Trap] = []
    for number, (family, drawn) in enumerate(FAMILIES.items()):
        if not families or family in families:
            out += [replace(trap, family=family) for trap in drawn(np.random.default_rng([seed, number]))]
    return out
