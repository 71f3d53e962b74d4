"""`--sampler auto` for Markov logic: Gibbs, and MC-SAT where Gibbs was seen to be stuck behind hard formulas.

Whether single-site moves reach every state in time is seen from chains that start in different regions. Where they
fail, MC-SAT draws a fresh solution of its slice at every sample and so crosses; components with many
assignments it draws only nearly uniformly.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2, prod

from definetti.errors import Notice
from definetti.model.atoms import layout
from definetti.model.ground import LARGEST_TABLE, ground_size
from definetti.model.logic import MarkovLogic
from definetti.model.marginals import Marginals
from definetti.samplers.chains import Plan

STUCK = frozenset({"not-mixed", "divided", "frozen"})
MOST_FACTORS = 2_000_000
WORK = 2_500_000  #: atoms drawn by one chain
FEWEST = 100  #: samples


def crossing_plan(model: MarkovLogic, result: Marginals, plan: Plan, by_default: bool) -> Plan | None:
    """How MC-SAT should run after Gibbs has failed; None if it did not fail, or if MC-SAT cannot take the model."""
    stuck = any(notice.kind in STUCK for notice in result.notices)
    if not stuck or result.interrupted or not any(f.hard for f in model.formulas):
        return None
    size, values = ground_size(model), max([2, *(box.card for box in layout(model).values())])
    if size.factors > MOST_FACTORS or size.largest_scope * log2(values) > log2(LARGEST_TABLE) or plan.sweeps is None:
        return None
    atoms = sum(prod(model.shape(name)) for name in model.predicates)
    sweeps = min(plan.sweeps, max(FEWEST, WORK // max(atoms, 1))) if by_default else plan.sweeps
    warm = max(1, sweeps // 20)
    return replace(plan, sweeps=sweeps, burn_in=warm if plan.burn_in is None else min(plan.burn_in, warm))


def prefer(gibbs: Marginals, crossed: Marginals) -> Marginals:
    """MC-SAT's answer, with the reason why it was asked for."""
    why = next(notice for notice in gibbs.notices if notice.kind in STUCK)
    note = Notice("note", f"MC-SAT was used: Gibbs sampling is stuck behind the hard formulas ({why.message})")
    return replace(crossed, notices=(note, *crossed.notices))
