"""A model of either kind as a factor graph with permutations of its literals: what quotient chains are made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti import groups
from definetti.errors import ModelError, Notice
from definetti.lumping.moves import SiteMove, graph_site_moves
from definetti.lumping.state_space import StateSpace, refuse_many
from definetti.model.checked_input import require_model
from definetti.model.graph.factors import FactorGraph
from definetti.model.queries import Query, parse_query
from definetti.symmetry.find import is_group, require_fit, symmetries

MOST_QUERIES = 16  # rows that are looked at where nothing is asked


@dataclass(frozen=True, eq=False)
class Source:
    """A simplified factor graph and generators of a group of its literals."""

    graph: FactorGraph
    elements: list[np.ndarray]  # int64[literals] each
    group: Any  # as it was found or given
    queries: tuple[Query, ...]

    @property
    def notices(self) -> tuple[Notice, ...]:
        return self.group.notices

    def site_moves(self, space: StateSpace) -> Iterable[SiteMove]:
        """Single-site sampling as `marginals` runs it: of Markov logic by the kernel that never grounds."""
        if self.group.model.kind == "logic":
            from definetti.lumping.logic_sites import logic_site_moves

            return logic_site_moves(space, self.group.model)
        return graph_site_moves(space)

    def orders(self, scan: str) -> Iterable[tuple[float, Sequence[int]]] | None:
        """The orders of a sweep with their probabilities; None for the random scan."""
        if scan == "random":
            return None
        if self.group.model.kind == "logic":
            from definetti.lumping.raster import raster_orders

            return raster_orders(self.group, scan)
        from definetti.inference.graph.question import variable_orbits
        from definetti.lumping.transitions import fixed_order, symmetric_orders

        sites = self.graph.free.tolist()
        return fixed_order(sites) if scan == "fixed" else symmetric_orders(sites, variable_orbits(self.group))


def source_of(model: Any, wanted: Any, queries: Sequence[str], time_limit: float, most: int) -> Source:
    """`wanted`: a group of the model, or the kind of symmetries to look for, or None for none; `most` states."""
    require_model(model, "a quotient is of a model")
    refuse_many(_bits(model), most)
    if is_group(wanted):
        require_fit(model, wanted)
    group = wanted if is_group(wanted) else _found(model, "none" if wanted is None else wanted, time_limit)
    if group.model.kind == "logic":
        return _of_renamings(model, group, queries)
    start = int(group.model.literal_start[-1])
    elements = [groups.dense(generator, start) for generator in group.generators]
    if model.kind == "logic":
        from definetti.readers.logic.queries import ground_queries

        asked = ground_queries(model, queries)
    else:
        asked = [parse_query(text, group.model) for text in queries]
    return Source(group.model, elements, group, _values(group.model, asked or _rows(group, group.model)))


def _bits(model: Any) -> float:
    """log2 of the number of states, before anything is made of the model; `!` blocks are left out."""
    if model.kind == "graph":
        from definetti.model.graph.simplify import simplify

        simple = simplify(model)
        return float(np.log2(simple.cards[simple.free]).sum())
    from definetti.constraints.logic.forced_atoms import with_forced_atoms

    knowledge = with_forced_atoms(model).knowledge
    return float(sum(knowledge.free_count(name) for name, p in model.predicates.items() if not p.exclusive))


def _found(model: Any, kind: str, time_limit: float) -> Any:
    """Of Markov logic `auto` means permutations of constants and nothing else: those that preserve the evidence."""
    if model.kind != "logic" or kind != "auto":
        return symmetries(model, kind, None, time_limit)
    from dataclasses import replace

    from definetti.constraints.logic.forced_atoms import with_forced_atoms
    from definetti.symmetry.logic.renaming import renaming

    return replace(renaming(with_forced_atoms(model), time_limit, simplify=False), source=model)


def _of_renamings(model: Any, group: Any, queries: Sequence[str]) -> Source:
    from definetti.lumping.atom_generators import atom_generators, literal_map
    from definetti.model.graph.simplify import simplify
    from definetti.model.logic.ground import ground
    from definetti.readers.logic.queries import ground_queries

    graph = simplify(ground(group.model))
    elements = [literal_map(group.model, image) for image in atom_generators(group)]
    names = queries or [orbit.representative for orbit in group.orbits[:MOST_QUERIES]]
    return Source(graph, elements, group, _values(graph, ground_queries(model, names)))


def _rows(group: Any, graph: FactorGraph) -> list[Query]:
    nothing = np.empty((0, 1), dtype=np.int32)
    variables = group.row_representative[:MOST_QUERIES].tolist()
    return [Query(graph.names[i], (i,), "variable", nothing) for i in variables]


def _values(graph: FactorGraph, queries: Sequence[Query]) -> tuple[Query, ...]:
    """A variable of several values becomes an event for each of them."""
    out = []
    for query in queries:
        if query.given is not None:
            raise ModelError(
                f"{query.text!r} is no event of a state: ask for both sides of the condition by themselves"
            )
        i = query.variables[0] if query.variables else 0
        if query.kind != "variable" or graph.cards[i] <= 2:
            out.append(query)
            continue
        names = graph.value_names.get(i, range(int(graph.cards[i])))
        out += [
            Query(f"{query.text}={name}", (i,), "event", np.array([[v]], dtype=np.int32))
            for v, name in enumerate(names)
        ]
    return tuple(out)
