"""Dense or sparse: which of the two engines sweeps over a theory. They are the same kernel, so only cost decides.

The rule counts operations (`work.py`) from the theory and the sizes alone. A run that is sparse still makes dense
sweeps of states with many true atoms (`crowded.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.emit import plan_of
from definetti.samplers.sparse.keys import packing
from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.split import HIDDEN, split_sorts
from definetti.samplers.sparse.work import dense_work, sparse_work

if TYPE_CHECKING:
    from definetti.samplers.logic.queries import Asked
    from definetti.samplers.sparse.engine import Sparse

ADVANTAGE = 2.0  # how many times cheaper the sparse sweep has to be
CONSTANT_BYTES, ATOM_BYTES = 160.0, 16.0  # of a sparse chain: what an end of a pair needs, and a true atom
MOST_CLASSES = 8  # of constants: at most one in so many has a class of its own


@dataclass(frozen=True)
class Verdict:
    """Which engine, and why; `work` of a dense and a sparse sweep in the units of this file (0: not known)."""

    engine: str  # "dense" or "sparse"
    reason: str
    work: tuple[float, float] = (0.0, 0.0)
    memory: float = 0.0  # bytes of a sparse chain


def verdict(model: MarkovLogic) -> Verdict:
    """By the theory and the sizes of its sorts."""
    try:
        model = split_sorts(model).model
        plan = plan_of(model)
        packed = [packing(model, plan, s) for s in plan.systems]
    except Unfit as why:
        return Verdict("dense", str(why))
    sizes = [sort.size for sort in model.sorts.values()]
    dense = sparse = memory = 0.0
    for s, made in zip(plan.systems, packed, strict=True):
        chance = float(np.max(1.0 / (1.0 + np.exp(-made.arrays[0]))))
        rows, columns = sizes[s.sorts[0]], sizes[s.sorts[1]]
        dense += dense_work(s, sizes)
        sparse += sparse_work(s, sizes, columns * chance)
        memory += CONSTANT_BYTES * (rows + columns) + ATOM_BYTES * rows * columns * chance
    if dense < ADVANTAGE * sparse:
        text = f"a dense sweep costs {dense / max(sparse, 1.0):.2g} times a sparse one; {ADVANTAGE:g} is asked for"
        return Verdict("dense", text, (dense, sparse))
    text = f"a sparse sweep is about {dense / sparse:.2g} times cheaper, by counts"
    return Verdict("sparse", text, (dense, sparse), memory)


def engines(model: MarkovLogic) -> tuple[dict[str, str], float]:
    """For `info`: the engine that sweeps of Gibbs sampling have for each predicate, and why; bytes of the state of a
    chain, 0 for a bit of each atom."""
    found = verdict(with_forced_atoms(model))
    return dict.fromkeys(model.predicates, f"{found.engine} ({found.reason})"), found.memory


def sparse_engine(asked: Asked, scan: str) -> Sparse | str:
    """The compiled sparse engine for a run, or why it is not taken."""
    group = asked.group
    if scan != "symmetric":
        return f"the scan {scan!r} visits sites one by one"
    if asked.counted:
        return "formulas over several atoms are counted on bits"
    if asked.turns or (group.mirror >= 0).any():
        return "the theory has symmetries that exchange predicates or values"
    found = verdict(group.model)
    if found.engine != "sparse":
        return found.reason
    split = split_sorts(group.model)
    for name, part in split.parts.items():
        for j in part.kept if part.name in group.atom_orbits else ():
            classes = group.atom_orbits[part.name].classes[j]
            if len(classes) and MOST_CLASSES * (int(classes.max()) + 1) > len(classes):
                return f"evidence makes too many classes of constants for {name.split(HIDDEN)[0]}"
    if set(group.atom_orbits) != set(group.model.predicates):
        return "orbits of some predicate are not numbered"
    from definetti.samplers.sparse.engine import compile_sparse

    try:
        made = compile_sparse(group.model, group.atom_orbits, group.deferred)
    except Unfit as why:
        return str(why)
    from definetti.samplers.sparse.starts import drawn_chain, mended

    if made.plan.hard and mended(made, 0, 0, drawn_chain(made, 0, 0)) is None:
        return "sweeps at the cost of the true atoms lead to no state that satisfies the hard formulas"
    return made
