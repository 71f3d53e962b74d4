"""Which row of the marginals a ground atom belongs to: `Members` of a Markov logic network, never grounded or grounded.

Without grounding a row is an orbit of atoms (`AtomMembers`). In a ground model a row is an orbit of variables, and a
variable may be a `!` block, which has an atom for each of its values (`by_atoms`, `GroundAtoms`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.atom_literals import Box, layout
from definetti.model.logic.text import atom_text, find_atom
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables, known
from definetti.symmetry.logic.atom_numbers import MOST_CELLS, lookup_shape
from definetti.symmetry.logic.renaming import RenamingSymmetries


@dataclass(frozen=True, eq=False)
class AtomMembers:
    """All ground atoms, known ones included; rows are numbered like the orbits.

    `answer` computes the answer for a free atom whose predicate has too many kinds of atoms to number; without it such
    an atom has to be asked for as a query.
    """

    symmetries: RenamingSymmetries
    answer: Callable[[str, tuple[int, ...]], Estimate] | None = None

    @property
    def model(self) -> MarkovLogic:
        """The model as it was given, before what hard formulas force was put into its evidence."""
        return self.symmetries.source or self.symmetries.model

    def __len__(self) -> int:
        return self.symmetries.model.atom_count

    def __iter__(self) -> Iterator[str]:
        return (text for text, _ in self.symmetries.atoms())

    def find(self, name: str) -> int | Estimate:
        predicate, constants = find_atom(self.symmetries.model, name)
        number = self.symmetries.orbit_number(predicate, constants)
        if number >= 0:
            return number
        value = self.symmetries.model.knowledge.value(predicate, constants)
        if value is not None:
            return known(value, 2)
        if self.answer is not None:
            return self.answer(predicate, constants)
        size = prod(lookup_shape(self.symmetries.model.predicates[predicate], self.symmetries.fine))
        what, cure = f"the table of the orbits of {predicate}", f"ask for {name} as a query"
        raise TooLarge(what, size, MOST_CELLS, cure, unit="entries")


# --- ground models ---------------------------------------------------------------------------------------------------


def by_atoms(model: MarkovLogic, answers: Marginals) -> Marginals:
    """The answers of a ground model with atoms for names: the names that engines which do not ground use.

    An orbit of the ground model may hold plain atoms and two-valued blocks at once. It becomes a row for its plain
    atoms, then a row for each value of its blocks.
    """
    variables = answers.members
    if not isinstance(variables, Variables):
        return answers
    boxes = layout(model)
    names = np.repeat(list(boxes), [box.count for box in boxes.values()])
    free = np.flatnonzero(variables.row_of >= 0)
    in_block = np.array([boxes[name].exclusive for name in boxes], dtype=int)
    in_block = np.repeat(in_block, [box.count for box in boxes.values()])
    keys, at, sizes = np.unique(2 * variables.row_of[free].astype(np.int64) + in_block[free], return_index=True,
                                return_counts=True)  # fmt: skip
    rows: list[OrbitRow] = []
    first: dict[tuple[int, bool], int] = {}
    for key, i, size in zip(keys.tolist(), free[at].tolist(), sizes.tolist(), strict=True):
        number, blocks = divmod(key, 2)
        row, name = replace(answers.orbits[number], representative=variables.names[i], size=size), str(names[i])
        first[number, bool(blocks)] = len(rows)
        rows += _of_block(model, boxes[name], name, i, row) if blocks else [row]

    def row_of(predicate: str, constants: tuple[int, ...]) -> int | Estimate:
        box = boxes[predicate]
        variable, value = box.literal(constants)
        found = variables.find(variables.names[variable])
        if isinstance(found, Estimate):
            return Estimate(**_of_value(found, value)) if box.exclusive else found
        return first[found, box.exclusive] + (value if box.exclusive else 0)

    return replace(answers, orbits=tuple(rows), members=GroundAtoms(model, row_of))


def _of_block(model: MarkovLogic, box: Box, name: str, variable: int, row: OrbitRow) -> list[OrbitRow]:
    """A row for each value of a block, named by the atom that the value makes true."""
    place, shape = variable - box.offset, model.shape(name)
    out = []
    for value in range(box.card):
        strides = zip(box.variable_strides, box.value_strides, shape, strict=True)
        constants = [place // s % n if s else value // t % n for s, t, n in strides]
        out.append(OrbitRow(atom_text(model, name, constants), row.size, **_of_value(row, value)))
    return out


def _of_value(row: OrbitRow | Estimate, value: int) -> dict[str, Any]:
    """What a variable's answer says of one of its values."""
    fields = asdict(row)
    for other in ("representative", "size", "orbit_size"):
        fields.pop(other, None)
    if isinstance(row.probability, list):
        return {key: field[value] if isinstance(field, list) else field for key, field in fields.items()}
    if value or row.probability is None:  # None: no draw was finite
        return fields
    return fields | {"probability": 1.0 - row.probability}


@dataclass(frozen=True, eq=False)
class GroundAtoms:
    """`Members`: the atoms of a theory that was grounded. `row_of(predicate, constants)` is a row, or the answer."""

    model: MarkovLogic
    row_of: Callable[[str, tuple[int, ...]], int | Estimate]

    def __len__(self) -> int:
        return self.model.atom_count

    def __iter__(self) -> Iterator[str]:
        for name in self.model.predicates:
            for constants in np.ndindex(self.model.shape(name)):
                yield atom_text(self.model, name, constants)

    def find(self, name: str) -> int | Estimate:
        return self.row_of(*find_atom(self.model, name))
