"""Estimators: what the streams F and G say about a marginal. One file each; the table below is where they register.

An estimator turns `Draws` into `Estimates`: per statistic its value, and the batch means whose spread is its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from definetti.errors import ModelError

if TYPE_CHECKING:
    from definetti.estimators.values import Estimates
    from definetti.samplers.draws import Draws


@dataclass(frozen=True)
class Entry:
    """An estimator: the function `estimate` of its module, which is loaded when it is first called."""

    home: str  # module
    help: str
    conditionals: bool = False  # whether there is no estimate without full conditionals

    def __call__(self, draws: Draws) -> Estimates:
        return import_module(self.home).estimate(draws)


ESTIMATORS = {
    "auto": Entry("definetti.estimators.auto", "for each number the one with the least variance"),
    "standard": Entry("definetti.estimators.standard", "means of the draws"),
    "orbit": Entry("definetti.estimators.orbit", "means over orbits too"),
    "conditional": Entry("definetti.estimators.conditional", "means of full conditionals over orbits", True),
    "control": Entry("definetti.estimators.control", "orbit means with control variates", True),
}


def choose(name: str) -> str:
    """The name of a known estimator."""
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelError(f"estimator {name!r} is not known; choose one of {', '.join(ESTIMATORS)}")
    return name


def help_text() -> str:
    """What `--help` says of the estimators."""
    return "; ".join(f"{name}: {entry.help}" for name, entry in ESTIMATORS.items()) + "."
