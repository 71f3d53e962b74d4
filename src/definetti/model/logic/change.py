"""A Markov logic network with more evidence, or with another number of constants, without reading it again.

Rows of evidence are sorted here, checked for contradictions and completed where a `!` block leaves one value: for
the readers of files too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from definetti.errors import ModelError, TooLarge, UnknownName, suggestion
from definetti.model.logic.formulas import map_terms, terms
from definetti.model.logic.text import atom_text, block_name, find_atom
from definetti.model.logic.theory import Constant, Evidence, MarkovLogic, Predicate, Sort, Term, WeightedFormula

FALSE, TRUE, UNKNOWN = 0, 1, 2
SPOKEN = {TRUE: "true", FALSE: "false", UNKNOWN: "unknown"}
MOST_CONSTANTS = 2_000_000  # of one sort


# --- rows of evidence -------------------------------------------------------------------------------------------------


class Contradiction(Exception):
    """Two rows say different things of one atom."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first, self.second = first, second


class NoValue(Exception):
    """A `!` block has no value, or several: `rows` are the atoms that say so."""

    def __init__(self, rows: list[tuple[int, ...]], why: str) -> None:
        super().__init__(why)
        self.rows, self.why = rows, why


def distinct_rows(tuples: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The rows to keep: each once, in lexicographic order. `Contradiction` where one has two values."""
    if tuples.shape[1] and prod(shape) < 2**62:
        keys = np.asarray(np.ravel_multi_index(tuple(tuples.T), shape))
    else:
        keys = np.unique(tuples, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    clash = np.flatnonzero(same & (values[order[1:]] != values[order[:-1]]))
    if len(clash):
        raise Contradiction(*(int(order[clash[0] + k]) for k in (0, 1)))
    return order[np.concatenate([[True], ~same])] if len(order) else order


def complete_blocks(
    predicate: Predicate, shape: tuple[int, ...], tuples: np.ndarray, values: np.ndarray, closed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A true atom makes the others of its `!` block false; in an open predicate the last one left becomes true. (What
    is not stated in a closed predicate is false, or left open: `model/logic/evidence.py` decides such blocks.)"""
    outer = [k for k in range(len(shape)) if k not in predicate.exclusive]
    inner_size = prod(shape[k] for k in predicate.exclusive)
    blocks: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    for row, value in zip(tuples.tolist(), values.tolist(), strict=True):
        block = blocks.setdefault(tuple(row[k] for k in outer), {})
        block[tuple(row[k] for k in predicate.exclusive)] = value
    rows: list[tuple[tuple[int, ...], int]] = []
    for place, block in blocks.items():
        true = [inner for inner, value in block.items() if value == TRUE]
        missing = inner_size - len(block)
        if len(true) > 1 or (not true and missing == 0):
            members = [_place(place, inner, outer, predicate.exclusive) for inner in true or block]
            raise NoValue(members, "more than one atom is true" if true else "no atom can be true")
        if true or (missing == 1 and not closed):
            for inner in np.ndindex(*(shape[k] for k in predicate.exclusive)):
                block.setdefault(inner, FALSE if true else TRUE)
        rows += [(_place(place, inner, outer, predicate.exclusive), value) for inner, value in block.items()]
    rows.sort()
    return np.array([r for r, _ in rows], np.int32).reshape(-1, len(shape)), np.array([v for _, v in rows], np.int8)


def _place(
    outer_values: tuple[int, ...], inner_values: tuple[int, ...], outer: list[int], inner: tuple[int, ...]
) -> tuple[int, ...]:
    found = dict(zip(outer, outer_values, strict=True)) | dict(zip(inner, inner_values, strict=True))
    return tuple(found[k] for k in range(len(found)))


def check_closed_blocks(model: MarkovLogic) -> None:
    """A closed `!` predicate needs, in every block, a true atom or one that is left open."""
    for predicate in (model.predicates[name] for name in model.closed if model.predicates[name].exclusive):
        shape, known = model.shape(predicate.name), model.evidence.get(predicate.name)
        outer = [k for k in range(len(shape)) if k not in predicate.exclusive]
        possible = np.zeros(tuple(shape[k] for k in outer), dtype=bool)
        true = known.tuples[known.values == TRUE] if known is not None else np.empty((0, len(shape)), int)
        for rows in (true, model.unknown.get(predicate.name)):
            if rows is not None and len(rows):
                possible[tuple(rows[:, outer].T)] = True
        if not possible.all():
            row = np.zeros(len(shape), dtype=int)
            row[outer] = np.argwhere(~possible)[0]
            name = block_name(predicate, _constants(model, predicate, row))
            raise ModelError(
                f"{predicate.name} is closed, but the evidence gives {name} no value; state one, or leave it open"
            )


def _constants(model: MarkovLogic, predicate: Predicate, row: Sequence[int] | np.ndarray) -> list[str]:
    return [model.sorts[sort].constants[i] for sort, i in zip(predicate.sorts, row, strict=True)]


def read_only(array: np.ndarray, dtype: type) -> np.ndarray:
    out = np.array(array, dtype=dtype, order="C")
    out.flags.writeable = False
    return out


# --- more evidence ----------------------------------------------------------------------------------------------------


def with_evidence(model: MarkovLogic, evidence: Mapping[str, bool | None]) -> MarkovLogic:
    """The model with more atoms observed (`MarkovLogic.condition`)."""
    if not isinstance(evidence, Mapping):
        kind = type(evidence).__name__
        raise ModelError(f"evidence is a mapping such as {{'Smokes(Anna)': True}}, not a {kind}")
    stated: dict[str, list[tuple[tuple[int, ...], int]]] = {}
    for text, value in evidence.items():
        if value is not None and (isinstance(value, str) or value not in (True, False)):
            raise ModelError(f"the evidence on {text} is {value!r}; it must be True, False or None")
        name, constants = find_atom(model, str(text))
        stated.setdefault(name, []).append((constants, UNKNOWN if value is None else int(value)))
    known, unknown = dict(model.evidence), dict(model.unknown)
    for name, rows in stated.items():
        found, left_open = _merged(model, model.predicates[name], rows)
        if len(found.values):
            known[name] = found
        if len(left_open) and name in model.closed:
            unknown[name] = left_open
        else:
            unknown.pop(name, None)
    changed = replace(model, evidence=known, unknown=unknown)
    check_closed_blocks(changed)
    return changed


def _merged(
    model: MarkovLogic, predicate: Predicate, rows: list[tuple[tuple[int, ...], int]]
) -> tuple[Evidence, np.ndarray]:
    """What is known of a predicate with these rows too, and the rows that are left open."""
    shape, old = model.shape(predicate.name), model.evidence.get(predicate.name)
    tuples = np.array([row for row, _ in rows], dtype=np.int32).reshape(len(rows), len(shape))
    values = np.array([value for _, value in rows], dtype=np.int8)
    if old is not None:
        tuples, values = np.concatenate([old.tuples, tuples]), np.concatenate([old.values, values])
    try:
        keep = distinct_rows(tuples, values, shape)
        tuples, values = tuples[keep], values[keep]
        left_open = _still_open(model.unknown.get(predicate.name), tuples, values, shape)
        tuples, values = tuples[values != UNKNOWN], values[values != UNKNOWN]
        if predicate.exclusive:
            tuples, values = complete_blocks(predicate, shape, tuples, values, predicate.name in model.closed)
    except Contradiction as clash:
        atom = atom_text(model, predicate.name, tuples[clash.second].tolist())
        before, now = SPOKEN[int(values[clash.first])], SPOKEN[int(values[clash.second])]
        raise ModelError(f"contradicting evidence: {atom} is {before} already and cannot be {now}") from None
    except NoValue as clash:
        name = block_name(predicate, _constants(model, predicate, clash.rows[0]))
        raise ModelError(f"contradicting evidence: in {name} {clash.why}, exactly one must be") from None
    return Evidence(read_only(tuples, np.int32), read_only(values, np.int8)), left_open


def _still_open(
    before: np.ndarray | None, tuples: np.ndarray, values: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """The rows left open before and now, without those that are known now."""
    now = tuples[values == UNKNOWN]
    if before is None or not len(before):
        return read_only(now, np.int32)
    known = set(map(tuple, tuples[values != UNKNOWN].tolist()))
    kept = [row for row in before.tolist() if tuple(row) not in known]
    both = np.concatenate([np.array(kept, dtype=np.int32).reshape(len(kept), len(shape)), now])
    return read_only(both[distinct_rows(both, np.zeros(len(both), np.int8), shape)], np.int32)


# --- other domains ----------------------------------------------------------------------------------------------------


def check_size(sort: str, size: object) -> int:
    """A number of constants that a sort can have."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ModelError(f"the domain of {sort} must be a number of constants, at least 1, not {size!r}")
    if size > MOST_CONSTANTS:
        raise TooLarge(f"the domain of {sort}", int(size), MOST_CONSTANTS, "ask for fewer", unit="constants")
    return int(size)


def new_constants(sort: str, taken: Iterable[str], number: int) -> list[str]:
    """Names such as Person1, Person2, … that are not taken."""
    seen, first = set(taken), f"{sort[0].upper()}{sort[1:]}"
    names = [name for k in range(1, number + len(seen) + 1) if (name := f"{first}{k}") not in seen]
    return names[: max(0, number)]


def with_domain(model: MarkovLogic, sizes: Mapping[str, int]) -> MarkovLogic:
    """The model with other numbers of constants (`MarkovLogic.with_domain`)."""
    for name, size in sizes.items():
        if name not in model.sorts:
            raise UnknownName(f"the model has no sort {name!r}{suggestion(name, model.sorts)}")
        model = _resized(model, model.sorts[name], check_size(name, size))
    check_closed_blocks(model)
    return model


def _resized(model: MarkovLogic, sort: Sort, size: int) -> MarkovLogic:
    if size == sort.size:
        return model
    if sort.name in model.sized:
        cure = f"read it again with domain={{{sort.name!r}: {size}}}"
        raise ModelError(f"the formulas were written out for the {sort.size} constants of {sort.name}; {cure}")
    for name in (*model.evidence, *model.unknown):
        predicate = model.predicates[name]
        if any(predicate.sorts[k] == sort.name for k in predicate.exclusive):
            cure = f"read it again with domain={{{sort.name!r}: {size}}}"
            raise ModelError(f"the evidence on {name} is about the {sort.size} values of {sort.name}; {cure}")
    kept = np.arange(sort.size) if size > sort.size else _kept(model, sort, size)
    names = [sort.constants[i] for i in kept.tolist()]
    names += new_constants(sort.name, sort.constants, size - len(names))
    number = np.full(sort.size, -1, dtype=np.int32)  # old → new
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return replace(
        model,
        sorts={**model.sorts, sort.name: Sort(sort.name, tuple(names))},
        formulas=tuple(_renumbered(formula, sort, number, kept, size) for formula in model.formulas),
        evidence={
            name: Evidence(_moved(model, name, known.tuples, sort, number), known.values)
            for name, known in model.evidence.items()
        },
        unknown={name: _moved(model, name, rows, sort, number) for name, rows in model.unknown.items()},
    )


def _kept(model: MarkovLogic, sort: Sort, size: int) -> np.ndarray:
    """The constants of a smaller domain: those that formulas and evidence name, and the first of the others."""
    named = {t.index for f in model.formulas for t in terms(f.body) if isinstance(t, Constant) and t.sort == sort.name}
    stated = [(name, known.tuples) for name, known in model.evidence.items()] + list(model.unknown.items())
    for name, rows in stated:
        for place, other in enumerate(model.predicates[name].sorts):
            if other == sort.name:
                named.update(np.unique(rows[:, place]).tolist())
    if len(named) > size:
        some = ", ".join(sort.constants[i] for i in sorted(named)[:5])
        message = f"formulas and evidence name {len(named)} constants of sort {sort.name} ({some}"
        raise ModelError(f"{message}{', …' if len(named) > 5 else ''}): its domain cannot shrink to {size}")
    others = [i for i in range(sort.size) if i not in named]
    return np.array(sorted([*named, *others[: size - len(named)]]), dtype=np.int64)


def _moved(model: MarkovLogic, name: str, rows: np.ndarray, sort: Sort, number: np.ndarray) -> np.ndarray:
    """Rows of constants under their new numbers, whose order is that of the old ones."""
    columns = [
        number[rows[:, k]] if other == sort.name else rows[:, k] for k, other in enumerate(model.predicates[name].sorts)
    ]
    return read_only(np.stack(columns, axis=1), np.int32) if columns else rows


def _renumbered(
    formula: WeightedFormula, sort: Sort, number: np.ndarray, kept: np.ndarray, size: int
) -> WeightedFormula:
    def moved(term: Term) -> Term:
        if isinstance(term, Constant) and term.sort == sort.name:
            return Constant(sort.name, int(number[term.index]))
        return term

    weight = formula.weight
    for axis, name in enumerate(formula.plus):
        if formula.sorts[name] == sort.name:
            weight = _weights(np.asarray(weight), axis, sort, kept, size)
    return replace(formula, body=map_terms(formula.body, moved), weight=weight)


def _weights(weight: np.ndarray, axis: int, sort: Sort, kept: np.ndarray, size: int) -> np.ndarray:
    """The weights of a `+` variable: those of the constants that stay, and the common one for new constants."""
    stay = np.take(weight, kept, axis=axis)
    if size <= len(kept):
        return stay
    common = np.take(weight, [0], axis=axis)
    if not (weight == common).all():
        raise ModelError(f"the constants of {sort.name} have different weights, and new ones would have none")
    return np.concatenate([stay, np.repeat(common, size - len(kept), axis=axis)], axis=axis)
