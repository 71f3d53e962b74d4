"""What is wrong with the arrays of a factor graph: everything that code downstream relies on is checked here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from definetti.errors import ModelError
from definetti.model.checked_input import LARGEST_LOG

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph


def whole_numbers(given: object, name: str, dtype: type) -> np.ndarray:
    """Whole numbers in one dimension, of a type that holds them; 2.5 is not cut to 2, nor 2**32 to 0."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of several lengths
        array = np.asarray(None)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ModelError(
            f"{name} is an array of whole numbers in one dimension, got {array.dtype} of shape {array.shape}"
        )
    bounds = np.iinfo(dtype)
    if array.size and not bounds.min <= int(array.min()) <= int(array.max()) <= bounds.max:
        raise ModelError(f"{name} holds a number beyond {bounds.max}")
    return array.astype(dtype, copy=False)


def fault(model: FactorGraph, shapes: Sequence[tuple[int, ...]] = ()) -> str:
    """A sentence that says what is wrong, or nothing; `shapes`: of the tables as they were given, flat or with axes."""
    wrong = _variables(model) or _starts(model) or _logarithms(model)
    if wrong:
        return wrong
    arity = np.diff(model.scope_start)
    for k in np.unique(arity).tolist():
        factors = np.flatnonzero(arity == k)
        wrong = _factors(model, factors, model.scope[model.scope_start[factors][:, None] + np.arange(k)], shapes)
        if wrong:
            return wrong
    return ""


def _variables(model: FactorGraph) -> str:
    cards, evidence, n = model.cards, model.evidence, len(model.cards)
    for kind in set(map(type, model.names)):
        if not issubclass(kind, str):
            return f"the name of a variable is a text, got one of type {kind.__name__}"
    if len(model.names) != n or len(set(model.names)) != n:
        return f"{n} variables need as many different names, got {len(set(model.names))}"
    if (cards < 1).any():
        return f"a variable has {cards.min()} values; it needs 1 or more"
    if len(evidence) != n:
        return f"the evidence of {n} variables has {len(evidence)} entries"
    if ((evidence < -1) | (evidence >= cards)).any():
        i = int(np.argmax((evidence < -1) | (evidence >= cards)))
        return (
            f"the evidence of {model.names[i]} is {evidence[i]}; it has the values 0 to {cards[i] - 1}, and -1 is none"
        )
    for i, values in model.value_names.items():
        named = isinstance(values, Sequence) and not isinstance(values, str) and all(isinstance(v, str) for v in values)
        if not isinstance(i, int | np.integer) or not named:
            return f"value_names has the names of a variable's values by its number, got {i!r}: {values!r}"
        if not 0 <= i < n or len(values) != cards[i] or len(set(values)) != len(values):
            return f"the values of variable {i} need as many different names as there are, got {list(values)}"
    return "" if np.isfinite(model.log_constant) else f"the logarithm of a constant factor is {model.log_constant}"


def _starts(model: FactorGraph) -> str:
    count = len(model.table_of)
    if len(model.scope_start) != count + 1 or not _covers(model.scope_start, len(model.scope)):
        return f"the scopes of {count} factors need {count + 1} starts, ascending from 0 to {len(model.scope)}"
    if not _covers(model.table_start, len(model.tables)):
        return "the tables overlap, or leave entries out"
    return outside(model.scope, len(model.cards), "variable") or outside(
        model.table_of, len(model.table_start) - 1, "table"
    )


def outside(numbers: np.ndarray, limit: int, what: str) -> str:
    if not len(numbers) or (numbers.min() >= 0 and numbers.max() < limit):
        return ""
    return f"a factor has the {what} {numbers[(numbers < 0) | (numbers >= limit)][0]}, but there are {limit}"


def _covers(starts: np.ndarray, count: int) -> bool:
    return len(starts) > 0 and bool(starts[0] == 0 and starts[-1] == count and (np.diff(starts) >= 0).all())


def _logarithms(model: FactorGraph) -> str:
    bad = ~(np.abs(model.tables) <= LARGEST_LOG) & (model.tables != -np.inf)
    if not bad.any():
        return ""
    entry = int(np.argmax(bad))
    table = int(np.searchsorted(model.table_start, entry, side="right")) - 1
    users = np.flatnonzero(model.table_of == table)
    which = f"factor {users[0]}" if len(users) else f"table {table}"
    return f"{which} has the logarithm {model.tables[entry]:g}; it is a number up to ±{LARGEST_LOG:g}, or -inf"


def _factors(model: FactorGraph, factors: np.ndarray, scopes: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> str:
    """What is wrong with factors over as many variables each; their scopes are rows."""
    ordered = np.sort(scopes, axis=1)
    twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(twice):
        return f"factor {factors[twice[0, 0]]} names {model.names[ordered[tuple(twice[0])]]} twice"
    cards, which = model.cards[scopes], model.table_of[factors]
    sizes = np.diff(model.table_start)
    wrong = cards.prod(axis=1, dtype=np.float64) != sizes[which]
    if shapes:
        axes = np.array([len(shape) for shape in shapes])
        fits, arity = axes == scopes.shape[1], scopes.shape[1]
        wrong |= ~(fits | (axes == 1))[which]
        sides = np.zeros((len(shapes), arity), dtype=np.int64)
        sides[fits] = np.array([shape for shape in shapes if len(shape) == arity]).reshape(int(fits.sum()), arity)
        wrong |= fits[which] & (cards != sides[which]).any(axis=1)
    if not wrong.any():
        return ""
    k = int(np.argmax(wrong))
    got = tuple(shapes[which[k]]) if shapes else (int(sizes[which[k]]),)
    return f"factor {factors[k]} needs a table of shape {tuple(cards[k].tolist())}, got {got}"
