"""The exact transition matrix of a sampler on the listed states of a small model.

A step is one update where sites are drawn at random, one sweep otherwise. Samplers whose random branches cannot be
listed are refused with the reason.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.lumping.moves import SiteMove, block_move, cluster_move, random_scan
from definetti.lumping.state_space import StateSpace
from definetti.memory import available_memory

MOST_STATES = 2**16  # of the random scan, whose matrix is sparse
MOST_SWEPT = 2**12  # of sweeps, whose matrix is dense
MOST_SITES = 8  # of the symmetric scan, which takes all orders of an orbit
CURE = "use scan='random', or a smaller model"

REASONS = {
    "mcsat": "MC-SAT draws a solution of a random part of the model, by a search whose branches cannot be listed",
    "tempering": "parallel tempering has the product of all levels of its ladder for states",
    "lifted": "its draws are independent, so that there is no chain",
    "auto": "`auto` may pick any of them",
}

Matrix = Any  # scipy.sparse.csr_array or np.ndarray


@dataclass(frozen=True, eq=False)
class Transitions:
    """A transition matrix and what a step of it is."""

    matrix: Matrix
    step: str  # "update" or "sweep"
    updates: int  # of single sites (or of blocks, or of all sites at once) in a step
    sites: Mapping[int, Matrix]  # the moves it is made of, by their first variable; none for clusters


def most_states(sampler: Any) -> int:
    """How many states there may be for this sampler."""
    return MOST_STATES if sampler.name == "gibbs" and sampler.scan == "random" else MOST_SWEPT


def check_sampler(sampler: Any) -> None:
    """`ModelError` for samplers whose branches cannot be listed."""
    name = "auto" if sampler is None else sampler.name
    if name not in ("gibbs", "blocks", "swendsen-wang"):
        why = REASONS.get(name, f"the random branches of {name!r} cannot be listed")
        raise ModelError(f"no transition matrix: {why}; use gibbs, blocks or swendsen-wang")


def transitions(
    space: StateSpace,
    sampler: Any,
    orders: Iterable[tuple[float, Sequence[int]]] | None,
    sites: Callable[[], Iterable[SiteMove]],
) -> Transitions:
    """The matrix of one step. `orders` are the (probability, sites) of a sweep, None for the random scan; `sites` makes
    the moves of single-site sampling."""
    if sampler.name == "swendsen-wang":
        return Transitions(cluster_move(space), "sweep", 1, {})
    if sampler.scan == "random" or not len(space.model.free):
        return Transitions(random_scan(space, sites()), "update", 1, {})
    moves, unit = _units(space, sampler, sites)
    assert orders is not None
    sequences: dict[tuple[int, ...], float] = defaultdict(float)
    for probability, order in orders:
        sequences[tuple(dict.fromkeys(unit[i] for i in order))] += probability
    refuse_memory(len(space), len(moves) if len(sequences) > 1 else 1)
    return Transitions(_mixed(sequences, moves, len(space)), "sweep", len(moves), moves)


def _units(
    space: StateSpace, sampler: Any, sites: Callable[[], Iterable[SiteMove]]
) -> tuple[dict[int, Matrix], dict[int, int]]:
    """The moves by their first variable, and the move of each variable: a block is drawn when its first one comes."""
    if sampler.name == "gibbs":
        found = list(sites())
        return {m.variables[0]: m.matrix() for m in found}, {i: m.variables[0] for m in found for i in m.variables}
    parts = [sorted({int(i) for cluster in tree for i in cluster.variables}) for tree in sampler.parts(space.model)]
    together = {i for part in parts for i in part}
    parts += [[i] for i in space.model.free.tolist() if i not in together]
    return {part[0]: block_move(space, part) for part in parts}, {i: part[0] for part in parts for i in part}


def _mixed(sequences: Mapping[tuple[int, ...], float], moves: Mapping[int, Matrix], size: int) -> np.ndarray:
    """The mixture of products of moves. Beginnings that are made of the same moves, in whatever order, and go on alike
    are added up before they are multiplied further: all orders of k moves cost 2^k products."""
    front: dict[tuple[frozenset[int], tuple[Any, ...]], tuple[np.ndarray, dict[tuple[int, ...], float]]] = {}
    front[frozenset(), ()] = np.eye(size), dict(sequences)
    while any(rest for _, after in front.values() for rest in after):
        following: dict[Any, Any] = {}
        for (seen, _), (left, after) in front.items():
            by_move: dict[int, dict[tuple[int, ...], float]] = defaultdict(dict)
            for rest, weight in after.items():
                by_move[rest[0]][rest[1:]] = weight
            for move, rests in by_move.items():
                total = sum(rests.values())
                law = {rest: weight / total for rest, weight in rests.items()}
                key = seen | {move}, tuple(sorted((rest, round(p, 12)) for rest, p in law.items()))
                product = total * _times(left, moves[move])
                if key in following:
                    following[key][0][...] += product
                else:
                    following[key] = product, law
        front = following
    return sum((left for left, _ in front.values()), np.zeros((size, size)))


def _times(left: np.ndarray, move: Matrix) -> np.ndarray:
    return (move.T @ left.T).T


def refuse_memory(states: int, moves: int) -> None:
    """Before dense matrices are made: one for every set of moves of the middle size."""
    need = 8 * states**2 * (2 + min(math.comb(min(moves, MOST_SITES), min(moves, MOST_SITES) // 2), 140))
    have = 0.8 * available_memory()
    if need > have:
        raise TooLarge("the mixture over scan orders", need, have, CURE, unit="bytes")


# --- orders of a sweep -----------------------------------------------------------------------------------------------


def fixed_order(sites: Sequence[int]) -> list[tuple[float, Sequence[int]]]:
    return [(1.0, tuple(sites))]


def symmetric_orders(sites: Sequence[int], orbit_of: np.ndarray) -> Iterable[tuple[float, Sequence[int]]]:
    """Factor graphs: orbit after orbit, each in any order of its sites."""
    if len(sites) > MOST_SITES:
        raise TooLarge("the number of sites of a symmetric sweep", len(sites), MOST_SITES, CURE)
    labels = [int(orbit_of[i]) for i in sites]
    orbits = [[i for i, label in zip(sites, labels, strict=True) if label == one] for one in dict.fromkeys(labels)]
    count = math.prod(math.factorial(len(orbit)) for orbit in orbits)
    for parts in itertools.product(*(itertools.permutations(orbit) for orbit in orbits)):
        yield 1.0 / count, [i for part in parts for i in part]
