"""Samplers by name, and which one `auto` takes: the table where they register.

`auto` runs on the core of a model (`constraints/graph/contract.py`). It takes Gibbs sampling if moves of one variable
at a time reach every state; else block moves, if elimination on the parts of the hard factors that they do not
connect needs small tables only; else, if it is known that they do not connect, tempering, whose hot chains pass
through states that are impossible at the end of the ladder. Where nothing could be decided it takes Gibbs sampling,
says so, and the chains' own alarms speak.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from definetti.constraints.graph.connectivity import single_moves_connect
from definetti.errors import ModelError, Notice, suggestion
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.block_gibbs import Blocks
from definetti.samplers.graph.gibbs import Gibbs, Orders
from definetti.samplers.graph.lanes import Engine, Slots
from definetti.samplers.graph.mcsat import MCSat
from definetti.samplers.graph.swendsen_wang import SwendsenWang
from definetti.samplers.graph.tempering import Tempering
from definetti.samplers.logic.lifted import LiftedSampler


class Sampler(Protocol):
    """A way to advance chains, as a frozen value."""

    @property
    def name(self) -> str: ...

    @property
    def scan(self) -> str: ...

    @property
    def visits_once(self) -> bool: ...

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time."""
        ...

    def engine(self, model: FactorGraph, slots: Slots) -> Engine: ...

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders: ...


NAMES = ("auto", "gibbs", "blocks", "swendsen-wang", "tempering", "mcsat", "lifted")


UNDECIDED = Notice(
    "note", "it could not be decided whether moves of one variable at a time reach every state; the chains are watched"
)
UNREACHED = Notice(
    "divided",
    "moves of one variable at a time do not lead from every legal state to every other: the numbers stand for the "
    "parts where the chains started; use --sampler auto",
)


def named(name: str | Sampler | LiftedSampler, scan: str) -> Sampler | LiftedSampler | None:
    """The sampler of this name, or one that was given; None for `auto`."""
    if isinstance(name, type):
        raise ModelError(f"sampler={name.__name__} is a class; give a value of it: dft.{name.__name__}()")
    if not isinstance(name, str):
        if not (hasattr(name, "name") and hasattr(name, "scan")):
            raise ModelError(f"sampler is one of {', '.join(NAMES)}, or a value such as dft.Gibbs(); got {name!r}")
        return name
    if name == "auto":
        return None
    if name == "gibbs":
        return Gibbs(scan)
    if name == "blocks":
        return Blocks(scan)
    if name == "swendsen-wang":
        return SwendsenWang()
    if name == "tempering":
        return Tempering(Gibbs(scan))
    if name == "mcsat":
        return MCSat()
    if name == "lifted":
        return LiftedSampler()
    close = suggestion(name, NAMES, f"; choose one of {', '.join(NAMES)}")
    raise ModelError(f"sampler {name!r} is not known{close}")


def choose(core: FactorGraph, scan: str) -> tuple[Sampler, list[Notice]]:
    """What `auto` takes for the core of a model, and what there is to say about it."""
    connected = single_moves_connect(core)
    if connected:
        return Gibbs(scan), []
    if scan != "random" and Blocks(scan).covers(core):
        return Blocks(scan), []
    if connected is False:
        return Tempering(Gibbs(scan)), []
    return Gibbs(scan), [UNDECIDED]
