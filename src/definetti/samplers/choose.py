"""Samplers by name, and which one `auto` takes: the table where they register.

`auto` runs on the core of a model (`model/ties.py`): there it takes Gibbs sampling if moves of one variable at a time can reach every
state, or if that could not be decided (the chains' own alarms then speak); where it is known that they cannot, it takes tempering, whose
hot chains pass through states that are impossible at the end of the ladder.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from definetti.errors import ModelError, Notice
from definetti.model.factors import FactorGraph
from definetti.samplers.blocks import Engine, Slots
from definetti.samplers.cluster import SwendsenWang
from definetti.samplers.gibbs import Gibbs, Orders
from definetti.samplers.tempering import Tempering
from definetti.solvers.connectivity import single_moves_connect


class Sampler(Protocol):
    """A way to advance chains, as a frozen value."""

    @property
    def name(self) -> str: ...

    @property
    def scan(self) -> str: ...

    @property
    def single_site(self) -> bool: ...

    @property
    def visits_once(self) -> bool: ...

    def engine(self, model: FactorGraph, slots: Slots) -> Engine: ...

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence) -> Orders: ...


NAMES = ("auto", "gibbs", "swendsen-wang", "tempering")


def named(name: str, scan: str) -> Sampler | None:
    """The sampler of this name; None for `auto`."""
    if name == "auto":
        return None
    if name == "gibbs":
        return Gibbs(scan)
    if name == "swendsen-wang":
        return SwendsenWang()
    if name == "tempering":
        return Tempering(Gibbs(scan))
    raise ModelError(f"sampler {name!r} is not known; choose one of {', '.join(NAMES)}")


def choose(core: FactorGraph, scan: str) -> tuple[Sampler, list[Notice]]:
    """What `auto` takes for the core of a model, and what there is to say about it."""
    connected = single_moves_connect(core)
    if connected is None:
        text = "it could not be decided whether moves of one variable at a time reach every state; the chains are watched"
        return Gibbs(scan), [Notice("note", text)]
    return (Gibbs(scan) if connected else Tempering(Gibbs(scan))), []
