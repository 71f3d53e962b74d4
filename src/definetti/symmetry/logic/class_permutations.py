"""The renamings that permute whole classes of interchangeable constants: automorphisms of the quotient.

Every renaming symmetry is a permutation within the classes followed by one that maps classes to classes in order.
The latter are the automorphisms of a small coloured structure whose nodes are the classes. It is refined by colours
first, so that BLISS sees only what is left undecided, and each generator is checked against all relations before it
is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from definetti import groups
from definetti.errors import Notice
from definetti.integer_rows import distinct
from definetti.model.logic.evidence import Relation
from definetti.model.logic.interchangeable import Nodes, add_by, cells_of, class_sizes, mix, row_views
from definetti.symmetry.bliss import search


@dataclass(frozen=True, eq=False)
class Quotient:
    """Classes of all sorts in one numbering, and the permutations of them that are symmetries."""

    start: dict[str, int]  # of each sort's classes
    count: int
    generators: tuple[np.ndarray, ...]  # int64[count] each
    order: int | None  # None where the time was up
    notices: tuple[Notice, ...] = ()

    @property
    def group(self) -> groups.PermutationGroup:
        return as_group(self.count, self.generators)


def as_group(count: int, generators: Sequence[np.ndarray]) -> groups.PermutationGroup:
    return groups.PermutationGroup(count, tuple(groups.sparse(g) for g in generators))


@dataclass(frozen=True, eq=False)
class Rows:
    """The cells of one relation: classes as quotient nodes, and a label of relation, pattern and colour."""

    nodes: np.ndarray  # int64[m, arity]
    label: np.ndarray  # int64[m]

    def shifted(self, by: int) -> Rows:
        """The same rows of a copy of the classes, numbered from `by` on."""
        return Rows(self.nodes + by, self.label)


def quotient(nodes: Nodes, relations: Sequence[Relation], classes: np.ndarray, time_limit: float) -> Quotient:
    sizes = class_sizes(nodes, classes)
    ends = np.cumsum([0, *(len(k) for k in sizes.values())])
    start = {sort: int(ends[k]) for k, sort in enumerate(sizes)}
    count = int(ends[-1])
    rows = [quotient_rows(nodes, relation, classes, start, k) for k, relation in enumerate(relations)]
    sorts = np.repeat(np.arange(len(sizes)), [len(k) for k in sizes.values()])
    colours = refine(mix(sorts, np.concatenate([np.zeros(0, np.int64), *sizes.values()])), rows)
    tied = np.flatnonzero(np.bincount(colours, minlength=1)[colours] > 1)
    if not len(tied):
        return Quotient(start, count, (), 1)
    graph_colours, edges = quotient_graph(tied, colours, rows)
    found = search(edges, graph_colours, time_limit)
    notices = [] if found.complete and found.order is not None else [_stopped(time_limit)]
    generators = [g for small in found.generators if preserves(g := _carried(small, tied, count), rows)]
    order = found.order
    if len(generators) < len(found.generators):  # only a mistake of ours or of BLISS gets here
        notices.append(Notice("note", "a permutation of constants failed its check and is not used"))
        order = None
    if order is None:
        order = groups.order(as_group(count, generators))
    return Quotient(start, count, tuple(generators), order, tuple(notices))


def _stopped(time_limit: float) -> Notice:
    message = f"the search for renamings was stopped after {time_limit:g} s: interchangeable constants are used, "
    return Notice(
        "time-limit", message + "symmetries that move whole groups of them may be missing; raise the time limit"
    )


def _carried(small: groups.Generator, tied: np.ndarray, count: int) -> np.ndarray:
    """A permutation of the graph's nodes as one of all classes."""
    generator = np.arange(count)
    points, images = (part[small[0] < len(tied)] for part in small)
    generator[tied[points]] = tied[images]
    return generator


def quotient_rows(nodes: Nodes, relation: Relation, classes: np.ndarray, start: dict[str, int], number: int) -> Rows:
    cells = distinct(cells_of(nodes, relation, classes))[0]
    offsets = np.array([start[s] for s in relation.sorts], dtype=np.int64)
    label = (np.int64(number) << 48) + (cells[:, -2].astype(np.int64) << 32) + cells[:, -1]
    return Rows(cells[:, :-2].astype(np.int64) + offsets, label)


def refine(keys: np.ndarray, rows: Sequence[Rows]) -> np.ndarray:
    """Colour refinement: nodes keep one colour while they see the same rows with the same colours in them."""
    colours = np.unique(keys, return_inverse=True)[1]
    while True:
        seen = mix(colours)
        for part in rows:
            focal, views = row_views(part.nodes, colours.astype(np.uint64), part.label)
            with np.errstate(over="ignore"):
                seen = seen + add_by(focal, views, len(colours))
        finer = np.unique(seen, return_inverse=True)[1]  # the old colour is part of the key: it only gets finer
        if finer.max(initial=-1) == colours.max(initial=-1):
            return colours
        colours = finer


def preserves(generator: np.ndarray, rows: Sequence[Rows]) -> bool:
    """Whether a permutation of classes maps every relation onto itself, colours included: exact, by sorting."""
    return all(
        np.array_equal(_sorted(part.nodes, part.label), _sorted(generator[part.nodes], part.label)) for part in rows
    )


def _sorted(nodes: np.ndarray, label: np.ndarray) -> np.ndarray:
    columns = [*nodes.T, label]
    return np.stack(columns, 1)[np.lexsort(columns)]


# --- the graph for BLISS -------------------------------------------------------------------------------------


def quotient_graph(tied: np.ndarray, colours: np.ndarray, rows: Sequence[Rows]) -> tuple[np.ndarray, np.ndarray]:
    """A node per undecided class, and per row that relates several of them a node with a node for each place.

    Rows with one undecided class are in its colour already: colours are a fixed point of the refinement.
    """
    place = np.full(len(colours), -1)
    place[tied] = np.arange(len(tied))
    keys = [mix(colours[tied], 0)]
    edges: list[np.ndarray] = []
    count = len(tied)
    for part in rows:
        inside = place[part.nodes]
        open_places = inside >= 0
        least = np.where(open_places, inside, len(tied)).min(1)
        here = np.flatnonzero(inside.max(1) > least)  # at least two different undecided classes
        inside = inside[here]
        if not len(here):
            continue
        label = part.label[here]
        for j in range(part.nodes.shape[1]):  # a decided class at a place is part of the label
            label = mix(label, colours[part.nodes[here, j]])
        hub = count + np.arange(len(here))
        keys.append(mix(label, 1))
        count += len(here)
        for j in range(inside.shape[1]):
            at = np.flatnonzero(inside[:, j] >= 0)
            if len(at):
                leg = count + np.arange(len(at))
                keys.append(mix(np.full(len(at), j), 2))
                edges += [np.stack([hub[at], leg], 1), np.stack([leg, inside[at, j]], 1)]
                count += len(at)
    joined = np.concatenate(edges) if edges else np.zeros((0, 2), np.int64)
    return np.unique(np.concatenate(keys), return_inverse=True)[1], joined
