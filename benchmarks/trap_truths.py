"""Exact answers of models that mix badly, without definetti: sums over counts, transfer matrices, listed graphs.

Where a model has no closed form, bounds that hold for certain: they decide which mode carries the weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import permutations, product
from math import comb, exp, factorial, log

import numpy as np
from scipy.special import gammaln

Table = np.ndarray  # log weights of two neighbours


def choices(n: int) -> np.ndarray:
    """Logarithms of the binomial coefficients C(n, 0 … n)."""
    k = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def normalised(logs: np.ndarray) -> np.ndarray:
    p = np.exp(logs - logs.max())
    return p / p.sum()


def logistic(x: float) -> float:
    return 1.0 / (1.0 + exp(-x)) if x > -700 else 0.0


# --- unary theories: sums over the numbers of constants of each kind -----------------------------------------------


def counted(n: int, energy: Callable[..., np.ndarray], predicates: int) -> tuple[float, ...]:
    """P(predicate) where the energy depends on the number of true atoms of each of up to three predicates."""
    grid = np.meshgrid(*[np.arange(n + 1.0)] * predicates, indexing="ij")
    logs = np.asarray(energy(*grid), dtype=float)
    for axis in range(predicates):
        logs = logs + choices(n).reshape([-1 if a == axis else 1 for a in range(predicates)])
    p = normalised(logs)
    return tuple(float((p * k).sum() / n) for k in grid)


def celled(n: int, energy: Callable[..., np.ndarray]) -> tuple[float, float]:
    """P(P(x)), P(Q(x)) where the energy depends on the numbers of constants with both, P alone and Q alone."""
    both, first, second = (axis.ravel() for axis in np.meshgrid(*[np.arange(n + 1.0)] * 3, indexing="ij"))
    legal = both + first + second <= n
    both, first, second = both[legal], first[legal], second[legal]
    ways = gammaln(n + 1) - gammaln(both + 1) - gammaln(first + 1) - gammaln(second + 1)
    p = normalised(energy(both, first, second) + ways - gammaln(n - both - first - second + 1))
    return float(p @ (both + first)) / n, float(p @ (both + second)) / n


def tuned(marginal: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The field, rounded as it is written, at which an increasing marginal is about the target."""
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if marginal(middle) < target else (low, middle)
    return round((low + high) / 2, 9)


# --- several values ------------------------------------------------------------------------------------------------


def log_convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Logarithms of the coefficients of the product of two polynomials."""
    out = np.full(len(a) + len(b) - 1, -np.inf)
    for i, value in enumerate(a):
        out[i : i + len(b)] = np.logaddexp(out[i : i + len(b)], value + b)
    return out


def log_power(a: np.ndarray, exponent: int) -> np.ndarray:
    out, square = np.zeros(1), a
    while exponent:
        if exponent & 1:
            out = log_convolved(out, square)
        exponent >>= 1
        if exponent:
            square = log_convolved(square, square)
    return out


@lru_cache
def potts_counts(n: int, q: int, coupling: float) -> np.ndarray:
    """By how many of the first n variables have one of q values: log of Σ Π exp(coupling · count²) / count!."""
    k = np.arange(n + 1)
    single = coupling * k * k - gammaln(k + 1)
    return single if q == 1 else log_convolved(potts_counts(n, q - 1, coupling), single)[: n + 1]


def mean_field_potts(n: int, q: int, coupling: float, field: float) -> tuple[float, float]:
    """P(first value), P(two variables have it), for weights exp(coupling Σ counts² + field · count of the first)."""
    k = np.arange(n + 1)
    p = normalised(potts_counts(n, 1, coupling) + field * k + potts_counts(n, q - 1, coupling)[n - k])
    return float(p @ k) / n, float(p @ (k * (k - 1))) / (n * (n - 1))


# --- lattices: transfer matrices -----------------------------------------------------------------------------------


@lru_cache
def rows_of(width: int, q: int) -> np.ndarray:
    """All states of `width` sites."""
    return np.array(list(product(range(q), repeat=width)))


def torus(
    width: int, length: int, across: Sequence[Table], along: Sequence[Table], field: np.ndarray, diagonal: Table | None
) -> np.ndarray:
    """The marginal of the first site of a torus whose rows are alike.

    `across[i]` joins sites i and i + 1 of a row, `along[i]` site i of a row to that of the next, `diagonal` every
    site to the right neighbour of that below it.
    """
    q = len(field)
    rows = rows_of(width, q)
    inside = field[rows].sum(axis=1)
    between = np.zeros((len(rows), len(rows)))
    for i in range(width):
        inside = inside + across[i][rows[:, i], rows[:, (i + 1) % width]]
        between += along[i][rows[:, i][:, None], rows[:, i][None]]
        if diagonal is not None:
            between += diagonal[rows[:, i][:, None], rows[:, (i + 1) % width][None]]
    logs = between + (inside[:, None] + inside[None]) / 2
    step = np.exp(logs - logs.max())
    power, left = np.eye(len(rows)), length
    while left:
        power = power @ step if left & 1 else power
        power /= power.max()
        left >>= 1
        if left:
            step = step @ step
            step /= step.max()
    weight = np.diag(power)
    return np.array([weight[rows[:, 0] == v].sum() for v in range(q)]) / weight.sum()


def cylinder(width: int, length: int, pair: Table, field: np.ndarray, row: int) -> np.ndarray:
    """The marginal of the first site of a row of a lattice that closes across and is open along; wide ones too."""
    q = len(field)
    shape = (q,) * width
    inside = np.zeros(shape)
    for i in range(width):
        inside = inside + field.reshape([q if a == i else 1 for a in range(width)])
        j = (i + 1) % width
        table = pair if i < j else pair.T
        inside = inside + table.reshape([q if a in (i, j) else 1 for a in range(width)])
    weight = np.exp(inside - inside.max())
    factor = np.exp(pair - pair.max())

    def passed(rows: int, table: Table) -> np.ndarray:
        vector = np.ones(shape)
        for _ in range(rows):
            vector = vector * weight
            for axis in range(width):
                vector = np.moveaxis(np.tensordot(table.T, vector, axes=(1, axis)), 0, axis)
            vector /= vector.max()
        return vector

    total = (passed(row, factor) * passed(length - 1 - row, factor.T) * weight).reshape(q, -1).sum(axis=1)
    return total / total.sum()


def ring_of_groups(size: int, inside: float, links: Sequence[float], fields: Sequence[float]) -> list[float]:
    """P(1) in each group: `size` binary variables a group, each pair that agrees weighs `inside`, or `links[g]`
    between the groups g and g + 1."""
    k = np.arange(size + 1.0)
    own = choices(size) + inside * (k * (k - 1) + (size - k) * (size - k - 1)) / 2
    steps = [
        (own + field * k)[:, None] + link * (k[:, None] * k[None] + (size - k)[:, None] * (size - k)[None])
        for link, field in zip(links, fields, strict=True)
    ]
    out = []
    for g in range(len(steps)):
        power = steps[g]
        for step in (*steps[g + 1 :], *steps[:g]):
            power = np.logaddexp.reduce(power[:, :, None] + step[None], axis=1)
        out.append(float(normalised(np.diag(power)) @ k) / size)
    return out


# --- directed graphs -----------------------------------------------------------------------------------------------


@lru_cache
def listed_graphs(nodes: int, cyclic: bool) -> tuple[np.ndarray, np.ndarray]:
    """Every directed graph without loops by (edges, reciprocal pairs, triangles), and how many there are of each."""
    place = {pair: i for i, pair in enumerate(permutations(range(nodes), 2))}
    graphs = np.arange(1 << len(place), dtype=np.int32)
    bit = [(graphs >> i & 1).astype(np.int8) for i in range(len(place))]
    edges, mutual, triangles = (np.zeros(len(graphs), np.int64) for _ in range(3))
    for x, y in place:
        edges += bit[place[x, y]]
        mutual += bit[place[x, y]] & bit[place[y, x]]
    for x, y, z in permutations(range(nodes), 3):
        last = place[z, x] if cyclic else place[x, z]
        triangles += bit[place[x, y]] & bit[place[y, z]] & bit[last]
    keys, count = np.unique((edges << 20) + (mutual << 10) + triangles, return_counts=True)
    return np.column_stack([keys >> 20, keys >> 10 & 1023, keys & 1023]), count


def small_graph(nodes: int, edge: float, mutual: float, triangle: float, cyclic: bool) -> float:
    """P(edge) by listing all graphs."""
    kinds, count = listed_graphs(nodes, cyclic)
    p = normalised(kinds @ np.array([edge, mutual, triangle]) + np.log(count))
    return float(p @ kinds[:, 0]) / (nodes * (nodes - 1))


def edge_counts(nodes: int, mutual: float) -> np.ndarray:
    """By the number of edges, the logarithm of the sum of exp(mutual · reciprocal edges) over graphs."""
    return log_power(np.array([0.0, log(2.0), 2 * mutual]), nodes * (nodes - 1) // 2)


def counted_graph(nodes: int, square: float, edge: float, mutual: float) -> float:
    """P(edge) where the energy has the square of the number of edges."""
    m = np.arange(nodes * (nodes - 1) + 1)
    p = normalised(edge_counts(nodes, mutual) + square * m * m + edge * m)
    return float(p @ m) / float(m[-1])


def graph_bounds(nodes: int, edge: float, mutual: float, triangle: float) -> tuple[float, float]:
    """Bounds of P(edge), weights of reciprocity and of transitive triangles positive.

    A graph of m edges has at most m^1.5 transitive triangles (Loomis–Whitney), which bounds the weight of all graphs
    of m edges from above; independent dyads bound the whole from below (Gibbs–Bogoliubov).
    """
    most = nodes * (nodes - 1)
    m = np.arange(most + 1)
    triangles = np.minimum(m**1.5, np.minimum(m * (nodes - 2.0), most * (nodes - 2.0)))
    upper = edge_counts(nodes, mutual) + edge * m + triangle * triangles
    fields = np.linspace(edge - 1, edge + 3 * triangle * nodes + 1, 2000)
    dyad = np.logaddexp.reduce([np.zeros(2000), fields + log(2.0), 2 * (fields + mutual)], axis=0)
    p = np.exp(np.logaddexp.reduce([fields, 2 * (fields + mutual)], axis=0) - dyad)
    lower = np.max(dyad * most / 2 + (edge - fields) * p * most + triangle * most * (nodes - 2) * p**3)
    share = np.exp(np.minimum(upper - lower, 1.0))
    below = np.cumsum(share)[:-1]  # at most so much has up to m edges
    above = np.cumsum(share[::-1])[::-1][1:]
    low = max(float(np.maximum(0.0, 1.0 - below).sum()) / most, logistic(edge))
    high = min(float(np.minimum(1.0, above).sum()) / most, logistic(edge + 2 * mutual + 3 * triangle * (nodes - 2)))
    return low, high


# --- hard constraints ----------------------------------------------------------------------------------------------


def asthma(n: int, known_smoker: bool = False, two_steps: bool = False) -> dict[str, float]:
    """Marginals of a person of whom nothing is known. `two_steps`: nor do friends of friends smoke."""
    logs, kinds = [], []
    free = n - known_smoker
    for a in range(free + 1):
        for s in range(free - a + 1):
            smokers = s + known_smoker
            rest = n - a - smokers
            worlds = comb(free, a) * comb(free - a, s) * 2 ** (n - smokers)
            if two_steps:
                worlds *= 2 ** (a * a + smokers * n + rest * (a + rest)) * (2**a + 2**smokers - 1) ** rest
            else:
                worlds *= 2 ** (n * n - a * smokers)
            logs.append(log(worlds))
            kinds.append((a / free, s / free))
    ill, smokes = normalised(np.array(logs)) @ np.array(kinds)
    return {"Asthma": float(ill), "Smokes": float(smokes), "Cancer": float(smokes + (1 - smokes) / 2)}


def sociable(n: int, influence: float, field: float) -> tuple[float, float]:
    """P(smokes), P(friends): everyone has a friend, by inclusion and exclusion over those who have none."""
    with localcontext() as context:
        context.prec = 120
        mixed = Decimal(-influence).exp()

        def graphs(k: int, other: int) -> Decimal:
            same = 2 ** (k * (k - 1) // 2 + other * (other - 1) // 2)
            return same * (1 + mixed) ** (k * other)

        def covered(k: int, other: int, first: int = 0, second: int = 0) -> Decimal:
            """Of k smokers and others all of whom have a friend, beside so many of each who need none."""
            terms = (
                (-1) ** (i + j) * comb(k, i) * comb(other, j) * graphs(k - i + first, other - j + second)
                for i in range(k + 1)
                for j in range(other + 1)
            )
            return sum(terms, Decimal(0))

        total = smokes = friends = Decimal(0)
        for k in range(n + 1):
            weight = comb(n, k) * covered(k, n - k) * (Decimal(field) * k).exp()
            total += weight
            smokes += weight * k / n
        for pair in range(3):  # smokers of two people who are friends: neither needs another one
            joined = (mixed / (1 + mixed), Decimal(1) / 2)[pair != 1] * comb(2, pair)
            for k in range(n - 1):
                weight = comb(n - 2, k) * (Decimal(field) * (k + pair)).exp()
                friends += weight * joined * covered(k, n - 2 - k, pair, 2 - pair)
        return float(smokes / total), float(friends / total)


def derangements(n: int) -> list[int]:
    out = [1, 0]
    for k in range(2, n + 1):
        out.append((k - 1) * (out[-1] + out[-2]))
    return out[: n + 1]


def fixed_points(n: int, single: float, pair: float, involutions: bool) -> float:
    """P(an element stays in place), for weights exp(single · k + pair · k²), k the number that stay."""
    moved = derangements(n)
    if involutions:
        moved = [0 if k % 2 else factorial(k) // (factorial(k // 2) * 2 ** (k // 2)) for k in range(n + 1)]
    k = [k for k in range(n + 1) if moved[n - k]]
    logs = np.array([log(comb(n, j)) + log(moved[n - j]) + single * j + pair * j * j for j in k])
    return float(normalised(logs) @ np.array(k)) / n


def injection(pigeons: int, holes: int, weight: float) -> float:
    """P(the first pigeon sits in the first hole), which weighs exp(weight) when it is taken."""
    empty = factorial(holes - 1) // factorial(holes - 1 - pigeons) if holes > pigeons else 0
    taken = factorial(holes - 1) // factorial(holes - pigeons)
    return exp(weight) * taken / (empty + pigeons * exp(weight) * taken)


@lru_cache
def latin_squares(order: int) -> np.ndarray:
    """Every Latin square, int8[squares, order, order]."""
    rows = np.array(list(permutations(range(order))), dtype=np.int8)
    below = (rows[:, None] != rows[None]).all(axis=2)  # which row may stand below which
    squares = np.arange(len(rows))[:, None]
    for _ in range(order - 1):
        allowed = below[squares[:, 0]]
        for column in squares.T[1:]:
            allowed = allowed & below[column]
        above, row = np.nonzero(allowed)
        squares = np.column_stack([squares[above], row])
    return rows[squares]


def latin_diagonal(order: int, weight: float, pair: float) -> tuple[float, float]:
    """P(the first cell is 0), P(the second cell of the first row is 0), zeros on the diagonal weighing
    exp(weight · zeros + pair · pairs of zeros)."""
    squares = latin_squares(order)
    zeros = (np.diagonal(squares, axis1=1, axis2=2) == 0).sum(axis=1)
    p = normalised(weight * zeros + pair * zeros * (zeros - 1) / 2)
    return float(p[squares[:, 0, 0] == 0].sum()), float(p[squares[:, 0, 1] == 0].sum())


def reduced(rows: np.ndarray, columns: int) -> list[int]:
    """Gauss–Jordan elimination modulo 2, in place; the columns of the pivots, one for each row from the first."""
    pivots: list[int] = []
    for column in range(columns):
        at = len(pivots)
        found = np.flatnonzero(rows[at:, column])
        if len(found):
            rows[[at, at + found[0]]] = rows[[at + found[0], at]]
            others = rows[:, column].copy()
            others[at] = False
            rows[others] ^= rows[at]
            pivots.append(column)
    return pivots


def independent(variables: int, scopes: Sequence[tuple[int, ...]]) -> bool:
    rows = np.zeros((len(scopes), variables), dtype=bool)
    for row, scope in zip(rows, scopes, strict=True):
        row[list(scope)] = True
    return len(reduced(rows, variables)) == len(scopes)


def parity_solutions(variables: int, equations: Sequence[tuple[tuple[int, ...], int]]) -> np.ndarray:
    """Every solution of a satisfiable system of parities, bool[solutions, variables]: two for each free variable."""
    rows = np.zeros((len(equations), variables + 1), dtype=bool)
    for row, (scope, side) in zip(rows, equations, strict=True):
        row[list(scope)], row[-1] = True, bool(side)
    pivots = reduced(rows, variables)
    states = np.zeros((1, variables), dtype=bool)
    states[0, pivots] = rows[: len(pivots), -1]
    for v in set(range(variables)) - set(pivots):
        change = np.zeros(variables, dtype=bool)
        change[pivots], change[v] = rows[: len(pivots), v], True
        states = np.concatenate([states, states ^ change])
    return states


def one_hot(n: int, values: int, penalty: float, first: float, pair: float) -> tuple[float, float]:
    """P(a group's first bit), P(its second bit): bits of a group that are not exactly one cost penalty · (sum − 1)²,
    a first bit weighs exp(first), a pair of them in two groups exp(pair)."""
    bits = rows_of(values, 2)
    logs = -penalty * (bits.sum(axis=1) - 1.0) ** 2
    on = bits[:, 0] == 1
    with_first, without = float(np.log(np.exp(logs[on]).sum())), float(np.log(np.exp(logs[~on]).sum()))
    k = np.arange(n + 1)
    p = normalised(choices(n) + (with_first + first) * k + without * (n - k) + pair * k * (k - 1) / 2)
    share = float(p @ k) / n
    second = [float(normalised(logs[part]) @ bits[part, 1]) for part in (on, ~on)]
    return share, share * second[0] + (1 - share) * second[1]


def needle(n: int, weight: float, signs: Sequence[bool], fields: Sequence[float]) -> list[float]:
    """P of each predicate, one state (every atom of predicate i equals signs[i]) weighing exp(weight) more."""
    others = sum(np.logaddexp(0.0, f) for f in fields) * n
    spike = sum(f * n for s, f in zip(signs, fields, strict=True) if s) + weight + np.log1p(-exp(-weight))
    share = logistic(spike - others)
    return [share * s + (1 - share) * logistic(f) for s, f in zip(signs, fields, strict=True)]


def ring(n: int, pair: Table, field: np.ndarray) -> np.ndarray:
    """The marginal of a variable on a ring."""
    step = np.exp(pair + (field[:, None] + field[None]) / 2)
    weight = np.diag(np.linalg.matrix_power(step / np.abs(np.linalg.eigvals(step)).max(), n))
    return weight / weight.sum()
