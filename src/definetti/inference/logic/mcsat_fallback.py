"""`--sampler auto` for Markov logic: Gibbs, and MC-SAT where Gibbs was seen to be stuck behind hard formulas.

Whether single-site moves reach every state in time is seen from chains that start in different regions. Where they
fail, MC-SAT draws a fresh solution of its slice at every sample and so crosses; components with many assignments it
draws only nearly uniformly. A run whose length is a number of sweeps is judged at its end; one that runs for some time
is judged on the way, and MC-SAT has the time that is left.
"""

from __future__ import annotations

import math
from dataclasses import replace
from math import prod

import numpy as np

from definetti.errors import Notice
from definetti.inference.question import STUCK, Answer, is_stuck
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.formulas import atoms, quantified
from definetti.model.logic.ground import LARGEST_TABLE, ground_size
from definetti.model.logic.theory import Formula, MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, width
from definetti.samplers.mcsat import MCSat
from definetti.samplers.protocol import LogicSampler, Plan

MOST_FACTORS = 2_000_000
WIDEST = 6  #: atoms of a grounding that leave components small
WORK = 2_500_000  #: atoms drawn by one chain
FEWEST = 100  #: samples


def mcsat_takes(model: MarkovLogic) -> bool:
    """Whether MC-SAT can sample a model."""
    size, values = ground_size(model), max([2, *(box.card for box in layout(model).values())])
    return size.factors <= MOST_FACTORS and size.largest_scope * math.log2(values) <= math.log2(LARGEST_TABLE)


def mcsat_suits(model: MarkovLogic) -> bool:
    """Whether its components will be small: of wide formulas and blocks it draws most only nearly uniformly."""
    blocks = any(predicate.exclusive for predicate in model.predicates.values())
    return not blocks and ground_size(model).largest_scope <= WIDEST and mcsat_takes(model)


def may_cross(model: MarkovLogic) -> bool:
    """Whether MC-SAT is there to be asked where Gibbs sampling gets stuck: behind formulas that forbid some states of
    several atoms. What forces single atoms (`!E(x,x).`) is in nobody's way."""
    return any(f.hard and not _is_unit(f.body) for f in model.formulas) and mcsat_takes(model)


def _is_unit(formula: Formula) -> bool:
    return len({*atoms(formula)}) <= 1 and not any(quantified(formula))


def crossing_plan(model: MarkovLogic, plan: Plan, by_default: bool, left: float = math.inf) -> Plan:
    """How MC-SAT should run; `left`: seconds for it, of which warm-up may take a quarter."""
    if plan.sweeps is None:
        return replace(plan, warm_seconds=min(plan.warm_seconds, left / 4))
    atoms = sum(prod(model.shape(name)) for name in model.predicates)
    sweeps = min(plan.sweeps, max(FEWEST, WORK // max(atoms, 1))) if by_default else plan.sweeps
    warm = max(1, sweeps // 20)
    return replace(plan, sweeps=sweeps, burn_in=warm if plan.burn_in is None else min(plan.burn_in, warm))


def prefer(gibbs: Marginals, crossed: Marginals) -> Marginals:
    """MC-SAT's answer, with the reason why it was asked for. The doubt stays, unless MC-SAT drew every sample exactly,
    nothing else leaves it in doubt, the survey found no modes between which its chains might not cross either, nor
    suspects any, and it does not contradict chains that cross, if slowly."""
    if not crossed.trusted:
        text = "MC-SAT was tried and has doubts of its own: the answer of Gibbs sampling stands"
        return replace(gibbs, notices=(*gibbs.notices, Notice("note", text)))
    why = max((n for n in gibbs.notices if n.kind in STUCK), key=lambda n: n.kind == "divided")
    text = f"MC-SAT was used: Gibbs sampling is stuck behind the hard formulas ({why.message})"
    modes = [region for region in gibbs.run.get("regions", ()) if not region["dropped"]]
    doubted = len(modes) > 1 or (bool(modes) and why.kind == "divided")  # look-alikes of what was left out, say
    better = crossed.run.get("approximate_share") == 0 and not doubted and not _contradicts(gibbs, crossed)
    note = Notice("note", text) if better else Notice(why.kind, f"{text}, and nothing shows that MC-SAT does better")
    run = dict(crossed.run) | {key: gibbs.run[key] for key in ("regions",) if key in gibbs.run}
    return replace(crossed, run=run, notices=(note, *crossed.notices))


def _contradicts(gibbs: Marginals, crossed: Marginals) -> bool:
    """Whether some number is further from that of chains which cross slowly than the errors of both explain (1 % in
    all, Bonferroni). Chains that are frozen, or divided, have errors that say nothing."""
    from scipy.special import ndtri

    if {n.kind for n in gibbs.notices if n.fails} & {"frozen", "divided"}:
        return False
    pairs = zip((*gibbs.orbits, *gibbs.queries.values()), (*crossed.orbits, *crossed.queries.values()), strict=True)
    apart = [np.abs(_distances(one, other)) for one, other in pairs]
    limit = -ndtri(0.01 / (2 * max(sum(z.size for z in apart), 1)))
    return any((z > limit).any() for z in apart)


def _distances(one: Estimate | OrbitRow, other: Estimate | OrbitRow) -> np.ndarray:
    """Of two answers, in standard errors of the difference; NaN where there are none."""
    off = np.atleast_1d(np.subtract(one.probability, other.probability))
    errors = [np.asarray(width(answer), dtype=float) / 1.96 for answer in (one, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return off / np.hypot(*errors)


def by_choice(
    model: MarkovLogic, answer: Answer, sampler: LogicSampler, plan: Plan, by_default: bool, seconds: float | None
) -> Marginals:
    """The answer of the sampler that `auto` took; MC-SAT's, where Gibbs sampling is stuck."""
    if not sampler.single_site:
        return answer(sampler, crossing_plan(model, plan, by_default), seconds)[0]
    crossable = may_cross(model)
    result, left = answer(sampler, plan, seconds, crossable)
    if not crossable or not is_stuck(result.notices) or result.interrupted or left <= 0:
        return result
    try:
        other = crossing_plan(model, plan, by_default, left)
        return prefer(result, answer(MCSat(), other, None if math.isinf(left) else left)[0])
    except KeyboardInterrupt:
        return replace(result, interrupted=True)
