"""definetti: symmetry-aware marginals for discrete probabilistic models.

The public names are loaded when they are first used, so that `import definetti` stays quick and loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from definetti.samplers.registry import SAMPLERS

__version__ = "0.1.0"

#: Where each public name lives, but for the samplers, which the registry names. No module may have the name of a
#: function here at this level: importing it would replace the function.
_HOMES = {
    "read": "definetti.readers.reading",
    "markov_logic": "definetti.readers.reading",
    "write": "definetti.readers.writing",
    "symmetries": "definetti.symmetry.find",
    "marginals": "definetti.inference.marginals",
    "resume": "definetti.inference.saving.resume",
    "sample": "definetti.inference.draws.sample",
    "exact": "definetti.solvers.exact",
    "count_distribution": "definetti.solvers.lifted.cardinality",
    "quotient": "definetti.lumping.quotient",
    "save": "definetti.store.writing",
    "load": "definetti.store.loading",
    "report": "definetti.pages.report",
    "from_arviz": "definetti.inference.draws.arviz_exchange",
    "ground": "definetti.model.logic.ground",
    "factor_graph": "definetti.model.graph.factors",
    "FactorGraph": "definetti.model.graph.factors",
    "MarkovLogic": "definetti.model.logic.theory",
    "Marginals": "definetti.model.marginals",
    "Estimate": "definetti.model.marginals",
    "OrbitRow": "definetti.model.marginals",
    "Comparison": "definetti.model.compare",
    "Symmetries": "definetti.symmetry.protocol",
    "GraphSymmetries": "definetti.symmetry.graph.group",
    "RenamingSymmetries": "definetti.symmetry.logic.renaming",
    "QuotientChain": "definetti.lumping.quotient",
    "Samples": "definetti.inference.draws.sample",
    "Progress": "definetti.samplers.protocol",
    "DefinettiError": "definetti.errors",
    "ModelError": "definetti.errors",
    "Notice": "definetti.errors",
    "ParseError": "definetti.errors",
    "SymmetryError": "definetti.errors",
    "TooLarge": "definetti.errors",
    "UnknownName": "definetti.errors",
    "Unsatisfiable": "definetti.errors",
}

_SAMPLERS = [entry.class_name for entry in SAMPLERS.values()]
__all__ = [*_HOMES, *_SAMPLERS, "errors", "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from definetti import errors as errors
    from definetti.errors import DefinettiError as DefinettiError
    from definetti.errors import ModelError as ModelError
    from definetti.errors import Notice as Notice
    from definetti.errors import ParseError as ParseError
    from definetti.errors import SymmetryError as SymmetryError
    from definetti.errors import TooLarge as TooLarge
    from definetti.errors import UnknownName as UnknownName
    from definetti.errors import Unsatisfiable as Unsatisfiable
    from definetti.inference.draws.arviz_exchange import from_arviz as from_arviz
    from definetti.inference.draws.sample import Samples as Samples
    from definetti.inference.draws.sample import sample as sample
    from definetti.inference.marginals import marginals as marginals
    from definetti.inference.saving.resume import resume as resume
    from definetti.lumping.quotient import QuotientChain as QuotientChain
    from definetti.lumping.quotient import quotient as quotient
    from definetti.model.compare import Comparison as Comparison
    from definetti.model.graph.factors import FactorGraph as FactorGraph
    from definetti.model.graph.factors import factor_graph as factor_graph
    from definetti.model.logic.ground import ground as ground
    from definetti.model.logic.theory import MarkovLogic as MarkovLogic
    from definetti.model.marginals import Estimate as Estimate
    from definetti.model.marginals import Marginals as Marginals
    from definetti.model.marginals import OrbitRow as OrbitRow
    from definetti.pages.report import report as report
    from definetti.readers.reading import markov_logic as markov_logic
    from definetti.readers.reading import read as read
    from definetti.readers.writing import write as write
    from definetti.samplers.gibbs import Gibbs as Gibbs
    from definetti.samplers.graph.block_gibbs import Blocks as Blocks
    from definetti.samplers.graph.swendsen_wang import SwendsenWang as SwendsenWang
    from definetti.samplers.logic.lifted import LiftedSampler as LiftedSampler
    from definetti.samplers.mcsat import MCSat as MCSat
    from definetti.samplers.orbital import Orbital as Orbital
    from definetti.samplers.orbital import OrbitalMetropolis as OrbitalMetropolis
    from definetti.samplers.protocol import Progress as Progress
    from definetti.samplers.tempering import Tempering as Tempering
    from definetti.solvers.exact import exact as exact
    from definetti.solvers.lifted.cardinality import count_distribution as count_distribution
    from definetti.store.loading import load as load
    from definetti.store.writing import save as save
    from definetti.symmetry.find import symmetries as symmetries
    from definetti.symmetry.graph.group import GraphSymmetries as GraphSymmetries
    from definetti.symmetry.logic.renaming import RenamingSymmetries as RenamingSymmetries
    from definetti.symmetry.protocol import Symmetries as Symmetries


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("definetti.errors")
    home = _HOMES.get(name) or next((entry.home for entry in SAMPLERS.values() if entry.class_name == name), None)
    if home is None:
        raise AttributeError(f"module 'definetti' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value  # the next use is an ordinary look-up
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
