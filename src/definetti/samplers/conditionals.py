"""The pass behind the test E[F − G] = 0: at states that a sampler emitted, indicators less full conditionals.

For draws from the model each site's indicator less its full conditional has mean 0, whatever sampler made them. The
pass draws nothing and looks at the states from outside: inside a Gibbs sweep the difference would be 0 on average by
construction. It runs on the core of the model, where what hard factors tie together is one site; a site with one
possible value adds nothing. Of a large model some sites of each statistic stand for all: the mean of their differences
is 0 as well, and memory goes into the few factors beside them. `diagnose.balance` makes a test of the sums,
`inference/bias.py` a notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.constraints.graph.contract import Contracted, contract, identity
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph import tables
from definetti.samplers.graph.lanes import slots_of
from definetti.symmetry.graph.group import none

MOST_HARD = 20_000  # hard factors: with more, variables that they tie together are looked at one by one
MOST_PAIRS = 1 << 20  # of a variable and a factor: with more, not all sites are looked at,
SOME_SITES = 256  # but so many of each statistic
MASK_BITS = 64
BATCHES = 64  # of looks; with so many they are merged in pairs
MANY_CHAINS, FEW_BATCHES = 32, 2  # then the spread between chains gives the errors
MOST_KEPT = 1 << 26  # bytes of batches
TOGETHER = 16  # states of one chain that are looked at together


@dataclass(frozen=True, eq=False)
class Balance:
    """Indicators less full conditionals at emitted states, per statistic: means over batches of looks. The last column
    scores all sites together."""

    differences: np.ndarray  # float64[B, C, K + 1]
    looks: np.ndarray  # int64[B]: states of each chain
    variance: np.ndarray  # float64[K + 1]: of the mean over all looks and chains, if sites and looks were independent
    step: np.ndarray  # float64[K + 1]: what one site at one look adds to the mean


@dataclass(frozen=True, eq=False)
class ConditionalPass:
    """A core compiled for the pass, and where each of its literals is counted."""

    model: Any  # kernels.tables.Tables
    places: Any  # kernels.conditionals.Places
    sources: Any  # kernels.conditionals.Sources; None: the core has the variables of the model
    variables: int  # of the core
    sizes: np.ndarray  # float64[K + 1]: of the statistics; of all sites
    heaviest: np.ndarray  # float64[K + 1]: how many literals of a statistic are one of a site's values, at most

    def add(self, state: np.ndarray, score: np.ndarray, spread: np.ndarray) -> None:
        """Adds what state[variable, lane], in bytes, says to score and spread[K + 1, lane]."""
        from definetti.samplers.kernels.graph import conditionals as kernels

        lanes = state.shape[1]
        if self.sources is not None:
            carried = np.empty((self.variables, lanes), np.uint8)
            kernels.carry_values(self.sources, state, carried)
            state = carried
        widest = -(-int(self.model.card.max(initial=1)) // 4) * 4
        place, product = np.zeros((kernels.PAIRS, lanes), np.int32), np.zeros((widest, lanes))
        kernels.add_differences(self.model, self.places, state, place, product, score, spread)


def conditional_pass(model: FactorGraph, statistic_of: np.ndarray, sizes: np.ndarray) -> ConditionalPass:
    """For states of `model`; `statistic_of` each literal, -1 for none, and how many literals a statistic has."""
    from definetti.samplers.kernels.graph import conditionals as kernels

    untied, looked = _contracted(model), np.ones(model.n, dtype=bool)
    if untied is None:
        looked = _looked_at(model, statistic_of)
        simple = simplify(_beside(model, looked))
        untied = Contracted(simple, simple, identity(simple))
    if not looked.all():
        statistic_of = np.where(looked[model.variable_of], statistic_of, -1)
        sizes = np.maximum(np.bincount(statistic_of[statistic_of >= 0], minlength=len(sizes)), 1)
    core = untied.core
    sites = core.free[looked[core.free]] if core is untied.model else core.free
    literal, place = _literals(untied, statistic_of)
    pairs, weight = np.unique(literal * len(sizes) + place, return_counts=True)
    literal, place = np.divmod(pairs, max(len(sizes), 1))
    literals = int(core.literal_start[-1])
    places = kernels.Places(
        site=sites.astype(np.int32),
        literal=np.ascontiguousarray(core.literal_start),
        start=np.searchsorted(literal, np.arange(literals + 1)).astype(np.int64),
        place=place.astype(np.int64),
        weight=weight.astype(np.float64),
    )
    compiled = tables.build(core, slots_of(core, none(core).row_of)).model
    sources = None if core is untied.model else _sources(untied)
    heaviest = np.ones(len(sizes) + 1)
    np.maximum.at(heaviest, place, weight)
    sizes = np.append(sizes, max(len(sites), 1)).astype(float)
    return ConditionalPass(compiled, places, sources, core.n, sizes, heaviest)


def _contracted(model: FactorGraph) -> Contracted | None:
    """The core, where a state determines its values; None where variables are looked at one by one."""
    if not 0 < len(model.hard_factors) <= MOST_HARD:
        return None
    untied = contract(model)
    wide = np.flatnonzero(untied.core.cards > MASK_BITS)
    same = [len(m) <= MASK_BITS or (m == np.arange(len(m))).all() for m in untied.links.maps]
    return untied if not len(wide) or all(same) else None


def _looked_at(model: FactorGraph, statistic_of: np.ndarray) -> np.ndarray:
    """bool[n]: the variables whose values are compared with conditionals, the same ones in every run."""
    if len(model.scope) <= MOST_PAIRS:
        return np.ones(model.n, dtype=bool)
    literal = np.random.default_rng(1).permutation(np.flatnonzero(statistic_of >= 0))
    literal = literal[np.argsort(statistic_of[literal], kind="stable")]
    statistic = statistic_of[literal]
    some = np.arange(len(literal)) - np.searchsorted(statistic, statistic) < SOME_SITES
    looked = np.zeros(model.n, dtype=bool)
    looked[model.variable_of[literal[some]]] = True
    return looked


def _beside(model: FactorGraph, looked: np.ndarray) -> FactorGraph:
    """The model without the factors that say nothing about these variables."""
    kept = np.bincount(model.owner_of, weights=looked[model.scope], minlength=model.factor_count) > 0
    if kept.all():
        return model
    return replace(
        model,
        scope_start=frozen(np.concatenate([[0], np.cumsum(model.arity[kept])]), np.int64),
        scope=frozen(model.scope[np.repeat(kept, model.arity)], np.int32),
        table_of=frozen(model.table_of[kept], np.int32),
    )


def _literals(untied: Contracted, statistic_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which literal of the core says that a free variable of the model has a value, and the statistic of that."""
    model, core, links = untied.model, untied.core, untied.links
    found, stats = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number in np.unique(links.map_of[model.free]).tolist():
        function = links.maps[number]
        mine = model.free[links.map_of[model.free] == number]
        literal = core.literal_start[links.parent[mine]][:, None] + np.arange(len(function))
        statistic = statistic_of[model.literal_start[mine][:, None] + function]
        keep = (statistic >= 0) & (core.evidence[links.parent[mine]] < 0)[:, None]
        found.append(literal[keep])
        stats.append(statistic[keep])
    return np.concatenate(found), np.concatenate(stats)


def _sources(untied: Contracted) -> Any:
    """How values of the core follow from those of the model."""
    from definetti.samplers.kernels.graph import conditionals as kernels

    core, links, members = untied.core, untied.links, [[] for _ in range(untied.core.n)]
    for i, parent in enumerate(links.parent.tolist()):
        members[parent].append(i)
    start, variable, first, masks, offset = [0], [], [], [], {}
    for p, mine in enumerate(members):
        card = int(core.cards[p])
        for i in _enough(links, mine, card) if core.evidence[p] < 0 else []:
            number = int(links.map_of[i])
            if number not in offset:
                offset[number] = -1 if _is_same(links.maps[number]) else len(masks)
                masks += [] if offset[number] < 0 else _masks(links.maps[number], int(untied.model.cards[i]))
            variable.append(i)
            first.append(offset[number])
        start.append(len(variable))
    places = [np.array(part, np.int64) for part in (start, variable, first)]
    return kernels.Sources(places[0], places[1], places[2], np.array(masks, np.uint64))


def _is_same(function: np.ndarray) -> bool:
    return bool((function == np.arange(len(function))).all())


def _enough(links: Any, members: Sequence[int], card: int) -> list[int]:
    """Members whose values tell the values of their parent apart; one of the same values, where there is one."""
    for i in members:
        if _is_same(links.function(i)):
            return [i]
    classes, taken = np.zeros(card, np.int64), []
    for i in members:
        finer = np.unique(np.stack([classes, links.function(i)]), axis=1, return_inverse=True)[1].ravel()
        if finer.max() > classes.max():
            classes = finer
            taken.append(i)
    return taken


def _masks(function: np.ndarray, values: int) -> list[int]:
    return [sum(1 << int(c) for c in np.flatnonzero(function == v)) for v in range(values)]


# --- looks in batches ------------------------------------------------------------------------------------------------


class Looks:
    """Sums of a pass over the states of some chains, in batches. It changes in place."""

    def __init__(self, check: ConditionalPass, lanes: int, chains: int, together: int = 1) -> None:
        """`lanes` chains of `chains` in all; `together`: states of a chain at one look."""
        self._check, columns = check, len(check.sizes)
        most = BATCHES if chains < MANY_CHAINS else FEW_BATCHES
        self._score = np.zeros((max(FEW_BATCHES, min(most, MOST_KEPT // (8 * columns * chains))), columns, lanes))
        self._spread = np.zeros((columns, lanes))
        self._looks = np.zeros(len(self._score), np.int64)
        self._length = np.array(together)  # of a batch, in states

    def load(self, state: np.ndarray) -> None:
        """Compiles the pass, or loads it."""
        nothing = np.zeros((len(self._spread), state.shape[1]))
        self._check.add(state & np.uint8(0), nothing, nothing.copy())

    def look(self, state: np.ndarray) -> None:
        """At state[variable, lane], in bytes."""
        batch = self._batch()
        self._check.add(state, self._score[batch], self._spread)
        self._looks[batch] += 1

    def look_together(self, states: np.ndarray) -> None:
        """At several states of one chain, states[variable, k]."""
        batch, columns, count = self._batch(), len(self._spread), states.shape[1]
        score, spread = np.zeros((columns, count)), np.zeros((columns, count))
        self._check.add(states, score, spread)
        self._score[batch, :, 0] += score.sum(axis=1)
        self._spread[:, 0] += spread.sum(axis=1)
        self._looks[batch] += count

    def _batch(self) -> int:
        """The batch under way; when all are full they are merged in pairs."""
        full = self._looks >= self._length
        if full.all():
            half = len(full) // 2
            for array in (self._score, self._looks):
                array[:half] = array[0 : 2 * half : 2] + array[1 : 2 * half : 2]
                if len(full) % 2:
                    array[half - 1] += array[-1]
                array[half:] = 0
            self._length *= 2
            full = self._looks >= self._length
        return int(np.argmin(full))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"score": self._score, "spread": self._spread, "looks": self._looks, "length": self._length}


class ChainLooks(Looks):
    """The same of one chain, several states of which are looked at together."""

    def __init__(self, check: ConditionalPass, variables: int, chains: int) -> None:
        super().__init__(check, 1, chains, TOGETHER)
        self._states, self._held = np.zeros((variables, TOGETHER), np.uint8), np.array(0)

    def hold(self, x: np.ndarray) -> None:
        self._states[:, int(self._held)] = x
        self._held += 1
        if self._held == TOGETHER:
            self.look_together(self._states)
            self._held[...] = 0

    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays() | {"states": self._states, "held": self._held}


def balance_of(parts: Sequence[Looks]) -> Balance | None:
    """What all chains of a run, looked at equally often, have gathered; None if nothing was looked at."""
    looks = parts[0]._looks if parts else np.zeros(0, np.int64)
    used = int((looks > 0).sum())
    if not used:
        return None
    score = np.concatenate([part._score[:used] for part in parts], axis=2)
    spread = np.concatenate([part._spread for part in parts], axis=1).sum(axis=1)
    looks = looks[:used].copy()
    if used > 1 and 2 * looks[-1] < looks[0]:  # one that has just begun joins its neighbour
        score[-2] += score[-1]
        looks[-2] += looks[-1]
        score, looks = score[:-1], looks[:-1]
    sizes, heaviest = parts[0]._check.sizes, parts[0]._check.heaviest
    states = looks.sum() * score.shape[2]
    differences = score.transpose(0, 2, 1) / (sizes * looks[:, None, None])
    return Balance(differences, looks, spread / (sizes * states) ** 2, heaviest / (sizes * states))


def balance_of_states(check: ConditionalPass, states: np.ndarray) -> Balance | None:
    """Of states[chains, draws, n] that another program drew."""
    chains, draws, _ = states.shape
    pieces, parts = min(draws, 4 * BATCHES), []
    for chain in states:
        looks = Looks(check, 1, chains, draws // pieces)
        for some in np.array_split(chain, pieces):
            looks.look_together(np.ascontiguousarray(some.T.astype(np.uint8)))
        parts.append(looks)
    return balance_of(parts)
