"""Before sampling a factor graph: what is forced, what is tied, the group, and the sampler.

A sampler that is named runs on the model's own variables, with what is forced as evidence. `auto` first merges what
hard factors hold together (`constraints/graph/contract.py`) and then picks a sampler for the core: so plain Gibbs can
be asked for and is reported as frozen where it is.

On the core `auto` takes Gibbs sampling if moves of one variable at a time reach every state; else block moves, if
elimination on the parts of the hard factors that they do not connect needs small tables only; else, if it is known that
they do not connect, tempering, whose hot chains pass through states that are impossible at the end of the ladder. Where
nothing could be decided it takes Gibbs sampling, says so, and the chains' own alarms speak. Where chains of Gibbs
sampling are stuck, cluster flips are tried on models of pairs (`clusters_fallback.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import ModelError, Notice, Unsatisfiable
from definetti.inference.graph.question import ask
from definetti.inference.question import UNDECIDED, UNREACHED, Answer, Ready, Request, is_stuck
from definetti.integer_rows import first_and_number
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.graph.simplify import LARGE, simplify
from definetti.model.marginals import Marginals
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.protocol import GraphSampler, Plan
from definetti.symmetry.find import is_group
from definetti.symmetry.find import symmetries as find_symmetries
from definetti.symmetry.graph.group import GraphSymmetries

if TYPE_CHECKING:
    from definetti.constraints.graph.contract import Contracted

CHAINS = 64
MOST_CHECKED = 20_000  # hard factors: where a named sampler cannot get is reported if that is quickly known
LONG = 100  # sweeps of a run whose chains would agree if they mixed at all: shorter ones are only short


@dataclass(frozen=True, eq=False)
class Prepared:
    """The group of the model that is sampled; `untied` if that is the core of a model that is asked about."""

    group: GraphSymmetries
    untied: Contracted | None
    sampler: GraphSampler
    notices: tuple[Notice, ...]
    given: np.ndarray  # float64[literals]: what the model as given says of single variables, for starts


def ready(model: FactorGraph | None, request: Request, notices: Sequence[Notice] = ()) -> Ready:
    """Finds the group, chooses the sampler and lays out what is to be counted; the model may be that of a group."""
    wanted, sampler = request.symmetries, request.sampler
    if sampler is not None and "graph" not in sampler.kinds:
        raise ModelError(f"the sampler {sampler.name!r} is for Markov logic with symmetries by renaming, or none")
    core = prepare(wanted.model if model is None else model, wanted, sampler, request.scan, request.time_limit)
    notices = (*notices, *core.notices)
    question = ask(core.group, request.queries, request.method, request.seed, core.untied, notices, request.formulas)
    question = replace(question, given=core.given)
    strategy = partial(_by_choice, core.group.model) if sampler is None and core.sampler.single_site else None
    return Ready(question, core.sampler, core.group.kind, CHAINS, strategy=strategy)


def prepare(model: FactorGraph, wanted: Any, sampler: GraphSampler | None, scan: str, time_limit: float) -> Prepared:
    """`wanted`: a group of the model, the kind of symmetries to look for, or None for none."""
    target, untied = model_to_sample(wanted.model if is_group(wanted) else model, sampler is None)
    if not is_group(wanted):
        group = find_symmetries(target, "none" if wanted is None else wanted, None, time_limit)
    elif untied is None or (target.n == wanted.model.n and (target.evidence == wanted.model.evidence).all()):
        group = wanted
    else:
        from definetti.inference.graph.lift import induced_group

        group = induced_group(untied, target, wanted)
    notices: list[Notice] = []
    if sampler is None:
        sampler, notices = choose(group.model, scan)  # what is sampled: what is found out about it is kept
    elif sampler.single_site and len(target.hard_factors) <= MOST_CHECKED and _connected(target) is False:
        notices = [UNREACHED]
    given = given_fields(model)
    if untied is not None and target is untied.model:
        untied = None
    return Prepared(group, untied, sampler, tuple(notices), given if untied is None else untied.fields(given))


def _by_choice(
    model: FactorGraph, answer: Answer, sampler: GraphSampler, plan: Plan, _: bool, seconds: float | None
) -> Marginals:
    """The answer of Gibbs sampling, or that of cluster flips where it is stuck and they are not."""
    pairs = bool((model.arity == 2).any() and (model.arity <= 2).all() and (model.cards[model.free] == 2).all())
    result, left = answer(sampler, plan, seconds)  # not ended early: cluster flips may do no better
    short = plan.sweeps is not None and plan.sweeps < LONG and not any(n.kind == "divided" for n in result.notices)
    if not pairs or short or not is_stuck(result.notices) or result.interrupted or left <= 0:
        return result
    from definetti.inference.graph.clusters_fallback import clusters_instead

    return clusters_instead(model, result, answer, plan, left)


def model_to_sample(model: FactorGraph, by_core: bool) -> tuple[FactorGraph, Contracted | None]:
    """What is sampled, and how the model's variables follow from it; None where there is nothing to propagate.

    A solver looks for values that no legal state has: forced is forced, by whatever factors."""
    try:
        simple = simplify(model)
        if not len(simple.hard_factors) and not (simple.table_range > LARGE).any():
            return simple, None
        from definetti.constraints.graph.contract import contract, forbid_literals

        untied = contract(simple)
        if len((untied.core if by_core else untied.model).hard_factors):
            from definetti.constraints.graph.legal_states import impossible_literals

            never = impossible_literals(untied.model)
            untied = contract(forbid_literals(untied.model, never.tolist())) if len(never) else untied
        return untied.core if by_core else untied.model, untied
    except Unsatisfiable:
        from definetti.constraints.graph.legal_states import explain

        raise explain(model) from None  # in terms of the factors and the evidence as they were given


def _connected(model: FactorGraph) -> bool | None:
    """Whether single moves connect the legal states, where decided."""
    if not len(model.hard_factors):
        return True
    from definetti.constraints.graph.connectivity import single_moves_connect

    return single_moves_connect(model)


def choose(core: FactorGraph, scan: str) -> tuple[GraphSampler, list[Notice]]:
    """What `auto` takes for the core of a model, and what there is to say about it."""
    connected = _connected(core)
    if connected:
        return Gibbs(scan), []
    from definetti.samplers.graph.block_gibbs import Blocks

    if scan != "random" and Blocks(scan).covers(core):
        return Blocks(scan), []
    if connected is False:
        from definetti.samplers.tempering import Tempering

        return Tempering(Gibbs(scan)), []
    return Gibbs(scan), [UNDECIDED]


def given_fields(model: FactorGraph) -> np.ndarray:
    """float64[literals]: the sum of the log weights of factors over one free variable, evidence put in.

    As the graph was given: `simplify` moves more into unary factors."""
    out = np.zeros(int(model.literal_start[-1]))
    for alike in model.by_shape:
        scopes = alike.scopes
        seen = model.evidence[scopes]
        alone = (seen == FREE).sum(axis=1) == 1
        if not alone.any():
            continue
        first, which = first_and_number(alike.tables)
        tables = model.entries(alike.take(first))
        for axis in range(alike.arity):
            rows = np.flatnonzero(alone & (seen[:, axis] == FREE))
            if not len(rows):
                continue
            others = [k for k in range(alike.arity) if k != axis]
            card = tables.shape[axis + 1]
            slices = np.moveaxis(tables, axis + 1, -1)[(which[rows], *(seen[rows, k] for k in others))]
            np.add.at(out, model.literal_start[scopes[rows, axis]][:, None] + np.arange(card), slices)
    return out
