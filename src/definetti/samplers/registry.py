"""The samplers by name, in one table: `--sampler` and its help, the exports and the tests read it.

A line names the class and where it lives; nothing is loaded until it is used. To add a sampler, write its file (and its
kernel) and add a line (CONTRIBUTING.md shows it on an example).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from definetti.errors import ModelError, suggestion
from definetti.samplers.gibbs import Gibbs

if TYPE_CHECKING:
    from definetti.samplers.protocol import Sampler


@dataclass(frozen=True)
class Entry:
    """A sampler: its class, and what it is made from where only the name and a scan are given."""

    home: str  # module
    class_name: str
    kinds: tuple[str, ...]  # as the class says
    help: str
    arguments: Callable[[str], tuple[Any, ...]] = lambda scan: ()
    wraps: bool = False  # its first argument is another sampler: `orbital:mcsat`
    independent: bool = False  # its draws are, so that there is no chain to wrap

    @property
    def sampler_class(self) -> Any:
        return getattr(import_module(self.home), self.class_name)

    def make(self, scan: str) -> Sampler:
        return self.sampler_class(*self.arguments(scan))


HERE = "definetti.samplers"
BOTH, GRAPH, LOGIC = ("graph", "logic"), ("graph",), ("logic",)

SAMPLERS = {
    "gibbs": Entry(f"{HERE}.gibbs", "Gibbs", BOTH, "one site at a time", lambda scan: (scan,)),
    "blocks": Entry(f"{HERE}.graph.block_gibbs", "Blocks", GRAPH, "joint draws of hard parts", lambda scan: (scan,)),
    "swendsen-wang": Entry(f"{HERE}.graph.swendsen_wang", "SwendsenWang", GRAPH, "cluster flips"),
    "tempering": Entry(f"{HERE}.tempering", "Tempering", BOTH, "parallel tempering", lambda s: (Gibbs(s),)),
    "mcsat": Entry(f"{HERE}.mcsat", "MCSat", BOTH, "slices, which cross hard constraints"),
    "orbital": Entry(
        f"{HERE}.orbital",
        "Orbital",
        BOTH,
        "gibbs, and a random symmetry after each sweep (orbital:mcsat and so on: another sampler instead of gibbs)",
        lambda s: (Gibbs(s),),
        wraps=True,
    ),
    "orbital-metropolis": Entry(
        f"{HERE}.orbital",
        "OrbitalMetropolis",
        BOTH,
        "gibbs (or orbital-metropolis:NAME), and proposals by symmetries that the model only nearly has",
        lambda s: (Gibbs(s),),
        wraps=True,
    ),
    "lifted": Entry(f"{HERE}.logic.lifted", "LiftedSampler", LOGIC, "independent exact draws", independent=True),
}


def is_independent(sampler: Sampler) -> bool:
    """Whether its draws are, so that nothing depends on the number of chains."""
    return sampler.name in SAMPLERS and SAMPLERS[sampler.name].independent


def names() -> list[str]:
    return ["auto", *SAMPLERS]


def wrapped() -> list[str]:
    """The samplers around others by name: `orbital:blocks` and so on."""
    inner = [name for name, entry in SAMPLERS.items() if not entry.wraps and not entry.independent]
    return [f"{name}:{other}" for name, entry in SAMPLERS.items() if entry.wraps for other in inner]


def named(name: str | Sampler, scan: str) -> Sampler | None:
    """The sampler of this name, or the one that was given; None for `auto`."""
    if isinstance(name, type):
        raise ModelError(f"sampler={name.__name__} is a class; give a value of it: dft.{name.__name__}()")
    if not isinstance(name, str):
        if not (hasattr(name, "name") and hasattr(name, "kinds")):
            raise ModelError(f"sampler is one of {', '.join(names())}, or a value such as dft.Gibbs(); got {name!r}")
        return name
    if name == "auto":
        return None
    if name in SAMPLERS:
        return SAMPLERS[name].make(scan)
    if name in wrapped():
        outer, _, inner = name.partition(":")
        return SAMPLERS[outer].sampler_class(SAMPLERS[inner].make(scan))
    close = suggestion(name, [*SAMPLERS, *wrapped()], f"; choose one of {', '.join(names())}")
    raise ModelError(f"sampler {name!r} is not known{close}")


def help_text() -> str:
    """What `--help` says of the samplers."""
    where = {BOTH: "", GRAPH: " (Markov logic is grounded)", LOGIC: " (Markov logic only)"}
    lines = [f"{name}: {entry.help}{where[entry.kinds]}" for name, entry in SAMPLERS.items()]
    return "; ".join(["auto: one that reaches every state", *lines]) + "."
