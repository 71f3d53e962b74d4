"""Chains on a Markov logic network that look for modes (`modes/walkers.py`). States are lists of bit tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.groups import random_elements
from definetti.modes.logic.ascents import ascents
from definetti.modes.logic.patterns import (
    mixed_atoms,
    named_states,
    orbit_patterns,
    predicate_patterns,
    value_patterns,
)
from definetti.modes.logic.sweeps import Sweeps, sparse_ways
from definetti.modes.walkers import WAYS, Advanced, Key, Paths, Walk, unfollowed, window_means
from definetti.samplers.ascents import best_and_others
from definetti.samplers.codegen.expressions import Literal
from definetti.samplers.draws import Batch, Draws, draws_of
from definetti.samplers.logic.engine import (
    FOREVER,
    Relational,
    advance,
    blank,
    compile_model,
    refuse_model,
    repair,
    violations,
    words_of_sweep,
)
from definetti.samplers.logic.levels import (
    COUNTS,
    MODEL,
    SOFT,
    Level,
    at_level,
    backwards,
    between,
    log_product,
    look,
    recount,
    single_weights,
    violated,
)
from definetti.samplers.logic.mirrored import with_mirrored_means
from definetti.samplers.logic.orbital import Renamings, relabelled_atoms
from definetti.samplers.logic.queries import Asked, satisfied
from definetti.samplers.logic.starts import drawn, put, solved
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.logic.tensors.known_bits import pack, unpack
from definetti.samplers.logic.tensors.state import Start, clear_sums, seed_chain
from definetti.samplers.logic.tensors.tied_sites import spread
from definetti.samplers.sparse.schedule import following

if TYPE_CHECKING:
    from definetti.modes.logic.sparse_walkers import SparseWalkers

LEAST = 1e-9  # probability in a product
MOST_ORBITS = 20_000
MOST_SITES = 1_600_000  # more are not swept over often enough for a survey
MOST_STATISTICS = 400  # more are seen through random projections
PROJECTIONS = 96
GREEDY, GREEDY_SWEEPS, CLIMBED = 1000.0, 4, 128  # the level of ascents, their sweeps, and how many of one kind
MOST_CLIMBED = 1 << 24  # updates of all of these: fewer ascents of large theories
DRAWN = 2  # starts of each kind that are drawn at random
LONG = 20_000  # sites: a sweep is worth a thread
MOST_NAMED = 200_000  # sites of a model whose formulas are solved for
WORDS = 100  # evaluated in the time of a simple update

Bits = list[np.ndarray]  # of each chain


def logic_walkers(asked: Asked, scan: str = "symmetric") -> LogicWalkers | SparseWalkers | None:
    """None where there are too many orbits, nothing to draw, or too much that is not swept at the cost of what is
    true."""
    group = asked.group
    if not 0 < len(group.sizes) <= MOST_ORBITS:
        return None
    if group.model.knowledge.free_total > MOST_SITES:
        from definetti.modes.logic.sparse_walkers import sparse_walkers

        return sparse_walkers(asked, scan)
    refuse_model(group.model, chains=1)
    relational = compile_model(
        group.model, group.atom_orbits, queries=asked.counted, late=asked.late(), source=group.source
    )
    return LogicWalkers(relational, asked, scan) if relational.free_sites else None


class LogicWalkers:
    weighs = True

    def __init__(self, relational: Relational, asked: Asked, scan: str) -> None:
        # hard literals fix their atoms, and leave the other states in one piece
        self.hard = any(s.hard and not isinstance(s.body, Literal) for s in relational.theory.shapes)
        self._sparse = sparse_ways(asked, relational.free_sites, scan)
        if self._sparse is not None:
            relational = following(self._sparse[0], relational)
        self.relational, self.asked, self.group = relational, asked, asked.group
        self.sites, self.mirrored = relational.free_sites, bool((self.group.mirror >= 0).any())
        self.work = max(self.sites, int(words_of_sweep(relational)) // WORDS)
        self._sizes, self.singles = self.group.sizes.astype(float), len(self.group.sizes)
        first = [cell.places[0] if cell.places else -1 for cell in asked.cells]
        places = [(first.index(k), asked.cells[first.index(k)].size) for k in asked.series]
        self.counted: Sequence[tuple[int, int]] = [(self.singles + place, size) for place, size in places]
        order = self.group.order
        self.log_copies = float("inf") if order is None else float(np.log(float(order))) if order < 1 << 1000 else 700.0
        self.log_constant = 0.0
        self._blocks = self._exclusive_orbits()
        # a sweep and its reverse, with the tally followed
        self._ways = tuple(at_level(r, MODEL) for r in (relational, backwards(relational)))
        self._weights = np.zeros(len(relational.theory.shapes))
        for shape, weight in single_weights(relational).items():
            self._weights[shape] = weight
        self._soft = np.array([not s.hard for s in relational.theory.shapes], dtype=bool)

    def _density(self, chain: Chain) -> float:
        """As `levels.log_density`, the weights looked up once."""
        return float(chain.tally[SOFT] + self._weights @ chain.tally[COUNTS:])

    def _exclusive_orbits(self) -> np.ndarray:
        """bool[orbits]: those of the values of exactly-one blocks."""
        out = np.zeros(len(self._sizes), dtype=bool)
        for name in self.group.atom_orbits:
            if self.group.model.predicates[name].exclusive:
                numbers = np.asarray(self.group.atom_orbits[name].lookup).ravel()
                out[numbers[numbers >= 0]] = True
        return out

    # --- states ------------------------------------------------------------------------------------------------------

    def count(self, states: Bits) -> int:
        return len(states)

    def take(self, states: Bits, chains: Sequence[int] | np.ndarray) -> Bits:
        return [states[int(c)] for c in chains]

    def join(self, parts: Sequence[Bits]) -> Bits:
        return [bits for part in parts for bits in part]

    def as_starts(self, states: Bits, chains: int) -> list[Start]:
        r = self.relational
        return [Start(r.written, r.data, r.model, states[c % len(states)]) for c in range(chains)]

    def draws(self, batches: Sequence[Batch], chains: int) -> Draws:
        """Of chains in one region. Averages over symmetries that negate atoms are those of the whole model, which the
        regions make up: so they are taken in each."""
        joint = [with_mirrored_means(batch, self.group.mirror, self.group.sizes) for batch in batches]
        return draws_of(joint, self.asked.sizes, chains, 0)

    def starts(self, key: Key, most: int, climbs: int) -> Bits:
        """Drawn from the formulas on single atoms and uniformly; all false, all true; greedy ascents from the drawn
        ones; states that formulas describe (`patterns.py`), the rest being drawn; ends of ascents on the ground model,
        which take what room there is, or a quarter."""
        r, rng = self.relational, np.random.default_rng([*key, 1])
        wishes: list[dict[str, np.ndarray]] = [drawn(r, rng, None, None) for _ in range(DRAWN)]
        wishes += [self._uniform(rng) for _ in range(DRAWN)]
        wishes += [drawn(r, rng, value, None) for value in (False, True)]
        made = [self._legal(wish, key, k) for k, wish in enumerate(wishes)]
        climbed = self._climbed(made[: 2 * DRAWN], key)
        made += climbed[1::DRAWN]
        turns = self._turns(rng)
        for k, turn in enumerate(turns[: max(0, most - len(made))]):
            wish = drawn(r, rng, None, None)
            for name, value in turn.items():
                wish[name] = self._wished(name, np.broadcast_to(value, r.model.shape(name)), wish[name])
            made.append(self._legal(wish, key, 100 + k))
        made += climbed[::DRAWN]
        room = max(most - len(made), most // 4)
        ends = []
        for k, atoms in enumerate(ascents(self.group, (*key, 16), room, climbs)):
            words = {name: pack(np.ascontiguousarray(some)) for name, some in atoms.items()}
            ends.append(self._legal(drawn(r, rng, None, None) | words, key, 200 + k))
        ends = ends or self._coarse_ascents((*key, 17), room, climbs)
        return self._moved(made[: most - len(ends)] + ends, key)

    def _coarse_ascents(self, key: Key, wanted: int, climbs: int) -> Bits:
        """Ends of ascents from states in which each predicate, or each orbit of atoms, is wholly true or false at
        random: a theory whose ground model is too large to be climbed has its modes in combinations of these. Of the
        ends that differ the best, and some others."""
        rng = np.random.default_rng([*key, 1])
        tries = min(CLIMBED, climbs // GREEDY_SWEEPS, MOST_CLIMBED // (GREEDY_SWEEPS * self.relational.free_sites))
        wishes = [self._coarse(rng, by_orbit=k % 2 == 1) for k in range(tries)]
        ends = self._climbed([self._legal(wish, key, k) for k, wish in enumerate(wishes)], key)
        if not ends:
            return []
        chains = [self._chain(key, k, bits) for k, bits in enumerate(ends)]
        for chain in chains:
            recount(self._ways[0], chain)
        return self.take(ends, best_and_others(np.stack([self._of(chain) for chain in chains]), wanted, rng))

    def _coarse(self, rng: np.random.Generator, by_orbit: bool) -> dict[str, np.ndarray]:
        """One value for all atoms of a predicate or of an orbit; in exactly-one blocks the values in a random order of
        preference."""
        r, out = self.relational, drawn(self.relational, rng, None, None)
        for name, predicate in r.model.predicates.items():
            if not r.known[name].free:
                continue
            shape, places = r.model.shape(name), predicate.exclusive
            number = self.group.orbit_grid(name) if by_orbit else np.zeros(shape, dtype=int)
            if places and not by_orbit:
                number = np.ravel_multi_index([np.indices(shape)[p] for p in places], [shape[p] for p in places])
            liking = rng.random(int(number.max(initial=0)) + 1)[number]
            wished = liking == liking.max(axis=places, keepdims=True) if places else liking < 0.5
            out[name] = self._wished(name, wished, out[name])
        return out

    def images(self, states: Bits, key: Key) -> Bits:
        return self._moved(states, key)

    def _moved(self, states: Bits, key: Key) -> Bits:
        """Each state moved by a random element of the group: predicates relabelled, constants renamed."""
        if self.group.order == 1:
            return states
        r, theory, out = self.relational, self.group.theory, []
        renamings, rng = Renamings(self.group, key[0]), np.random.default_rng([*key, 15])
        elements = None if theory is None else random_elements(theory.group, rng)
        for k, bits in enumerate(states):
            chain, element = self._chain(key, k, bits), renamings.draw(k, 0)
            atoms = {name: r.atoms(chain, name) for name in r.model.predicates}
            known = {name: atoms[name] for name in self.group.model.predicates}  # the compiled model may know more
            if theory is not None and elements is not None:
                known = relabelled_atoms(renamings, theory.symmetry(next(elements)), known)
            for name, tensor in known.items():
                atoms[name] = renamings.apply(element, name, tensor)
            put(r, chain, {name: pack(np.ascontiguousarray(x)) for name, x in atoms.items()})
            out.append(chain.bits.copy())
        return out

    def _uniform(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        r, out = self.relational, drawn(self.relational, rng, None, None)
        for name in r.model.predicates:
            if r.known[name].free and not r.model.predicates[name].exclusive:
                shape = r.model.shape(name)
                out[name] = self._where_free(name, pack(rng.random(shape) < 0.5), out[name])
        return out

    def _turns(self, rng: np.random.Generator) -> list[Mapping[str, Any]]:
        """Values of whole predicates, or of each of their atoms, that starts are to have."""
        r = self.relational
        free = [name for name in r.model.predicates if r.known[name].free]
        plain = [name for name in free if not r.model.predicates[name].exclusive]
        few = self.sites <= MOST_NAMED
        named = named_states(r.model, lambda: self._uniform_atoms(rng)) if few else []
        of_orbits = orbit_patterns(self.group, plain) if few else []
        return [*named, *value_patterns(r.model, free), *of_orbits, *predicate_patterns(r.model, plain)]

    def _uniform_atoms(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {name: rng.random(self.relational.model.shape(name)) < 0.5 for name in self.relational.model.predicates}

    def _wished(self, name: str, wished: np.ndarray, words: np.ndarray) -> np.ndarray:
        """What is wished where nothing is known; blocks that would not have one value are as they were."""
        made, places = self._where_free(name, pack(wished), words), self.relational.model.predicates[name].exclusive
        if not places:
            return made
        new, old = (unpack(part, self.relational.model.shape(name)) for part in (made, words))
        return pack(np.where(new.sum(axis=places, keepdims=True) == 1, new, old))

    def _where_free(self, name: str, wished: np.ndarray, words: np.ndarray) -> np.ndarray:
        mask = self.relational.known[name].mask
        return wished if mask is None else (wished & ~mask) | (words & mask)

    def _legal(self, wish: dict[str, np.ndarray], key: Key, number: int) -> np.ndarray:
        """The bits of a legal state near a wished one."""
        r, chain = self.relational, self._chain(key, number)
        words = spread(r.model, r.tied, wish)
        put(r, chain, words)
        if violations(r, chain) and not repair(r, chain):
            put(r, chain, solved(r, words))
        return chain.bits.copy()

    def _climbed(self, states: Bits, key: Key) -> Bits:
        steep, out = at_level(self.relational, Level(GREEDY)), []
        for k, bits in enumerate(states):
            chain = self._chain((*key, 2), k, bits)
            advance(steep, chain, FOREVER, GREEDY_SWEEPS)
            out.append(chain.bits.copy())
        return out

    def hybrids(self, a: Bits, b: Bits, key: Key, ways: Sequence[int] = WAYS) -> Bits:
        r, rng, out = self.relational, np.random.default_rng([*key, 4]), []
        for k, bits in enumerate(a):
            chains = self._chain(key, k, bits), self._chain(key, k, b[k % len(b)])
            first, second = ({name: r.atoms(chain, name) for name in r.model.predicates} for chain in chains)
            mixed = mixed_atoms(r.model, self.group, ways[k % len(ways)], first, second, rng)
            out.append(self._legal({name: pack(np.ascontiguousarray(m)) for name, m in mixed.items()}, key, k))
        return out

    def corners(self, base: Bits, a: Bits, b: Bits, key: Key) -> Bits:
        r, out = self.relational, []
        for k, bits in enumerate(zip(base, a, b, strict=True)):
            chains = [self._chain(key, k, some) for some in bits]
            known, first, second = ({name: r.atoms(c, name) for name in r.model.predicates} for c in chains)
            mixed = {name: np.where(second[name] != known[name], second[name], first[name]) for name in known}
            out.append(self._legal({name: pack(np.ascontiguousarray(m)) for name, m in mixed.items()}, key, k))
        return out

    # --- advancing ---------------------------------------------------------------------------------------------------

    def _chain(self, key: Key, number: int, bits: np.ndarray | None = None) -> Chain:
        chain = blank(self.relational)
        words = np.random.SeedSequence(key).generate_state(2, np.uint64)
        seed_chain(chain, int(words[0]) << 64 | int(words[1]), number)
        if bits is not None:
            chain.bits[:] = bits
        return chain

    def _each(self, work: Callable[[int], Any], count: int) -> Iterable[Any]:
        """Chain by chain, in threads where sweeps are long."""
        if self.sites < LONG:
            return [work(c) for c in range(count)]
        with ThreadPoolExecutor(min(count, os.cpu_count() or 1)) as pool:
            return list(pool.map(work, range(count)))

    def walk(
        self, states: Bits, sweeps: int, key: Key, product: np.ndarray | None = None, keep: Sequence[int] = ()
    ) -> Walk:
        flips = np.random.default_rng([*key, 7]).integers(0, 2, sweeps)

        def one(c: int) -> tuple[list[tuple[Any, ...]], dict[int, np.ndarray], np.ndarray]:
            chain, rows, kept = self._chain(key, c, states[c]), [], {}
            swept = Sweeps(self._ways, chain, self._sparse)
            for s in range(sweeps):
                clear_sums(chain)
                swept.make(flips[s])
                rows.append(self._row(chain, product))
                if s + 1 in keep:
                    kept[s + 1] = chain.bits.copy()
            return rows, kept, chain.bits.copy()

        found = list(self._each(one, len(states)))
        f, g, features, fields, density, ratio, diverged = (
            np.stack([np.stack([row[k] for row in rows]) for rows, _, _ in found], axis=1) for k in range(7)
        )
        kept = {s: [part[1][s] for part in found] for s in keep}
        total = (g[:, :, : len(self._sizes)] * self._sizes).sum(axis=0)
        windows = unfollowed() if self._directions is None else window_means(g[:, :, : len(self._sizes)])
        return Walk(
            [part[2] for part in found], f.mean(axis=0), features, fields, density, ratio, diverged, total, kept,
            windows,
        )  # fmt: skip

    def _row(self, chain: Chain, product: np.ndarray | None) -> tuple[Any, ...]:
        """What `Walk` records after a sweep."""
        joint = self.asked.joint(chain.seen[1, self.relational.query_places])
        f, g = chain.sum_f[1, 1:] / self._sizes, chain.sum_g[1, 1:] / self._sizes
        density = self._density(chain)
        features = self._features(f, chain, density)
        ratio = diverged = 0.0
        if product is not None:
            seen = look(self.relational, chain, product)
            ratio, diverged = density - seen.log_product, seen.divergence
        unknown = np.full(len(joint), np.nan)
        return (np.append(f, joint), np.append(g, unknown), features, self.seen(g), density, ratio, diverged)

    def _features(self, f: np.ndarray, chain: Chain, density: float) -> np.ndarray:
        return np.concatenate([self.seen(f), chain.tally[COUNTS:][self._soft], [density]])

    @cached_property
    def _directions(self) -> np.ndarray | None:
        if len(self._sizes) <= MOST_STATISTICS:
            return None
        scale = np.sqrt(self._sizes / self._sizes.sum())
        return np.random.default_rng(0).normal(size=(PROJECTIONS, len(self._sizes))) * scale

    def seen(self, means: np.ndarray) -> np.ndarray:
        return means if self._directions is None else self._directions @ means

    def advance(self, states: Bits, sweeps: int, key: Key) -> Advanced:
        flips = np.random.default_rng([*key, 13]).integers(0, 2, sweeps)
        early = flips[:-1]
        runs = np.split(early, np.flatnonzero(np.diff(early)) + 1) if len(early) else []
        kept = self.relational.query_places[list(self.asked.series)]

        def one(c: int) -> tuple[np.ndarray, ...]:
            chain = self._chain(key, c, states[c])
            swept = Sweeps(self._ways, chain, self._sparse)
            counts = np.zeros((sweeps, len(kept)))
            for s, flip in enumerate(early if len(kept) else ()):
                swept.make(flip)
                counts[s] = chain.seen[0, kept]
            for run in () if len(kept) else runs:
                swept.make(run[0], len(run))
            before = chain.seen[1, self.relational.query_places].copy()
            swept.make(flips[-1])
            counts[-1] = chain.seen[0, kept]
            f, g = (part[1, 1:] / (self._sizes * sweeps) for part in (chain.sum_f, chain.sum_g))
            square = chain.sum_g[2, 1:] / (self._sizes**2 * sweeps)
            seen = chain.seen[:, self.relational.query_places]
            joint = self.asked.joint(seen[1] / sweeps)
            joint_square = self.asked.joint(np.sqrt(seen[2] / sweeps)) ** 2
            last = np.append(self._last(chain)[: len(f)], self.asked.joint(seen[1] - before))
            features = self._features(last[: len(f)], chain, self._density(chain))
            return (
                chain.bits.copy(), np.append(f, joint), np.append(g, np.full(len(joint), np.nan)), last,
                np.append(square, joint_square), features, counts,
            )  # fmt: skip

        found = list(self._each(one, len(states)))
        f, g, last, square, features = (np.stack([part[k] for part in found]) for k in range(1, 6))
        noted = np.stack([part[6] for part in found], axis=1) if len(kept) else None
        return Advanced([part[0] for part in found], f, g, last, square, features, noted)

    def _last(self, chain: Chain) -> np.ndarray:
        """F of a chain's state, without joint formulas."""
        return look(self.relational, chain).f / self._sizes

    def statistics_of(self, states: Bits) -> np.ndarray:
        chains = [self._chain((0,), 0, bits) for bits in states]
        return np.stack([np.append(self._last(chain), self.asked.joint(self._joint(chain))) for chain in chains])

    def _joint(self, chain: Chain) -> np.ndarray:
        """How many tuples satisfy each counted formula in a chain's state."""
        atoms = {name: self.relational.atoms(chain, name) for name in self.group.model.predicates}
        counted = self.asked.counted
        return np.array([satisfied(query, lambda atom, at: atoms[atom.predicate][at]) for query in counted], float)

    # --- products ----------------------------------------------------------------------------------------------------

    def product(self, parts: Sequence[tuple[Walk, np.ndarray]]) -> np.ndarray:
        """float64[orbits]: log odds; log weights of the values of exactly-one blocks."""
        sweeps = sum(len(walk.log_density) * int(chains.sum()) for walk, chains in parts)
        mean = np.sum([walk.sites[chains].sum(axis=0) for walk, chains in parts], axis=0) / (self._sizes * sweeps)
        mean = np.clip(mean, LEAST, 1.0 - LEAST)
        return np.where(self._blocks, np.log(mean), np.log(mean) - np.log1p(-mean))

    def entropy(self, conditionals: np.ndarray) -> float:
        p = np.clip(conditionals, LEAST, 1.0 - LEAST)
        other = np.where(self._blocks, 0.0, (1.0 - p) * np.log1p(-p))
        return float(-self._sizes @ (p * np.log(p) + other))

    def site_product(self, state: Bits, sweeps: int, key: Key) -> None:
        return None

    def draw(self, product: np.ndarray, count: int, key: Key) -> Bits:
        level, out = at_level(self.relational, between(0.0, product)), []
        for c in range(count):
            chain = self._chain((*key, 8), c, self._any)
            advance(level, chain, FOREVER, 1)
            out.append(chain.bits.copy())
        return out

    @cached_property
    def _any(self) -> np.ndarray:
        """Some state, with what is known in it."""
        return self._legal(drawn(self.relational, np.random.default_rng(0), None, None), (0,), 0)

    def paths(self, states: Bits, product: np.ndarray, levels: np.ndarray, upwards: bool, key: Key) -> Paths:
        steps = len(levels) - 1
        base = self.relational if upwards else backwards(self.relational)
        softer = [at_level(base, between(float(t), product)) for t in levels[:-1]]

        def one(c: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            chain = self._chain((*key, 9), c, states[c])
            recount(softer[0], chain)
            ratio, broken = np.zeros(steps), np.zeros(steps, np.int64)
            features = None if upwards else self._of(chain)
            for step in range(steps):
                row = step if upwards else steps - 1 - step
                ratio[row] = self._density(chain) - log_product(chain)
                broken[row] = violated(chain)
                if step < steps - 1:
                    advance(softer[step + 1 if upwards else steps - 1 - step], chain, FOREVER, 1)
            return ratio, broken, self._of(chain) if features is None else features

        found = list(self._each(one, len(states)))
        ratio, broken, features = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
        return Paths(ratio, broken, features.T)

    def arrived(self, sampling: Any) -> tuple[np.ndarray, np.ndarray]:
        density, f = sampling.arrivals()
        seen = self.seen(f.T).T
        rows = np.concatenate([seen, density[:, None]], axis=1)
        return rows, np.append(np.arange(seen.shape[1]), seen.shape[1] + int(self._soft.sum()))

    def _of(self, chain: Chain) -> np.ndarray:
        """Features of a state whose tally is kept; also of one that violates hard formulas."""
        f = self._counted(chain)
        return self._features(f, chain, self._density(chain))

    def _counted(self, chain: Chain) -> np.ndarray:
        if not self.hard:
            return look(self.relational, chain).f / self._sizes
        counts = np.zeros(len(self._sizes))
        for name in self.group.atom_orbits:
            atoms = self.relational.atoms(chain, name)
            tuples = np.stack(np.nonzero(atoms), axis=1) if atoms.ndim else np.zeros((int(atoms), 0), np.int64)
            orbit = self.group.orbit_numbers(name, tuples)
            counts += np.bincount(orbit[orbit >= 0], minlength=len(counts))
        return counts / self._sizes
