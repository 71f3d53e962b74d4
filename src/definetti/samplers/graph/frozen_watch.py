"""Watching for frozen variables: after sweeps, which variables could have moved, until all have been seen to.

A variable is frozen if it had no second possible value given all others at any look in any chain and never changed.
In a model without hard factors nothing is; in a healthy one the list is empty after a few sweeps, and the watch costs
nothing from then on. In debug mode (the environment variable DEFINETTI_DEBUG) every sweep's states are also checked
to be legal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.lanes import Block
from definetti.samplers.run import Illegal, debugging

FEW = 1 << 14  # (variables × chains): below this the watch looks after every sweep, above it after every chunk of them
MOST_ASKED = 5000  # variables for which the solver is asked whether they are forced


def hard_parts(model: FactorGraph) -> Any:
    """The hard factors of a model as arrays for `kernels/graph/frozen_watch.py`."""
    from definetti.samplers.kernels.graph import frozen_watch as kernels

    factors = model.hard_factors
    arity = model.arity[factors]
    start = np.concatenate([[0], np.cumsum(arity)]).astype(np.int64)
    factor = np.repeat(np.arange(len(factors)), arity)
    place = model.scope_start[factors][factor] + np.arange(len(factor)) - start[factor]
    scope = model.scope[place]
    return kernels.HardParts(
        touch_start=np.concatenate([[0], np.cumsum(np.bincount(scope, minlength=model.n))]).astype(np.int64),
        touch=np.argsort(scope, kind="stable").astype(np.int64),
        factor=factor.astype(np.int64),
        start=start,
        scope=np.ascontiguousarray(scope, dtype=np.int32),
        stride=np.ascontiguousarray(model.strides[place]),
        first=np.ascontiguousarray(model.table_start[model.table_of[factors]]),
        possible=~np.isneginf(model.tables),
        cards=model.cards.astype(np.int64),
    )


class Watch:
    """The variables of one block that have not been seen to move yet."""

    def __init__(self, model: FactorGraph, parts: Any, block: Block, lanes: int, suspects: np.ndarray) -> None:
        from definetti.samplers.kernels.graph import frozen_watch as kernels

        self._kernels, self._parts, self._block, self._lanes, self._model = kernels, parts, block, lanes, model
        self._mask = np.uint8(block.mask)
        self._began = block.state[:, :lanes] & self._mask
        self._before = np.zeros((0, 0), dtype=np.uint8)
        self._waiting = suspects.astype(np.int64)
        self._count = np.array(len(suspects))  # of the variables at the front of `_waiting`
        self._debug = debugging()

    @property
    def stuck(self) -> np.ndarray:
        return self._waiting[: int(self._count)]

    @property
    def every_sweep(self) -> bool:
        return self._debug or 0 < int(self._count) * self._lanes <= FEW

    def look(self) -> None:
        if self._debug:
            self._check()
        if not self._count:
            return
        now = self._block.state[:, : self._lanes] & self._mask
        if np.array_equal(now, self._before):  # nothing moved since the last look
            return
        self._before = now
        self._count[...] = self._kernels.still_stuck(
            self._parts, now, np.uint8(255), self._began, self._lanes, self._waiting, int(self._count)
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return {"waiting": self._waiting, "count": self._count}

    def _check(self) -> None:
        broken = self._kernels.first_broken(self._parts, self._block.state, self._mask, self._lanes)
        if broken >= 0:
            over = self._model.variables(int(self._model.hard_factors[broken]))
            names = ", ".join(self._model.names[i] for i in over.tolist())
            raise Illegal(
                f"a chain is in an impossible state: the hard factor over ({names}) is violated; please report"
            )


def truly_frozen(model: FactorGraph, stuck: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Of the stuck variables those that have another value in some legal state: the others are forced, not frozen."""
    if not len(stuck):
        return stuck
    from definetti.constraints.graph.legal_states import possible

    asked = stuck[:MOST_ASKED]
    return np.concatenate([asked[possible(model, asked, states)], stuck[MOST_ASKED:]])
