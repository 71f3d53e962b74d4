"""A notice about draws whose indicators and full conditionals have different means: the test of E[F − G] = 0.

F is the mean of an orbit's indicators, G that of its full conditionals at the same states. For draws of the model the
two have the same mean, orbit by orbit, whatever sampler made them. Draws that fail are biased, or belong to another
model: wrong weights, a mistake in a sampler, samples of another model. Draws that pass may still have wrong weights of
modes: inside each mode the test is satisfied, and chains that never leave one pass it. It is not a test of mixing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from definetti.diagnose import balance_scores, family_score
from definetti.errors import Notice
from definetti.samplers.conditionals import Balance

LARGEST = 3.9  # |z| after correction: of 10,000 runs that are right one fails
SHOWN = 3
CURES = {
    "samples": "Are these samples of this model, with these weights and this evidence?",
    "run": "This sampler should be exact",
}


def bias_findings(
    balance: Balance | None, frequency: np.ndarray, name_of: Callable[[int], str], cure: str
) -> tuple[dict[str, Any], list[Notice]]:
    """What `run` says of the test, and the notice if it fails. `frequency` of each statistic in the draws."""
    if balance is None:
        return {}, []
    mean, tail = balance_scores(balance.differences, balance.looks, balance.variance, balance.step)
    z = family_score(tail)
    tested = int((~np.isnan(tail[:-1])).sum())
    states = int(balance.looks.sum()) * balance.differences.shape[1]
    found = {"z": None if np.isnan(z) else z, "tested": tested, "statistics": len(tail) - 1, "states": states}
    if not z > LARGEST:
        return {"bias": found}, []
    limit = np.log(2.0) - LARGEST**2 / 2 - np.log(max(tested + 1, 1))
    worst = [k for k in np.argsort(tail[:-1]).tolist() if tail[k] < limit]
    shown = [f"{name_of(k)}: {frequency[k]:.4g} in the draws, {frequency[k] - mean[k]:.4g}" for k in worst[:SHOWN]]
    if shown:
        text = f"the worst of {tested} numbers: " + " by the conditionals; ".join(shown) + " by the conditionals"
    else:
        text = "no single number stands out, all variables together do"
    text = f"the draws do not fit the full conditionals of the model at the same states (|z| = {z:.3g}): {text}"
    return {"bias": found}, [Notice("biased", f"{text}. {cure}")]
