"""What a trap is: a model of either kind, and its answers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

Answers = Mapping[str, float | tuple[float, float]]  # a probability, or bounds of it


@dataclass(frozen=True)
class Theory:
    """Markov logic as text, with evidence."""

    text: str
    evidence: Mapping[str, bool] = field(default_factory=dict)
    domain: Mapping[str, int] = field(default_factory=dict)

    def build(self) -> Any:
        import definetti as dft

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mln"
            path.write_text(self.text)
            return dft.read(path, dict(self.evidence) or None, domain=dict(self.domain) or None)


@dataclass(frozen=True, eq=False)
class Tables:
    """A factor graph: how many values each variable has, and (scope, log table) pairs."""

    cards: Sequence[int]
    factors: Sequence[tuple[tuple[int, ...], np.ndarray]]

    def build(self) -> Any:
        import definetti as dft

        number = {id(table): table for _, table in self.factors}
        place = {key: i for i, key in enumerate(number)}
        return dft.FactorGraph.from_arrays(
            np.array(self.cards),
            np.cumsum([0, *(len(scope) for scope, _ in self.factors)]),
            np.array([i for scope, _ in self.factors for i in scope]),
            np.array([place[id(table)] for _, table in self.factors]),
            list(number.values()),
        )


@dataclass(frozen=True, eq=False)
class Trap:
    """A model and its answers. A variable of several values is asked as an event: `X0=1`."""

    name: str
    source: Theory | Tables
    solve: Callable[[], Answers]
    beyond_exact: bool = False
    family: str = ""
    queries: tuple[str, ...] = ()  # asked, where there is no truth
    options: Mapping[str, Any] = field(default_factory=dict)  # of `marginals`

    @cached_property
    def truth(self) -> dict[str, tuple[float, float]]:
        """Query → lower and upper bound, equal where the probability is known."""
        return {q: p if isinstance(p, tuple) else (p, p) for q, p in self.solve().items()}

    def build(self) -> Any:
        return self.source.build()
