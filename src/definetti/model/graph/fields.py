"""What a factor graph as it was given says of each variable alone: `simplify` moves more into unary factors."""

from __future__ import annotations

import numpy as np

from definetti.integer_rows import first_and_number
from definetti.model.graph.factors import FREE, FactorGraph


def given_fields(model: FactorGraph) -> np.ndarray:
    """float64[literals]: the sum of the log weights of factors over one free variable, evidence put in."""
    out = np.zeros(int(model.literal_start[-1]))
    for alike in model.by_shape:
        scopes = alike.scopes
        seen = model.evidence[scopes]
        alone = (seen == FREE).sum(axis=1) == 1
        if not alone.any():
            continue
        first, which = first_and_number(alike.tables)
        tables = model.entries(alike.take(first))
        for axis in range(alike.arity):
            rows = np.flatnonzero(alone & (seen[:, axis] == FREE))
            if not len(rows):
                continue
            others = [k for k in range(alike.arity) if k != axis]
            card = tables.shape[axis + 1]
            slices = np.moveaxis(tables, axis + 1, -1)[(which[rows], *(seen[rows, k] for k in others))]
            np.add.at(out, model.literal_start[scopes[rows, axis]][:, None] + np.arange(card), slices)
    return out
