"""Contraction of tied variables: hard factors are propagated, and variables they tie together become one variable.

The result is a *core*, an ordinary simplified factor graph over fewer variables, and for every variable of the model
the core variable that it is a function of. Three steps are repeated until nothing changes:

1. forced values become evidence (arc consistency);
2. variables whose values are equivalent, along chains of implications between hard pairs, become one variable (x = y,
   x ≠ y, any one-to-one relation);
3. a hard factor whose possible entries single-variable moves do not connect (one-of-k, parity, y = f(x)) becomes one
   variable whose values are these entries, if they are few and no table grows too large.

Single-site moves on the core are moves of whole classes of the model's variables, and symmetries of the core carry more
than those of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from definetti.constraints.graph.arc_consistency import (
    contradictory_literals,
    equivalence_labels,
    implications,
    possible_entries,
    possible_values,
)
from definetti.errors import TooLarge
from definetti.model.graph.factors import FREE, FactorGraph, frozen
from definetti.model.graph.simplify import LARGE, simplify

if TYPE_CHECKING:
    from definetti.constraints.graph.connectivity import Part
    from definetti.model.queries import Query

MOST_VALUES = 64  # of a variable made of several
MOST_ENTRIES = 2**14  # of a table that gets such a variable
MOST_TUPLES = 1_000_000  # of core values that a query is looked up in


@dataclass(frozen=True, eq=False)
class Links:
    """Variables as functions of others: x_i = maps[map_of[i]][y] with y the value of `parent[i]`."""

    parent: np.ndarray  # int64[n]
    map_of: np.ndarray  # int64[n]
    maps: tuple[np.ndarray, ...]

    def function(self, variable: int) -> np.ndarray:
        """int64: the variable's value for each value of its parent."""
        return self.maps[self.map_of[variable]]

    def then(self, other: Links) -> Links:
        """Where the parents are in turn functions of variables further on."""
        pairs = np.stack([self.map_of, other.map_of[self.parent]], axis=1)
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
        maps = tuple(self.maps[a][other.maps[b]] for a, b in distinct.tolist())
        return Links(other.parent[self.parent], which.ravel(), maps)


def identity(model: FactorGraph) -> Links:
    cards, map_of = np.unique(model.cards, return_inverse=True)
    return Links(np.arange(model.n), map_of.ravel(), tuple(np.arange(card) for card in cards.tolist()))


@dataclass(frozen=True, eq=False)
class Contracted:
    """A model, with all that is forced as evidence; its core; and its variables as functions of the core's."""

    model: FactorGraph
    core: FactorGraph
    links: Links

    @property
    def merged(self) -> bool:
        return self.core.n < self.model.n

    def states(self, core_states: np.ndarray) -> np.ndarray:
        """States of the model [..., n] from states of the core."""
        return self._table[self.links.map_of, core_states[..., self.links.parent]]

    def values(self, variables: np.ndarray) -> np.ndarray:
        """uint8[variables, values of the parent]: some variables as functions of their parents."""
        return self._table[self.links.map_of[variables]].astype(np.uint8)

    @property
    def _table(self) -> np.ndarray:
        """int64[maps, values of a parent]"""
        width = max(len(m) for m in self.links.maps) if self.links.maps else 1
        table = np.zeros((len(self.links.maps), width), dtype=np.int64)
        for k, values in enumerate(self.links.maps):
            table[k, : len(values)] = values
        return table

    def fields(self, fields: np.ndarray) -> np.ndarray:
        """float64[literals of the core]: log weights of the single values of the model's variables, added up."""
        out, links = np.zeros(int(self.core.literal_start[-1])), self.links
        for k, values in enumerate(links.maps):
            mine = np.flatnonzero(links.map_of == k)
            of_core = self.core.literal_start[links.parent[mine]][:, None] + np.arange(len(values))
            np.add.at(out, of_core, fields[self.model.literal_start[mine][:, None] + values])
        return out

    def query(self, query: Query) -> Query:
        """An event over variables of the model as one over variables of the core; the text stays."""
        if query.kind != "event" or not self.merged:
            return query
        parents, which = np.unique(self.links.parent[list(query.variables)], return_inverse=True)
        shape = [int(c) for c in self.core.cards[parents]]
        size = int(np.prod(shape, dtype=np.float64))
        if size > MOST_TUPLES:
            cure = "ask about fewer at a time"
            raise TooLarge("the number of states of a query's variables", size, MOST_TUPLES, cure)
        grid = np.indices(shape).reshape(len(shape), -1)
        values = np.stack(
            [self.links.function(i)[grid[p]] for i, p in zip(query.variables, which.ravel().tolist(), strict=True)],
            axis=1,
        )
        wanted = {tuple(row) for row in query.satisfying.tolist()}
        holds = np.array([tuple(row) in wanted for row in values.tolist()], dtype=bool)
        satisfying = grid.T[holds].astype(np.int32)
        return replace(query, variables=tuple(parents.tolist()), kind="event", satisfying=satisfying)


def contract(model: FactorGraph) -> Contracted:
    """The core of a model, and the model's variables as functions of it. Without hard factors it is the model."""
    simple = core = simplify(model)
    if (simple.table_range > LARGE).any():
        from definetti.constraints.graph.legal_states import refuse_cancelling

        refuse_cancelling(simple)
    links = identity(simple)
    while len(core.hard_factors):
        core, step = _propagate(core)
        if step is None:
            break
        core, links = simplify(_substitute(core, step)), links.then(step)
    known = core.evidence[links.parent]
    forced = np.flatnonzero((known != FREE) & (simple.evidence == FREE))
    if len(forced):
        evidence = simple.evidence.copy()
        evidence[forced] = [links.function(i)[known[i]] for i in forced.tolist()]
        simple = simplify(replace(simple, evidence=frozen(evidence)))
    return Contracted(simple, simple if core.n == simple.n else core, links)


def _propagate(core: FactorGraph) -> tuple[FactorGraph, Links | None]:
    """The core with what is forced as evidence, and the next merging, if any."""
    while True:
        domain = possible_values(core)
        fixed = _observe_forced(core, domain)
        if fixed is not core:
            core = fixed
            continue
        arcs = implications(core, domain)
        classes = _equivalence_classes(core, domain, *arcs)
        if classes:
            return core, _link_classes(core, classes)
        impossible = contradictory_literals(core, *arcs)
        if impossible:
            core = forbid_literals(core, impossible)
            continue
        classes = _disconnected_factors(core, domain)
        return core, _link_classes(core, classes) if classes else None


def _observe_forced(core: FactorGraph, domain: list[int]) -> FactorGraph:
    """Variables with one value left are observed from now on."""
    single = [i for i in core.free.tolist() if domain[i] & (domain[i] - 1) == 0]
    if not single:
        return core
    evidence = core.evidence.copy()
    evidence[single] = [domain[i].bit_length() - 1 for i in single]
    return simplify(replace(core, evidence=frozen(evidence)))


def forbid_literals(core: FactorGraph, literals: list[int]) -> FactorGraph:
    """The model with these literals impossible: one more unary factor each."""
    start = core.literal_start
    scopes, tables = [core.scope], [core.tables]
    for literal in literals:
        i = int(np.searchsorted(start, literal, side="right")) - 1
        table = np.zeros(int(core.cards[i]))
        table[literal - start[i]] = -np.inf
        scopes.append(np.array([i]))
        tables.append(table)
    more = len(literals)
    sizes = np.cumsum([len(t) for t in tables[1:]])
    return simplify(
        replace(
            core,
            scope_start=frozen(np.append(core.scope_start, len(core.scope) + np.arange(1, more + 1))),
            scope=frozen(np.concatenate(scopes), np.int32),
            table_of=frozen(np.append(core.table_of, len(core.table_start) - 1 + np.arange(more)), np.int32),
            table_start=frozen(np.append(core.table_start, len(core.tables) + sizes)),
            tables=frozen(np.concatenate(tables)),
        )
    )


# --- what belongs together -----------------------------------------------------------------------------------------

Class = tuple[list[int], np.ndarray]  # variables, and their values together: int64[values, variables]


def _equivalence_classes(core: FactorGraph, domain: list[int], sources: np.ndarray, targets: np.ndarray) -> list[Class]:
    """Rule 2: variables whose possible values are the same classes of equivalence_labels literals."""
    if not len(sources):
        return []
    label = equivalence_labels(core, sources, targets).tolist()
    start = core.literal_start.tolist()
    sharing: dict[tuple[int, ...], list[int]] = {}
    labels: dict[int, dict[int, int]] = {}
    for i in np.unique(np.searchsorted(core.literal_start, sources, side="right") - 1).tolist():
        mine = {label[start[i] + v]: v for v in range(int(core.cards[i])) if domain[i] >> v & 1}
        if len(mine) == domain[i].bit_count():  # else two values imply each other: rule 1 will strike them out
            labels[i] = mine
            sharing.setdefault(tuple(sorted(mine)), []).append(i)
    out = []
    for key, members in sharing.items():
        if len(members) > 1:
            first = sorted(key, key=labels[members[0]].__getitem__)  # values in the order of the first member's
            out.append((members, np.array([[labels[i][k] for i in members] for k in first], dtype=np.int64)))
    return out


def _disconnected_factors(core: FactorGraph, domain: list[int]) -> list[Class]:
    """Rule 3: hard factors whose possible entries single moves do not connect.

    Those that share variables are taken together, which every symmetry respects, if their legal tuples are few; else
    one factor after the other, the smallest first, as long as they share no variables.
    """
    known: dict[tuple[int, ...], np.ndarray | None] = {}
    found: list[tuple[int, Part]] = []
    for k in core.hard_factors.tolist():
        scope = tuple(core.variables(k).tolist())
        key = (int(core.table_of[k]), *(domain[i] for i in scope))
        if len(scope) > 1 and key not in known:
            allowed = possible_entries(core.table(k), key[1:])
            few = int(allowed.sum()) <= MOST_VALUES
            known[key] = allowed if few and not entries_connected(np.argwhere(allowed)) else None
        allowed = known.get(key)
        if allowed is not None:
            found.append((int(allowed.sum()), (scope, allowed)))
    if not found:
        return []
    from definetti.constraints.graph.connectivity import components, legal_tuples

    candidates: list[Class] = []
    for part in components([part for _, part in found]):
        together = legal_tuples(core, part, MOST_VALUES) if len(part) > 1 else None
        candidates += [together] if together else []
    alone = sorted(found, key=lambda each: (each[0], each[1][0]))
    candidates += [(list(scope), np.argwhere(allowed)) for _, (scope, allowed) in alone]
    size, touching = dict(enumerate(_table_sizes(core))), _touching(core)
    taken: set[int] = set()
    out = []
    for scope, entries in candidates:
        if taken.isdisjoint(scope) and _tables_stay_small(core, scope, len(entries), size, touching):
            taken.update(scope)
            out.append((scope, entries.astype(np.int64)))
    return out


def entries_connected(entries: np.ndarray) -> bool:
    """Whether changing one variable at a time leads from every entry to every other."""
    reached, left = [entries[0]], list(entries[1:])
    while reached and left:
        at = reached.pop()
        near = (np.array(left) != at).sum(axis=1) == 1
        reached += [e for e, n in zip(left, near, strict=True) if n]
        left = [e for e, n in zip(left, near, strict=True) if not n]
    return not left


def _table_sizes(core: FactorGraph) -> list[int]:
    return np.diff(core.table_start)[core.table_of].tolist()


def _touching(core: FactorGraph) -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for i, k in zip(core.scope.tolist(), core.owner_of.tolist(), strict=True):
        out.setdefault(i, []).append(k)
    return out


def _tables_stay_small(
    core: FactorGraph, scope: list[int], count: int, size: dict[int, int], touching: dict[int, list[int]]
) -> bool:
    """Enter the sizes of tables after a merging, unless one would be too large."""
    after = {}
    for k in {k for i in scope for k in touching[i]}:
        gone = np.prod([core.cards[i] for i in set(scope) & set(core.variables(k).tolist())], dtype=np.int64)
        after[k] = size[k] // int(gone) * count
        if after[k] > max(MOST_ENTRIES, size[k]):
            return False
    size.update(after)
    return True


# --- the smaller model ---------------------------------------------------------------------------------------------


def merge_classes(model: FactorGraph, classes: list[Class]) -> FactorGraph:
    """The same distribution with each class of variables as one variable."""
    return simplify(_substitute(model, _link_classes(model, classes))) if classes else model


def _link_classes(core: FactorGraph, classes: list[Class]) -> Links:
    """Each class becomes one variable, in the place of its first member; the others keep their order."""
    keep = np.ones(core.n, dtype=bool)
    head = np.arange(core.n)
    maps: dict[bytes, int] = {}
    made: list[np.ndarray] = []

    def number(values: np.ndarray) -> int:
        key = values.tobytes()
        if key not in maps:
            maps[key] = len(made)
            made.append(values)
        return maps[key]

    map_of = np.array([number(np.arange(card)) for card in core.cards.tolist()], dtype=np.int64)
    for members, values in classes:
        first = min(members)
        keep[members] = False
        keep[first] = True
        head[members] = first
        map_of[members] = [number(np.ascontiguousarray(values[:, c])) for c in range(len(members))]
    place = np.cumsum(keep) - 1
    return Links(place[head], map_of, tuple(made))


def _substitute(core: FactorGraph, links: Links) -> FactorGraph:
    """The same distribution over the new variables: every table looked up through the functions."""
    count = int(links.parent.max()) + 1
    lead = np.full(count, -1, dtype=np.int64)
    lead[links.parent[::-1]] = np.arange(core.n)[::-1]  # the first variable of each class
    cards = np.array([len(links.maps[m]) for m in links.map_of[lead]], dtype=np.int32)
    scopes: list[np.ndarray] = []
    tables: list[np.ndarray] = []
    table_of: list[np.ndarray] = []
    for k in np.unique(core.arity).tolist():
        factors = np.flatnonzero(core.arity == k)
        scope = core.scope[core.scope_start[factors][:, None] + np.arange(k)].reshape(len(factors), k)
        parent = links.parent[scope]
        pattern = (parent[:, :, None] == parent[:, None, :]).argmax(axis=2)  # the first place with the same parent
        kinds = np.column_stack([core.table_of[factors], links.map_of[scope], pattern])
        _, first, which = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        for at, mine in zip(
            first.tolist(), np.split(order, np.flatnonzero(np.diff(which.ravel()[order])) + 1), strict=True
        ):
            table = _look_up(core.table(int(factors[at])), [links.function(i) for i in scope[at]], pattern[at])
            distinct = np.unique(pattern[at])
            scopes += list(parent[mine][:, distinct])
            table_of.append(np.full(len(mine), len(tables)))
            tables.append(table)
    evidence = np.full(count, FREE)
    seen = np.flatnonzero(core.evidence != FREE)
    evidence[links.parent[seen]] = core.evidence[seen]  # observed variables have no factors: they are never merged
    names = [core.names[i] for i in lead]
    return FactorGraph.from_arrays(
        cards,
        np.concatenate([[0], np.cumsum([len(s) for s in scopes], dtype=np.int64)]),
        np.concatenate(scopes) if scopes else np.zeros(0),
        np.concatenate(table_of) if table_of else np.zeros(0, np.int64),
        tables,
        names=names,
        evidence=evidence,
        log_constant=core.log_constant,
        value_names={},
    )


def _look_up(table: np.ndarray, functions: list[np.ndarray], pattern: np.ndarray) -> np.ndarray:
    """The table over the distinct parents: entry = table[f_1(parent of 1), f_2(parent of 2), …]."""
    distinct = np.unique(pattern).tolist()
    index = []
    for function, at in zip(functions, pattern.tolist(), strict=True):
        shape = [1] * len(distinct)
        shape[distinct.index(at)] = len(function)
        index.append(function.reshape(shape))
    return table[tuple(index)] if index else table
