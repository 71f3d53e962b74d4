"""`write`: a model or its evidence as a file that other programs read, and we again.

A factor graph as .uai and .evid, a Markov logic network as .mln and .db.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from os import PathLike
from pathlib import Path

import numpy as np

from definetti.errors import ModelError
from definetti.files import as_path, write_atomically
from definetti.model.checked_input import require_model
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.logic.text import format_db, format_mln
from definetti.model.logic.theory import MarkovLogic

SPAN = 700.0  # exp of ±700 is a normal double


def write(
    model: FactorGraph | MarkovLogic, path: str | PathLike[str], *, evidence: str | PathLike[str] | None = None
) -> Path:
    """Write a model, or its evidence, in the format that the suffix names.

    Files appear whole or not at all. A .uai file has no names: variables become X0, X1, … in their order. An .mln file
    does not say which predicates are closed: give `closed_world` again when it is read.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        What to write.
    path : path
        The file: .uai (a factor graph), .mln (a Markov logic network), or .evid and .db for their evidence alone.
    evidence : path, optional
        Beside a .uai or .mln file: where to write the evidence. It is needed where the model has any.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelError
        Where the suffix does not fit the model, where evidence would be lost, or where the file cannot be written.

    Examples
    --------
    >>> import tempfile, definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[1, 2], [2, 1]])]).condition({"X0": 1})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = dft.write(model, f"{folder}/pair.uai", evidence=f"{folder}/pair.evid")
    ...     dft.read(file, f"{folder}/pair.evid")
    FactorGraph(2 variables, 1 observed, 1 factors, 1 tables)
    """
    require_model(model, "write needs a model (save writes answers)")
    path = as_path(path, "the place of a model")
    whole, part = (".uai", ".evid") if model.kind == "graph" else (".mln", ".db")
    _check_suffix(path, (whole, part), model)
    if evidence is not None:
        _check_suffix(as_path(evidence, "the place of the evidence"), (part,), model)
    lines = _evidence if isinstance(model, FactorGraph) else format_db
    known = lines(model)  # type: ignore[arg-type]
    if path.suffix.lower() == part:
        write_atomically(path, known)
        return path
    if evidence is None and (len(model.free) < model.n if isinstance(model, FactorGraph) else known):
        raise ModelError(f"the model has evidence, which a {whole} file cannot hold; give evidence='…{part}' as well")
    text = "".join(_lines(model)) if isinstance(model, FactorGraph) else format_mln(model)
    if evidence is not None:
        write_atomically(evidence, known)
    write_atomically(path, text)
    return path


def _check_suffix(path: Path, wanted: tuple[str, ...], model: FactorGraph | MarkovLogic) -> None:
    if path.suffix.lower() not in wanted:
        what = f"a {type(model).__name__} or its evidence" if len(wanted) > 1 else "the evidence"
        raise ModelError(f"cannot write {path.name}: the name of a file for {what} ends in {' or '.join(wanted)}")


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
                raise ModelError(f"factor {factor} has weights that differ by exp({span:.4g}): no double holds that")
        texts.append(f"\n{hi - lo}\n{' '.join(map(repr, np.exp(table - shifts[t]).tolist()))}\n")
    return shifts, texts


def _evidence(model: FactorGraph) -> str:
    seen = np.flatnonzero(model.evidence != FREE).tolist()
    return " ".join([str(len(seen)), *(f"{i} {model.evidence[i]}" for i in seen)]) + "\n"
