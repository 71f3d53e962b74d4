"""What a large answer says of states that no chain gets to because they are much denser
(`samplers/sparse/weights/bounds.py`).

Chains of sparse sweeps start below the density beyond which states weigh nothing. Where there is no such density, or
the product of a dense state outweighs all that was sampled, agreement of the chains says nothing: the answer fails.
"""

from __future__ import annotations

import numpy as np

from definetti import show
from definetti.errors import Notice
from definetti.inference.modes import SMALLER
from definetti.samplers.sparse.emit import plan_of
from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.split import HIDDEN, split_sorts
from definetti.samplers.sparse.starts import affordable
from definetti.samplers.sparse.weights.bounds import FAR, Denser, NotBounded, denser
from definetti.symmetry.logic.renaming import RenamingSymmetries

DENSE = 0.1  # share of true pairs
TIMES = 4.0  # what has up to so many times the true atoms that were sampled counts as sampled


def denser_states(group: RenamingSymmetries, means: np.ndarray) -> list[Notice]:
    """`means`: F of each orbit."""
    try:
        split = split_sorts(group.model)
        found = denser(split.model, plan_of(split.model))
    except (Unfit, NotBounded):
        return []
    orbits = split.orbits(group.atom_orbits)
    out: list[Notice] = []
    for d in found:
        numbers = np.unique(orbits[d.predicate].lookup[..., 0])
        numbers = numbers[numbers >= 0]
        density = float(means[numbers] @ group.sizes[numbers] / max(1, group.sizes[numbers].sum()))
        out += _said(d, density, *split.model.shape(d.predicate))
    return out


def _said(d: Denser, density: float, rows: int, columns: int) -> list[Notice]:
    more, name = d.outweighed(TIMES * density), d.predicate.split(HIDDEN)[0]
    if more > FAR:
        text = (
            f"states with far more true {name} weigh more than all that have up to four times as many as were sampled"
        )
        bound = f"by a bound in closed form, at least {show.amount(np.exp(min(more, 690.0)))} times"
        where = f"{name} is true with probability {d.product[d.predicate]:.3g} there"
        return [Notice("divided", f"{text}, {bound}; {where}. The numbers stand for where the chains are", SMALLER)]
    if d.cutoff <= affordable(rows, columns, d.cutoff) / columns * (1 + 1e-9) or d.cutoff <= TIMES * density:
        return []
    text = f"states in which the share of true {name} is up to {min(d.cutoff, 1.0):.2g}"
    if d.cutoff > DENSE:
        text = f"{text} may weigh as much as those that were sampled: no bound rules them out, and no chain gets there"
        return [Notice("divided", text, SMALLER)]
    return [Notice("note", f"{text} were not ruled out in closed form, and are too dense to start a chain there")]
