"""A chain on a factor graph that is looked at after every update (`samplers/every_update.py`).

The order of sites is cut into pieces that meet no site twice. After a piece each of its sites has the value that its
update drew, so that looking once a piece is looking after every update, and the engines need not know.
"""

from __future__ import annotations

import numpy as np

from definetti.errors import ModelError
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.samplers.every_update import Occupancy
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.lanes import slots_of

AT_ONCE = 1 << 20  # sites of the order made at once


class FollowedVariables:
    def __init__(self, model: FactorGraph, start: np.ndarray | int, seed: int, edges: np.ndarray | None = None) -> None:
        if (model.cards != 2).any():
            raise ModelError("a chain is followed from update to update on models of binary variables only")
        simple = simplify(model)
        state = np.where(simple.evidence == FREE, np.broadcast_to(start, model.n), simple.evidence).astype(np.uint8)
        if not np.isfinite(simple.log_density(state[None])).all():
            raise ModelError("the start is impossible: a hard factor or the evidence excludes it")
        pairs = np.zeros((0, 2), np.int64) if edges is None else np.asarray(edges, dtype=np.int64)
        self._seen = Occupancy(np.concatenate([state, state[pairs[:, 0]] ^ state[pairs[:, 1]]]))
        self._first, self._edges, self._n = *_incident(pairs, model.n), model.n
        gibbs, seeds = Gibbs("random"), np.random.SeedSequence(seed).spawn(2)
        row_of = np.where(simple.evidence == FREE, 0, -1)
        self._block = gibbs.engine(simple, slots_of(simple, row_of)).block(state[None], seeds[1:], True, False)
        self._orders, self._sites = gibbs.orders(simple.free, seeds[0]), len(simple.free)
        self._ahead, self._met = np.zeros(0, np.int32), np.zeros(model.n + 1, np.int64)
        self._follow(self._ahead)  # compiles, or loads
        gibbs.orders(simple.free, seeds[0]).next(1)  # likewise

    @property
    def updates(self) -> int:
        return int(self._seen.time[0])

    def advance(self, updates: int) -> None:
        while updates > 0:
            if not len(self._ahead):
                self._ahead = self._orders.next(max(1, AT_ONCE // self._sites)).ravel()
            order = self._ahead[:updates]
            self._follow(order)
            self._ahead, updates = self._ahead[len(order) :], updates - len(order)

    def _follow(self, order: np.ndarray) -> None:
        """The updates of `order`, piece by piece."""
        from definetti.samplers.kernels.graph.occupancy import occupy, without_repeats

        seen, at = self._seen, 0
        while True:
            end = without_repeats(order, at, self._met)
            self._block.run(order[None, at:end], 0)
            state = self._block.state[: self._n, 0] & np.uint8(self._block.mask)
            occupy(order[at:end], state, self._first, self._edges, seen.held, seen.since, seen.total, seen.time)
            at = end
            if at == len(order):
                return

    def means(self) -> np.ndarray:
        return self._seen.means()[: self._n]

    def edge_means(self) -> np.ndarray:
        """float64[m]: in which share of the samples the ends of each edge differed."""
        return self._seen.means()[self._n :]


def _incident(pairs: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the edges at each variable, and where each variable's begin."""
    ends, place = pairs.ravel(), n + np.repeat(np.arange(len(pairs)), 2)
    first = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))]).astype(np.int64)
    return first, place[np.argsort(ends, kind="stable")].astype(np.int64)
