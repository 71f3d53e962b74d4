"""Cluster flips for `--sampler auto`, where chains of Gibbs sampling were seen to be stuck on a model of pairs.

They cross between modes that differ by the turn of whole parts of a model, be they two or combinatorially many. Nothing
says beforehand that they do (fields, frustration and rare clusters hold them back), so that their answer counts only if
it is trusted: chains from everywhere agree, and each region that the survey kept was entered often enough from the
others by chains of cluster flips alone. Else the doubt stays.
"""

from __future__ import annotations

import math
from dataclasses import replace

from definetti.errors import ModelError, Notice
from definetti.inference.question import STUCK, Answer
from definetti.model.graph.factors import FactorGraph
from definetti.model.marginals import Marginals
from definetti.samplers.graph.swendsen_wang import SwendsenWang, couplings
from definetti.samplers.protocol import Plan


def clusters_instead(model: FactorGraph, result: Marginals, answer: Answer, plan: Plan, left: float) -> Marginals:
    """The answer of cluster flips instead of one of chains that are stuck, or the same where they do no better; `left`:
    seconds for them."""
    try:
        couplings(model)
        return prefer(result, answer(SwendsenWang(), plan, None if math.isinf(left) else left)[0])
    except ModelError:  # hard pairs of another kind
        return result
    except KeyboardInterrupt:
        return replace(result, interrupted=True)


def prefer(gibbs: Marginals, crossed: Marginals) -> Marginals:
    """The answer of cluster flips if nothing speaks against it, with the reason why they were used."""
    if not crossed.trusted:
        text = "cluster flips (Swendsen–Wang) were tried and have doubts of their own: the answer of Gibbs stands"
        return replace(gibbs, notices=(*gibbs.notices, Notice("note", text)))
    why = max((n for n in gibbs.notices if n.kind in STUCK), key=lambda n: n.kind == "divided")
    text = f"cluster flips (Swendsen–Wang) were used, as chains of Gibbs sampling do not mix ({why.kind})"
    return replace(crossed, notices=(Notice("note", text), *crossed.notices))
