"""simplify: one canonical factor graph for each conditional distribution, so that equal models have equal tables.

Symmetries are sought, chains are run and exact solvers are started on what this returns. It works on blocks, the
factors of one shape with their distinct tables stacked: no loop here runs over factors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.integer_rows import first_and_number, packed
from definetti.model.checked_input import PRECISION, cancelling
from definetti.model.graph.factors import FREE, FactorGraph, SameShape, frozen

MOVED = 1e-8  # by how much grouping may change the factors of one variable together: more is no rounding
LARGE = 2.0**18  # log weights: tables that reach further are not centred, a double would lose their small differences
SPARSE = 0.25  # a table of three or more variables with at most this share of odd entries is kept like a clause


@dataclass(frozen=True)
class Block:
    """Factors of one shape: `scope[m, k]` ascending in each row, `which[m]` into `tables[T, *shape]`."""

    scope: np.ndarray
    which: np.ndarray
    tables: np.ndarray

    @property
    def arity(self) -> int:
        return self.scope.shape[1]


def simplify(model: FactorGraph, tolerance: float = 1e-9) -> FactorGraph:
    """The same variables, indices, evidence and conditional distribution, with factors in canonical form.

    `log_density` of every state that agrees with the evidence stays the same up to the grouping of values in rule 8:
    what is dropped from tables goes to `log_constant`. The result of simplifying twice is that of simplifying once.

    1. Evidence is sliced into the tables: observed variables end with no factors.
    2. Scopes ascend (axes permuted accordingly); factors end sorted by arity, then by scope.
    3. Factors over the same scope are added up.
    4. Finite tables are centred. Constant and unary parts move out, so that a pair table has zero row and column
       means. A table over three or more variables of which at most a quarter of the entries differ from the most
       frequent one keeps its parts, with the most frequent entry at 0: a clause stays one odd entry.
    5. A table with impossible entries (-inf) keeps its parts, with its largest entry at 0. So does one with entries
       beyond 2^18: next to a penalty of 1e15, centred values would be multiples of 1/8.
    6. A variable on which a table does not depend leaves its scope; then again from 3. Constants are dropped.
    7. Unary factors are one per variable; their finite entries have mean 0, or maximum 0 beside an impossible or very
       low one.
    8. Values that differ only by rounding become equal: all finite absolute values are sorted and split where a gap
       exceeds `tolerance`; a group becomes its median, or 0 if it reaches 0, so that ±a stay opposite. A group wider
       than 1e-8 / (the most factors of one variable) stays as it is: many small moves must not add up. Tables that
       become constant are dropped, equal tables are stored once.

    A part, or a dependence on a variable, of at most `tolerance` counts as none (or of 1e-8 / the most factors of one
    variable, if that is less). `Unsatisfiable` names the variables of a factor all of whose entries are impossible;
    `ModelError` those of factors with large log weights that cancel, so that smaller ones are not known to 1e-9.
    """
    degree = int(np.bincount(model.scope, minlength=1).max())
    widest = MOVED / max(degree, 1)
    tolerance = min(tolerance, widest)
    literals = np.zeros((3, int(model.literal_start[-1])))  # sum of unary terms, depth of the deepest, large ones
    moved, blocks = _tops_to_zero(_sliced(model))
    constant = model.log_constant + moved
    while True:
        moved, blocks = _move_small(model, blocks, literals)
        constant += moved
        merged = [_merged(model, block) for block in _by_shape(blocks)]
        centred = [_centred(model, block, literals, tolerance) for block in merged]
        constant += sum(moved for moved, _ in centred)
        blocks, shrunk = _without_idle_axes([block for _, block in centred], tolerance)
        if not shrunk:
            break
    moved, unary = _unary_blocks(model, literals, tolerance)
    return _assembled(model, constant + moved, _grouped([*unary, *blocks], tolerance, widest))


# --- from the model to blocks --------------------------------------------------------------------------------


def _sliced(model: FactorGraph) -> list[Block]:
    """Rules 1 and 2, once for each (shape, observed values, order of axes)."""
    blocks = []
    for alike in model.by_shape:
        scope = alike.scopes
        seen = model.evidence[scope]
        if (seen == FREE).all() and (scope[:, 1:] > scope[:, :-1]).all():  # as after an earlier call
            blocks.append(_slice(model, alike, np.arange(alike.arity)))
            continue
        order = np.argsort(np.where(seen == FREE, scope, -1), axis=1, kind="stable")
        for rows in _alike([*(seen - FREE).T, *order.T], len(scope)):
            blocks.append(_slice(model, alike.take(rows), order[rows[0]]))
    return blocks


def _slice(model: FactorGraph, alike: SameShape, order: np.ndarray) -> Block:
    """Factors of one shape, one pattern of evidence and one order of axes (observed ones first)."""
    scope, seen = alike.scopes, model.evidence[alike.scopes[0]]
    first, which = first_and_number(alike.tables)
    tables = model.entries(alike.take(first))
    observed = int((seen != FREE).sum())
    tables = tables.transpose(0, *(order + 1))[(slice(None), *seen[order[:observed]])]
    dead = _rows(tables).max(axis=1) == -np.inf
    if dead.any():
        _impossible(model, scope[int(np.argmax(dead[which]))])
    return Block(scope[:, order[observed:]], which, tables)


def _impossible(model: FactorGraph, scope: np.ndarray) -> None:
    given = [f"{model.names[i]}={v}" for i in scope if (v := int(model.evidence[i])) != FREE]
    over = ", ".join(model.names[i] for i in scope) or "no variable"
    because = f" given {', '.join(given)}" if given else ""
    raise Unsatisfiable(f"no state is possible: the factors over ({over}) are zero everywhere{because}")


def _alike(columns: list[np.ndarray], rows: int) -> list[np.ndarray]:
    """The row numbers of each set of equal rows, given columns of small nonnegative integers."""
    _, number = _numbered(columns, rows)
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if rows else []


def _numbered(columns: Iterable[np.ndarray], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(first row of each kind, kind of each row): `np.unique(axis=0)` at the price of sorting integers."""
    code, span = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if span * width >= 2**62:
            kinds, code = np.unique(code, return_inverse=True)
            span = len(kinds)
        code, span = code * width + column, span * width
    return first_and_number(code)


# --- large log weights ---------------------------------------------------------------------------------------


def _tops_to_zero(blocks: list[Block]) -> tuple[float, list[Block]]:
    """Tables that reach beyond LARGE, or lie beyond it as a whole, with their largest entries at 0, and the constant
    that was taken out.

    Then a sum over factors is exact for the states that pay no large penalty.
    """
    constant, out = 0.0, []
    for block in blocks:
        flat = _rows(block.tables)
        top = flat.max(axis=1)
        reach = top - np.where(np.isfinite(flat), flat, np.inf).min(axis=1)
        shift = np.where((reach > LARGE) | (np.abs(top) > LARGE), top, 0.0)
        if shift.any():
            constant += float(shift[block.which].sum())
            block = replace(block, tables=block.tables - shift.reshape(-1, *[1] * block.arity))
        out.append(block)
    return constant, out


def _large_tables(tables: np.ndarray, tolerance: float) -> np.ndarray:
    """bool[T]: finite tables that are not centred, because a part or what is left beside the parts exceeds LARGE."""
    flat = _rows(tables)
    large = flat.max(axis=1) - flat.min(axis=1) > LARGE / tables.ndim
    some = np.flatnonzero(large)
    if len(some):
        mean, parts = _parts(tables[some], tolerance)
        rest = tables[some] - mean.reshape(-1, *[1] * (tables.ndim - 1))
        most = np.zeros(len(some))
        for axis, part in enumerate(parts):
            rest = rest - _along(part, axis, tables.ndim)
            most = np.maximum(most, np.abs(part).max(axis=1))
        large[some] = np.maximum(most, np.abs(_rows(rest)).max(axis=1)) > LARGE
    return large


def _refuse_cancelling(
    model: FactorGraph, scope: np.ndarray, sums: np.ndarray, deepest: np.ndarray, terms: np.ndarray
) -> None:
    """`ModelError` if sums (a row for each of `scope`) that decide between values were left over from large terms."""
    near = sums >= sums.max(axis=1, keepdims=True) - LARGE
    lost = np.where(near & (near.sum(axis=1, keepdims=True) > 1), np.spacing(deepest) * terms, 0.0).max(axis=1)
    if (lost > PRECISION).any():
        r = int(lost.argmax())
        over = (model.names[i] for i in scope[r])
        raise cancelling(over, float(np.where(near[r], deepest[r], 0.0).max()), float(lost[r]))


# --- rules 3 to 6 --------------------------------------------------------------------------------------------


def _move_small(model: FactorGraph, blocks: list[Block], literals: np.ndarray) -> tuple[float, list[Block]]:
    """Constants to the first result, unary factors into `literals`; the rest is returned."""
    constant, rest = 0.0, []
    for block in blocks:
        if block.arity == 0:
            constant += float(block.tables[block.which].sum())
        elif block.arity == 1:
            _add_unary(model, literals, block.scope[:, 0], block.tables[block.which])
        else:
            rest.append(block)
    return constant, rest


def _add_unary(model: FactorGraph, literals: np.ndarray, variables: np.ndarray, rows: np.ndarray) -> None:
    at = model.literal_start[variables][:, None] + np.arange(rows.shape[1])
    np.add.at(literals[0], at, rows)
    large = np.isfinite(rows) & (rows < -LARGE)
    if large.any():
        np.maximum.at(literals[1], at[large], -rows[large])
        np.add.at(literals[2], at[large], 1.0)


def _by_shape(blocks: list[Block]) -> list[Block]:
    shapes: dict[tuple[int, ...], list[Block]] = defaultdict(list)
    for block in blocks:
        shapes[block.tables.shape[1:]].append(block)
    return [_joined(group) for group in shapes.values()]


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    offsets = np.cumsum([0, *(len(block.tables) for block in blocks)])
    which = [block.which + offset for block, offset in zip(blocks, offsets[:-1], strict=True)]
    scope, tables = [block.scope for block in blocks], [block.tables for block in blocks]
    return Block(np.concatenate(scope), np.concatenate(which), np.concatenate(tables))


def _merged(model: FactorGraph, block: Block) -> Block:
    """Rule 3. Only scopes that occur more than once get tables of their own."""
    first, number = _numbered(block.scope.T, len(block.scope))
    if len(first) == len(number):
        return block
    times = np.bincount(number)
    several = times[number] > 1
    place = np.cumsum(times > 1) - 1  # which sum a repeated scope gets
    sums = np.zeros((int((times > 1).sum()), *block.tables.shape[1:]))
    np.add.at(sums, place[number[several]], block.tables[block.which[several]])
    used, which = np.unique(block.which[~several], return_inverse=True)
    scope = block.scope[first[times > 1]]
    dead = _rows(sums).max(axis=1) == -np.inf
    if dead.any():
        _impossible(model, scope[int(np.argmax(dead))])
    added = block.tables[block.which[several]]
    large = np.isfinite(added) & (added < -LARGE)
    if large.any():
        deepest, terms = np.zeros_like(sums), np.zeros_like(sums)
        np.maximum.at(deepest, place[number[several]], np.where(large, -added, 0.0))
        np.add.at(terms, place[number[several]], large)
        _refuse_cancelling(model, scope, _rows(sums), _rows(deepest), _rows(terms))
    once = Block(block.scope[~several], which, block.tables[used])
    return _joined([once, Block(scope, np.arange(len(sums)), sums)])


def _centred(model: FactorGraph, block: Block, literals: np.ndarray, tolerance: float) -> tuple[float, Block]:
    """Rules 4 and 5: the constant that was taken out, and the block without it and without unary parts."""
    tables = block.tables.copy()
    constant = np.zeros(len(tables))
    whole = np.array(np.isfinite(_rows(tables)).all(axis=1))
    whole[whole] = ~_large_tables(tables[whole], tolerance)
    hard = np.flatnonzero(~whole)
    constant[hard] = tables[hard].max(axis=tuple(range(1, tables.ndim)))
    shift = _small_to_zero(constant, tolerance)
    soft = np.flatnonzero(whole)
    if block.arity > 2:
        mode, sparse = _most_frequent(tables[soft], tolerance)
        shift[soft[sparse]] = constant[soft[sparse]] = _small_to_zero(mode[sparse], tolerance)
        soft = soft[~sparse]
    mean, parts = _parts(tables[soft], tolerance)
    shift[soft] = mean
    for axis, part in enumerate(parts):
        if part.any():
            tables[soft] -= _along(part, axis, tables.ndim)
            rows = np.zeros((len(tables), part.shape[1]))
            rows[soft] = part
            moving = rows[block.which].any(axis=1)
            _add_unary(model, literals, block.scope[moving, axis], rows[block.which[moving]])
    tables -= shift.reshape(-1, *[1] * block.arity)
    if block.arity > 2:  # what is left may be sparse only now
        mode, sparse = _most_frequent(tables[soft], tolerance)
        more = np.where(sparse, _small_to_zero(mode, tolerance), 0.0)
        tables[soft] -= more.reshape(-1, *[1] * block.arity)
        shift[soft] += more
    return float(shift[block.which].sum()), Block(block.scope, block.which, tables)


def _parts(tables: np.ndarray, tolerance: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """The constant part of each table, and its unary part along each axis."""
    axes = range(1, tables.ndim)
    mean = tables.mean(axis=tuple(axes)) if len(tables) else np.zeros(0)
    parts = []
    for axis in axes:
        part = tables.mean(axis=tuple(a for a in axes if a != axis)) - mean[:, None]
        flat = np.abs(part).max(axis=1, initial=0.0) <= tolerance
        parts.append(np.where(flat[:, None], 0.0, part))
    return _small_to_zero(mean, tolerance), parts


def _along(part: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    return part.reshape(len(part), *(part.shape[1] if a == axis else 1 for a in range(ndim - 1)))


def _small_to_zero(values: np.ndarray, tolerance: float) -> np.ndarray:
    return np.where(np.abs(values) <= tolerance, 0.0, values)


def _rows(tables: np.ndarray) -> np.ndarray:
    return tables.reshape(len(tables), int(np.prod(tables.shape[1:], dtype=np.int64)))


def _most_frequent(tables: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent entry of each table, up to `tolerance`, and whether few enough entries differ from it."""
    values = np.sort(_rows(tables), axis=1)
    size = values.shape[1]
    place = np.broadcast_to(np.arange(size), values.shape)
    starts = np.concatenate([np.ones((len(values), 1), dtype=bool), np.diff(values, axis=1) > tolerance], axis=1)
    start = np.maximum.accumulate(np.where(starts, place, 0), axis=1)
    end = np.argmax(place - start, axis=1)
    rows = np.arange(len(values))
    length = end - start[rows, end] + 1
    return values[rows, (start[rows, end] + end) // 2], size - length <= SPARSE * size


def _without_idle_axes(blocks: list[Block], tolerance: float) -> tuple[list[Block], bool]:
    """Rule 6, and whether a factor of two or more variables got a smaller scope (so that it may meet others)."""
    out, shrunk = [], False
    for block in blocks:
        active = np.stack([_depends(block.tables, axis, tolerance) for axis in range(block.arity)], axis=1)
        if active.all():
            out.append(block)
            continue
        for tables in _alike([*active.T.astype(np.int64)], len(active)):
            keep = active[tables[0]]
            mine = np.full(len(active), -1)
            mine[tables] = np.arange(len(tables))
            rows = np.flatnonzero(mine[block.which] >= 0)
            smaller = block.tables[tables][(slice(None), *(slice(None) if k else 0 for k in keep))]
            out.append(Block(block.scope[rows][:, keep], mine[block.which[rows]], smaller))
            shrunk |= not keep.all()
    return out, shrunk


def _depends(tables: np.ndarray, axis: int, tolerance: float) -> np.ndarray:
    high, low = tables.max(axis=axis + 1), tables.min(axis=axis + 1)
    with np.errstate(invalid="ignore"):
        width = np.where(high == low, 0.0, high - low)  # -inf - -inf is no number
    return _rows(width).max(axis=1) > tolerance


# --- rules 7 and 8, and back to a model ----------------------------------------------------------------------


def _unary_blocks(model: FactorGraph, literals: np.ndarray, tolerance: float) -> tuple[float, list[Block]]:
    """Rule 7: the constant that was taken out, and one block per number of values."""
    constant, blocks = 0.0, []
    for card in np.unique(model.cards):
        variables = np.flatnonzero(model.cards == card)
        at = model.literal_start[variables][:, None] + np.arange(card)
        rows = literals[0][at]
        possible = np.isfinite(rows)
        if not possible.any(axis=1).all():
            _impossible(model, variables[[int(np.argmin(possible.any(axis=1)))]])
        if literals[2][at].any():
            _refuse_cancelling(model, variables[:, None], rows, literals[1][at], literals[2][at])
        whole = possible.all(axis=1) & (rows.max(axis=1) - rows.min(axis=1) <= LARGE)
        mean = np.where(possible, rows, 0.0).mean(axis=1)
        shift = _small_to_zero(np.where(whole, mean, rows.max(axis=1)), tolerance)
        rows = rows - shift[:, None]
        flat = whole & (np.abs(rows).max(axis=1) <= tolerance)
        constant += float(shift.sum())
        blocks.append(Block(variables[~flat][:, None], np.arange(int((~flat).sum())), rows[~flat]))
    return constant, blocks


def _grouped(blocks: list[Block], tolerance: float, widest: float) -> list[Block]:
    """Rule 8, apart from storing equal tables once."""
    values = np.concatenate([np.abs(block.tables[np.isfinite(block.tables)]) for block in blocks] or [np.empty(0)])
    values = np.concatenate([[0.0], np.sort(values)])
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values) > tolerance]))
    ends = np.concatenate([starts[1:], [len(values)]]) - 1
    middle = values[(starts + ends) // 2]
    middle[0] = 0.0  # the group that reaches 0
    narrow = values[ends] - values[starts] <= widest
    out = []
    for block in blocks:
        group = np.searchsorted(values[starts], np.abs(block.tables), side="right") - 1
        move = np.isfinite(block.tables) & narrow[group]
        tables = np.where(move, np.copysign(middle[group], block.tables), block.tables) + 0.0
        spread = _rows(tables)
        alive = spread.max(axis=1) != spread.min(axis=1)
        rows = alive[block.which]
        out.append(Block(block.scope[rows], block.which[rows], tables))
    return out


def _assembled(model: FactorGraph, constant: float, blocks: list[Block]) -> FactorGraph:
    """Factors sorted by arity and scope, tables numbered by first use."""
    parts = sorted((_stored_once(b) for b in _by_shape(blocks) if len(b.scope)), key=lambda block: block.arity)
    sizes = np.concatenate([np.full(len(b.tables), b.tables[0].size) for b in parts] or [np.empty(0, np.int64)])
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    values = np.concatenate([b.tables.ravel() for b in parts] or [np.empty(0)])
    offsets = np.cumsum([0, *(len(b.tables) for b in parts)])
    scopes, which = [], [np.empty(0, np.int64)]
    for k in sorted({b.arity for b in parts}):
        mine = [(b, offset) for b, offset in zip(parts, offsets[:-1], strict=True) if b.arity == k]
        scope = np.concatenate([b.scope for b, _ in mine])
        order = _lexicographic(scope)
        scopes.append(scope[order])
        which.append(np.concatenate([b.which + offset for b, offset in mine])[order])
    table_of = np.concatenate(which)
    first, number = first_and_number(table_of)
    used = table_of[first]
    by_use = np.argsort(first)
    rank = np.empty_like(by_use)
    rank[by_use] = np.arange(len(by_use))
    sizes, begin = sizes[used[by_use]], starts[used[by_use]]
    table_start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    arities = np.concatenate([np.full(len(s), s.shape[1]) for s in scopes] or [np.empty(0, np.int64)])
    return replace(
        model,
        scope_start=frozen(np.concatenate([[0], np.cumsum(arities)]), np.int64),
        scope=frozen(np.concatenate([s.ravel() for s in scopes] or [np.empty(0)]), np.int32),
        table_of=frozen(rank[number], np.int32),
        table_start=frozen(table_start, np.int64),
        tables=frozen(values[np.repeat(begin - table_start[:-1], sizes) + np.arange(table_start[-1])], np.float64),
        log_constant=float(constant),
    )


def _lexicographic(rows: np.ndarray) -> np.ndarray | slice:
    """The order of rows; where they are in order already, as many are, all of them as they stand."""
    key = packed(rows)
    if key is None:
        return np.lexsort(rows.T[::-1])
    return slice(None) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def _stored_once(block: Block) -> Block:
    flat = _rows(block.tables)
    if flat.shape[1] <= 16:
        codes = np.unique(flat, return_inverse=True)[1].reshape(flat.shape)
        first, number = _numbered(codes.T, len(flat))
    else:
        seen: dict[bytes, int] = {}
        number = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in flat])
        first = np.unique(number, return_index=True)[1]
    return Block(block.scope, number[block.which], block.tables[first])
