"""Alarms of chains that cannot get everywhere: variables that never could move, and chains that each see another
part.

A number from such chains may look perfect, because symmetry averages it: the alarm comes from the variables, not from
the number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from definetti.diagnose import Diagnosis
from definetti.errors import Notice
from definetti.model.graph.factors import FactorGraph
from definetti.model.marginals import Marginals

SHOWN = 5
APART = 2.0  # an R-hat beyond this says that chains do not look at the same states, not that they are slow


def alarms(model: FactorGraph, frozen: np.ndarray | None, found: Diagnosis) -> list[Notice]:
    out = []
    if frozen is not None and len(frozen):
        names = ", ".join(model.names[i] for i in frozen[:SHOWN].tolist())
        more = ", …" if len(frozen) > SHOWN else ""
        text = (
            f"{len(frozen)} of {len(model.free)} variables never had a second possible value given all others, "
            f"in any chain ({names}{more}): the chains stay where they started, whatever the numbers look like; "
            "use --sampler auto"
        )
        out.append(Notice("frozen", text))
    with np.errstate(invalid="ignore"):
        apart = int((found.rhat > APART).sum())
    if apart:
        text = f"the chains see different parts of what is possible in {apart} numbers"
        out.append(Notice("divided", f"{text}; moves that cross may help (--sampler auto, blocks, tempering)"))
    return out


def with_forced(
    certain: np.ndarray, statistic_of: np.ndarray, model: FactorGraph, forced: np.ndarray | None
) -> np.ndarray:
    """What is certain, with the variables that the solver found to have one value only (rows: variables, values)."""
    if forced is None or not forced.size:
        return certain
    certain = certain.copy()
    for i, value in forced.T.tolist():
        literals = statistic_of[model.literal_start[i] : model.literal_start[i + 1]]
        certain[np.delete(literals, value)] = 0.0
        certain[literals[value]] = 1.0
    return certain


def once(made: Marginals, kind: str) -> Marginals:
    """With the first notice of a kind only: variables and statistics may both have raised the same alarm."""
    first = next((k for k, notice in enumerate(made.notices) if notice.kind == kind), None)
    kept = tuple(notice for k, notice in enumerate(made.notices) if notice.kind != kind or k == first)
    return replace(made, notices=kept)
