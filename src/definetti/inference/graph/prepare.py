"""Before sampling a factor graph: what is forced, what is tied, the group, and the sampler.

A sampler that is named runs on the model's own variables, with what is forced as evidence. `auto` first merges what
hard factors hold together (`constraints/graph/contract.py`) and then picks a sampler for the core: so plain Gibbs can
be asked for and is told to be frozen where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from definetti.constraints.graph.connectivity import single_moves_connect
from definetti.constraints.graph.contract import Untied, untie, without
from definetti.constraints.graph.legal_states import explain, impossible_literals
from definetti.constraints.graph.possible_values import hard_factors
from definetti.errors import Notice, Unsatisfiable
from definetti.inference.graph.lift import induced
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.gibbs import Gibbs
from definetti.samplers.registry import UNREACHED, Sampler, choose
from definetti.symmetry.find import symmetries as find_symmetries
from definetti.symmetry.graph.group import GraphSymmetries

MOST_CHECKED = 20_000  # hard factors: a sampler that was named is told where it cannot get, if that is quickly known


@dataclass(frozen=True, eq=False)
class Prepared:
    """The group of the model that is sampled; `untied` if that is the core of a model that is asked about."""

    group: GraphSymmetries
    untied: Untied | None
    sampler: Sampler
    notices: tuple[Notice, ...]


def prepare(model: FactorGraph, wanted: Any, sampler: Sampler | None, scan: str, time_limit: float) -> Prepared:
    """`wanted`: a group of the model, the kind of symmetries to look for, or None for none."""
    untied = _untied(wanted.model if isinstance(wanted, GraphSymmetries) else model, sampler is None)
    target = untied.core if sampler is None else untied.model
    if not isinstance(wanted, GraphSymmetries):
        group = find_symmetries(target, "none" if wanted is None else wanted, None, time_limit)
    elif target.n == wanted.model.n and (target.evidence == wanted.model.evidence).all():
        group = wanted
    else:
        group = induced(untied, target, wanted)
    notices: list[Notice] = []
    if sampler is None:
        sampler, notices = choose(target, scan)
    elif (
        isinstance(sampler, Gibbs)
        and len(hard_factors(target)) <= MOST_CHECKED
        and single_moves_connect(target) is False
    ):
        notices = [UNREACHED]
    return Prepared(group, untied if target is not untied.model else None, sampler, tuple(notices))


def _untied(model: FactorGraph, by_core: bool) -> Untied:
    """The core, after a solver has looked for values that no legal state has: forced is forced, by whatever factors."""
    try:
        untied = untie(model)
        if not len(hard_factors(untied.core if by_core else untied.model)):
            return untied
        never = impossible_literals(untied.model)
        return untie(without(untied.model, never.tolist())) if len(never) else untied
    except Unsatisfiable:
        raise explain(model) from None  # in terms of the factors and the evidence as they were given
