"""Marginals of a ground Markov logic network, told by atoms: a variable that is a `!` block has one for each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from definetti.model.logic.atom_literals import Box, layout
from definetti.model.logic.atom_names import atom_text, find_atom
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables


def by_atoms(model: MarkovLogic, answers: Marginals) -> Marginals:
    """The same answers in the names that engines which do not ground give them."""
    variables = answers.members
    if not isinstance(variables, Variables):
        return answers
    boxes, rows, first = layout(model), [], []
    for row in answers.orbits:
        first.append(len(rows))
        name = row.representative.partition("(")[0]
        rows += _of_block(model, boxes[name], name, variables, row) if boxes[name].exclusive else [row]
    return replace(answers, orbits=tuple(rows), members=GroundAtoms(model, variables, tuple(first)))


def _of_block(model: MarkovLogic, box: Box, name: str, variables: Variables, row: OrbitRow) -> list[OrbitRow]:
    """A row for each value of a block, named by the atom that the value makes true."""
    place, shape = variables.index(row.representative) - box.offset, model.shape(name)
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
    return fields if value else fields | {"probability": 1.0 - row.probability}


@dataclass(frozen=True, eq=False)
class GroundAtoms:
    """`Members`: the atoms. `first`: where the rows begin that each row of the variables has become."""

    model: MarkovLogic
    variables: Variables
    first: Sequence[int]

    @cached_property
    def _boxes(self) -> dict[str, Box]:
        return layout(self.model)

    def __len__(self) -> int:
        return self.model.atom_count

    def __iter__(self) -> Iterator[str]:
        for name in self.model.predicates:
            for constants in np.ndindex(self.model.shape(name)):
                yield atom_text(self.model, name, constants)

    def find(self, name: str) -> int | Estimate:
        predicate, constants = find_atom(self.model, name)
        box = self._boxes[predicate]
        variable, value = box.literal(constants)
        found = self.variables.find(self.variables.names[variable])
        if isinstance(found, Estimate):
            return Estimate(**_of_value(found, value)) if box.exclusive else found
        return self.first[found] + (value if box.exclusive else 0)
