"""Before sampling a Markov logic network: the group, the sampler, and whether the model has to be grounded.

`auto` takes Gibbs sampling, watched while it runs (`crossing.py`), unless it is known that single moves do not reach
every legal state; then MC-SAT, or the ground model and what `samplers/choose.py` takes for it. Samplers for factor
graphs that are asked for by name run on the ground model too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from definetti import show
from definetti.errors import ModelError, Notice
from definetti.estimators.crossing import mcsat_takes
from definetti.model.ground import LIMIT, ground, ground_size
from definetti.model.logic import MarkovLogic
from definetti.samplers.choose import UNDECIDED, UNREACHED
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.lifted import LiftedSampler
from definetti.samplers.logic_connectivity import relational_moves_connect
from definetti.samplers.mcsat import MCSat
from definetti.symmetry.factors import Symmetries
from definetti.symmetry.factors import symmetries as find_symmetries
from definetti.symmetry.logic import RenamingSymmetries

RELATIONAL = Gibbs | MCSat | LiftedSampler


@dataclass(frozen=True, eq=False)
class PreparedLogic:
    """`group` is of the ground model where that is sampled; its sampler, if None, is then still to be chosen."""

    group: Symmetries | RenamingSymmetries
    sampler: Any
    notices: tuple[Notice, ...] = ()


def prepare_logic(model: MarkovLogic, wanted: Any, sampler: Any, scan: str, time_limit: float) -> PreparedLogic:
    """`wanted`: a group of the model, the kind of symmetries to look for, or None for none."""
    if sampler is not None and not isinstance(sampler, RELATIONAL) and (wanted is None or isinstance(wanted, str)):
        return _grounded(model, wanted, sampler, f"the sampler {sampler.name!r} is for factor graphs", time_limit)
    given = isinstance(wanted, RenamingSymmetries | Symmetries)
    group = wanted if given else find_symmetries(model, wanted or "none", None, time_limit)
    if not isinstance(group, RenamingSymmetries):
        return PreparedLogic(group, sampler)
    if sampler is not None and not isinstance(sampler, RELATIONAL):
        raise ModelError(f"the sampler {sampler.name!r} is for factor graphs; ask for the symmetries 'literals' too")
    if sampler is not None and not isinstance(sampler, Gibbs):
        return PreparedLogic(group, sampler)
    connected = relational_moves_connect(group.model)
    if sampler is not None or connected:
        return PreparedLogic(group, sampler or Gibbs(scan), () if connected is not False else (UNREACHED,))
    if connected is None:
        return PreparedLogic(group, Gibbs(scan), (UNDECIDED,))
    if mcsat_takes(group.model):
        return PreparedLogic(group, MCSat())
    if given or ground_size(model).factors > LIMIT:
        return PreparedLogic(group, Gibbs(scan), (UNREACHED,))
    return _grounded(model, wanted, None, "single-site moves on it do not reach every state", time_limit)


def _grounded(model: MarkovLogic, wanted: str | None, sampler: Any, why: str, time_limit: float) -> PreparedLogic:
    kind = "literals" if wanted in ("auto", "renaming") else wanted or "none"
    size = ground_size(model)
    group = find_symmetries(ground(model), kind, None, time_limit)
    text = f"the model was grounded, because {why}: {show.count(size.variables)} variables"
    return PreparedLogic(group, sampler, (Notice("note", f"{text}, {show.count(size.factors)} ground formulas"),))
