"""Variable elimination in log space on a tree of buckets: all single marginals and log Z in two passes.

Collect: a bucket adds up the factors and messages that mention its variable v, keeps p(v | its neighbours) and sends
the rest to the bucket of the neighbour eliminated next. Distribute: p(bucket) = p(v | neighbours) · p(neighbours), the
latter read off the bucket it had sent to. No message is ever divided by, so impossible states (-inf) need no care.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from definetti.constraints.graph.legal_states import refuse_cancelling
from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.model.graph.simplify import simplify
from definetti.model.queries import Query
from definetti.solvers.graph.elimination_order import Order, min_fill
from definetti.solvers.graph.solution import (
    Event,
    Solution,
    active_variables,
    log_idle,
    no_state,
    open_events,
    start_literals,
)

MOST_ENTRIES = 2**26
FEW_ROWS = 16  # an event of at most this many tuples costs one pass for each
MANY_ROWS = 4096  # and so does one of up to this many if its variables do not fit into one table


@dataclass(frozen=True, eq=False)
class Tree:
    """Buckets in the order of elimination. Axes of every table follow that order, so messages need no transposing."""

    cliques: tuple[tuple[int, ...], ...]
    shapes: tuple[tuple[int, ...], ...]
    parts: tuple[tuple[np.ndarray, ...], ...]  # the factors of each bucket, shaped to be added
    parent: tuple[int, ...]  # the bucket that gets the message, or -1
    root: tuple[int, ...]  # the last bucket of the same tree


def eliminate(
    model: FactorGraph, queries: Sequence[Query] = (), *, order: Order | None = None, limit: float = MOST_ENTRIES
) -> Solution:
    """Exact marginals of all variables, log Z, and the probability of each event among the queries.

    `order` may be given if it was made for the simplified model. `TooLarge` before memory is taken.
    """
    model = simplify(model)
    refuse_cancelling(model)
    tree = _tree(model, order or min_fill(model, limit))
    roots, conditionals = _collect(tree, keep=True)
    log_z = _log_z(model, roots)
    if log_z == -np.inf:
        raise no_state(model)
    literals = start_literals(model)
    _distribute(model, tree, conditionals, literals)
    del conditionals
    events = [_event(model, tree, roots, event, limit) for event in open_events(model, queries)]
    return Solution(log_z, literals, tuple(events))


def _log_z(model: FactorGraph, roots: Mapping[int, float]) -> float:
    return math.fsum([model.log_constant, log_idle(model, active_variables(model)), *roots.values()])


def _tree(model: FactorGraph, order: Order) -> Tree:
    position = {clique[0]: j for j, clique in enumerate(order.cliques)}
    shapes = [tuple(int(c) for c in model.cards[list(clique)]) for clique in order.cliques]
    parts: list[list[np.ndarray]] = [[] for _ in order.cliques]
    for k in range(model.factor_count):
        scope = model.variables(k).tolist()
        axes = sorted(range(len(scope)), key=lambda a: position[scope[a]])
        bucket = position[scope[axes[0]]]
        mine = set(scope)
        shape = [c if v in mine else 1 for v, c in zip(order.cliques[bucket], shapes[bucket], strict=True)]
        parts[bucket].append(model.table(k).transpose(axes).reshape(shape))
    parent = [position[clique[1]] if len(clique) > 1 else -1 for clique in order.cliques]
    root = list(range(len(parent)))
    for j in reversed(root):
        if parent[j] >= 0:
            root[j] = root[parent[j]]
    return Tree(order.cliques, tuple(shapes), tuple(tuple(p) for p in parts), tuple(parent), tuple(root))


# --- the two passes ------------------------------------------------------------------------------------------


def _collect(
    tree: Tree, *, keep: bool = False, fixed: Mapping[int, int] | None = None, within: set[int] | None = None
) -> tuple[dict[int, float], list[np.ndarray]]:
    """The log sum of each tree (by its last bucket), and p(v | neighbours) of every bucket if kept.

    `fixed` holds variables at values; `within` names the trees to look at, by their last buckets. Messages have their
    largest entry at 0, so that a bucket with 100,000 of them adds up no large numbers; the rest is summed apart.
    """
    fixed = fixed or {}
    messages: list[list[np.ndarray]] = [[] for _ in tree.cliques]
    taken: dict[int, list[float]] = {}
    conditionals = []
    for j, clique in enumerate(tree.cliques):
        if within is not None and tree.root[j] not in within:
            continue
        table = np.zeros(tree.shapes[j])
        for part in (*tree.parts[j], *messages[j]):
            table += part
        messages[j] = []
        if clique[0] in fixed:
            table[np.arange(len(table)) != fixed[clique[0]]] = -np.inf
        message, conditional = _sum_out(table)
        if keep:
            conditionals.append(conditional)
        top = float(message.max())
        taken.setdefault(tree.root[j], []).append(top)
        up = tree.parent[j]
        if up >= 0:
            left = set(clique[1:])
            shape = [c if v in left else 1 for v, c in zip(tree.cliques[up], tree.shapes[up], strict=True)]
            messages[up].append((message - top if top > -np.inf else message).reshape(shape))
    return {root: math.fsum(tops) for root, tops in taken.items()}, conditionals


def _sum_out(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log Σ exp over the first axis, and the conditional probabilities along it (in the table's own memory)."""
    top = table.max(axis=0)
    top = np.where(top == -np.inf, 0.0, top)
    table -= top
    np.exp(table, out=table)
    total = table.sum(axis=0)
    np.divide(table, total, out=table, where=total > 0)
    with np.errstate(divide="ignore"):
        return np.log(total) + top, table


def _distribute(model: FactorGraph, tree: Tree, conditionals: list[np.ndarray], literals: np.ndarray) -> None:
    """From the last bucket to the first, turning conditionals into joint probabilities in place."""
    for j in reversed(range(len(tree.cliques))):
        clique, table, up = tree.cliques[j], conditionals[j], tree.parent[j]
        if up >= 0:
            left = set(clique[1:])
            gone = tuple(axis for axis, v in enumerate(tree.cliques[up]) if v not in left)
            table *= conditionals[up].sum(axis=gone)
        marginal = table.reshape(len(table), -1).sum(axis=1)
        start = model.literal_start[clique[0]]
        literals[start : start + len(marginal)] = marginal / marginal.sum()


# --- events over several variables ---------------------------------------------------------------------------


def _event(model: FactorGraph, tree: Tree, roots: Mapping[int, float], event: Event, limit: float) -> float:
    """P(event): one more pass for each of its tuples, or one elimination with the event as a factor of its own."""
    if len(event.rows) <= FEW_ROWS:
        return _by_rows(model, tree, roots, event)
    try:
        observed = with_event(model, event, limit)
        more, _ = _collect(_tree(observed, min_fill(observed, limit)))
    except TooLarge:
        if len(event.rows) > MANY_ROWS:
            raise
        return _by_rows(model, tree, roots, event)
    return min(1.0, float(np.exp(_log_z(observed, more) - _log_z(model, roots))))


def _by_rows(model: FactorGraph, tree: Tree, roots: Mapping[int, float], event: Event) -> float:
    bucket = {clique[0]: j for j, clique in enumerate(tree.cliques)}
    within = {tree.root[bucket[i]] for i in event.variables if i in bucket}
    idle = sum(float(np.log(model.cards[i])) for i in event.variables if i not in bucket)
    before = idle + sum(roots[r] for r in within)
    total = 0.0
    for row in event.rows.tolist():
        held, _ = _collect(tree, fixed=dict(zip(event.variables, row, strict=True)), within=within)
        total += float(np.exp(sum(held.values()) - before))
    return min(1.0, total)


def with_event(model: FactorGraph, event: Event, limit: float) -> FactorGraph:
    """The model with one more factor: 0 where the event is true, -inf elsewhere."""
    shape = tuple(int(c) for c in model.cards[list(event.variables)])
    size = float(np.prod(np.array(shape, dtype=np.float64)))
    if size > limit:
        cure = "ask about fewer variables at a time"
        raise TooLarge("a query's variables together", size, limit, cure, unit="table entries")
    table = np.full(shape, -np.inf)
    table[tuple(event.rows.T)] = 0.0
    return replace(
        model,
        scope_start=frozen(np.append(model.scope_start, len(model.scope) + len(shape))),
        scope=frozen(np.append(model.scope, event.variables), np.int32),
        table_of=frozen(np.append(model.table_of, len(model.table_start) - 1), np.int32),
        table_start=frozen(np.append(model.table_start, len(model.tables) + table.size)),
        tables=frozen(np.append(model.tables, table)),
    )
