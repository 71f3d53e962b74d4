"""A run of single-site Gibbs sampling on a Markov logic network that is never grounded.

Chains advance in stretches that may end inside a sweep, so that progress, Ctrl-C and time limits work where one sweep
takes a minute. Orbit statistics are folded by the kernel; a run stopped before its first batch ends shows the states
themselves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, cast

import numpy as np

from definetti.errors import Notice
from definetti.samplers.codegen.module import is_held
from definetti.samplers.draws import Batch, Draws, pick_members
from definetti.samplers.logic.engine import (
    SCANS,
    SWEEP,
    UPDATES,
    Relational,
    Scan,
    advance,
    blank,
    compile_model,
    refuse_large,
    refuse_model,
    violations,
)
from definetti.samplers.logic.levels import log_density, recount, violated
from definetti.samplers.logic.mirrored import Means, with_mirror_images
from definetti.samplers.logic.orbital import Atoms, Moves
from definetti.samplers.logic.queries import Asked
from definetti.samplers.logic.starts import at_state, clear_live, first_states, solver_of
from definetti.samplers.logic.stuck import held, slow_notices, stuck_notices
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.logic.tensors.known_bits import home_words, pack, unpack, words_of
from definetti.samplers.logic.tensors.state import clear_sums, home_offset, put_atoms
from definetti.samplers.protocol import Plan, State, prefixed
from definetti.samplers.run import CHUNK_SECONDS, Illegal, Map, Run, debugging
from definetti.symmetry.logic.renaming import RenamingSymmetries

ATOMS_AT_ONCE = 1 << 20
CANDIDATES = 1 << 16  # atoms of a predicate looked at to find tracked ones: all, or so many at random


def relational_sampling(asked: Asked, scan: str, plan: Plan) -> RelationalSampling:
    """A run ready to start."""
    return RelationalSampling(relational_model(asked, scan, plan), asked, plan)


def relational_model(asked: Asked, scan: str, plan: Plan) -> Relational:
    """Compiles a model. Independent atoms are drawn after the others: given those they are independent of each other,
    and the sweep commutes with the group."""
    group = asked.group
    refuse_model(group.model, chains=plan.chains)
    return compile_model(
        group.model,
        group.atom_orbits,
        queries=asked.counted,
        scan=cast(Scan, scan),
        late=asked.late(),
        turns=asked.turns,
        source=group.source,
    )


class RelationalSampling(Run):
    """The chains of one run, and how they are advanced and folded."""

    pieces = "_stretch"
    renamed: Moves | None = None  # what moves the states after every sweep

    def __init__(self, relational: Relational, asked: Asked, plan: Plan) -> None:
        refuse_large(plan.chains * relational.chain_bytes, None)
        self.relational, self.group, self.asked = relational, asked.group, asked
        self._random = SCANS[relational.data.scan] == "random"
        self._chains: list[Chain] = []
        self._first = np.zeros(plan.chains, np.int64)  # the chains' sweeps when the batch began
        self._rates = np.full(plan.chains, 1e6)  # updates per second
        self._atoms, self._debug = tracked_atoms(relational, asked.group, plan.seed), debugging()
        self._true = np.zeros((plan.chains, len(self._atoms.orbit)))  # of tracked atoms, in the batch under way
        self._watched = relational.query_places[list(asked.series)]  # counts that are kept after every sweep
        violations(relational, blank(relational))  # compiles, or loads
        super().__init__(plan, asked.sizes, self._atoms.orbit, plan.chains, plan.burn_in)

    @property
    def updates(self) -> int:
        return sum(int(chain.clock[UPDATES]) for chain in self._chains)

    @property
    def can_stop(self) -> bool:
        """The states themselves can be shown, if nothing else."""
        return bool(self.updates)

    # --- advancing -------------------------------------------------------------------------------------------------

    def _begin(self, run: Map) -> None:
        if self.plan.starts is None:
            self._chains = self._chains or first_states(self.relational, self.plan.seed, self.plan.chains, run)
        elif not self._chains:
            self._chains = [
                at_state(self.relational, self.plan.seed, k, start.bits) for k, start in enumerate(self.plan.starts)
            ]

    def _end_of_warm_up(self) -> None:
        for chain in self._chains:
            clear_live(self.relational, chain)

    def _open(self) -> None:
        self._first[:] = [chain.clock[SWEEP] for chain in self._chains]

    def _advance(self, run: Map, folded: int, seconds: float) -> int:
        list(run(self._stretch, range(len(self._chains)), [seconds] * len(self._chains)))
        return int(min(chain.clock[SWEEP] - f for chain, f in zip(self._chains, self._first, strict=True)))

    def _stretch(self, k: int, seconds: float) -> None:
        chain, began = self._chains[k], time.perf_counter()
        left = int(self._first[k]) + self._length - int(chain.clock[SWEEP])
        if left > 0:
            budget = max(1, int(seconds * self._rates[k]))
            looked = self._tracking or self._debug or self.renamed is not None or len(self._watched) > 0
            done = self._follow(k, budget, left) if looked else advance(self.relational, chain, budget, left)
            took = max(time.perf_counter() - began, 1e-6)
            self._rates[k] = min(max(done / took, 1.0), 4.0 * self._rates[k])

    def _follow(self, k: int, budget: int, sweeps: int) -> int:
        """The same with a look at the tracked atoms after every sweep; in debug mode also at the hard formulas."""
        chain, done = self._chains[k], 0
        target = int(chain.clock[SWEEP]) + sweeps
        while done < budget and chain.clock[SWEEP] < target:
            before = int(chain.clock[SWEEP])
            done += advance(self.relational, chain, budget - done, 1)
            if chain.clock[SWEEP] > before:
                if self.renamed is not None:
                    self._rename(self.renamed, k, chain)
                self._note(k, chain)
                if self._debug and (broken := violations(self.relational, chain)):
                    text = f"a chain is in an impossible state: {broken} groundings of hard formulas are violated"
                    raise Illegal(f"{text}; please report")
        return done

    def _note(self, k: int, chain: Chain) -> None:
        """What is looked at after every sweep."""
        if self._tracking:
            self._true[k] += self._atoms.values(chain)
        if len(self._watched):
            self._notes["counts"][k][self._place(k), 0] = chain.seen[0, self._watched]

    def _noted(self) -> dict[str, int]:
        return {"counts": len(self._watched)}

    def _place(self, k: int) -> int:
        """Of the sweep that a chain has just done, in the window or batch."""
        return int(self._chains[k].clock[SWEEP] - self._first[k]) - 1

    def _rename(self, moves: Moves, k: int, chain: Chain) -> None:
        """Moves a chain's atoms."""
        atoms = {name: self.relational.atoms(chain, name) for name, _ in self._shapes()}
        then = moves.moved(k, int(chain.clock[SWEEP]), atoms, lambda some: self._log_density(chain, some))
        if then is not atoms:
            self._put(chain, then)

    def _put(self, chain: Chain, atoms: Atoms) -> None:
        """Atoms in every orientation; not the hidden classes of queries."""
        for p, name in enumerate(self.relational.model.predicates):
            if name in atoms:
                tensor = atoms[name]
                put_atoms(self.relational.written, self.relational.data, chain, p, tensor.shape, pack(tensor))

    def _log_density(self, chain: Chain, atoms: Atoms) -> float:
        """Of the chain with other atoms; the chain stays as it is."""
        scratch = chain._replace(bits=chain.bits.copy(), tally=np.zeros_like(chain.tally))
        self._put(scratch, atoms)
        recount(self.relational, scratch)
        return -np.inf if violated(scratch) else log_density(self.relational, scratch)

    def values(self) -> np.ndarray:
        return self._unpacked(np.stack([chain.bits[self._home] for chain in self._chains]))

    @cached_property
    def _home(self) -> np.ndarray:
        """int64: the words of all atoms, each predicate in the orientation in which it is kept."""
        r, places = self.relational, list(self.relational.model.predicates)
        parts = [np.zeros(0, np.int64)]
        for name, shape in self._shapes():
            start = home_offset(r.written, r.data, places.index(name), shape)
            parts.append(np.arange(start, start + home_words(shape)))
        return np.concatenate(parts)

    def _shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Of the model's own predicates, without the hidden classes of queries."""
        return [(name, self.group.model.shape(name)) for name in self.group.model.predicates]

    def _unpacked(self, words: np.ndarray) -> np.ndarray:
        """uint8[states, atoms] from the words of `_home` of each state."""
        out = np.empty((len(words), self.group.model.atom_count), np.uint8)
        word = atom = 0
        for _, shape in self._shapes():
            size, rows = home_words(shape), prod(shape)
            part = np.ascontiguousarray(words[:, word : word + size])
            out[:, atom : atom + rows] = unpack(part.ravel(), (len(words), *(shape or (1,)))).reshape(len(words), rows)
            word, atom = word + size, atom + rows
        return out

    def _record(self, run: Map, every: int, some: int) -> np.ndarray:
        """Each chain by itself, as words: where sweeps are short, coming back to every chain would cost as much."""
        if some == 1:
            return super()._record(run, every, some)
        self._length = every
        self.fit_notes()
        found = list(run(self._record_chain, range(len(self._chains)), [some] * len(self._chains)))
        self._length = 0
        return np.stack([self._unpacked(words) for words in found], axis=1)

    def _record_chain(self, k: int, some: int) -> np.ndarray:
        chain, home = self._chains[k], self._home
        out = np.empty((some, len(home)), np.uint64)
        for row in out:
            self._first[k] = chain.clock[SWEEP]
            while chain.clock[SWEEP] < self._first[k] + self._length:
                self._stretch(k, CHUNK_SECONDS)
            row[:] = chain.bits[home]
        return out

    def notices(self) -> list[Notice]:
        """What the kept sweeps could never have moved."""
        if not self._batches:
            return []
        f = np.stack([batch.f for batch in self._batches])[:, :, : len(self.group.sizes)]
        r = self.relational
        hard = any(is_held(r.theory, places) for places in r.written.places.values())
        slow = slow_notices(self.group, f) if hard and not self._random else []
        return [*stuck_notices(self.group, held(r, self._chains), lambda: solver_of(r)), *slow]

    def report(self) -> dict[str, Any]:
        return {} if self.renamed is None else self.renamed.report()

    # --- folding ---------------------------------------------------------------------------------------------------

    def _harvest(self, length: int) -> Batch:
        f, g, square = (np.stack(part) for part in zip(*(self._batch(c, length) for c in self._chains), strict=True))
        for chain in self._chains:
            clear_sums(chain)
        return Batch(length, f, g, square=square, tally=self._tally())

    def _members(self) -> np.ndarray:
        taken = self._true.copy()
        self._true[...] = 0.0
        return taken

    def _window(self, length: int, whole: bool) -> np.ndarray | None:
        means = [self._batch(chain, length)[0] for chain in self._chains] if whole and self._warm_up.looks else None
        for chain in self._chains:
            clear_sums(chain)
        return None if means is None else np.stack(means)

    def _batch(self, chain: Chain, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One chain's batch means of F, G and F². In the random scan they are means over visits."""
        visits = self.group.sizes * float(length)
        if self._random:
            visits = np.where(chain.sum_f[2, 1:] > 0, chain.sum_f[2, 1:], np.nan)
        f, g = chain.sum_f[1, 1:] / visits, chain.sum_g[1, 1:] / visits
        square = chain.sum_g[2, 1:] / (self.group.sizes.astype(float) ** 2 * length)
        if self._random:
            square = np.maximum(square, f**2)
        f, g, square = with_mirror_images(Means(f, g, square), self.group.mirror, self.group.sizes)
        assert g is not None and square is not None
        seen = chain.seen[:, self.relational.query_places] / length  # queries of one shape stand together in the kernel
        joint = self.asked.joint(seen[1])
        joint_square = self.asked.joint(np.sqrt(seen[2])) ** 2  # at most
        return np.append(f, joint), np.append(g, np.full(len(joint), np.nan)), np.append(square, joint_square)

    def _unfinished(self) -> Draws:
        """One batch of one draw per chain, from the states inside a sweep; joint queries are not known there."""
        if not self.updates:
            return Draws(np.zeros((0, self.plan.chains, len(self._sizes))), None, np.zeros(0, np.int64), self._sizes)
        rows = [np.append(self._orbit_means(chain), np.full(len(self.asked.cells), np.nan)) for chain in self._chains]
        f = np.stack(rows)[None]
        return Draws(f, None, np.ones(1, np.int64), self._sizes, square=f**2, unfinished=True)

    def _orbit_means(self, chain: Chain) -> np.ndarray:
        """F of a state, counted over some atoms of a predicate at a time."""
        counts = np.zeros(len(self.group.sizes))
        for name in self.group.atom_orbits:
            shape = self.group.model.shape(name)
            atoms = self.relational.atoms(chain, name).ravel()
            for first in range(0, atoms.size, ATOMS_AT_ONCE):
                true = first + np.flatnonzero(atoms[first : first + ATOMS_AT_ONCE])
                tuples = np.stack(np.unravel_index(true, shape), 1) if shape else np.zeros((len(true), 0), np.int64)
                orbit = self.group.orbit_numbers(name, tuples)
                counts += np.bincount(orbit[orbit >= 0], minlength=len(counts))
        return with_mirror_images(Means(counts / self.group.sizes), self.group.mirror, self.group.sizes).f

    # --- saving ------------------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, np.ndarray]:
        """Nothing before the starts are made."""
        found = {"first": self._first, "true": self._true} if self._chains else {}
        for k, chain in enumerate(self._chains):
            found |= prefixed(str(k), chain._asdict())
        return found if self.renamed is None else found | prefixed("moves", self.renamed.arrays())

    def restore(self, state: State) -> None:
        self._chains = [blank(self.relational) for _ in range(self.plan.chains)] if "first" in state["chains"] else []
        super().restore(state)


# --- tracked atoms ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Followed:
    """Tracked atoms: atom m is bit `shift[m]` of word `word[m]`, a member of orbit `orbit[m]`."""

    orbit: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    word: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    shift: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))

    def values(self, chain: Chain) -> np.ndarray:
        """uint64[M]: 1 where the atom is true."""
        return (chain.bits[self.word] >> self.shift) & np.uint64(1)


def tracked_atoms(relational: Relational, group: RenamingSymmetries, seed: int) -> Followed:
    """Up to 64 atoms of each orbit that has several (of a large predicate, of those that a random look finds)."""
    rng = np.random.default_rng([seed, 2])
    orbits, words, shifts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    places = list(relational.model.predicates)
    for name in group.atom_orbits if len(group.sizes) else ():
        shape = group.model.shape(name)
        if not shape:
            continue
        total = int(np.prod(shape, dtype=np.int64))
        flat = np.arange(total) if total <= CANDIDATES else np.unique(rng.integers(0, total, CANDIDATES))
        tuples = np.stack(np.unravel_index(flat, shape), axis=1)
        orbit = group.orbit_numbers(name, tuples).astype(np.int64)
        p = places.index(name)
        start = home_offset(relational.written, relational.data, p, shape)
        row, last = flat // shape[-1], tuples[:, -1]
        orbits.append(np.where((orbit >= 0) & (group.sizes[orbit] > 1), orbit, -1))
        words.append(start + row * words_of(shape[-1]) + (last >> 6))
        shifts.append(last & 63)
    orbit = np.concatenate(orbits)
    chosen = pick_members(orbit, rng)
    return Followed(orbit[chosen], np.concatenate(words)[chosen], np.concatenate(shifts)[chosen].astype(np.uint64))
