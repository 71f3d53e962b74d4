"""The model that is asked about, ready for inference: with weights, and with Alchemy's closed world if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from definetti.errors import ModelError, Notice

WORLDS = ("open", "alchemy")


def with_world(model: Any, queries: Sequence[object], world: str) -> tuple[Any, tuple[Notice, ...]]:
    """The model, and what to say of it."""
    if world not in WORLDS:
        raise ModelError(f"world is 'open' or 'alchemy', not {world!r}")
    if model.kind != "logic":
        if world != "open":
            raise ModelError("world='alchemy' is for Markov logic; a factor graph has no closed predicates")
        return model, ()
    model.require_weights()
    if world == "open":
        return model, ()
    from definetti.readers.logic.queries import alchemy_world

    return alchemy_world(model, [query for query in queries if isinstance(query, str)])


def language(model: Any) -> dict[str, str]:
    """What is taken for false without being said, and the dialect that was read: for the record of a run."""
    if model.kind != "logic":
        return {"world": "open"}
    closed = sorted(model.closed - model.computed)
    return {"world": f"closed: {','.join(closed)}" if closed else "open", "dialect": model.dialect}
