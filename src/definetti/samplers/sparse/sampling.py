"""A run of Gibbs sampling whose chains are lists of true atoms. The same kernel as the dense run, with the same F and
G; memory grows with the true atoms, never with all of them."""

from __future__ import annotations

import time
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from definetti.constraints.logic.legal_states import Legal, legal
from definetti.errors import Notice, TooLarge
from definetti.samplers.draws import Batch, Draws, pick_members
from definetti.samplers.logic.engine import Relational, refuse_large
from definetti.samplers.logic.queries import Asked
from definetti.samplers.logic.sampling import relational_model
from definetti.samplers.logic.starts import clear_live
from definetti.samplers.logic.stuck import slow_notices, stuck_notices
from definetti.samplers.logic.tensors.data import Chain as BitChain
from definetti.samplers.protocol import Plan, State, prefixed
from definetti.samplers.run import Illegal, Map, Run, debugging
from definetti.samplers.sparse.crowded import Crowd, as_bits, as_lists, dense_sweeps
from definetti.samplers.sparse.data import SCRATCH, SHARED, Chain, SystemData
from definetti.samplers.sparse.engine import (
    CROWDED,
    LOOKS,
    SWEEP,
    UPDATES,
    Sparse,
    advance,
    blank,
    room,
    tensor_of,
    truth_of,
)
from definetti.samplers.sparse.schedule import following, one_kernel
from definetti.samplers.sparse.starts import first_chain, violations
from definetti.samplers.sparse.stuck import held
from definetti.samplers.sparse.watch import watch_again
from definetti.samplers.sparse.work import NEVER

CANDIDATES = 1 << 16  # atoms of a predicate looked at to find tracked ones
MOST_VALUES = 1 << 32


class SparseSampling(Run):
    """The chains of one run, and how they are advanced and folded."""

    def __init__(self, sparse: Sparse, asked: Asked, plan: Plan) -> None:
        refuse_large(plan.chains * sparse.chain_bytes, None)
        self.sparse, self.group, self.asked = sparse, asked.group, asked
        self._chains: list[Chain] = []
        self._first = np.zeros(plan.chains, np.int64)
        self._rates = np.full(plan.chains, 1e7)
        self._debug, self._lock = debugging(), Lock()
        self._relational: Relational | None = None
        self._crowded = np.zeros(plan.chains, np.int64)  # dense sweeps
        self._crowds: list[Crowd | None] = [None] * plan.chains
        self._atoms = tracked_atoms(self.group, plan.seed)
        orbit = np.concatenate([np.zeros(0, np.int64), *(part[2] for part in self._atoms)])
        self._true = np.zeros((plan.chains, len(orbit)))
        super().__init__(plan, asked.sizes, orbit, plan.chains, plan.burn_in)

    @property
    def updates(self) -> int:
        return sum(int(chain.clock[UPDATES]) for chain in self._chains)

    @property
    def can_stop(self) -> bool:
        return bool(self.updates)

    def report(self) -> dict[str, Any]:
        dense = {"dense_sweeps": int(self._crowded.sum())} if self._crowded.any() else {}
        return {"engine": "sparse"} | dense

    # --- advancing ---------------------------------------------------------------------------------------------------

    def _begin(self, run: Map) -> None:
        if not self._chains:
            self._chains = list(run(self._start, range(self.plan.chains)))
            for chain in self._chains:
                chain.clock[LOOKS] = int(self.sparse.data.most_pairs[0] < NEVER)

    def _start(self, k: int) -> Chain:
        given = None if self.plan.starts is None else self.plan.starts[k]
        return first_chain(self.sparse, self.plan.seed, k, given)

    def _end_of_warm_up(self) -> None:
        looks = self.sparse.data.most_pairs[0] < NEVER and one_kernel(self.sparse)
        if not looks:
            self._make_lists()
            self._crowds = [None for _ in self._crowds]
        for chain, crowd in zip(self._chains, self._crowds, strict=True):
            watch_again(chain)
            chain.clock[LOOKS] = int(looks)
            if crowd is not None:
                clear_live(self._dense(), crowd.bits)

    def notices(self) -> list[Notice]:
        """What hard formulas held at every kept sweep."""
        if not self._batches or not self.sparse.plan.hard:
            return []
        self._make_lists()
        f = np.stack([batch.f for batch in self._batches])[:, :, : len(self.group.sizes)]
        found = stuck_notices(self.group, held(self.sparse, self._chains), lambda: self._solver)
        return [*found, *slow_notices(self.group, f)]

    @cached_property
    def _solver(self) -> Legal:
        return legal(self.group.model, self.group.source)

    def _open(self) -> None:
        self._first[:] = [chain.clock[SWEEP] for chain in self._chains]

    def _advance(self, run: Map, folded: int, seconds: float) -> int:
        list(run(self._stretch, range(len(self._chains)), [seconds] * len(self._chains)))
        return int(min(chain.clock[SWEEP] - f for chain, f in zip(self._chains, self._first, strict=True)))

    def _stretch(self, k: int, seconds: float) -> None:
        began = time.perf_counter()
        left = int(self._first[k]) + self._length - int(self._chains[k].clock[SWEEP])
        if left <= 0:
            return
        budget = max(1, int(seconds * self._rates[k]))
        done = self._drawn(k, budget, left)
        took = max(time.perf_counter() - began, 1e-6)
        self._rates[k] = min(max(done / took, 1.0), 4.0 * self._rates[k])

    def _drawn(self, k: int, budget: int, sweeps: int) -> int:
        """Advances a chain, by dense sweeps where its state is crowded; returns how many sites were drawn. The state is
        looked at after every sweep where atoms are tracked, and in debug mode."""
        looked = self._tracking or bool(self._debug and self.sparse.plan.hard)
        done, target = 0, int(self._chains[k].clock[SWEEP]) + sweeps
        while done < budget and (before := int(self._chains[k].clock[SWEEP])) < target:
            if self._crowds[k] is not None:
                done += self._dense_sweeps(k, budget - done, target - before)
                continue
            left = 1 if looked else target - before
            self._chains[k], drawn = advance(self.sparse, self._chains[k], budget - done, left)
            done += drawn
            if looked and int(self._chains[k].clock[SWEEP]) > before:
                self._look(k)
            if self._chains[k].clock[CROWDED]:
                self._make_bits(k)
        return done

    def _make_bits(self, k: int) -> None:
        try:
            self._crowds[k] = as_bits(self.sparse, self._dense(), self._chains[k])
        except TooLarge:  # for bits: then the sweep is sparse, however long it takes
            self._chains[k].clock[[CROWDED, LOOKS]] = 0

    def _dense_sweeps(self, k: int, budget: int, sweeps: int) -> int:
        engine, crowd, chain = self._dense(), self._crowds[k], self._chains[k]
        assert crowd is not None
        note = (lambda bits: self._note(k, engine, bits)) if self._tracking else None
        before = int(chain.clock[SWEEP])
        drawn, crowded = dense_sweeps(self.sparse, engine, crowd, chain, budget, sweeps, note)
        self._crowded[k] += int(chain.clock[SWEEP]) - before
        if not crowded:
            self._chains[k], self._crowds[k] = as_lists(self.sparse, engine, crowd, chain), None
        return drawn

    def _make_lists(self) -> None:
        """The lists of chains that are swept as bits, for those who read them."""
        for k, crowd in enumerate(self._crowds):
            if crowd is not None and crowd.ahead:
                self._chains[k] = as_lists(self.sparse, self._dense(), crowd, self._chains[k])

    def _look(self, k: int) -> None:
        if self._tracking:
            self._true[k] += self._tracked_values(self._chains[k])
        if self._debug and (broken := violations(self.sparse, self._chains[k])):
            text = f"a chain is in an impossible state: {broken} groundings of hard formulas are violated"
            raise Illegal(f"{text}; please report")

    def _note(self, k: int, engine: Relational, bits: BitChain) -> None:
        """Tracked atoms of a state as bits."""
        parts = [engine.atoms(bits, name)[tuple(tuples.T)] for name, tuples, _ in self._atoms]
        self._true[k] += np.concatenate([np.zeros(0, bool), *parts])

    def _dense(self) -> Relational:
        """The dense engine, compiled when it is first needed."""
        with self._lock:
            if self._relational is None:
                made = relational_model(self.asked, "symmetric", self.plan)
                self._relational = following(self.sparse, made) if one_kernel(self.sparse) else made
            return self._relational

    def _tracked_values(self, chain: Chain) -> np.ndarray:
        parts = [np.zeros(0, bool)]
        parts += [truth_of(self.sparse, chain, name, tuples) for name, tuples, _ in self._atoms]
        return np.concatenate(parts)

    def values(self) -> np.ndarray:
        model = self.group.model
        total = sum(int(np.prod(model.shape(name), dtype=float)) for name in model.predicates)
        if total * self.plan.chains > MOST_VALUES:
            raise TooLarge("the values of all ground atoms", total * self.plan.chains, MOST_VALUES, "ask for marginals")
        self._make_lists()
        return np.stack([np.concatenate([self._tensor(c, name) for name in model.predicates]) for c in self._chains])

    def _tensor(self, chain: Chain, name: str) -> np.ndarray:
        return tensor_of(self.sparse, chain, name).ravel().astype(np.uint8)

    # --- folding -----------------------------------------------------------------------------------------------------

    def _harvest(self, length: int) -> Batch:
        f, g, square = (np.stack(part) for part in zip(*(self._batch(c, length) for c in self._chains), strict=True))
        self._clear()
        return Batch(length, f, g, square=square)

    def _clear(self) -> None:
        for chain in self._chains:
            chain.sum_f[1:] = 0
            chain.sum_g[1:] = 0

    def _members(self) -> np.ndarray:
        taken = self._true.copy()
        self._true[...] = 0.0
        return taken

    def _window(self, length: int, whole: bool) -> np.ndarray | None:
        means = [self._batch(chain, length)[0] for chain in self._chains] if whole and self._warm_up.looks else None
        self._clear()
        return None if means is None else np.stack(means)

    def _batch(self, chain: Chain, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One chain's batch means of F, G and F²."""
        sizes = self.group.sizes.astype(float)
        f, g = chain.sum_f[1, 1:] / (sizes * length), chain.sum_g[1, 1:] / (sizes * length)
        return f, g, chain.sum_g[2, 1:] / (sizes**2 * length)

    def _unfinished(self) -> Draws:
        """One batch of one draw per chain, from the states inside a sweep."""
        self._make_lists()
        f = np.stack([chain.true_atoms[1:] / self.group.sizes for chain in self._chains])[None]
        return Draws(f, None, np.ones(1, np.int64), self._sizes, square=f**2, unfinished=True)

    # --- saving ------------------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, np.ndarray]:
        self._make_lists()
        found = {"first": self._first, "true": self._true, "crowded": self._crowded} if self._chains else {}
        for k, chain in enumerate(self._chains):
            own = {name: array for name, array in chain._asdict().items() if name != "systems"}
            own["pool"] = chain.pool[: chain.blocks[0]]  # what follows is room
            for r, system in enumerate(chain.systems):
                own |= prefixed(
                    str(r), {n: getattr(system, n) for n in SystemData._fields[:SHARED] if n not in SCRATCH}
                )
            found |= prefixed(str(k), own)
        return found

    def restore(self, state: State) -> None:
        """The lists of the chains have grown to their sizes in the saved state."""
        saved = state["chains"]
        self._crowds = [None for _ in range(self.plan.chains)]
        self._chains = [blank(self.sparse) for _ in range(self.plan.chains)] if saved else []
        for k, chain in enumerate(self._chains):
            chain.blocks[0] = len(saved[f"{k}.pool"])
            self._chains[k] = chain._replace(pool=room(int(chain.blocks[0]), int(self.sparse.data.reserve[0])))
        super().restore(state)


def tracked_atoms(group: Any, seed: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(predicate, constants, orbits) of up to 64 atoms of each orbit that has several."""
    rng = np.random.default_rng([seed, 2])
    found: list[tuple[str, np.ndarray, np.ndarray]] = []
    for name in group.atom_orbits if len(group.sizes) else ():
        shape = group.model.shape(name)
        total = int(np.prod(shape, dtype=np.int64))
        flat = np.arange(total) if total <= CANDIDATES else np.unique(rng.integers(0, total, CANDIDATES))
        if len(shape) == 2 and shape[0] == shape[1] and total > CANDIDATES:  # the diagonal is small, and easily missed
            flat = np.unique(np.concatenate([flat, rng.integers(0, shape[0], 1024) * (shape[0] + 1)]))
        tuples = np.stack(np.unravel_index(flat, shape), axis=1).astype(np.int64)
        orbit = group.orbit_numbers(name, tuples).astype(np.int64)
        orbit = np.where((orbit >= 0) & (group.sizes[orbit] > 1), orbit, -1)
        chosen = pick_members(orbit, rng)
        found.append((name, tuples[chosen], orbit[chosen]))
    return found
