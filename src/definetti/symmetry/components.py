"""Automorphisms piece by piece, so that BLISS sees small graphs and its dense generators stay small.

Colours are refined by hashing neighbourhoods. A node with a colour of its own is fixed by every automorphism and its
edges are part of its neighbours' colours, so it can go; so can all edges between two colours, or within one, where none
is missing. What is left falls apart into components. Isomorphic components change places as wholes: if C occurs m
times, they contribute Aut(C)^m with all m! orders. A large component often falls apart once a node is singled out (a
value flip joins everything to everything); where this node can go is found by comparing canonical forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from definetti.groups import Generator, PermutationGroup, components, orbits
from definetti.groups import order as group_order
from definetti.integer_rows import mix

ROUNDS = 16  # of refinement; any number is correct
LARGE = 500  # nodes: a component worth splitting by singling out a node
DENSE = 3  # edges per node from which complete sets of edges are looked for
FEW = 4  # nodes of a colour, in the mean, if refinement has not come to an end
ATTEMPTS = 3  # colours from which a node is singled out, the rarest first
TESTS = 16  # rivals that are compared with the node singled out
DEPTH = 6  # of singling out
FIRST, LARGEST = "f", "fl"  # which set of equal nodes BLISS splits; on long rings looking for the largest takes half

_SINGLED_OUT = np.uint64(0x5851F42D4C957F2D)


class Graph(NamedTuple):
    colours: np.ndarray  # uint64[n]: hashes, comparable between graphs
    edges: np.ndarray  # int64[m, 2]


@dataclass(frozen=True, eq=False)
class Parts:
    """A refined graph without its fixed nodes: component p is nodes[start[p] : start[p + 1]], ordered by colour."""

    graph: Graph
    fixed: np.ndarray  # ordered by colour
    nodes: np.ndarray
    start: np.ndarray
    edges: np.ndarray  # edge ends as positions in `nodes`, component by component
    edge_start: np.ndarray
    signature: np.ndarray  # uint64 per component, equal for isomorphic ones
    discrete: np.ndarray  # bool per component: all its colours differ
    stable: bool  # refinement came to an end

    def piece(self, p: int) -> tuple[np.ndarray, Graph]:
        """The nodes of component p and the graph on their positions."""
        nodes = self.nodes[self.start[p] : self.start[p + 1]]
        edges = self.edges[self.edge_start[p] : self.edge_start[p + 1]] - self.start[p]
        return nodes, Graph(self.graph.colours[nodes], edges)


def automorphisms(graph: Graph, depth: int = 0) -> tuple[list[Generator], int]:
    """Generators on nodes and the exact order."""
    parts = _parts(graph)
    generators: list[Generator] = []
    order = 1
    for same in _by_signature(parts):
        for members in _isomorphic(parts, same):
            nodes, piece = parts.piece(members[0][0])
            if not parts.discrete[members[0][0]]:
                own, size = _component(piece, parts.stable, depth)
                generators += [_sorted(nodes[points], nodes[images]) for points, images in own]
                order *= size ** len(members)
            order *= math.factorial(len(members))
            generators += [
                _sorted(np.concatenate([a, b]), np.concatenate([b, a])) for (_, a), (_, b) in pairwise(members)
            ]
    return generators, order


def canonical(graph: Graph) -> tuple[bytes, np.ndarray]:
    """A key that is equal exactly for isomorphic graphs (but for collisions), and the nodes in canonical order."""
    parts = _parts(graph)
    keys = [parts.graph.colours[parts.fixed].tobytes()]
    order = [parts.fixed]
    found = sorted(((*_canonical_piece(parts, p), p) for p in range(len(parts.signature))), key=lambda x: (x[0], x[2]))
    for key, nodes, _ in found:
        keys.append(key)
        order.append(nodes)
    return b"|".join(keys), np.concatenate(order)


# --- taking apart ------------------------------------------------------------------------------------------------


def _refined(graph: Graph) -> tuple[np.ndarray, np.ndarray, bool]:
    """(colours, those of one round later, whether more rounds would change nothing)."""
    before = colours = mix(graph.colours)
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    joined, first = np.unique(ends[:, 0], return_index=True)
    count = _count(colours)
    for step in range(1, ROUNDS + 1):
        before = colours
        colours = mix(colours)
        if len(joined):
            colours[joined] += np.add.reduceat(mix(before ^ _SINGLED_OUT)[ends[:, 1]], first)
        if step % 4 == 0:
            last, count = count, _count(colours)
            if count in (last, len(colours)):
                return before, colours, True
    return before, colours, False


def _count(colours: np.ndarray) -> int:
    """How many are different; sorting is quicker than a hash table where nearly all are."""
    ordered = np.sort(colours)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + min(len(ordered), 1)


def _parts(graph: Graph) -> Parts:
    before, colours, stable = _refined(graph)
    _, which, counts = np.unique(before, return_inverse=True, return_counts=True)
    alone = counts[which.ravel()] == 1
    fixed, rest = np.flatnonzero(alone), np.flatnonzero(~alone)
    place = np.full(len(colours), -1, dtype=np.int64)
    place[rest] = np.arange(len(rest))
    edges = place[graph.edges]
    edges = edges[(edges >= 0).all(axis=1)]
    if len(edges) > DENSE * len(rest):
        edges = _without_complete(colours[rest], edges)
    label = components(len(rest), edges[:, 0], edges[:, 1]).astype(np.int64)
    number = int(label.max(initial=-1)) + 1
    order = np.lexsort((colours[rest], label))
    nodes, label_of = rest[order], label[order]
    turned = np.empty_like(order)
    turned[order] = np.arange(len(order))
    by_label = np.argsort(label[edges[:, 0]], kind="stable")
    edge_label = label[edges[by_label, 0]]
    signature = np.zeros(number, dtype=np.uint64)
    np.add.at(signature, label_of, mix(colours[nodes]))
    same = (label_of[1:] == label_of[:-1]) & (colours[nodes[1:]] == colours[nodes[:-1]])
    discrete = np.ones(number, dtype=bool)
    discrete[label_of[1:][same]] = False
    return Parts(
        Graph(colours, graph.edges),
        fixed[np.argsort(colours[fixed])],
        nodes,
        np.searchsorted(label_of, np.arange(number + 1)),
        turned[edges[by_label]],
        np.searchsorted(edge_label, np.arange(number + 1)),
        signature,
        discrete,
        stable,
    )


def _without_complete(colours: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The edges without those between two colours, or within one, of which none is missing."""
    _, cell, size = np.unique(colours, return_inverse=True, return_counts=True)
    ends = np.sort(cell.ravel()[edges], axis=1)
    pairs, which, count = np.unique(ends[:, 0] * len(size) + ends[:, 1], return_inverse=True, return_counts=True)
    a, b = np.divmod(pairs, len(size))
    whole = np.where(a == b, size[a] * (size[a] - 1) // 2, size[a] * size[b])
    return edges[(count < whole)[which.ravel()]]


def _by_signature(parts: Parts) -> list[np.ndarray]:
    """Components that may be isomorphic, in sets; a discrete one on its own has no symmetry and is left out."""
    order = np.argsort(parts.signature, kind="stable")
    bounds = np.flatnonzero(np.diff(parts.signature[order])) + 1
    sets = np.split(order, bounds) if len(order) else []
    return [same for same in sets if len(same) > 1 or not parts.discrete[same[0]]]


def _isomorphic(parts: Parts, same: np.ndarray) -> list[list[tuple[int, np.ndarray]]]:
    """The set split into classes: (component, its nodes in canonical order) each."""
    if len(same) == 1:
        return [[(int(same[0]), np.empty(0, dtype=np.int64))]]
    classes: dict[bytes, list[tuple[int, np.ndarray]]] = {}
    for p in same.tolist():
        key, nodes = _canonical_piece(parts, p)
        classes.setdefault(key, []).append((p, nodes))
    return list(classes.values())


def _canonical_piece(parts: Parts, p: int) -> tuple[bytes, np.ndarray]:
    nodes, piece = parts.piece(p)
    edges = piece.edges
    if not parts.discrete[p]:
        labelled, colours = igraph_of(piece)
        order = np.array(labelled.canonical_permutation(color=colours), dtype=np.int64)
        order = order if _permutations_list_nodes() else np.argsort(order)
        nodes, edges = nodes[order], np.argsort(order)[edges]
        piece = Graph(piece.colours[order], edges)
    ends = np.sort(edges, axis=1)
    ends = ends[np.lexsort(ends.T)]
    return piece.colours.tobytes() + ends.tobytes(), nodes


@cache
def _permutations_list_nodes() -> bool:
    """igraph 1.0 lists the node at each canonical place; the inverse, the place of each node, has also been seen."""
    import igraph

    return igraph.Graph(n=3).canonical_permutation(color=[2, 0, 1]) == [1, 2, 0]


def _sorted(points: np.ndarray, images: np.ndarray) -> Generator:
    order = np.argsort(points)
    return points[order], images[order]


# --- one component -----------------------------------------------------------------------------------------------


def igraph_of(graph: Graph):
    """The graph as igraph wants it, and its colours as small integers."""
    import igraph

    colours = np.unique(graph.colours, return_inverse=True)[1].ravel()
    return igraph.Graph(n=len(colours), edges=graph.edges), colours.tolist()


def _component(piece: Graph, stable: bool, depth: int) -> tuple[list[Generator], int]:
    few = len(piece.colours) <= FEW * len(np.unique(piece.colours))
    if len(piece.colours) >= LARGE and (stable or few) and depth < DEPTH:
        split = _single_out(piece, depth)
        if split is not None:
            return split
    graph, colours = igraph_of(piece)
    first = FIRST if len(colours) >= LARGE else LARGEST
    dense = graph.automorphism_group(sh=first, color=colours)
    own = np.arange(len(colours))
    out: list[Generator] = []
    while dense:  # igraph's lists are large: each is made sparse at once and let go
        images = np.array(dense.pop(), dtype=np.int64)
        points = np.flatnonzero(images != own)
        out.append((points, images[points]))
    if len(own) < LARGE:
        return out, int(graph.count_automorphisms(color=colours))
    # igraph would search all over again for the order; a stabiliser chain is cheaper where the group is small.
    order = group_order(PermutationGroup(len(own), tuple(out)), work=400 * len(own))
    return out, int(graph.count_automorphisms(sh=first, color=colours)) if order is None else order


def _single_out(piece: Graph, depth: int) -> tuple[list[Generator], int] | None:
    """A node's stabiliser, and an element for each kind of place that it can be taken to; None if it is no help."""
    values, counts = np.unique(piece.colours, return_counts=True)
    for colour in values[np.argsort(counts, kind="stable")[:ATTEMPTS]]:
        rivals = np.flatnonzero(piece.colours == colour)
        marked = _marked(piece, int(rivals[0]))
        if int(np.diff(_parts(marked).start).max(initial=0)) <= len(piece.colours) * 3 // 4:
            return _cosets(piece, rivals, marked, depth)
    return None


def _cosets(piece: Graph, rivals: np.ndarray, marked: Graph, depth: int) -> tuple[list[Generator], int] | None:
    """The automorphisms of a component from those of `marked`, in which the first of the rivals is singled out."""
    generators, order = automorphisms(marked, depth + 1)
    orbit = _orbits(piece, generators)
    others = rivals[np.unique(orbit[rivals], return_index=True)[1]]  # one of each kind is enough
    if len(others) > TESTS:
        return None
    key, nodes = canonical(marked)
    for other in others.tolist():
        if orbit[other] == orbit[rivals[0]]:
            continue
        other_key, other_nodes = canonical(_marked(piece, other))
        if other_key == key:
            moved = nodes != other_nodes
            generators.append(_sorted(nodes[moved], other_nodes[moved]))
            orbit = _orbits(piece, generators)
    return generators, order * int((orbit == orbit[rivals[0]]).sum())


def _orbits(piece: Graph, generators: list[Generator]) -> np.ndarray:
    return orbits(PermutationGroup(len(piece.colours), tuple(generators)))


def _marked(piece: Graph, node: int) -> Graph:
    colours = piece.colours.copy()
    colours[node] = _SINGLED_OUT
    return Graph(colours, piece.edges)
