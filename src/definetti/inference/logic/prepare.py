"""Before sampling a Markov logic network: the group, the sampler, and whether the model has to be grounded.

`auto` takes Gibbs sampling where single moves reach every legal state. Where they do not it takes MC-SAT, where that
is not decided Gibbs sampling, which is watched while it runs and gives way to MC-SAT (`mcsat_fallback.py`). What MC-SAT
does not draw well is grounded, if it is small, and `inference/graph/prepare.py` takes a sampler for its core. Samplers
for factor graphs that are asked for by name run on the ground model too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from definetti import show
from definetti.constraints.logic.connectivity import relational_moves_connect
from definetti.constraints.logic.forced_atoms import explain_clashes
from definetti.errors import ModelError, Notice
from definetti.inference.logic.mcsat_fallback import by_choice, mcsat_suits, mcsat_takes
from definetti.inference.question import SWEEPS, UNDECIDED, UNREACHED, Ready, Request
from definetti.model.checked_input import PRECISION
from definetti.model.logic.ground import ground, ground_size
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.mcsat import MCSat
from definetti.symmetry.find import is_group
from definetti.symmetry.find import symmetries as find_symmetries
from definetti.symmetry.logic.renaming import RenamingSymmetries

CHAINS = 8
UPDATES = 500_000_000  # of the free atoms of an evidence-heavy model: about a minute of one core
COARSE = 1e-6  # of log weights: errors of sampling hide what is less
MOST_GROUND, WIDEST_GROUND = 100_000, 10  # groundings, atoms of one: more are not grounded unless somebody asks for it


@dataclass(frozen=True, eq=False)
class PreparedLogic:
    """`group` is of the ground model where that is sampled; its sampler, if None, is then still to be chosen."""

    group: Any
    sampler: Any
    notices: tuple[Notice, ...] = ()


def ready(model: MarkovLogic, request: Request) -> Ready:
    """Finds the group, chooses the sampler and lays out what is to be counted."""
    from definetti.inference.logic.joined import free_part

    if (part := free_part(model, request)) is not None:
        return _of_part(model, *part, request)
    made = prepare_logic(model, request.symmetries, request.sampler, request.scan, request.time_limit)
    group, queries = made.group, request.queries
    if group.model.kind == "logic":
        from definetti.inference.logic.question import logic_question

        question = logic_question(group, queries, request.method, made.notices)
        strategy = partial(by_choice, group.model) if request.sampler is None else None
        return Ready(question, made.sampler, group.kind, CHAINS, strategy=strategy)
    from definetti.inference.graph import prepare as graph
    from definetti.inference.logic.grounded import ground_request
    from definetti.symmetry.logic.members import by_atoms

    asked = replace(ground_request(model, request), symmetries=group, sampler=made.sampler)
    with explain_clashes(model):
        found = graph.ready(None, asked, made.notices)
    return replace(found, in_names_of_source=partial(by_atoms, model))


def _of_part(model: MarkovLogic, part: Any, said: Notice, request: Request) -> Ready:
    """The free atoms of an evidence-heavy model as a factor graph. Its chains are many, as they share a kernel's work;
    a sweep over tens of thousands of atoms is dear, so default runs may be shorter, with no fewer draws than others."""
    from definetti.inference.graph import prepare as graph
    from definetti.inference.logic.grounded import free_request
    from definetti.inference.logic.joined import with_known

    asked = free_request(model, request)
    with explain_clashes(model):
        found = graph.ready(part, asked, (said,))
    return replace(found, in_names_of_source=partial(with_known, model), draws=max(CHAINS * SWEEPS, UPDATES // part.n))


def prepare_logic(model: MarkovLogic, wanted: Any, sampler: Any, scan: str, time_limit: float) -> PreparedLogic:
    """`wanted`: a group of the model, the kind of symmetries to look for, or None for none."""
    given = is_group(wanted)
    if sampler is not None and "logic" not in sampler.kinds and not given:
        return _grounded(
            model, wanted or "none", sampler, f"the sampler {sampler.name!r} is for factor graphs", time_limit
        )
    if (not given or wanted.model.kind == "logic") and (why := _beyond_doubles(model, sampler)):
        if given:
            raise ModelError(f"{why}, in the ground model; leave symmetries out")
        return _grounded(model, wanted or "none", sampler, why, time_limit)
    group: Any = wanted if given else find_symmetries(model, wanted or "none", None, time_limit)
    if group.model.kind != "logic":
        return PreparedLogic(group, sampler)
    if sampler is not None and "logic" not in sampler.kinds:
        raise ModelError(f"the sampler {sampler.name!r} is for factor graphs; ask for the symmetries 'literals' too")
    if sampler is None:
        return _chosen(model, group, None if given else (wanted or "none"), scan, time_limit)
    unreached = sampler.single_site and relational_moves_connect(group.model) is False
    return PreparedLogic(group, sampler, (UNREACHED,) if unreached else ())


def _beyond_doubles(model: MarkovLogic, sampler: Any) -> str:
    """Why a theory has to be grounded whose penalties are so large that smaller weights are lost beside them. In the
    ground model they are kept, or refused where large ones cancel; conditionals and log densities of the theory are
    sums that round. Without a reason there is no such penalty, or one in a theory that is too large to be grounded:
    a single one is counted before it is weighed, so that conditionals hold; several might cancel, and are refused."""
    soft = [np.atleast_1d(np.abs(f.weight)) for f in model.formulas if f.weight is not None]
    weights = [float(w.max(initial=0.0)) for w in soft]
    largest = max(weights, default=0.0)
    if np.spacing(largest) * len(weights) <= PRECISION or (sampler is not None and "graph" not in sampler.kinds):
        return ""
    size = ground_size(model)
    if size.factors <= MOST_GROUND and size.largest_scope <= WIDEST_GROUND:
        return f"smaller weights are lost beside those of up to {show.number(largest)} unless these are looked at apart"
    cure = "write hard formulas, or make penalties smaller (100 forbids as well)"
    if sum(int((np.spacing(w) > COARSE).sum()) for w in soft) > 1:
        raise ModelError(
            f"small weights are lost where log weights of up to {show.number(largest)} cancel, and this theory is too "
            f"large to look; {cure}"
        )
    if sampler is not None and sampler.name == "tempering":
        coarse = f"log densities, which tempering compares, are coarse with weights of {show.number(largest)}"
        raise ModelError(f"{coarse}; {cure}")
    return ""


def _chosen(
    model: MarkovLogic, group: RenamingSymmetries, kind: str | None, scan: str, time_limit: float
) -> PreparedLogic:
    """What `auto` takes; `kind` of symmetries, None if the group was given: the ground model has another."""
    connected = relational_moves_connect(group.model)
    if connected:
        return PreparedLogic(group, Gibbs(scan))
    size = ground_size(model)
    small = kind is not None and size.factors <= MOST_GROUND and size.largest_scope <= WIDEST_GROUND
    if small and not mcsat_suits(group.model):
        return _grounded(model, kind or "none", None, "single-site moves may not reach every state", time_limit)
    if connected is None:
        return PreparedLogic(group, Gibbs(scan), (UNDECIDED,))
    return (
        PreparedLogic(group, MCSat()) if mcsat_takes(group.model) else PreparedLogic(group, Gibbs(scan), (UNREACHED,))
    )


def _grounded(model: MarkovLogic, kind: str, sampler: Any, why: str, time_limit: float) -> PreparedLogic:
    size = ground_size(model)
    with explain_clashes(model):
        group = find_symmetries(
            ground(model), "literals" if kind in ("auto", "theory", "renaming") else kind, None, time_limit
        )
    text = f"the model was grounded, because {why}: {show.count(size.variables)} variables"
    return PreparedLogic(group, sampler, (Notice("note", f"{text}, {show.count(size.factors)} ground formulas"),))
