"""Coloured graphs whose automorphisms are the symmetries of a factor graph, over literals or over variables only.

Over literals: one node per free variable, one per literal (coloured by its unary value), one per table entry that
differs from the table's most frequent entry (coloured by both values, joined to its literals). The literals of an entry
determine the factor, since no two factors have the same scope, so factors need no nodes of their own: a clause costs
one node. The most common kind of pair tables with just two different entries needs no nodes: its entries are edges
between literals. Tables with very many entries are shown by the roles of their axes (`large_tables.py`). Twins and tied
values have been merged before; their multiplicities are colours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from definetti.groups import Generator
from definetti.integer_rows import mix
from definetti.model.graph.factors import FactorGraph, SameShape
from definetti.symmetry.graph.large_tables import Token, flips, normal_form, role_nodes, split
from definetti.symmetry.graph.twins import Twins


@dataclass(frozen=True, eq=False)
class ColouredGraph:
    """Nodes 0 … count-1. `carry` turns a permutation of nodes into one of the kept literals: (points, images)."""

    colours: np.ndarray  # int64[count], 0 … k
    edges: np.ndarray  # int64[m, 2]
    carry: Callable[[Generator], tuple[np.ndarray, np.ndarray]]
    flips: Sequence[Generator] = ()  # of literals: independent symmetries beside those that it shows

    @property
    def count(self) -> int:
        return len(self.colours)


@dataclass(frozen=True, eq=False)
class _Entries:
    """The entries of one table that differ from its most frequent one."""

    places: np.ndarray  # int64[e, arity]
    kinds: list[tuple[float, float]]  # (most frequent, this) for each


def _unusual(table: np.ndarray) -> _Entries:
    values, counts = np.unique(table, return_counts=True)
    usual = float(values[np.argmax(counts)])  # of equally frequent ones the smallest
    # A constant table (none is left after simplification) shows itself by all its entries.
    places = np.argwhere(table != usual) if len(values) > 1 else np.argwhere(table == usual)
    return _Entries(places, [(usual, v) for v in table[tuple(places.T)].tolist()])


def literal_graph(model: FactorGraph, twins: Twins, over: str, most_nodes: int) -> ColouredGraph | int:
    """The graph, or the number of nodes it would have (but for twins) if that is more than `most_nodes`."""
    variables = twins.representatives
    kept = np.zeros(len(model.variable_of), dtype=bool)
    of_kept = np.isin(model.variable_of, variables)
    kept[of_kept & (twins.ties > 0)] = True
    literals = np.flatnonzero(kept)
    node = np.full(len(kept), -1, dtype=np.int64)
    node[literals] = len(variables) + np.arange(len(literals))
    place = np.full(model.n, -1, dtype=np.int64)
    place[variables] = np.arange(len(variables))

    small, large = split(model)
    unusual = [_table_entries(model, alike) for alike in small]
    direct, cost = _commonest_pair(small, unusual)
    cost += sum(part.cost for part in large)
    if len(variables) + len(literals) + cost > most_nodes:
        return len(variables) + len(literals) + cost
    edges = [np.stack([place[model.variable_of[literals]], node[literals]], axis=1)]
    colours = [_variable_colours(twins), _literal_colours(model, twins, literals, over)]
    palette: dict[tuple[float, float], int] = {}
    count = len(variables) + len(literals)
    for alike, entries in zip(small, unusual, strict=True):
        if alike.arity < 2:
            continue
        for rows, kinds in _entry_rows(model, alike, entries, node, place >= 0, direct, palette):
            if kinds is None:
                edges.append(rows)
                continue
            new = count + np.arange(len(rows))
            edges.append(np.stack([np.repeat(new, alike.arity), rows.ravel()], axis=1))
            colours.append(np.stack([np.full(len(rows), 2), kinds, np.zeros_like(kinds), np.zeros_like(kinds)], axis=1))
            count += len(rows)
    tokens: dict[tuple[Token, bytes], int] = {}
    for part in large:
        shown, joined = role_nodes(model, part, node, count, tokens)
        colours.append(np.concatenate([np.full((len(shown), 1), 3), shown], axis=1))
        edges.append(joined)
        count += len(shown)

    def carry(generator: Generator) -> tuple[np.ndarray, np.ndarray]:
        place = generator[0] - len(variables)
        inside = (place >= 0) & (place < len(literals))
        return literals[place[inside]], literals[generator[1][inside] - len(variables)]

    beside = flips(model, small, large) if over == "literals" else ()
    return ColouredGraph(numbered(np.concatenate(colours)), np.concatenate(edges), carry, beside)


def _table_entries(model: FactorGraph, alike: SameShape) -> dict[int, _Entries]:
    if alike.arity < 2:
        return {}
    return {t: _unusual(model.log_values(t, alike.shape)) for t in np.unique(alike.tables).tolist()}


def _commonest_pair(
    shapes: Sequence[SameShape], unusual: list[dict[int, _Entries]]
) -> tuple[tuple[float, float] | None, int]:
    """The pair of values whose two-valued pair tables would cost most nodes, and what the others cost."""
    cost: Counter[tuple[float, float]] = Counter()
    total = 0
    for alike, entries in zip(shapes, unusual, strict=True):
        for table, uses in Counter(alike.tables.tolist()).items() if alike.arity > 1 else ():
            kinds = entries[table].kinds
            total += uses * len(kinds)
            if alike.arity == 2 and len(set(kinds)) == 1:
                cost[kinds[0]] += uses * len(kinds)
    best = max(cost, key=lambda kind: cost[kind]) if cost else None
    return best, total - (cost[best] if best else 0)


def _entry_rows(
    model: FactorGraph,
    alike: SameShape,
    entries: dict[int, _Entries],
    node: np.ndarray,
    variables: np.ndarray,
    direct: tuple[float, float] | None,
    palette: dict[tuple[float, float], int],
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """(literal nodes of each unusual entry, its colour), with colour None for the entries that become edges.

    `variables` marks those that are kept; a factor over another one says nothing new.
    """
    numbers = sorted(entries)
    edge = np.array([alike.arity == 2 and set(entries[t].kinds) == {direct} for t in numbers])
    sizes = np.array([len(entries[t].kinds) for t in numbers])
    start = np.concatenate([[0], np.cumsum(sizes)])
    places = np.concatenate([entries[t].places for t in numbers])
    kinds = np.array([palette.setdefault(kind, len(palette)) for t in numbers for kind in entries[t].kinds])
    table = np.searchsorted(numbers, alike.tables)
    literal_start = model.literal_start
    kept = variables[alike.scopes].all(axis=1)
    out: list[tuple[np.ndarray, np.ndarray | None]] = []
    for as_edges in (True, False):
        factors = np.flatnonzero(kept & (edge[table] == as_edges))
        size = sizes[table[factors]]
        row = np.repeat(factors, size)
        entry = np.arange(len(row)) + np.repeat(start[table[factors]] - np.cumsum(size) + size, size)
        literals = node[literal_start[alike.scopes[row]] + places[entry]]
        whole = (literals >= 0).all(axis=1)
        if whole.any():
            out.append((literals[whole], None if as_edges else kinds[entry[whole]]))
    return out


def _variable_colours(twins: Twins) -> np.ndarray:
    sizes = twins.sizes
    return np.stack([np.zeros_like(sizes), twins.cards[twins.representatives], sizes, np.zeros_like(sizes)], axis=1)


def unary_values(model: FactorGraph) -> np.ndarray:
    """int64[L]: a number for each literal's unary log value, 0 where the variable has no unary factor."""
    unary, has_unary = np.zeros(len(model.variable_of)), np.zeros(model.n, dtype=np.int64)
    for alike in model.by_shape:
        if alike.arity == 1:
            place = model.table_start[alike.tables][:, None] + np.arange(alike.shape[0])
            unary[model.literal_start[alike.scopes] + np.arange(alike.shape[0])] = model.tables[place] + 0.0
            has_unary[alike.scopes] = 1
    return (np.unique(unary, return_inverse=True)[1].ravel() + 1) * has_unary[model.variable_of]


def _own_values(model: FactorGraph, twins: Twins) -> np.ndarray:
    """int64[L]: a number for each literal's unary log value and its place in the table that joins a closed class."""
    unary = unary_values(model)
    return unary + (int(unary.max(initial=0)) + 1) * twins.inside


def _literal_colours(model: FactorGraph, twins: Twins, literals: np.ndarray, over: str) -> np.ndarray:
    own = np.zeros_like(literals)
    if over == "variables":  # then values are never changed
        own = literals - model.literal_start[model.variable_of[literals]]
    return np.stack([np.ones_like(literals), _own_values(model, twins)[literals], twins.ties[literals], own], axis=1)


def numbered(rows: np.ndarray) -> np.ndarray:
    """One number 0 … k per different row, equal in equal graphs."""
    spans = rows.max(axis=0, initial=0).astype(object) + 1
    if int(np.prod(spans)) < 2**62:
        places = np.array([int(np.prod(spans[i + 1 :])) for i in range(rows.shape[1])], dtype=np.int64)
        return np.unique(rows @ places, return_inverse=True)[1].ravel()
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()


# --- the smaller graph over variables --------------------------------------------------------------------------------
# For models too large for a graph over literals: its automorphisms only rename variables. One node per free variable
# (coloured by its unary factor), one per factor (coloured by its table, up to the order of the axes), one for every
# further role. Axes that can change places in the table have the same role; the variables of the first role are joined
# to the factor itself. The most common table of two variables in one role is an edge.


def variable_graph(model: FactorGraph, twins: Twins) -> ColouredGraph:
    variables = twins.representatives
    node = np.full(model.n, -1, dtype=np.int64)
    node[variables] = np.arange(len(variables))
    shapes = [alike for alike in model.by_shape if alike.arity > 1]
    forms = [{t: normal_form(model.log_values(t, b.shape)) for t in np.unique(b.tables).tolist()} for b in shapes]
    direct = _commonest_table(shapes, forms)
    palette: dict[Token, int] = {}
    colours = [_unary_colours(model, twins)]
    edges = [np.empty((0, 2), dtype=np.int64)]
    count = len(variables)
    for alike, form in zip(shapes, forms, strict=True):
        numbers = sorted(form)
        token = np.array([palette.setdefault(form[t][0], len(palette)) for t in numbers])
        role = np.array([form[t][1] for t in numbers])
        plain = np.array([form[t][0] == direct for t in numbers])
        scopes = node[alike.scopes]
        kept = (scopes >= 0).all(axis=1)
        scopes, table = scopes[kept], np.searchsorted(numbers, alike.tables[kept])
        edges.append(scopes[plain[table]][:, :2])
        scopes, table = scopes[~plain[table]], table[~plain[table]]
        roles = role.max(axis=1)[table] + 1  # nodes of each factor
        first = count + np.cumsum(roles) - roles
        owner = np.repeat(np.arange(len(table)), roles)
        which = np.arange(len(owner)) - (first - count)[owner]
        colours.append(np.stack([np.ones_like(owner), token[table[owner]], which, np.zeros_like(owner)], axis=1))
        further = which > 0
        edges.append(np.stack([first[owner[further]], count + np.flatnonzero(further)], axis=1))
        ends = first[:, None] + role[table]
        edges.append(np.stack([ends.ravel(), scopes.ravel()], axis=1))
        count += len(owner)

    def carry(generator: Generator) -> tuple[np.ndarray, np.ndarray]:
        points, images = (variables[x[generator[0] < len(variables)]] for x in generator)
        cards = model.cards[points].astype(np.int64)
        value = np.arange(int(cards.sum())) - np.repeat(np.cumsum(cards) - cards, cards)
        start = model.literal_start
        return np.repeat(start[points], cards) + value, np.repeat(start[images], cards) + value

    return ColouredGraph(numbered(np.concatenate(colours)), np.concatenate(edges), carry)


def _commonest_table(shapes: list[SameShape], forms: list[dict[int, tuple[Token, list[int]]]]) -> Token | None:
    """The table, over two variables in one role, that most factors have."""
    uses: Counter[Token] = Counter()
    for alike, form in zip(shapes, forms, strict=True):
        if alike.arity == 2:
            for table, count in Counter(alike.tables.tolist()).items():
                if form[table][1] == [0, 0]:
                    uses[form[table][0]] += count
    return max(uses, key=lambda token: uses[token]) if uses else None


def _unary_colours(model: FactorGraph, twins: Twins) -> np.ndarray:
    start, variables, sizes = model.literal_start, twins.representatives, twins.sizes
    value = _own_values(model, twins) + 1
    position = np.arange(len(value)) - start[model.variable_of]
    key = np.zeros(model.n, dtype=np.uint64)
    np.add.at(key, model.variable_of, mix(value * (int(model.cards.max(initial=1)) + 1) + position))
    unary = np.unique(key[variables], return_inverse=True)[1].ravel()
    return np.stack([np.zeros_like(sizes), unary, sizes, twins.cards[variables]], axis=1)
