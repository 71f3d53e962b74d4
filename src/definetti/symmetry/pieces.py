"""Automorphisms piece by piece, so that BLISS sees small graphs and its dense generators stay small.

Colours are refined by hashing neighbourhoods. A node with a colour of its own is fixed by every automorphism and its
edges are part of its neighbours' colours, so it can go; what is left falls apart into components. Isomorphic components
change places as wholes: if C occurs m times, they contribute Aut(C)^m with all m! orders. A large component in which
every node has few rivals (a model with nothing but a value flip, say) falls apart after one node is singled out; its
cosets are found by comparing canonical forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from definetti.groups import Generator, PermutationGroup, components
from definetti.groups import order as group_order
from definetti.symmetry.layout import mix

ROUNDS = 16  # of refinement; any number is correct
LARGE = 2000  # nodes: a component worth splitting by singling out a node
FEW = 4  # rivals
DEPTH = 6  # of singling out

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
                own, size = _component(piece, depth)
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


def _refined(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """(colours, those of one round later)."""
    before = colours = mix(graph.colours)
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    joined, first = np.unique(ends[:, 0], return_index=True)
    count = len(np.unique(colours))
    for step in range(1, ROUNDS + 1):
        before = colours
        colours = mix(colours)
        if len(joined):
            colours[joined] += np.add.reduceat(mix(before ^ _SINGLED_OUT)[ends[:, 1]], first)
        if step % 4 == 0:
            last, count = count, len(np.unique(colours))
            if count in (last, len(colours)):
                break
    return before, colours


def _parts(graph: Graph) -> Parts:
    before, colours = _refined(graph)
    _, which, counts = np.unique(before, return_inverse=True, return_counts=True)
    alone = counts[which.ravel()] == 1
    fixed, rest = np.flatnonzero(alone), np.flatnonzero(~alone)
    place = np.full(len(colours), -1, dtype=np.int64)
    place[rest] = np.arange(len(rest))
    edges = place[graph.edges]
    edges = edges[(edges >= 0).all(axis=1)]
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
    )


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
        place = np.array(labelled.canonical_permutation(color=colours), dtype=np.int64)
        order = np.argsort(place)
        nodes, edges = nodes[order], place[edges]
        piece = Graph(piece.colours[order], edges)
    ends = np.sort(edges, axis=1)
    ends = ends[np.lexsort(ends.T)]
    return piece.colours.tobytes() + ends.tobytes(), nodes


def _sorted(points: np.ndarray, images: np.ndarray) -> Generator:
    order = np.argsort(points)
    return points[order], images[order]


# --- one component -----------------------------------------------------------------------------------------------


def igraph_of(graph: Graph):
    """The graph as igraph wants it, and its colours as small integers."""
    import igraph

    colours = np.unique(graph.colours, return_inverse=True)[1].ravel()
    return igraph.Graph(n=len(colours), edges=graph.edges), colours.tolist()


def _component(piece: Graph, depth: int) -> tuple[list[Generator], int]:
    if len(piece.colours) >= LARGE and depth < DEPTH:
        split = _single_out(piece, depth)
        if split is not None:
            return split
    graph, colours = igraph_of(piece)
    dense = graph.automorphism_group(color=colours)
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
    return out, int(graph.count_automorphisms(color=colours)) if order is None else order


def _single_out(piece: Graph, depth: int) -> tuple[list[Generator], int] | None:
    """The stabiliser of a node with few rivals, and an element for each rival that it can be taken to."""
    values, counts = np.unique(piece.colours, return_counts=True)
    fewest = int(counts.min())
    if fewest > FEW or len(piece.colours) > FEW * len(values):
        return None
    rivals = np.flatnonzero(piece.colours == values[counts.argmin()])
    marked = [_marked(piece, int(node)) for node in rivals]
    parts = _parts(marked[0])
    if len(parts.start) > 1 and int(np.diff(parts.start).max()) > len(piece.colours) * 3 // 4:
        return None
    generators, order = automorphisms(marked[0], depth + 1)
    key, nodes = canonical(marked[0])
    reached = 1
    for other in marked[1:]:
        other_key, other_nodes = canonical(other)
        if other_key == key:
            reached += 1
            moved = nodes != other_nodes
            generators.append(_sorted(nodes[moved], other_nodes[moved]))
    return generators, order * reached


def _marked(piece: Graph, node: int) -> Graph:
    colours = piece.colours.copy()
    colours[node] = _SINGLED_OUT
    return Graph(colours, piece.edges)
