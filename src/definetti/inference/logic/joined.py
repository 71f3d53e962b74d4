"""Evidence-heavy models: where closed predicates leave few groundings, the free part is ground by joins over the facts.

It is then sampled as a factor graph. Loops over whole sorts, 64 values at a time, cost more there: naming a sampler or
`symmetries="renaming"` keeps to them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from definetti import show
from definetti.errors import Notice, TooLarge
from definetti.inference.question import Request
from definetti.model.logic.ground import GroundSize, ground_free, ground_size
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, Variables, known
from definetti.symmetry.logic.members import GroundAtoms

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph

MOST_FACTORS = 2_000_000
MOST_ATOMS = 50_000_000
WORD = 64  # groundings that a loop over bits looks at together
SAVED = 10  # how many times fewer a join must leave


def free_part(model: MarkovLogic, request: Request) -> tuple[FactorGraph, Notice] | None:
    """The free part of a model and what to say of it; None where loops over bits are cheaper, or were asked for."""
    if request.sampler is not None or request.symmetries not in ("auto", None) or request.method == "standard":
        return None
    size = worthwhile_size(model)
    if size is None:
        return None
    text = f"closed predicates leave {show.count(size.factors)} of {show.large(model.ground_count)} ground formulas"
    return ground_free(model), Notice("note", f"{text}: their free atoms were ground by joins over the facts")


def worthwhile_size(model: MarkovLogic) -> GroundSize | None:
    """The size of the ground model, where joins save so much that it is the better one to sample."""
    if not model.closed or any(predicate.exclusive for predicate in model.predicates.values()):
        return None
    if model.ground_count < WORD * SAVED * 1000 or model.atom_count > MOST_ATOMS:
        return None
    try:
        size = ground_size(model)
    except TooLarge:
        return None
    worth = size.factors * SAVED * WORD < model.ground_count and size.factors <= MOST_FACTORS
    return size if worth else None


def with_known(model: MarkovLogic, answers: Marginals) -> Marginals:
    """The answers about free atoms with the known ones beside them."""
    free = answers.members
    assert isinstance(free, Variables)

    def row_of(predicate: str, constants: tuple[int, ...]) -> int | Estimate:
        value = model.knowledge.value(predicate, constants)
        return free.find(atom_text(model, predicate, constants)) if value is None else known(value, 2)

    return replace(answers, members=GroundAtoms(model, row_of))
