"""`Members` of the marginals of a Markov logic network: which orbit's row a ground atom belongs to, by its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.atom_names import find_atom
from definetti.model.logic.evidence import Relation, block_keys, evidence_relations
from definetti.model.marginals import Estimate, known
from definetti.symmetry.logic.atom_numbers import MOST_CELLS
from definetti.symmetry.logic.renaming import RenamingSymmetries


@dataclass(frozen=True, eq=False)
class AtomMembers:
    """All ground atoms, observed ones included; rows are numbered like the orbits."""

    symmetries: RenamingSymmetries

    def __len__(self) -> int:
        return self.symmetries.model.atom_count

    def __iter__(self) -> Iterator[str]:
        return (text for text, _ in self.symmetries.atoms())

    def find(self, name: str) -> int | Estimate:
        predicate, constants = find_atom(self.symmetries.model, name)
        number = self.symmetries.orbit_number(predicate, constants)
        if number >= 0:
            return number
        value = self.value(predicate, constants)
        if value is None:
            what, cure = f"the table of the orbits of {predicate}", f"ask for {name} as a query"
            raise TooLarge(what, MOST_CELLS + 1, MOST_CELLS, cure, unit="entries", at_least=True)
        return known(value, 2)

    def value(self, predicate: str, constants: tuple[int, ...]) -> int | None:
        """The observed value of an atom, None if it is free."""
        relation = self._known[predicate]
        row = np.array([constants], dtype=np.int64).reshape(1, len(constants))
        stated = relation.codes[(relation.tuples == row).all(axis=1)].tolist()
        implied = 0 if self._decided(relation, row) else relation.default
        code = int((stated or [implied])[0])
        return code if code in (0, 1) else None

    def _decided(self, relation: Relation, row: np.ndarray) -> bool:
        """Whether another atom of the same `!` block is known to be true."""
        predicate = self.symmetries.model.predicates[relation.name]
        if not predicate.exclusive:
            return False
        shape = self.symmetries.model.shape(relation.name)
        true = relation.tuples[relation.codes == 1]
        return bool(np.isin(block_keys(predicate, shape, row), block_keys(predicate, shape, true))[0])

    @cached_property
    def _known(self) -> dict[str, Relation]:
        return evidence_relations(self.symmetries.model)
