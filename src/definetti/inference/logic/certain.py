"""What is certain of a statistic of a Markov logic network, so that a number that never moved is exact and no alarm.

Certain means proven, not seen: a conditional close to 0 or 1 in every draw may be another in states that were not met.
Orbits that hold each atom with its negation: a half. Conditionals of isolated atoms depend on nothing. Orbits that hold
whole `!` blocks: exactly one atom of each is true.
Of statistics that were the same in all draws a solver is asked whether the hard formulas allow another number of true
atoms, or the other answer to a query; and the local field may be bounded over all states (`field_bounds.py`): then the
probability is known up to that bound, which is its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from definetti.constraints.logic.clauses import hard_size
from definetti.constraints.logic.legal_states import Legal, legal
from definetti.constraints.sat import FEW_CONFLICTS, decide
from definetti.diagnose import weighted_mean
from definetti.errors import TooLarge
from definetti.inference.assemble import PROVEN
from definetti.inference.logic.claims import MOST_GROUND, Claim
from definetti.inference.logic.field_bounds import field_bounds
from definetti.model.logic.text import find_atom
from definetti.samplers.draws import Draws
from definetti.symmetry.logic.renaming import RenamingSymmetries

MOST_ASKED = 100  #: statistics
MOST_COUNTED = 200  #: atoms of an orbit


@dataclass(frozen=True, eq=False)
class Certain:
    """`queries`: those whose statistics follow the orbits'."""

    group: RenamingSymmetries
    queries: Sequence[Claim]
    _answers: dict[tuple[int, float], bool] = field(default_factory=dict, repr=False)
    _bounds: dict[int, tuple[float, float]] = field(default_factory=dict, repr=False)

    def values(self, draws: Draws) -> np.ndarray:
        """float64[statistics]: what is certain, NaN elsewhere."""
        certain = np.full(draws.f.shape[2], np.nan)
        if not len(draws.f):
            return certain
        if draws.g is not None:
            isolated = list(self.group.numbers.isolated)
            certain[isolated] = weighted_mean(draws.g, draws.lengths)[isolated]
        mirror = self.group.mirror
        certain[np.flatnonzero(mirror == np.arange(len(mirror)))] = 0.5
        still = (draws.f == draws.f[:1, :1]).all(axis=(0, 1))
        for k in np.flatnonzero(still & np.isnan(certain)).tolist():
            value = float(draws.f[0, 0, k])
            if self._bound(k, value) is not None or self._holds(k, value):
                certain[k] = value
        return certain

    def errors(self, certain: np.ndarray) -> np.ndarray:
        """float64[statistics]: how far off a certain value may be at most."""
        found = np.zeros(len(certain))
        for k, value in enumerate(certain.tolist()):
            found[k] = self._bound(k, value) or 0.0
        return found

    def _bound(self, k: int, value: float) -> float | None:
        """How far from 0 or 1 the probability of an orbit's atoms may be in any state, if that is next to nothing."""
        if k >= len(self.group.sizes) or value not in (0.0, 1.0):
            return None
        if k not in self._bounds:
            model = self.group.model
            low, high = field_bounds(model, *find_atom(model, self.group.orbits[k].representative))
            self._bounds[k] = np.exp(min(high, 0.0)), np.exp(min(-low, 0.0))
        bound = float(self._bounds[k][int(value)])
        return bound if bound < PROVEN else None

    def _holds(self, k: int, value: float) -> bool:
        """Whether every legal state gives the k-th statistic this value."""
        if k in self._whole_blocks:
            return True
        if (k, value) not in self._answers:
            try:
                self._answers[k, value] = len(self._answers) < MOST_ASKED and self._proved(k, value)
            except TooLarge:
                self._answers[k, value] = False
        return self._answers[k, value]

    def _proved(self, k: int, value: float) -> bool:
        orbits, model = len(self.group.sizes), self.group.model
        if k >= orbits:
            return self.queries[k - orbits].holds(model, value)
        if hard_size(model) > MOST_GROUND:
            return False
        return self._solver is not None and self._always(k, round(value * int(self.group.sizes[k])))

    @cached_property
    def _solver(self) -> Legal | None:
        """None where nothing is hard, and every number of true atoms possible."""
        model = self.group.model
        hard = any(f.hard for f in model.formulas) or any(p.exclusive for p in model.predicates.values())
        return legal(model) if hard else None

    def _always(self, k: int, count: int) -> bool:
        """Whether the hard formulas leave an orbit no other number of true atoms."""
        from pysat.card import CardEnc

        model, size = self.group.model, int(self.group.sizes[k])
        name, constants = find_atom(model, self.group.orbits[k].representative)
        if count in (0, size):  # one atom speaks for its orbit
            assert self._solver is not None
            return not self._solver.possible(name, constants, count == 0)
        if size > MOST_COUNTED or self.group.mirror[k] >= 0:
            return False
        rows = {other: np.argwhere(self.group.orbit_grid(other) == k) for other in self.group.atom_orbits}
        for bound, encode in ((count + 1, CardEnc.atleast), (count - 1, CardEnc.atmost)):
            found = legal(model)
            literals = [int(i) for other, some in rows.items() for i in found.numbering.of(other, some)]
            found.solver.append_formula(encode(literals, bound=bound, top_id=found.numbering.count).clauses)
            if decide(found.solver, (), FEW_CONFLICTS) is not False:
                return False
        return True

    @cached_property
    def _whole_blocks(self) -> frozenset[int]:
        """Orbits that hold all free atoms of each `!` block that they meet."""
        whole, mixed = set(), set()
        for numbers in block_orbits(self.group):
            (whole if len(numbers) == 1 else mixed).update(numbers)
        return frozenset(whole - mixed)


def block_orbits(group: RenamingSymmetries) -> list[list[int]]:
    """For each kind of `!` block the orbits of its free atoms."""
    out = []
    for name, orbits in group.atom_orbits.items():
        exclusive = sorted(group.model.predicates[name].exclusive)
        if not exclusive:
            continue
        values = [*exclusive, orbits.lookup.ndim - 1]  # and the patterns of equal constants, which change with them
        width = int(np.prod([orbits.lookup.shape[axis] for axis in values]))
        blocks = np.moveaxis(orbits.lookup, values, range(-len(values), 0)).reshape(-1, width)
        out += [numbers for block in blocks if (numbers := np.unique(block[block >= 0]).tolist())]
    return out
