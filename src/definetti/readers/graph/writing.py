"""Write a factor graph as .uai, and its evidence as .evid, so that other programs can read it and we can again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from os import PathLike

import numpy as np

from definetti import show
from definetti.errors import ModelError
from definetti.files import write_atomically
from definetti.model.graph.factors import FREE, FactorGraph

SPAN = 700.0  # exp of ±700 is a normal double


def write_uai(model: FactorGraph, path: str | PathLike[str], *, evidence: str | PathLike[str] | None = None) -> None:
    """Write a MARKOV file, numbers in full precision, names replaced by numbers; the evidence into a file of its own.

    The constant of the model, if it is not 0, becomes factors over no variable. The file appears whole or not at all.
    """
    if evidence is None and len(model.free) < model.n:
        raise ModelError("the model has evidence, which a .uai file cannot hold; give evidence='….evid' as well")
    text = "".join(_lines(model))
    if evidence is not None:
        write_atomically(evidence, _evidence(model))
    write_atomically(path, text)


def _lines(model: FactorGraph) -> Iterator[str]:
    shifts, texts = _tables(model)
    constant = model.log_constant + float(shifts[model.table_of].sum())
    extra = math.ceil(abs(constant) / SPAN)
    yield f"MARKOV\n{model.n}\n{' '.join(map(str, model.cards.tolist()))}\n{model.factor_count + extra}\n"
    starts, scope = model.scope_start.tolist(), model.scope.tolist()
    for lo, hi in pairwise(starts):
        yield " ".join(map(str, (hi - lo, *scope[lo:hi]))) + "\n"
    yield "0\n" * extra
    for t in model.table_of.tolist():
        yield texts[t]
    for _ in range(extra):
        yield f"\n1\n{math.exp(constant / extra)!r}\n"


def _tables(model: FactorGraph) -> tuple[np.ndarray, list[str]]:
    """What was taken off each log table so that its entries can be written, and the tables as text."""
    bounds = model.table_start.tolist()
    shifts, texts = np.zeros(len(bounds) - 1), []
    for t, (lo, hi) in enumerate(pairwise(bounds)):
        table = model.tables[lo:hi]
        finite = table[np.isfinite(table)]
        if finite.size and np.abs(finite).max() > SPAN:
            shifts[t] = (finite.max() + finite.min()) / 2
            if np.abs(finite - shifts[t]).max() > SPAN:
                factor = int(np.flatnonzero(model.table_of == t)[0])
                span = finite.max() - finite.min()
                raise ModelError(
                    f"factor {factor} has weights that differ by exp({show.number(span)}): no double holds that"
                )
        texts.append(f"\n{hi - lo}\n{' '.join(map(repr, np.exp(table - shifts[t]).tolist()))}\n")
    return shifts, texts


def _evidence(model: FactorGraph) -> str:
    seen = np.flatnonzero(model.evidence != FREE).tolist()
    return " ".join([str(len(seen)), *(f"{i} {model.evidence[i]}" for i in seen)]) + "\n"
