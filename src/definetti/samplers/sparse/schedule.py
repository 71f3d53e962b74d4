"""One schedule for both engines: dense sweeps that visit the sites in the order of sparse ones.

The order of a sparse sweep has reasons: a row's own atoms may not count each other, so some predicates go by columns;
parts of a predicate take their turns one after the other; known atoms are left out. The schedule of the dense engine is
data, so that it can follow, with the same law of the constants' orders. Then both are one Markov kernel, and which of
them sweeps may depend on the state.
"""

from __future__ import annotations

import numpy as np

from definetti.constraints.logic.ties import tied_classes
from definetti.samplers.logic.engine import Relational, with_schedule
from definetti.samplers.logic.tensors.known_bits import Masks, Row, marked, scheduled
from definetti.samplers.sparse.engine import Sparse
from definetti.samplers.sparse.split import Part


def one_kernel(r: Sparse) -> bool:
    """Whether the dense engine has the same sites: the same atoms are tied to each other."""
    tied = tied_classes(r.split.source)
    for p, new in enumerate(r.model.predicates):
        if new in r.split.parts and r.model.knowledge.free_count(new):
            part = r.split.parts[new]
            images = [(i.predicate, i.places, i.sign) for i in tied.get(part.name, ())]
            if images != (swapped(part) if p in r.plan.ties else []):
                return False
    return True


def swapped(part: Part) -> list[tuple[str, tuple[int, ...], bool]]:
    """The images of an atom that is tied to the one with its two constants exchanged."""
    x, y = part.kept
    places = list(range(2 + len(part.fixed)))
    itself = tuple(places)
    places[x], places[y] = y, x
    return [(part.name, itself, True), (part.name, tuple(places), True)]


def following(r: Sparse, engine: Relational) -> Relational:
    """The dense engine with the schedule of the sparse one, where they are `one_kernel`."""
    masks, rows = Masks([], []), list[Row]()
    family = {int(first) + i: k for k, (first, count) in enumerate(r.data.families) for i in range(count)}
    for turn, kind in enumerate(r.data.entries.tolist()):
        half = kind in r.plan.ties
        rows.append((visit(r, engine, kind, masks), (turn, family.get(turn, -1), half)))
    width = max(len(s.sorts) for s in engine.theory.signatures)
    return with_schedule(engine, scheduled(rows, masks, {}, engine.free_sites, width))


def visit(r: Sparse, engine: Relational, kind: int, masks: Masks) -> list[int]:
    """The row of the dense schedule for an entry of the sparse one. Bits that are drawn after all others are
    independent given these, and visited by a list: in any order."""
    count = len(r.plan.sorts)
    p = kind % count
    new = list(r.model.predicates)[p]
    part, shape = r.split.parts[new], r.model.shape(new)
    source, by_columns = engine.model.predicates[part.name], any(s.side for s in r.plan.systems if s.predicate == kind)
    axes = [(j, source.sorts[j], n) for j, n in zip(part.kept, shape, strict=True)]
    row = [list(engine.model.predicates).index(part.name), int(np.prod(shape, dtype=np.int64)), -1, -1, 1]
    row.append(len(part.fixed) + len(axes))
    if kind >= count:
        late = np.flatnonzero(~fixed_bits(r, p, 1)) * (shape[0] + 1 if len(shape) == 2 else 1)
        row[1], row[3] = len(late), masks.put(masks.lists, late)
    elif (skip := left_out(r, p, new)) is not None:
        row[2] = masks.put(masks.skips, marked(shape[::-1], skip[:, ::-1]) if by_columns else marked(shape, skip))
    number = {name: s for s, name in enumerate(engine.model.sorts)}
    for j, constant in part.fixed:
        row += [j, -1 - constant, 1]
    for j, sort, n in reversed(axes) if by_columns else axes:
        row += [j, number[sort], n]
    return row


def fixed_bits(r: Sparse, p: int, late: int) -> np.ndarray:
    """bool[constants]: whether P(x), or R(x,x), is not drawn in its predicate's turn (or not after all others)."""
    sort = r.plan.sorts[p][0]
    start = int(r.data.type_start[sort])
    return (r.data.fixed[late, start : start + int(r.data.sizes[sort])] >> r.plan.position[p] & 1).astype(bool)


def left_out(r: Sparse, p: int, new: str) -> np.ndarray | None:
    """int64[k, arity]: atoms that are not drawn in the predicate's turn; None where all are."""
    arity, known = len(r.model.shape(new)), r.model.knowledge.relation(new).tuples
    alone = np.flatnonzero(fixed_bits(r, p, 0)) if p in r.plan.position else np.zeros(0, np.int64)
    bits = np.repeat(alone[:, None], arity, axis=1)
    out = bits if arity == 1 else np.concatenate([known, bits])
    return out if len(out) else None
