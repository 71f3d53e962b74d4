"""A legal state by search: variables with fewest possible values first, every choice carried through the hard factors.

Where repair by single moves gets lost (a two-colouring has one solution and its mirror), propagation does not. Ties are
broken at random, so that the law of a start stays the same under the group.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.factors import FactorGraph
from definetti.model.possible import possible_literals

FIRST_FAILURES = 50  # dead ends before a descent starts afresh; half as many again each time
RESTARTS = 20


class Search:
    """Backtracking with generalised arc consistency; a domain is an integer whose bits are the possible values."""

    def __init__(self, model: FactorGraph, hard: np.ndarray) -> None:
        self.model = model
        self.scope = [model.variables(int(k)).tolist() for k in hard]
        entries: dict[int, list[tuple[int, ...]]] = {}
        for k, t in zip(hard.tolist(), model.table_of[hard].tolist(), strict=True):
            if t not in entries:
                entries[t] = [tuple(row) for row in np.argwhere(np.isfinite(model.table(k))).tolist()]
        self.allowed = [entries[t] for t in model.table_of[hard].tolist()]
        self.touching: dict[int, list[int]] = {}
        for k, scope in enumerate(self.scope):
            for i in scope:
                self.touching.setdefault(i, []).append(k)
        possible = possible_literals(model)
        start = model.literal_start
        self.root = {
            i: sum(1 << v for v in range(int(model.cards[i])) if possible[start[i] + v]) for i in self.touching
        }

    def __call__(self, state: np.ndarray, rng: np.random.Generator) -> None:
        """Give a state legal values, its own where they will do; `Unsatisfiable` where none are found."""
        blame = dict.fromkeys(self.root, 0)  # dead ends that a variable took part in: it is decided earlier next time
        for restart in range(RESTARTS):
            found = self._descend(state, blame, int(FIRST_FAILURES * 1.5**restart), rng)
            if found is not None:
                for i, domain in found.items():
                    state[i] = domain.bit_length() - 1
                return
        raise Unsatisfiable(
            "no state of positive probability was found, by repair or by search. "
            "The model or its evidence may contradict itself"
        )

    def _descend(
        self, wish: np.ndarray, blame: dict[int, int], failures: int, rng: np.random.Generator
    ) -> dict[int, int] | None:
        """Domains of one value each, or None after too many dead ends; `Unsatisfiable` if there are no further ways."""
        domains, trail, choices = dict(self.root), [], []
        rank = dict(zip(domains, rng.permutation(len(domains)).tolist(), strict=True))
        heap = [(domain.bit_count(), -blame[i], rank[i], i) for i, domain in domains.items()]
        heapify(heap)
        culprit = self._propagate(list(range(len(self.scope))), domains, trail)
        seen = 0  # how much of the trail the heap knows
        while failures:
            if culprit is not None:
                failures -= 1
                for i in self.scope[culprit]:
                    blame[i] += 1
                if not choices:
                    raise Unsatisfiable("no state has positive probability: the hard factors contradict each other")
                mark, i, value = choices.pop()
                while len(trail) > mark:
                    j, domains[j] = trail.pop()
                    heappush(heap, (domains[j].bit_count(), -blame[j], rank[j], j))
                seen = len(trail)
                culprit = self._narrow(i, domains[i] & ~(1 << value), domains, trail)
                continue
            for i, _ in trail[seen:]:
                heappush(heap, (domains[i].bit_count(), -blame[i], rank[i], i))
            seen = len(trail)
            while heap and (heap[0][0] == 1 or domains[heap[0][3]].bit_count() != heap[0][0]):
                heappop(heap)  # decided, or an old entry
            if not heap:
                return domains
            i = heap[0][3]
            value = self._value(domains[i], int(wish[i]), rng)
            choices.append((len(trail), i, value))
            culprit = self._narrow(i, 1 << value, domains, trail)
        return None

    @staticmethod
    def _value(domain: int, wish: int, rng: np.random.Generator) -> int:
        if domain >> wish & 1:
            return wish
        values = [v for v in range(domain.bit_length()) if domain >> v & 1]
        return values[rng.integers(len(values))]

    def _narrow(self, i: int, domain: int, domains: dict[int, int], trail: list[tuple[int, int]]) -> int | None:
        trail.append((i, domains[i]))
        domains[i] = domain
        return self._propagate(list(self.touching[i]), domains, trail)

    def _propagate(self, queue: list[int], domains: dict[int, int], trail: list[tuple[int, int]]) -> int | None:
        """Drop the values that no allowed entry of some factor contains; the factor that leaves none, or None."""
        waiting = set(queue)
        while queue:
            k = queue.pop()
            waiting.discard(k)
            scope = self.scope[k]
            supported = [0] * len(scope)
            for entry in self.allowed[k]:
                if all(domains[i] >> v & 1 for i, v in zip(scope, entry, strict=True)):
                    supported = [mask | (1 << v) for mask, v in zip(supported, entry, strict=True)]
            if not supported[0]:
                return k
            for i, mask in zip(scope, supported, strict=True):
                if mask != domains[i]:
                    trail.append((i, domains[i]))
                    domains[i] = mask
                    fresh = [f for f in self.touching[i] if f != k and f not in waiting]
                    queue += fresh
                    waiting.update(fresh)
        return None
