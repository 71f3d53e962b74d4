"""Chains on a Markov logic network whose constants are renamed at random after every sweep.

The renamings are those that preserve the evidence, uniform within classes of interchangeable constants. Each comes from
a stream that the numbers of the chain and of the sweep name: nothing has to be saved with a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.samplers.run import Run
from definetti.symmetry.logic.constants import ConstantGroup, random_renaming
from definetti.symmetry.logic.renaming import RenamingSymmetries, renaming


def move_after_sweeps(sampling: Any, group: RenamingSymmetries, seed: int) -> Run:
    """The same run with renamings."""
    if not hasattr(sampling, "renamed"):
        raise ModelError("this sampler does not tell when its sweeps end: an orbital chain cannot wrap it")
    sampling.renamed = Renamings(renaming(group.model, simplify=False).constants, group, seed)
    return sampling


class Renamings:
    """What to do to a chain's atoms at the end of a sweep."""

    def __init__(self, constants: ConstantGroup, group: RenamingSymmetries, seed: int) -> None:
        self._constants, self._seed = constants, seed
        self._sorts = {name: p.sorts for name, p in group.model.predicates.items()}

    def draw(self, chain: int, sweep: int) -> np.ndarray:
        """int64[constants]: the renaming after this sweep of this chain."""
        return random_renaming(self._constants, np.random.default_rng([self._seed, 0x6F7262, chain, sweep]))

    def apply(self, renaming: np.ndarray, name: str, atoms: np.ndarray) -> np.ndarray:
        """A predicate's atoms after it: the tuple of images has the truth value of the tuple."""
        if not atoms.ndim:
            return atoms
        start = self._constants.nodes.start
        axes = [
            renaming[start[s] : start[s] + n] - start[s] for s, n in zip(self._sorts[name], atoms.shape, strict=True)
        ]
        out = np.empty_like(atoms)
        out[np.ix_(*axes)] = atoms
        return out
