"""Sites of a Markov logic network and their full conditionals in every state, by the compiled, never-grounded kernel.

A site is an atom, a `!` block, or a class of atoms that hard formulas tie together: the kernel draws such a class as
one. The states themselves are listed on the ground model, whose variables are the atoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.lumping.moves import SiteMove, one_site
from definetti.lumping.state_space import StateSpace
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.logic.tensors.known_bits import pack
from definetti.samplers.logic.tensors.state import put_atoms
from definetti.samplers.logic.tensors.tied_sites import repeats

if TYPE_CHECKING:
    from definetti.samplers.logic.engine import Relational
    from definetti.samplers.logic.tensors.data import Chain

Worlds = dict[str, np.ndarray]  # by predicate: bool[S, *shape]


def worlds(space: StateSpace, model: MarkovLogic) -> Worlds:
    """The truth values of all atoms in every state."""
    found = {}
    for name, box in layout(model).items():
        shape = model.shape(name)
        variable, value = (np.broadcast_to(part, shape) for part in box.literals(np.indices(shape, sparse=True)))
        found[name] = space.states[:, variable] == value
    return found


def put_state(r: Relational, chain: Chain, some: Worlds, state: int) -> None:
    for p, name in enumerate(r.model.predicates):
        put_atoms(r.written, r.data, chain, p, r.model.shape(name), pack(np.ascontiguousarray(some[name][state])))


def sites_of(r: Relational) -> dict[int, tuple[tuple[str, tuple[int, ...]], tuple[int, ...]]]:
    """First variable of each site → (its leading atom, its variables); a block is led by its first value."""
    model, boxes, found = r.model, layout(r.model), {}
    followers = {image.predicate for name, images in r.tied.items() for image in images if image.predicate != name}
    for name, declared in model.predicates.items():
        if name in followers:
            continue
        images = r.tied.get(name, ())
        again = repeats(model, name, images) if images else None
        free = model.knowledge.codes(name) == UNKNOWN
        for row in map(tuple, np.argwhere(free if again is None else free & ~again).tolist()):
            members = {boxes[i.predicate].literal([row[j] for j in i.places])[0] for i in images}
            first = boxes[name].literal(row)[0]
            if not (declared.exclusive and first in found):
                found[first] = (name, row), (first, *sorted(members - {first}))
    return found


def logic_site_moves(space: StateSpace, model: MarkovLogic) -> Iterator[SiteMove]:
    """Every site's full conditional in every state, as a look of the kernel at the state folds it: each atom is an
    orbit of its own."""
    from definetti.samplers.logic.engine import blank, compile_model
    from definetti.samplers.logic.levels import look
    from definetti.symmetry.logic.renaming import trivial

    alone = trivial(model)
    r = compile_model(model, alone.atom_orbits, scan="fixed")
    some, chain = worlds(space, model), blank(r)
    given = np.empty((len(space), r.orbit_count))
    for s in range(len(space)):
        put_state(r, chain, some, s)
        given[s] = look(r, chain).g
    sites = sites_of(r)
    assert len(sites) == r.free_sites, "the kernel draws other sites than those that were listed"
    boxes = layout(model)
    for (name, row), variables in sites.values():
        if not boxes[name].exclusive:
            true = given[:, alone.orbit_numbers(name, np.array([row]).reshape(1, len(row)))[0]]
            yield one_site(space, variables, np.stack([1.0 - true, true], axis=1))
            continue
        yield one_site(space, variables, _block(space, model, name, row, given, alone))


def _block(space: StateSpace, model: MarkovLogic, name: str, row: Any, given: np.ndarray, alone: Any) -> np.ndarray:
    """float64[S, values] of a `!` block; values that the evidence excludes have no orbit."""
    places, shape = model.predicates[name].exclusive, model.shape(name)
    out = np.zeros((len(space), layout(model)[name].card))
    rows = np.array([row] * out.shape[1])
    for j, index in zip(places, np.unravel_index(np.arange(out.shape[1]), [shape[j] for j in places]), strict=True):
        rows[:, j] = index
    orbit = alone.orbit_numbers(name, rows)
    out[:, orbit >= 0] = given[:, orbit[orbit >= 0]]
    return out
