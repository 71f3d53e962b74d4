"""Models as trees of arrays, numbers and texts, bit by bit, and back: checkpoints keep them so.

What comes back is checked like any other input: `ValueError` and its like for what no model is encoded as.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def encoded(model: Any) -> dict[str, Any]:
    return {"kind": model.kind, "parts": _door(model.kind).encoded(model)}


def decoded(tree: Any) -> Any:
    if tree["kind"] not in ("graph", "logic"):
        raise ValueError
    return _door(tree["kind"]).decoded(tree["parts"])


def _door(kind: str) -> Any:
    """The module for this kind of model, the other kind's not loaded."""
    return import_module(f"definetti.model.{kind}.encoding")
