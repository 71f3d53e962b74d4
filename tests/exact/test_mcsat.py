"""MC-SAT: the exact transition matrix leaves the distribution alone, slices are those of the definition, and its
bias is measured.
"""

from __future__ import annotations

import types

import numpy as np
import pytest

from definetti.model.ground import ground
from definetti.readers.mln import read_mln_text
from definetti.samplers.kernels import mcsat as kernel
from definetti.samplers.mcsat import graph_of, state_of

THEORIES = {
    "smokers": "person={A,B}\nS(person)\nF(person,person)\n1.4 !S(x)\n0.6 !F(x,y)\n1.1 F(x,y) ^ S(x) => S(y)\n",
    "negative": "n={A,B}\nP(n)\nQ(n)\n-0.7 P(x) v Q(x)\n0.5 P(x) <=> Q(y)\n-0.3 P(x)\n",
    "hard": "n={A,B,C}\nP(n)\nQ(n)\n!P(x) v !Q(x).\n0.8 P(x) ^ P(y) ^ x != y\n0.4 Q(x)\n",
    "conjunction": "n={A,B}\nP(n)\nQ(n)\n0.9 P(x) ^ Q(x)\n0.2 P(x) ^ P(y)\n",
}


class Chooser:
    """Stands for the draws and follows every branch: each run takes one path; `next` moves on to the next one."""

    def __init__(self) -> None:
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

    def keeps(self, key, item, level, chance) -> bool:
        if (int(item), int(level)) not in self.kept:  # the draw is keyed: asked again, it is the same
            self.kept[int(item), int(level)] = self.choose([1 - float(chance), float(chance)]) == 1
        return self.kept[int(item), int(level)]

    def pick(self, streams, count) -> int:
        return self.choose([1 / count] * int(count))

    def next(self) -> bool:
        while self.path:
            branch, chances = self.path.pop()
            later = [k for k in range(branch + 1, len(chances)) if chances[k] > 0]
            if later:
                self.path.append((later[0], chances))
                return True
        return False


def plain(chooser: Chooser) -> dict:
    """The kernel's own source, uncompiled, with the chooser in place of the two functions that draw."""
    names = dict(vars(kernel))
    for name, value in vars(kernel).items():
        if hasattr(value, "py_func"):
            names[name] = types.FunctionType(value.py_func.__code__, names, name, value.py_func.__defaults__)
    names["keeps"], names["pick"] = chooser.keeps, chooser.pick
    names["mixed"] = lambda z: z
    return names


def distribution(graph) -> tuple[np.ndarray, np.ndarray]:
    """(legal states, their probabilities)."""
    states = (np.arange(1 << graph.n)[:, None] >> np.arange(graph.n)) & 1
    log = np.array([graph.log_density(x) for x in states])
    weight = np.exp(log - log[np.isfinite(log)].max())
    return states[weight > 0], weight[weight > 0] / weight.sum()


def row(arrays, graph, x: np.ndarray) -> dict[bytes, float]:
    """The chances of the next state."""
    chooser, out = Chooser(), {}
    functions = plain(chooser)
    while True:
        chooser.begin()
        state = state_of(arrays, x, 0, 0, 1)
        with np.errstate(over="ignore"):
            functions["step"](arrays, state, 0.5)
        key = state.x.tobytes()
        out[key] = out.get(key, 0.0) + chooser.chance
        if not chooser.next():
            return out


@pytest.mark.parametrize("name", THEORIES)
def test_the_distribution_is_left_alone(name):
    graph = ground(read_mln_text(THEORIES[name]))
    arrays = graph_of(graph, np.ones(graph.n, int))
    states, pi = distribution(graph)
    number = {x.astype(np.int8).tobytes(): k for k, x in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for k, x in enumerate(states):
        for key, chance in row(arrays, graph, x).items():
            matrix[k, number[key]] += chance  # an illegal state would be a KeyError
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
    assert np.abs(pi @ matrix - pi).max() < 1e-12
    assert (np.linalg.matrix_power(matrix > 0, 3) > 0).all()  # it reaches every state


def test_a_kept_formula_is_kept_with_its_chance():
    graph = ground(read_mln_text("n={A}\nP(n)\nQ(n)\n0.8 P(x) v Q(x)\n-0.5 P(x) ^ Q(x)\n"))
    arrays = graph_of(graph, np.ones(2, int))
    drops = arrays.level_drop[arrays.level_drop > 0]
    assert sorted(drops) == pytest.approx(sorted([np.exp(-0.8), np.exp(-0.5)]))


@pytest.mark.parametrize(("n", "expected", "samples"), [(10, 0.0643661551, 200_000), (50, 0.0513120843, 25_000)])
def test_bias_on_friends_and_smokers(n, expected, samples):
    """Orbit mean of P(smokes): no bias beyond the error of so many samples (documented: below 0.0005)."""
    text = f"person={{1,...,{n}}}\nsmokes(person)\ncancer(person)\nfriends(person,person)\n"
    text += "1.4 !smokes(x)\n2.3 !cancer(x)\n"
    text += "4.6 !friends(x,y)\n1.5 smokes(x) => cancer(x)\n1.1 friends(x,y) ^ smokes(x) => smokes(y)\n"
    graph = ground(read_mln_text(text))
    orbit = np.zeros(graph.n, int)
    orbit[:n] = 1
    arrays = graph_of(graph, orbit)
    state = state_of(arrays, np.zeros(graph.n), 11, 0, 1)
    kernel.advance(arrays, state, 500, 0.5)
    means = []
    for _ in range(20):
        state.sums[:] = 0
        kernel.advance(arrays, state, samples // 20, 0.5)
        means.append(state.sums[1, 1] / (n * (samples // 20)))
    error = np.std(means, ddof=1) / np.sqrt(20)
    assert abs(np.mean(means) - expected) < 4 * error < 0.004
