"""The scene of lifted counting: for fixed propositions, the fields on all classes of constants and who interacts
with whom.

Classes that can only be in one cell turn into fields on the others ("settled"); those that interact with nobody
are summed by themselves ("free"). What is left is active.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from definetti.solvers.lifted.cells import Reduced, reduce_cells
from definetti.solvers.lifted.classes import Known
from definetti.solvers.lifted.tables import (
    Cells,
    PairTable,
    State,
    cells_of,
    is_zero,
    own_tables,
    pair_tables,
    state_weight,
)


@dataclass(eq=False)
class Scene:
    """`inside[c]`: the weight of each cell of class c with all that does not depend on others; `fields[c]`: summed over
    merged cells, with what the settled ones add."""

    known: Known
    state: State
    cells: dict[str, Cells]
    pairs: dict[int, PairTable]
    reduced: Reduced
    constant: Any
    inside: list[np.ndarray]
    fields: list[np.ndarray]
    masks: list[np.ndarray]  # which merged cells are possible; with signs the field of such a one may vanish
    outer: list[Any]  # what the settled add to each merged cell
    table: np.ndarray  # int32[role, role] → number of the table; -1: no pair
    settled: dict[int, int] = field(default_factory=dict)  # class → merged cell
    free: list[int] = field(default_factory=list)
    active: list[int] = field(default_factory=list)

    def merged(self, c: int) -> np.ndarray:
        return self.reduced.merged[self.known.classes.sort[c]]

    def size(self, c: int) -> int:
        return int(self.known.classes.size[c])

    def table_between(self, c: int, d: int) -> int:
        return int(self.table[self.known.role_of[c], self.known.role_of[d]])

    def allowed(self, c: int) -> list[int]:
        return np.flatnonzero(self.masks[c]).tolist()

    def clear(self, c: int) -> bool:
        """Whether all fields of possible cells are known not to vanish: then they may be divided by."""
        return all(is_clear(self.fields[c][m]) for m in self.allowed(c))


def is_clear(x: Any) -> bool:
    return not x.contains(0) if hasattr(x, "contains") else x != 0


def make_scene(known: Known, state: State, exact: bool) -> Scene | None:
    """None where no world is possible."""
    weight = state_weight(known.theory, state, exact)
    if is_zero(weight):
        return None
    cells = {sort: cells_of(known, sort, state) for sort in known.theory.model.sorts}
    if any(not len(c.bits) for c in cells.values()):
        return None
    own = own_tables(known, cells, state, exact)
    if any(all(is_zero(x) for x in weights) for weights in own):
        return None
    pairs = pair_tables(known, cells, state, exact)
    reduced = reduce_cells(known.kinds.sorts, pairs, {sort: len(c.bits) for sort, c in cells.items()})
    numbers = np.array([reduced.table_of.get(k, -1) for k in range(len(known.kinds.sorts))] + [-1], dtype=np.int32)
    constant = weight * _pair_factors(known, reduced)
    inside = _inside(known, reduced, own)
    fields = [_summed(x, reduced.merged[s], reduced.counts[s]) for s, x in zip(known.classes.sort, inside, strict=True)]
    sorts = zip(known.classes.sort, inside, strict=True)
    masks = [_possible(x, reduced.merged[s], reduced.counts[s]) for s, x in sorts]
    scene = Scene(known, state, cells, pairs, reduced, constant, inside, fields, masks, [1] * len(fields),
                  numbers[known.kinds.of])  # fmt: skip
    scene.active = list(range(len(inside)))
    return scene if _settle(scene) else None


def _pair_factors(known: Known, reduced: Reduced) -> Any:
    size = known.roles.size.astype(object)
    of = known.kinds.of
    total: Any = 1
    for kind, factor in reduced.factor.items():
        rows, columns = np.nonzero(of == kind)
        upper, own = rows < columns, rows == columns
        pairs = sum((size[rows[upper]] * size[columns[upper]]).tolist())
        pairs += sum((size[rows[own]] * (size[rows[own]] - 1) // 2).tolist())
        if pairs and factor != 1:
            total = total * factor ** int(pairs)
    return total


def _inside(known: Known, reduced: Reduced, own: list[np.ndarray]) -> list[np.ndarray]:
    """Own weights times what each partner contributes whatever its cell."""
    kinds, size, of = len(known.kinds.sorts), known.roles.size, known.kinds.of
    partners = np.zeros((len(size), kinds), dtype=np.int64)
    for kind in reduced.scale:
        partners[:, kind] = (of == kind) @ size
    loops = np.flatnonzero(of.diagonal() >= 0)
    partners[loops, of.diagonal()[loops]] -= 1
    memory: dict[tuple, np.ndarray] = {}
    out = []
    for c, weights in enumerate(own):
        row = partners[known.role_of[c]]
        key = (id(weights), row.tobytes())
        if key not in memory:
            found = weights
            for kind in np.flatnonzero(row).tolist():
                found = found * raised(reduced.scale[kind], int(row[kind]))
            memory[key] = found
        out.append(memory[key])
    return out


def raised(values: np.ndarray, power: int) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = [x if isinstance(x, int) and x == 1 else x**power for x in values]
    return out


def _summed(inside: np.ndarray, merged: np.ndarray, count: int) -> np.ndarray:
    out = np.full(count, inside[0] * 0, dtype=object)
    for x, m in zip(inside, merged, strict=True):
        out[m] = out[m] + x
    return out


def _possible(inside: np.ndarray, merged: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros(count, dtype=bool)
    out[merged[[not is_zero(x) for x in inside]]] = True
    return out


# --- settling ------------------------------------------------------------------------------------------------


def _settle(scene: Scene) -> bool:
    """Classes with one possible cell become fields, until there are no more; False if one has none."""
    while True:
        choices = {c: scene.allowed(c) for c in scene.active}
        if any(not some for some in choices.values()):
            return False
        new = {c: some[0] for c, some in choices.items() if len(some) == 1 and scene.clear(c)}
        if not new:
            break
        for c, m in new.items():
            scene.constant = scene.constant * scene.fields[c][m] ** scene.size(c)
        _pairs_among(scene, new)
        scene.settled |= new
        scene.active = [c for c in scene.active if c not in new]
        _fields_from(scene, new)
        if is_zero(scene.constant):
            return False
    scene.free = [c for c in scene.active if _alone(scene, c) and is_clear(total_field(scene, c))]
    scene.active = [c for c in scene.active if c not in scene.free]
    for c in scene.free:
        scene.constant = scene.constant * total_field(scene, c) ** scene.size(c)
    return not is_zero(scene.constant)


def total_field(scene: Scene, c: int) -> Any:
    return sum(scene.fields[c][1:], scene.fields[c][0])


def _by_cell(scene: Scene, classes: dict[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(role, merged cell, how many) of settled classes."""
    role = scene.known.role_of[list(classes)]
    return role, np.array(list(classes.values()), np.int64), scene.known.classes.size[list(classes)]


def _pairs_among(scene: Scene, new: dict[int, int]) -> None:
    role, cell, size = _by_cell(scene, new)
    numbers = scene.table[np.ix_(role, role)]
    for k, table in enumerate(scene.reduced.tables):
        if scene.reduced.trivial[k]:
            continue
        rows, columns = np.nonzero(numbers == k)
        keep = rows <= columns
        rows, columns = rows[keep], columns[keep]
        ways = np.where(rows == columns, size[rows] * (size[rows] - 1) // 2, size[rows] * size[columns])
        for a in range(table.shape[0]):
            for b in range(table.shape[1]):
                count = int(ways[(cell[rows] == a) & (cell[columns] == b)].sum())
                if count:
                    scene.constant = scene.constant * table[a, b] ** count


def _fields_from(scene: Scene, new: dict[int, int]) -> None:
    """What the newly settled contribute to the fields of the rest; the same for all classes of a role."""
    role, cell, size = _by_cell(scene, new)
    memory: dict[int, np.ndarray | None] = {}
    for c in scene.active:
        mine = int(scene.known.role_of[c])
        if mine not in memory:
            memory[mine] = None
            factor: Any = None
            numbers = scene.table[mine, role]
            for k in np.unique(numbers).tolist():
                if k < 0 or scene.reduced.trivial[k]:
                    continue
                count = np.bincount(cell[numbers == k], weights=size[numbers == k])
                for b in np.flatnonzero(count).tolist():
                    found = raised(scene.reduced.tables[k][:, b], int(count[b]))
                    factor = found if factor is None else factor * found
            memory[mine] = factor
        found = memory[mine]
        if found is not None:
            scene.fields[c] = scene.fields[c] * found
            scene.outer[c] = scene.outer[c] * found
            scene.masks[c] = scene.masks[c] & np.array([not is_zero(x) for x in found])


def _alone(scene: Scene, c: int) -> bool:
    row = scene.table[scene.known.role_of[c]]
    for d in scene.active:
        k = int(row[scene.known.role_of[d]])
        if k >= 0 and (d != c or scene.size(c) > 1) and not scene.reduced.trivial[k]:
            return False
    return True
