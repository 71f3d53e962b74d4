"""definetti: symmetry-aware marginals for discrete probabilistic models.

The public names are loaded when they are first used, so that `import definetti` stays quick and loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Where each public name lives. No module may have the name of a function here at this level: importing it would
#: replace the function.
_HOMES = {
    "read": "definetti.readers.reading",
    "symmetries": "definetti.symmetry.factors",
    "marginals": "definetti.estimators.run",
    "exact": "definetti.solvers.choose",
    "count_distribution": "definetti.solvers.lifted_cardinality",
    "ground": "definetti.model.ground",
    "factor_graph": "definetti.model.factors",
    "FactorGraph": "definetti.model.factors",
    "MarkovLogic": "definetti.model.logic",
    "Marginals": "definetti.model.marginals",
    "Estimate": "definetti.model.marginals",
    "Gibbs": "definetti.samplers.gibbs",
    "Blocks": "definetti.samplers.joint",
    "SwendsenWang": "definetti.samplers.cluster",
    "Tempering": "definetti.samplers.tempering",
    "MCSat": "definetti.samplers.mcsat",
    "DefinettiError": "definetti.errors",
    "ModelError": "definetti.errors",
    "Notice": "definetti.errors",
    "ParseError": "definetti.errors",
    "SymmetryError": "definetti.errors",
    "TooLarge": "definetti.errors",
    "UnknownName": "definetti.errors",
    "Unsatisfiable": "definetti.errors",
}

__all__ = [*_HOMES, "errors", "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]

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
    from definetti.estimators.run import marginals as marginals
    from definetti.model.factors import FactorGraph as FactorGraph
    from definetti.model.factors import factor_graph as factor_graph
    from definetti.model.ground import ground as ground
    from definetti.model.logic import MarkovLogic as MarkovLogic
    from definetti.model.marginals import Estimate as Estimate
    from definetti.model.marginals import Marginals as Marginals
    from definetti.readers.reading import read as read
    from definetti.samplers.cluster import SwendsenWang as SwendsenWang
    from definetti.samplers.gibbs import Gibbs as Gibbs
    from definetti.samplers.joint import Blocks as Blocks
    from definetti.samplers.mcsat import MCSat as MCSat
    from definetti.samplers.tempering import Tempering as Tempering
    from definetti.solvers.choose import exact as exact
    from definetti.solvers.lifted_cardinality import count_distribution as count_distribution
    from definetti.symmetry.factors import symmetries as symmetries


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("definetti.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'definetti' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # the next use is an ordinary look-up
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
