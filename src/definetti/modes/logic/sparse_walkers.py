"""Chains that look for modes of a Markov logic network whose sweeps cost what its true atoms cost.

What single moves see is F and G of every orbit; log densities are not followed, so that regions are not weighed: those
whose upper bound lies far below the lower bound of log Z (`samplers/sparse/weights/`) are left out, and if several are
left the answer is divided. States are lists of arrays: for each predicate its bits, and its true pairs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np

from definetti.errors import INTERRUPTED
from definetti.modes.brackets import Bracket
from definetti.modes.looking import Looked
from definetti.modes.walkers import Key, Walk
from definetti.modes.weighing import Weighed, Weighing
from definetti.samplers.logic.queries import Asked
from definetti.samplers.sparse.choice import sparse_engine, verdict
from definetti.samplers.sparse.data import Chain
from definetti.samplers.sparse.engine import SWEEP, Sparse, advance, make_chain
from definetti.samplers.sparse.starts import Lists, first_chain, lists_of
from definetti.samplers.sparse.weights.bounds import NotBounded, denser, entropy
from definetti.samplers.sparse.weights.counting import log_density

UPDATE = 50.0  # nanoseconds of a simple update, in the prices of `choice.py`
MOST_STATISTICS, PROJECTIONS = 400, 96
ERRORS = 3.0
LEAST_STRETCH, STRETCHES = 1 << 24, 64  # sites drawn between two looks whether to stop; looks in a sweep at most
FAR = 20.0  # nats below the lower bound of log Z: left out
NOT_FOUND = "the weights of regions of so large a model are not looked for"

Arrays = list[np.ndarray]  # of one state


def sparse_walkers(asked: Asked, scan: str) -> SparseWalkers | None:
    """None where the model is not swept at the cost of its true atoms."""
    found = sparse_engine(asked, scan)
    return None if isinstance(found, str) else SparseWalkers(found, asked)


class SparseWalkers:
    hard, weighs, mirrored = False, False, False
    log_copies = float("inf")
    counted: Sequence[tuple[int, int]] = ()

    def __init__(self, sparse: Sparse, asked: Asked) -> None:
        self.sparse, self.asked, self.group = sparse, asked, asked.group
        self.sites, self.singles = sparse.free_sites, len(asked.group.sizes)
        self.work = max(1, int(verdict(sparse.model).work[1] / UPDATE))
        self._sizes = asked.group.sizes.astype(float)
        self._stretch = max(LEAST_STRETCH, self.sites // STRETCHES)
        self._directions = None
        if self.singles > MOST_STATISTICS:
            scale = np.sqrt(self._sizes / self._sizes.sum())
            self._directions = np.random.default_rng(0).normal(size=(PROJECTIONS, self.singles)) * scale

    # --- states ------------------------------------------------------------------------------------------------------

    def count(self, states: list[Arrays]) -> int:
        return len(states)

    def take(self, states: list[Arrays], chains: Sequence[int] | np.ndarray) -> list[Arrays]:
        return [states[int(c)] for c in chains]

    def join(self, parts: Sequence[list[Arrays]]) -> list[Arrays]:
        return [state for part in parts for state in part]

    def starts(self, key: Key, most: int, climbs: int) -> list[Arrays]:
        """Dispersed in density and in the values of bits (`samplers/sparse/starts.py`)."""
        return [self._arrays(lists_of(self.sparse, first_chain(self.sparse, hash_of(key), k))) for k in range(most)]

    def as_starts(self, states: list[Arrays], chains: int) -> list[Lists]:
        return [self._lists(states[c % len(states)]) for c in range(chains)]

    def _arrays(self, lists: Lists) -> Arrays:
        out = []
        for name in self.sparse.model.predicates:
            out.append(np.asarray(lists.bits.get(name, np.zeros(0)), np.uint8))
            out.append(np.asarray(lists.pairs.get(name, np.zeros((0, 2))), np.int32))
        return out

    def _lists(self, state: Arrays) -> Lists:
        bits, pairs = {}, {}
        for p, (name, predicate) in enumerate(self.sparse.model.predicates.items()):
            if p in self.sparse.plan.position:
                bits[name] = state[2 * p]
            if len(predicate.sorts) == 2:
                pairs[name] = state[2 * p + 1]
        return Lists(bits, pairs)

    def _chain(self, state: Arrays, key: Key, number: int) -> Chain:
        lists = self._lists(state)
        return make_chain(self.sparse, hash_of(key), number, lists.bits, lists.pairs)

    # --- advancing ---------------------------------------------------------------------------------------------------

    def walk(self, states: list[Arrays], sweeps: int, key: Key, product: Any = None, keep: Sequence[int] = ()) -> Walk:
        stopped = Event()  # waits for nobody: a walk of large chains takes minutes

        def one(c: int) -> tuple[np.ndarray, np.ndarray, Arrays]:
            chain, f, g = self._chain(states[c], key, c), [], []
            for sweep in range(1, sweeps + 1):
                chain.sum_f[1:] = 0
                chain.sum_g[1:] = 0
                while chain.clock[SWEEP] < sweep:
                    if stopped.is_set() or INTERRUPTED.is_set():
                        raise KeyboardInterrupt
                    chain, _ = advance(self.sparse, chain, self._stretch, 1)
                f.append(chain.sum_f[1, 1:] / self._sizes)
                g.append(chain.sum_g[1, 1:] / self._sizes)
            return np.stack(f), np.stack(g), self._arrays(lists_of(self.sparse, chain))

        with ThreadPoolExecutor(min(len(states), os.cpu_count() or 1)) as pool:
            try:
                found = list(pool.map(one, range(len(states))))
            except BaseException:
                stopped.set()
                raise
        f, g = (np.stack([part[k] for part in found], axis=1) for k in range(2))
        unknown = np.zeros((sweeps, len(states)))
        return Walk(
            [part[2] for part in found], f.mean(axis=0), self._seen(f), self._seen(g), unknown, unknown, unknown
        )

    def _seen(self, means: np.ndarray) -> np.ndarray:
        return means if self._directions is None else means @ self._directions.T

    # --- bounds ------------------------------------------------------------------------------------------------------

    def bounded(self, looked: Looked) -> Weighing:
        """Regions that cannot weigh anything are dropped, by the log densities of their chains' last states."""
        try:
            lower = max(d.lower for d in denser(self.sparse.model, self.sparse.plan))
        except NotBounded:
            lower = -np.inf
        found, left_out = [], 0.0
        for region in looked.survey.regions:
            pool = self.take(looked.ends, region.chains)
            f = np.stack([self._means(state) for state in pool])
            if not region.settled:  # all chains left it: there is no way back from where they went, or it is seen often
                found.append(Weighed(region, pool, 0, dropped=True))
                continue
            mean = f.mean(axis=0)
            most = np.array([log_density(self.sparse, self._lists(state)) for state in pool])
            upper = float(most.max() + ERRORS * most.std() + self._sizes @ entropy(mean) + ERRORS * np.sqrt(f.sum()))
            far = upper < lower - FAR
            left_out += float(np.exp(upper - lower)) if far else 0.0
            bracket = Bracket(-np.inf, upper, np.inf)
            found.append(Weighed(region, pool, len(pool), bracket=bracket, means=mean, dropped=far))
        kept = [w for w in found if not w.dropped]
        alone = sum(len(w.region.segments) == 1 for w in kept) > len(looked.ends) // 2
        doubt = "most chains stay in a region of their own" if alone else NOT_FOUND
        return Weighing(tuple(found), None, len(kept) == 1, doubt if len(kept) > 1 else "", left_out)

    def _means(self, state: Arrays) -> np.ndarray:
        """F of a state."""
        return self._chain(state, (0,), 0).true_atoms[1:] / self._sizes


def hash_of(key: Key) -> int:
    words = np.random.SeedSequence(key).generate_state(2, np.uint64)
    return int(words[0]) << 64 | int(words[1])
