"""`--sampler auto` answers exactly where that is cheap: where an exact engine's counted work is about a second or less.

The work is a count of operations (`solvers/work.py`), so that the same command takes the same way on every machine.
An answer that is within reach but takes longer is left to `exact`; a note says so, with the time to expect.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from definetti import show
from definetti.errors import Notice, TooLarge
from definetti.model.marginals import Marginals

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic

SAMPLER = "exact"  #: what `run` says in place of a sampler's name
LONGEST = 3600.0  #: work that is worth a note


def exact_first(
    model: FactorGraph | MarkovLogic, queries: Sequence[Any], symmetries: Any, time_limit: float
) -> Marginals | Notice | None:
    """The exact answer; or a note on the work that it takes; or None where it is out of reach."""
    from definetti.solvers.exact import exact_within
    from definetti.solvers.work import CHEAP, Budget, TooMuch

    began = time.perf_counter()
    try:
        found = exact_within(model, queries, symmetries, time_limit, Budget(CHEAP))
    except TooMuch as refusal:
        return _note(refusal.work) if refusal.work <= LONGEST else None
    except TooLarge:
        return None
    return _told(found, model.kind, symmetries, time.perf_counter() - began)


def _note(work: float) -> Notice:
    return Notice("note", f"exact would take about {show.seconds(work)}: definetti exact, or dft.exact(model)")


def _told(found: Marginals, model_kind: str, symmetries: Any, seconds: float) -> Marginals:
    """With the keys that the run of a sampler has."""
    nothing = dict.fromkeys(("estimator", "scan", "chains", "sweeps", "burn_in", "updates", "workers", "seed"))
    kind = getattr(symmetries, "kind", symmetries) or "none"
    kind = {"graph": "literals", "logic": "theory"}[model_kind] if kind == "auto" else kind
    run = {"sampler": SAMPLER, "method": found.method, "log_z": found.log_z, **nothing, "symmetries": kind}
    run["seconds"] = {"symmetries": None, "compile": None, "sample": seconds}
    return replace(found, run=run)
