"""Chains on a Markov logic network whose constants are renamed after every sweep.

`Renamings` are those that preserve the evidence, uniform within classes of interchangeable constants: they always move.
`Proposals` come from a more symmetric model and are accepted by the true density. Each comes from a stream that the
numbers of the chain and of the sweep name: nothing but the count of accepted ones has to be saved with a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import Atom, MarkovLogic, Not, WeightedFormula
from definetti.samplers.run import Run
from definetti.symmetry.logic.constants import ConstantGroup, random_renaming
from definetti.symmetry.logic.renaming import RenamingSymmetries, renaming
from definetti.symmetry.logic.theory_group import TheorySymmetry

Atoms = Mapping[str, np.ndarray]  # by predicate: boolean tensors
LogDensity = Callable[[Atoms], float]  # minus infinity for what hard formulas forbid
STREAM = 0x6F7262


class Moves(Protocol):
    """What is done to the atoms of a chain at the end of a sweep."""

    def moved(self, chain: int, sweep: int, atoms: Atoms, log_density: LogDensity) -> Atoms: ...

    def arrays(self) -> dict[str, np.ndarray]: ...

    def report(self) -> dict[str, Any]: ...


def move_after_sweeps(sampling: Any, moves: Moves) -> Run:
    """The same run with moves."""
    if not hasattr(sampling, "renamed"):
        raise ModelError("this sampler does not report when its sweeps end: an orbital chain cannot wrap it")
    sampling.renamed = moves
    return sampling


def image(constants: ConstantGroup, sorts: tuple[str, ...], renaming: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """A predicate's atoms after a renaming: the tuple of images has the truth value of the tuple."""
    if not atoms.ndim:
        return atoms
    start = constants.nodes.start
    axes = [renaming[start[s] : start[s] + n] - start[s] for s, n in zip(sorts, atoms.shape, strict=True)]
    out = np.empty_like(atoms)
    out[np.ix_(*axes)] = atoms
    return out


class Renamings:
    """Symmetries of the model itself."""

    def __init__(self, group: RenamingSymmetries, seed: int) -> None:
        self._constants, self._seed = renaming(group.model, simplify=False).constants, seed
        self._sorts = {name: p.sorts for name, p in group.model.predicates.items()}

    def draw(self, chain: int, sweep: int) -> np.ndarray:
        """int64[constants]: the renaming after this sweep of this chain."""
        return random_renaming(self._constants, np.random.default_rng([self._seed, STREAM, chain, sweep]))

    def apply(self, renaming: np.ndarray, name: str, atoms: np.ndarray) -> np.ndarray:
        return image(self._constants, self._sorts[name], renaming, atoms)

    def moved(self, chain: int, sweep: int, atoms: Atoms, log_density: LogDensity) -> Atoms:
        renaming = self.draw(chain, sweep)
        return {name: self.apply(renaming, name, tensor) for name, tensor in atoms.items()}

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    def report(self) -> dict[str, Any]:
        return {}


def relabelled_atoms(renamings: Renamings, symmetry: TheorySymmetry, atoms: Atoms) -> dict[str, np.ndarray]:
    """The image of a state under a symmetry of the theory: P(a) has the value of its image Q(a[places]), or the
    opposite one."""
    out = dict(atoms)
    for name, image in symmetry.moves.items():
        tensor = atoms[name].transpose(image.places)
        out[image.predicate] = tensor if image.sign else ~tensor
    return {name: renamings.apply(symmetry.renaming, name, tensor) for name, tensor in out.items()}


# --- symmetries of a more symmetric model ---------------------------------------------------------------------------


class Proposals:
    """Symmetries of a more symmetric model, taken to the free atoms and accepted by Metropolis' rule.

    A renaming σ may take a free atom to a known one. So the move of the free atoms is the first-return map of σ: an
    atom goes to the first of σ(a), σ(σ(a)), … that is free. That is a permutation of the free atoms, and its inverse
    is the first-return map of the inverse of σ, which is proposed equally often: the proposal is symmetric.
    """

    def __init__(self, group: RenamingSymmetries, chains: int, seed: int, tolerance: float) -> None:
        self._model, self._seed = group.model, seed
        self._constants = _relaxed_constants(group.model, tolerance)
        self._sorts = {name: p.sorts for name, p in group.model.predicates.items()}
        knowledge = group.model.knowledge
        self._free = {name: knowledge.codes(name) == UNKNOWN for name in group.model.predicates}
        sizes = [(sort, k) for sort, some in self._constants.sizes.items() for k in np.flatnonzero(some > 1).tolist()]
        self.classes = [self._constants.members(sort, k) + self._constants.nodes.start[sort] for sort, k in sizes]
        self.moves = np.zeros((2, chains), np.int64)  # accepted, tried

    @property
    def count(self) -> int:
        """Constants of all sorts."""
        return self._constants.nodes.count

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """A swap of two constants, or any renaming or its inverse: each as likely as its inverse."""
        if self.classes and rng.random() < 0.5:
            a, b = rng.choice(self.classes[rng.integers(len(self.classes))], 2, replace=False)
            swap = np.arange(self.count)
            swap[[a, b]] = b, a
            return swap
        found = random_renaming(self._constants, rng)
        return np.argsort(found) if rng.random() < 0.5 else found

    def apply(self, renaming: np.ndarray, name: str, atoms: np.ndarray) -> np.ndarray:
        """The first-return map."""
        free, sorts = self._free[name], self._sorts[name]
        if not atoms.ndim or not free.any():
            return atoms
        source = image(self._constants, sorts, renaming, np.arange(atoms.size).reshape(atoms.shape)).ravel()
        back = source[np.flatnonzero(free.ravel())]  # where each free atom's new value comes from
        while not (here := free.ravel()[back]).all():
            back = np.where(here, back, source[back])
        out = atoms.copy()
        out[free] = atoms.ravel()[back]
        return out

    def legal(self, atoms: Atoms) -> bool:
        """Whether every `!` block has one true atom."""
        blocks = ((p, atoms[name]) for name, p in self._model.predicates.items() if p.exclusive)
        return all((tensor.sum(axis=tuple(p.exclusive)) == 1).all() for p, tensor in blocks)

    def moved(self, chain: int, sweep: int, atoms: Atoms, log_density: LogDensity) -> Atoms:
        rng = np.random.default_rng([self._seed, STREAM + 1, chain, sweep])
        renaming = self.draw(rng)
        then = {name: self.apply(renaming, name, tensor) for name, tensor in atoms.items()}
        gain = log_density(then) - log_density(atoms) if self.legal(then) else -np.inf
        accepted = bool(rng.random() < np.exp(min(gain, 0.0)))
        self.moves[:, chain] += [accepted, 1]
        return then if accepted else atoms

    def arrays(self) -> dict[str, np.ndarray]:
        return {"moves": self.moves}

    def report(self) -> dict[str, Any]:
        accepted, tried = self.moves.sum(axis=1).tolist()
        return {"accepted": accepted / tried} if tried else {}


@lru_cache(maxsize=1)
def _relaxed_constants(model: MarkovLogic, tolerance: float) -> ConstantGroup:
    return renaming(relaxed(model, tolerance), simplify=False).constants


def relaxed(model: MarkovLogic, tolerance: float) -> MarkovLogic:
    """The model whose renamings are proposed: weights rounded to multiples of the tolerance, or, if it is infinite,
    without evidence and without soft formulas of one atom."""
    if not np.isfinite(tolerance):
        kept = [f for f in model.formulas if f.hard or not _of_one_atom(f)]
        return replace(model, formulas=tuple(kept), evidence={}, unknown={}, closed=frozenset())
    rounded = (_rounded(f, tolerance) for f in model.formulas)
    return replace(model, formulas=tuple(f for f in rounded if f.hard or np.any(f.weight)))


def _of_one_atom(f: WeightedFormula) -> bool:
    body = f.body.part if isinstance(f.body, Not) else f.body
    return isinstance(body, Atom)


def _rounded(f: WeightedFormula, tolerance: float) -> WeightedFormula:
    return f if f.hard else replace(f, weight=np.round(np.asarray(f.weight) / tolerance) * tolerance)
