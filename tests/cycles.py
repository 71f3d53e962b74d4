"""Generators in cycle notation, as `parse_cycles` reads it: for round trips."""

from __future__ import annotations

import numpy as np

from definetti.groups import Generator
from definetti.model.graph.factors import FactorGraph


def to_cycles(generator: Generator) -> list[list[int]]:
    """The cycles, each starting at its smallest point, in the order of these."""
    image = dict(zip(generator[0].tolist(), generator[1].tolist(), strict=True))
    cycles = []
    while image:
        start = next(iter(image))
        cycle, x = [start], image.pop(start)
        while x != start:
            cycle.append(x)
            x = image.pop(x)
        cycles.append(cycle)
    return cycles


def format_cycles(model: FactorGraph, generator: Generator) -> str:
    """The generator in cycle notation: over variables where it keeps values, else over literals."""
    start = model.literal_start
    points, images = generator
    at, to = (np.searchsorted(start, x, side="right") - 1 for x in (points, images))
    if ((points - start[at]) == (images - start[to])).all():
        whole = points == start[at]  # the first value of each moved variable
        cycles = to_cycles((at[whole], to[whole]))
        return "".join(f"({' '.join(model.names[i] for i in cycle)})" for cycle in cycles)
    return "".join(f"({' '.join(_literal(model, x) for x in cycle)})" for cycle in to_cycles(generator))


def _literal(model: FactorGraph, literal: int) -> str:
    i = int(np.searchsorted(model.literal_start, literal, side="right")) - 1
    v = literal - int(model.literal_start[i])
    labels = model.value_names.get(i)
    return f"{model.names[i]}={labels[v] if labels else v}"
