"""MC-SAT: the exact transition matrix leaves the distribution alone, slices are those of the definition, and its
bias is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from uncompiled import uncompiled

from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.logic.ground import ground
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.kernels.graph import mcsat as kernel
from definetti.samplers.logic.mcsat import five_words
from definetti.samplers.mcsat import graph_of, state_of

THEORIES = {
    "smokers": "person={A,B}\nS(person)\nF(person,person)\n1.4 !S(x)\n0.6 !F(x,y)\n1.1 F(x,y) ^ S(x) => S(y)\n",
    "negative": "n={A,B}\nP(n)\nQ(n)\n-0.7 P(x) v Q(x)\n0.5 P(x) <=> Q(y)\n-0.3 P(x)\n",
    "hard": "n={A,B,C}\nP(n)\nQ(n)\n!P(x) v !Q(x).\n0.8 P(x) ^ P(y) ^ x != y\n0.4 Q(x)\n",
    "conjunction": "n={A,B}\nP(n)\nQ(n)\n0.9 P(x) ^ Q(x)\n0.2 P(x) ^ P(y)\n",
    "blocks": "n={A,B}\nc={R,G,B}\nC(n,c!)\nP(n)\n0.8 C(x,R) => P(x)\n0.5 C(x,d) ^ C(y,d) ^ x != y\nP(A) v C(B,G).\n",
    "wide": "n={A,B,C,D,E,F,G}\nP(n)\n0.7 P(A) v P(B) v !P(C) v P(D) v !P(E) v P(F) v P(G)\n0.4 !P(A)\nP(B) v P(F).\n",
}


def many_valued() -> FactorGraph:
    """Tables of several levels, impossible entries, variables of two to four values, one observed."""
    rng = np.random.default_rng(4)
    pair, three = rng.integers(0, 4, size=(3, 4)).astype(float), rng.choice([0.0, 0.5, 1.0, 2.0], size=(2, 3, 2))
    factors = [((0, 1), pair), ((2, 0, 3), three), ((1,), [0.0, 1.0, 2.0, 2.0]), ((3, 4), np.array([[1, 2], [0, 1]]))]
    return factor_graph([3, 4, 2, 2, 2], factors).condition({4: 1})


def permutations() -> FactorGraph:
    """All different: only joint moves are possible."""
    differ = 1.0 - np.eye(3)
    field = [((i,), np.exp([0.0, 0.3 * i, -0.2 * i])) for i in range(3)]
    return factor_graph([3, 3, 3], [((0, 1), differ), ((1, 2), differ), ((0, 2), differ), *field])


def theory(name: str) -> FactorGraph:
    graph = ground(read_mln_text(THEORIES[name]))
    return graph.condition({"P(D)": 0, "P(E)": 1, "P(G)": 0}) if name == "wide" else graph


MODELS = {name: lambda name=name: theory(name) for name in THEORIES} | {
    "many-valued": many_valued,
    "permutations": permutations,
}


class Chooser:
    """Stands for the draws and follows every branch: each run takes one path; `next` moves on to the next one."""

    def __init__(self, weights: Callable[[int], list[float]]) -> None:
        self.weights = weights  # of a factor, by its number
        self.path: list[tuple[int, list[float]]] = []
        self.begin()

    def begin(self) -> None:
        self.at, self.chance, self.kept = 0, 1.0, {}

    def choose(self, chances: list[float]) -> int:
        if self.at == len(self.path):
            first = next(k for k, c in enumerate(chances) if c > 0)
            self.path.append((first, chances))
        branch, known = self.path[self.at]
        assert known == chances
        self.at += 1
        self.chance *= chances[branch]
        return branch

    def level(self, key, item, weight) -> float:
        """Of all levels between two weights of the factor the upper end stands for them: it allows the same entries."""
        if item not in self.kept:  # the draw is keyed: asked again, it is the same
            ends = sorted({0.0, *(w for w in self.weights(item) if w <= weight)})
            chances = [(high - low) / weight for low, high in pairwise(ends)]
            self.kept[item] = ends[1 + self.choose(chances)]
        return self.kept[item]

    def pick(self, streams, count) -> int:
        return self.choose([1 / count] * int(count))

    def branch(self, streams, counts, to, low, high) -> int:
        behind = [counts[to[e]] for e in range(low, high)]
        return low + self.choose([count / sum(behind) for count in behind])

    def next(self) -> bool:
        while self.path:
            branch, chances = self.path.pop()
            later = [k for k in range(branch + 1, len(chances)) if chances[k] > 0]
            if later:
                self.path.append((later[0], chances))
                return True
        return False


Changes = tuple[tuple[str, str], ...]


def plain(chooser: Chooser, changes: Changes) -> dict:
    """The kernel's own source, uncompiled, with the chooser in place of the two functions that draw."""
    names = vars(uncompiled(kernel, *changes))
    names["level"], names["pick"], names["branch"] = chooser.level, chooser.pick, chooser.branch
    names["mixed"] = names["U"] = lambda z: 0  # the key of a slice is the chooser's own
    return names


def distribution(graph: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """(legal states, their probabilities)."""
    states = np.stack(np.unravel_index(np.arange(np.prod(graph.cards)), tuple(graph.cards)), 1)
    log = graph.log_density(states)
    weight = np.exp(log - log.max())
    return states[weight > 0], weight[weight > 0] / weight.sum()


def listed(arrays):
    """The same tuple with lists in place of arrays: uncompiled, they are read several times faster."""
    return type(arrays)(*(part.tolist() for part in arrays))


def row(graph: FactorGraph, arrays, x: np.ndarray, changes: Changes) -> dict[tuple, float]:
    """The chances of the next state."""

    def weights(item: int) -> list[float]:
        if item < 0:
            return arrays.own[arrays.literal[-1 - item] : arrays.literal[-item]]
        start = graph.table_start[graph.table_of[item]]
        return arrays.weights[start : graph.table_start[graph.table_of[item] + 1]]

    chooser, out = Chooser(weights), {}
    functions = plain(chooser, changes)
    state = listed(state_of(graph, x, five_words(0, 0), 1))
    while True:
        chooser.begin()
        for part in (state.x, state.y):
            part[:] = x.tolist()
        functions["step"](arrays, state, 0.5)
        key = tuple(state.x)
        out[key] = out.get(key, 0.0) + chooser.chance
        if not chooser.next():
            return out


def matrix_of(graph: FactorGraph, *changes: tuple[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(legal states, their probabilities, the exact transition matrix)."""
    arrays = listed(graph_of(graph, np.zeros(int(graph.literal_start[-1]))))
    states, pi = distribution(graph)
    number = {tuple(x): k for k, x in enumerate(states.tolist())}
    matrix = np.zeros((len(states), len(states)))
    for k, x in enumerate(states):
        for key, chance in row(graph, arrays, x, changes).items():
            matrix[k, number[key]] += chance  # an illegal state would be a KeyError
    return states, pi, matrix


@pytest.mark.parametrize("name", MODELS)
def test_the_distribution_is_left_alone(name):
    _, pi, matrix = matrix_of(MODELS[name]())
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
    assert np.abs(pi @ matrix - pi).max() < 1e-12
    assert (np.linalg.matrix_power(matrix > 0, 3) > 0).all()  # it reaches every state


COUNTED = ("elif factors <= len(s.active) and assignments <= ROOM", "elif factors < 0")  # nothing is listed


@pytest.mark.parametrize("name", ["negative", "hard", "blocks", "wide", "permutations"])
def test_solutions_that_are_counted_are_drawn_uniformly(name):
    """The same steps with a decision diagram in place of every list of solutions: the matrix is the same."""
    _, pi, matrix = matrix_of(MODELS[name](), COUNTED)
    assert np.abs(pi @ matrix - pi).max() < 1e-12
    assert np.abs(matrix - matrix_of(MODELS[name]())[2]).max() < 1e-12


@pytest.mark.parametrize(
    "change",
    [
        ("s.counts[node] += s.counts[s.to[e]]", "s.counts[node] += 1.0"),
        ("s.leaves[j] = max(s.leaves[j], s.last[s.touching[k]])", "s.leaves[j] = j"),
        ("fine = satisfied(g, s, s.touching[k])", "fine = True"),
    ],
)
def test_a_planted_bug_of_counting_is_seen(change):
    assert flow_error(MODELS["wide"](), COUNTED, change) > 1e-4


MUTANTS = {
    "a level is closed itself": ("g.own[a] >= cut", "g.own[a] > cut", "negative"),
    "no level is drawn for one open variable": ("here < level(key, g.records[r], cut)", "here < cut", "conjunction"),
    "no level is drawn for several": ("cut = level(key, g.records[r], cut)", "cut = cut + 0.0", "negative"),
    "what is allowed is taken for restricted": ("cut if least < cut else", "cut if least > cut else", "negative"),
    "values are closed that may be reached": ("if best < cut:", "if best <= cut:", "hard"),
    "the first solutions are preferred": ("np.int64(found)", "np.int64((found + 1) // 2)", "negative"),
    "another solution than the one drawn": ("code //= s.left[v]", "code //= 1", "hard"),
    "levels are not reached": (">= s.levels[a]", "> s.levels[a]", "negative"),
    "a component loses its factors": ("s.levels[factors] = r, cut", "s.levels[factors] = r, 0.0", "hard"),
}  # fmt: skip


def flow_error(graph: FactorGraph, *changes: tuple[str, str]) -> float:
    """How far the step is from leaving the distribution alone; 1 if it ends in an illegal state or cannot reach all."""
    try:
        _, pi, matrix = matrix_of(graph, *changes)
    except (AssertionError, IndexError, KeyError, ArithmeticError, RuntimeWarning):
        return 1.0
    if not (np.linalg.matrix_power(matrix > 0, 3) > 0).all():
        return 1.0
    return float(np.abs(pi @ matrix - pi).max())


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    old, new, model = MUTANTS[name]
    assert flow_error(MODELS[model](), (old, new)) > 1e-4


def test_steps_commute_with_symmetries():
    """Exchanging two interchangeable variables of three values, and two values of all of them."""
    pair = np.array([[2.0, 1.0, 1.0], [1.0, 3.0, 0.0], [1.0, 0.0, 3.0]])
    graph = factor_graph(
        [3, 3, 2], [((0, 1), pair), ((0, 2), [[1, 2], [3, 1], [3, 1]]), ((1, 2), [[1, 2], [3, 1], [3, 1]])]
    )
    states, _, matrix = matrix_of(graph)
    number = {tuple(x): k for k, x in enumerate(states.tolist())}
    swap = np.array([number[b, a, c] for a, b, c in states.tolist()])
    flip = np.array([0, 2, 1])
    flipped = np.array([number[flip[a], flip[b], c] for a, b, c in states.tolist()])
    for moved in (swap, flipped):
        assert np.abs(matrix[np.ix_(moved, moved)] - matrix).max() < 1e-12


def test_a_kept_formula_is_kept_with_its_chance():
    """The share of levels above the unsatisfied entry is 1 - exp(-|w|)."""
    graph = ground(read_mln_text("n={A}\nP(n)\nQ(n)\n0.8 P(x) v Q(x)\n-0.5 P(x) ^ Q(x)\n"))
    arrays = graph_of(graph, np.zeros(4))
    assert sorted(set(arrays.weights)) == pytest.approx(sorted([1.0, np.exp(-0.8), np.exp(-0.5)]))


@pytest.mark.parametrize(("n", "expected", "samples"), [(10, 0.0643661551, 200_000), (50, 0.0513120843, 25_000)])
def test_bias_on_friends_and_smokers(n, expected, samples):
    """Orbit mean of P(smokes): no bias beyond the error of so many samples (documented: below 0.0005)."""
    text = f"person={{1,...,{n}}}\nsmokes(person)\ncancer(person)\nfriends(person,person)\n"
    text += "1.4 !smokes(x)\n2.3 !cancer(x)\n"
    text += "4.6 !friends(x,y)\n1.5 smokes(x) => cancer(x)\n1.1 friends(x,y) ^ smokes(x) => smokes(y)\n"
    graph = ground(read_mln_text(text))
    cell = np.zeros(2 * graph.n, int)
    cell[1 : 2 * n : 2] = 1
    arrays = graph_of(graph, cell)
    state = state_of(graph, np.zeros(graph.n), five_words(11, 0), 1)
    kernel.advance(arrays, state, 500, 0.5, False)
    means = []
    for _ in range(20):
        state.sums[:] = 0
        kernel.advance(arrays, state, samples // 20, 0.5, True)
        means.append(state.sums[1, 1] / (n * (samples // 20)))
    error = np.std(means, ddof=1) / np.sqrt(20)
    assert abs(np.mean(means) - expected) < 4 * error < 0.004
