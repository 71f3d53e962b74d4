"""From statistics of a core to those of the model: a variable that is a function of a core variable answers by its
values.

P(x_i = v) is the sum over the core values c with f_i(c) = v: a column of the model is a sum of columns of the core,
in estimates and in draws alike, so that errors and diagnostics are those of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from definetti.constraints.graph.contract import Contracted
from definetti.errors import Notice
from definetti.estimators.values import Estimates
from definetti.groups import Generator, PermutationGroup
from definetti.inference.graph.assemble import Columns
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.draws import Draws
from definetti.symmetry.graph.check import scope_index, violation
from definetti.symmetry.graph.group import GraphSymmetries


@dataclass(frozen=True, eq=False)
class Lift:
    """Column k of the model is the sum of the core's columns flat[start[k] : start[k + 1]]; events follow."""

    flat: np.ndarray  # the number `core_singles` stands for a column of zeros
    start: np.ndarray
    core_singles: int
    shown: Columns

    def columns(self, batches: np.ndarray) -> np.ndarray:
        """[…, core columns] → […, columns]."""
        nothing = np.zeros((*batches.shape[:-1], 1), dtype=batches.dtype)
        padded = np.concatenate([batches[..., : self.core_singles], nothing], axis=-1)
        singles = np.add.reduceat(padded[..., self.flat], self.start[:-1], axis=-1)
        return np.concatenate([singles, batches[..., self.core_singles :]], axis=-1)

    def estimates(self, found: Estimates) -> Estimates:
        fallback = self.columns(found.fallback.astype(np.int64)) > 0
        padded = np.append(found.method[: self.core_singles], 0)
        method = np.maximum.reduceat(padded[self.flat], self.start[:-1]) if len(self.flat) else padded[:0]
        method = np.append(method, found.method[self.core_singles :]).astype(np.int8)
        return Estimates(self.columns(found.value), self.columns(found.batches), fallback, method)

    def draws(self, draws: Draws) -> Draws:
        padded = np.append(draws.sizes[: self.core_singles], 1)
        sizes = np.maximum.reduceat(padded[self.flat], self.start[:-1])  # a sum that is not 0 is at least 1 / size
        assert draws.last is not None
        return replace(
            draws,
            f=self.columns(draws.f),
            g=None if draws.g is None else self.columns(draws.g),
            last=self.columns(draws.last),
            drawn=None if draws.drawn is None else self.columns(draws.drawn),
            groups=None,  # of the core
            left_out=None if draws.left_out is None else self.columns(draws.left_out),
            tracked=None,
            warm=None if draws.warm is None else (draws.warm[0], self.columns(draws.warm[1][:, : self.core_singles])),
            sizes=np.concatenate([sizes, draws.sizes[self.core_singles :]]),
        )


def lift(untied: Contracted, core: Columns) -> Lift:
    """From the columns of the core to those of the model."""
    model, links = untied.model, untied.links
    kinds = np.stack([core.row_of[links.parent[model.free]], links.map_of[model.free]], axis=1)
    _, first, kind = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
    columns: dict[tuple[int, ...], int] = {}
    rows: dict[tuple[int, ...], int] = {}
    row_of_kind = np.empty(len(first), dtype=np.int64)
    statistic_of = np.full(int(model.literal_start[-1]), -1, dtype=np.int64)
    for at in np.argsort(first).tolist():
        i = int(model.free[first[at]])
        begin = untied.core.literal_start[links.parent[i]]
        statistics = core.statistic_of[begin : begin + len(links.function(i))]
        key = []
        for v in range(int(model.cards[i])):
            mine = tuple(sorted(statistics[links.function(i) == v].tolist())) or (core.singles,)
            key.append(columns.setdefault(mine, len(columns)))
        row_of_kind[at] = rows.setdefault(tuple(key), len(rows))
        statistic_of[model.literal_start[i] : model.literal_start[i + 1]] = key
    row_of = np.full(model.n, -1, dtype=np.int32)
    row_of[model.free] = row_of_kind[kind.ravel()]
    sizes = np.array([len(key) for key in columns], dtype=np.int64)
    shown = Columns(
        row_of=row_of,
        row_size=np.bincount(row_of[model.free], minlength=len(rows)),
        row_representative=model.free[np.unique(row_of[model.free], return_index=True)[1]].astype(np.int64),
        statistic_of=statistic_of,
        singles=len(columns),
        certain=core.certain,
        bounds=core.bounds,
    )
    flat = np.array([k for key in columns for k in key], dtype=np.int64)
    made = Lift(flat, np.concatenate([[0], np.cumsum(sizes)]), core.singles, shown)
    known = {"certain": made.columns(core.certain), "bounds": made.columns(core.bounds)}
    return replace(made, shown=replace(shown, **known))


# --- groups that were given for the model ----------------------------------------------------------------------------


def induced_group(untied: Contracted, target: FactorGraph, group: GraphSymmetries) -> GraphSymmetries:
    """What a group of symmetries of the model does on the core, or on the model with more evidence."""
    carried = [_carried(untied, target, generator) for generator in group.group.generators]
    index = scope_index(target)
    kept = [g for g in carried if g is not None and violation(index, [g]) is None]
    notices = group.notices
    if len(kept) < len(carried):
        text = f"{len(carried) - len(kept)} of {len(carried)} generators do not respect what hard factors hold together"
        notices = (*notices, Notice("fallback", f"{text}; they are not used"))
    made = PermutationGroup(int(target.literal_start[-1]), tuple(g for g in kept if len(g[0])))
    return GraphSymmetries(target, made, None if made.generators else 1, group.kind, notices, group.seconds)


def _carried(untied: Contracted, target: FactorGraph, generator: Generator) -> Generator | None:
    """A generator on the target's literals; None if it takes what belongs together apart."""
    model, links = untied.model, untied.links
    if target is model:
        points, images = generator
        free = model.evidence < 0
        owner = np.searchsorted(model.literal_start, points, side="right") - 1
        return points[free[owner]], images[free[owner]]
    image = dict(zip(*(part.tolist() for part in generator), strict=True))
    start = model.literal_start
    moved = np.unique(np.searchsorted(start, generator[0], side="right") - 1)
    members: dict[int, list[int]] = {}
    for i in np.flatnonzero(np.isin(links.parent, links.parent[moved])).tolist():
        members.setdefault(int(links.parent[i]), []).append(i)
    points, images = [], []
    for parent, mine in members.items():
        if target.evidence[parent] >= 0:
            continue
        for value in range(int(target.cards[parent])):
            to = _meet(untied, [image.get(a, a) for a in (int(start[i] + links.function(i)[value]) for i in mine)])
            if to is None:
                return None
            points.append(int(target.literal_start[parent]) + value)
            images.append(to)
    keep = np.array(points, dtype=np.int64) != np.array(images, dtype=np.int64)
    return np.array(points, dtype=np.int64)[keep], np.array(images, dtype=np.int64)[keep]


def _meet(untied: Contracted, literals: list[int]) -> int | None:
    """The one literal of the core that means all of these literals of the model."""
    links, start = untied.links, untied.model.literal_start
    owners = (np.searchsorted(start, literals, side="right") - 1).tolist()
    parents = {int(links.parent[i]) for i in owners}
    if len(parents) != 1:
        return None
    holds = [links.function(i) == literal - start[i] for i, literal in zip(owners, literals, strict=True)]
    values = np.flatnonzero(np.logical_and.reduce(holds))
    return int(untied.core.literal_start[parents.pop()] + values[0]) if len(values) == 1 else None
