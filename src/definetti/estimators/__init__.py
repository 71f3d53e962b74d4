"""Estimators: what the streams F and G say about a marginal. One file each; the table below is where they register.

An estimator turns `Draws` into `Estimates`: per statistic its value, and the batch means whose spread is its error.
"""

from __future__ import annotations

from collections.abc import Callable

from definetti.errors import ModelError
from definetti.estimators import auto, conditional, control, orbit, standard
from definetti.estimators.values import Estimates
from definetti.samplers.draws import Draws

ESTIMATORS: dict[str, Callable[[Draws], Estimates]] = {
    "auto": auto.estimate,
    "standard": standard.estimate,
    "orbit": orbit.estimate,
    "conditional": conditional.estimate,
    "control": control.estimate,
}


def choose(name: str) -> str:
    """The name of a known estimator."""
    if name not in ESTIMATORS:
        raise ModelError(f"estimator {name!r} is not known; choose one of {', '.join(ESTIMATORS)}")
    return name
