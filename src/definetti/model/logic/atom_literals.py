"""Where ground atoms live when a Markov logic network is grounded: atom ↔ (variable, value), by arithmetic alone.

A predicate's atoms are numbered in the order of its box of constants, the last argument fastest, one binary variable
each. With `!` arguments a block is one variable whose values are the choices: `Topic(P1,AI)` is the variable
`Topic(P1,!)` having the value AI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from definetti.errors import ModelError
from definetti.model.logic.text import atom_name, block_name, quote
from definetti.model.logic.theory import Atom, Constant, MarkovLogic


@dataclass(frozen=True)
class Box:
    """The variables of one predicate. An atom's variable is offset + Σ index · variable_stride; its value when true is
    Σ index · value_stride for `!` predicates and 1 for others."""

    offset: int
    count: int
    card: int
    variable_strides: tuple[int, ...]
    value_strides: tuple[int, ...]
    exclusive: bool

    def literal(self, indices: Sequence[int]) -> tuple[int, int]:
        """The variable of a ground atom and the value that makes the atom true."""
        variable, value = self.literals(indices)
        return int(variable), int(value)

    def literals(self, indices: Sequence[Any]) -> tuple[Any, Any]:
        """The same of many atoms at once: indices are arrays that broadcast."""
        variable = self.offset + sum(i * s for i, s in zip(indices, self.variable_strides, strict=True))
        value = sum(i * s for i, s in zip(indices, self.value_strides, strict=True)) if self.exclusive else 1
        return variable, value


def layout(model: MarkovLogic) -> dict[str, Box]:
    """The box of every predicate, in the order of the predicates."""
    boxes: dict[str, Box] = {}
    offset = 0
    for name, predicate in model.predicates.items():
        shape = model.shape(name)
        outer = [k for k in range(len(shape)) if k not in predicate.exclusive]
        count = prod(shape[k] for k in outer)
        boxes[name] = Box(
            offset=offset,
            count=count,
            card=prod(shape[k] for k in predicate.exclusive) if predicate.exclusive else 2,
            variable_strides=_strides(shape, outer),
            value_strides=_strides(shape, predicate.exclusive),
            exclusive=bool(predicate.exclusive),
        )
        offset += count
    return boxes


def _strides(shape: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for k in reversed(places):
        strides[k], step = step, step * shape[k]
    return tuple(strides)


def atom_literal(boxes: Mapping[str, Box], atom: Atom) -> tuple[int, int]:
    """The (variable, value) of the ground model that says that a ground atom is true."""
    indices = [term.index for term in atom.args if isinstance(term, Constant)]
    if len(indices) != len(atom.args):
        raise ModelError(f"{atom.predicate} has a variable among its arguments: only ground atoms have a place")
    return boxes[atom.predicate].literal(indices)


def variable_names(model: MarkovLogic) -> list[str]:
    """The name of each variable of the ground model: `Friends(Anna,Bob)`, or `Topic(P1,!)` for a block."""
    names: list[str] = []
    for name, predicate in model.predicates.items():
        constants = [model.sorts[sort].constants for sort in predicate.sorts]
        if predicate.exclusive:
            blocks = [("",) if k in predicate.exclusive else some for k, some in enumerate(constants)]
            names += [block_name(predicate, words) for words in product(*blocks)]
        else:
            quoted = [[quote(constant) for constant in some] for some in constants]
            names += [f"{name}({','.join(words)})" for words in product(*quoted)] if quoted else [name]
    return names


def value_names(model: MarkovLogic) -> dict[int, tuple[str, ...]]:
    """The names of the values of block variables: the constant, or `A,B` with several `!` arguments."""
    found: dict[int, tuple[str, ...]] = {}
    for name, box in layout(model).items():
        if box.exclusive:
            predicate = model.predicates[name]
            choices = [model.sorts[predicate.sorts[k]].constants for k in predicate.exclusive]
            single = len(choices) == 1
            labels = tuple(w[0] if single else atom_name("", w)[1:-1] for w in product(*choices))
            found.update(dict.fromkeys(range(box.offset, box.offset + box.count), labels))
    return found
