"""`sample`: the states themselves, for those who need draws rather than marginals."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.inference.marginals import check
from definetti.memory import available_cores, available_memory
from definetti.model.checked_input import require_model, whole
from definetti.readers.reading import with_world
from definetti.samplers.protocol import Plan, refuse_chains
from definetti.samplers.registry import named
from definetti.show import Shown

if TYPE_CHECKING:
    from os import PathLike

    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.samplers.protocol import Sampler
    from definetti.symmetry.protocol import Symmetries

DRAWS = 1000
BATCH_BYTES = 1 << 24  # values of one batch
NAME_BYTES = 128  # a name and its place among all names


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Shown):
    """Draws of all chains, made while they are iterated over; `sample` makes it.

    Iterating runs the chains from their seed, so every pass gives the same draws, and none of them is kept.

    Attributes
    ----------
    model : FactorGraph or MarkovLogic
        Whose states they are.
    names : tuple of str
        The variables, or all ground atoms, known ones included.
    cards : numpy.ndarray
        The number of values of each.
    chains, draws, every : int
        Chains, draws of each, and sweeps between two draws.
    sampler, scan, seed
        What made them.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
    >>> draws = dft.sample(ring, sampler="gibbs", chains=8, draws=100, seed=7)
    >>> sum(len(batch) for batch in draws), draws.array().shape
    (100, (8, 100, 4))
    """

    model: Any
    cards: np.ndarray
    chains: int
    draws: int
    every: int
    burn_in: int | None
    sampler: str
    scan: str | None
    seed: int
    start: Any  # makes a run ready to start

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns: variables, or ground atoms."""
        if self.model.kind == "graph":
            return self.model.names
        from definetti.model.logic.text import atom_text

        cure = "iterate over the draws: they are in the order of the predicates and their constants"
        refuse_bytes("the names of all atoms", NAME_BYTES * self.variables, cure)
        found = [np.ndindex(self.model.shape(name)) for name in self.model.predicates]
        pairs = zip(self.model.predicates, found, strict=True)
        return tuple(atom_text(self.model, name, row) for name, rows in pairs for row in rows)

    @property
    def variables(self) -> int:
        """The number of columns."""
        return len(self.cards)

    @property
    def binary(self) -> bool:
        """Whether a value is a bit: then files hold eight of them in a byte."""
        return self.model.kind == "logic" or bool((self.cards <= 2).all())

    def __len__(self) -> int:
        return self.draws

    def __iter__(self) -> Iterator[np.ndarray]:
        """Batches uint8[some draws, chains, variables]."""
        refuse_bytes("one draw of all chains", 2 * self.chains * self.variables, "use fewer chains or constants")
        left = self.draws
        batches = self.start().snapshots(self.every, max(1, BATCH_BYTES // max(self.chains * self.variables, 1)))
        while left > 0:
            batch = next(batches)[:left]
            left -= len(batch)
            yield batch

    def packed(self) -> Iterator[np.ndarray]:
        """The same with eight variables in a byte, the first in its highest bit: uint8[some draws, chains, bytes]."""
        if not self.binary:
            raise ModelError("a variable has more than two values: its draws are not bits; iterate over the draws")
        return (np.packbits(batch, axis=-1) for batch in self)

    def array(self) -> np.ndarray:
        """uint8[chains, draws, variables]: all of them at once, as `marginals` and other programs take them."""
        need = self.chains * self.draws * self.variables
        refuse_bytes("the array of all draws", need, "iterate over the draws, or save them")
        out = np.empty((self.chains, self.draws, self.variables), dtype=np.uint8)
        at = 0
        for batch in self:
            out[:, at : at + len(batch)] = batch.transpose(1, 0, 2)
            at += len(batch)
        return out

    def to_arviz(self) -> Any:
        """An ArviZ object (DataTree, or InferenceData on Python 3.11) with all draws in the group `posterior`."""
        from definetti.inference.draws.arviz_exchange import to_arviz

        return to_arviz(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes .npz, .csv or .parquet while the chains run."""
        from definetti.inference.draws.files import save_samples

        save_samples(self, path)

    def __repr__(self) -> str:
        return f"Samples({self.chains} chains × {self.draws} draws of {self.variables} variables, {self.sampler})"


def refuse_bytes(what: str, need: int, cure: str) -> None:
    have = 0.8 * available_memory()
    if need > have:
        raise TooLarge(what, need, have, cure, unit="bytes")


def sample(
    model: FactorGraph | MarkovLogic,
    *,
    sampler: str | Sampler = "auto",
    scan: str = "symmetric",
    symmetries: str | Symmetries | None = "auto",
    chains: int | None = None,
    draws: int = DRAWS,
    every: int = 1,
    burn_in: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    time_limit: float = 10.0,
) -> Samples:
    """States of a model's chains, one after every so many sweeps, as a lazy sequence of batches.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        What to sample.
    sampler : str or sampler
        "auto", a name, or a value such as `Orbital(Gibbs())`.
    scan : {"symmetric", "random", "fixed"}
        The order of a sweep.
    symmetries : {"auto", "none", "variables", "literals", "renaming"}, group or None
        What orders of sweeps are symmetric with respect to. Orbital samplers move along their own group.
    chains : int, optional
        Independent chains; 64 on factor graphs, 8 on Markov logic.
    draws : int
        Draws of each chain.
    every : int
        Sweeps between two draws.
    burn_in : int, optional
        Sweeps dropped at the start; detected where it is left out.
    seed : int, optional
        The same seed gives the same draws.
    workers : int, optional
        Threads; all cores by default.
    time_limit : float
        Seconds for the search for symmetries.

    Returns
    -------
    Samples
        Iterate over it, `save` it, or hand it to `marginals`.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.markov_logic("Smokes(person)\\n1.5 Smokes(x)", domain={"person": 3})
    >>> draws = dft.sample(model, sampler="gibbs", chains=2, draws=5, seed=7)
    >>> draws
    Samples(2 chains × 5 draws of 3 variables, gibbs)
    >>> draws.names[0], draws.array().shape
    ('Smokes(Person1)', (2, 5, 3))
    """
    require_model(model, "sample takes a model")
    numbers = (whole(chains, "chains"), whole(draws, "draws"), whole(every, "every"), whole(workers, "workers"))
    burn_in, seed = whole(burn_in, "burn_in", 0), whole(seed, "seed", 0)
    seed = secrets.randbits(32) if seed is None else seed
    model, _ = with_world(model, (), "open")
    question, kernel, usual = _prepared(model, check(model, symmetries), named(sampler, scan), scan, seed, time_limit)
    plan = Plan(
        chains=numbers[0] or usual,
        burn_in=burn_in if kernel.warms_up else 0,
        sweeps=(numbers[1] or DRAWS) * (numbers[2] or 1),
        seed=seed,
        workers=numbers[3] or available_cores(),
        conditionals=False,
        warm_seconds=math.inf,
    )
    shown = question.group.model
    refuse_chains(plan.chains, 0 if shown.kind == "logic" else shown.n)
    logic = shown.kind == "logic"
    if not logic and shown.cards.max(initial=1) > 256:
        raise ModelError("a variable has more than 256 values: its draws do not fit into bytes")
    cards = np.broadcast_to(np.int64(2), shown.atom_count) if logic else shown.cards  # of all atoms, in no memory
    return Samples(
        model=shown,
        cards=cards,
        chains=plan.chains,
        draws=numbers[1] or DRAWS,
        every=numbers[2] or 1,
        burn_in=plan.burn_in,
        sampler=kernel.name,
        scan=kernel.scan,
        seed=seed,
        start=_starter(lambda: question.sampling(kernel, plan, "orbit")),
    )


def _starter(make: Callable[[], Any]) -> Callable[[], Any]:
    """Runs ready to start. The first is made at once: compiled here, and refused here where it is too large."""
    first = [make()]

    def start() -> Any:
        try:
            return first.pop()
        except IndexError:
            return make()

    return start


def _prepared(model: Any, wanted: Any, kernel: Any, scan: str, seed: int, time_limit: float) -> tuple[Any, Any, int]:
    """The question whose run is to be looked at, its sampler, and how many chains there are unless that is given.

    Variables that hard factors tie together stay apart, so that the states are those of the model itself: `auto` takes
    a sampler that moves them jointly.
    """
    from definetti.inference.question import Request

    if model.kind == "graph":
        from definetti.inference.graph.prepare import choose, model_to_sample, ready

        kernel = choose(model_to_sample(model, False)[0], scan)[0] if kernel is None else kernel
        made = ready(model, Request(wanted, kernel, scan, (), "orbit", seed, time_limit))
    else:
        from definetti.inference.logic.prepare import prepare_logic, ready

        if kernel is None:
            found = prepare_logic(model, wanted, None, scan, time_limit)
            kernel = found.sampler
            if kernel is None:  # it was grounded, because single moves do not connect its states
                return _prepared(found.group.model, found.group, None, scan, seed, time_limit)
        made = ready(model, Request(wanted, kernel, scan, (), "orbit", seed, time_limit))
    return made.question, made.sampler, made.chains
